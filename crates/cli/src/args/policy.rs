//! Arguments of `policy`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The text after the options in the help of `policy`.
pub const EXAMPLES: &str = "Examples:\n  \
    backstory policy verify app.tar --policy release.toml\n  \
    backstory policy verify app.tar --policy release.toml --signers signers";

/// `policy`
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Check how a file was made against the rules of a policy
    #[command(after_help = "Examples:\n  \
        backstory policy verify app.tar --policy release.toml\n  \
        backstory policy verify app.tar --policy release.toml --signers signers\n\n\
        The present bytes of a file must be the recorded ones. Else no rule is judged.\n\
        Each failed rule is one line, followed by the files or addresses that fail it.\n\
        docs/howto/policy.md lists the fields of rules.\n\
        Exit status: 0 if every rule holds, 1 if one does not, or if the file is not as\n\
        recorded, 2 if the policy is wrong.")]
    Verify(PolicyVerifyArgs),
}

/// `policy verify`
#[derive(Debug, Args)]
pub struct PolicyVerifyArgs {
    /// The file, or a run (id or name) for all that it made, as the run left it
    #[arg(value_name = "ARTIFACT", value_hint = clap::ValueHint::AnyPath)]
    pub artifact: OsString,

    /// The policy
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub policy: PathBuf,

    /// The field `signed` is true only for seals of these signers
    #[arg(long, value_name = "FILE", alias = "allowed-signers", value_hint = clap::ValueHint::FilePath)]
    pub signers: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
