//! Arguments of the commands that stay within the user's project: `status` and `rerun`.

use std::path::PathBuf;

use clap::Args;

/// The directory tree that a command stays in.
#[derive(Debug, Clone, Default, Args)]
pub struct ScopeArgs {
    /// The directory tree of the project. By default it is the nearest directory with `.git` at or
    /// above the current directory, else the current directory
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath, conflicts_with = "outside")]
    pub root: Option<PathBuf>,

    /// Also go outside the directory tree of the project
    #[arg(long)]
    pub outside: bool,
}
