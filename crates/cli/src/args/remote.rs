//! Arguments of the command that records what ssh starts on another machine.

use std::ffi::OsString;

use backstory_vocabulary::ContentsMode;
use clap::Args;

use super::record::{CONTENTS, words};

/// The text after the options in the help of `remote-side`.
pub const REMOTE_SIDE: &str = "Examples:\n  \
    backstory remote-side --ready\n  \
    backstory remote-side --run 0123abcd --connection box/0123abcd -- 'sort in'\n\n\
    `ssh` runs it on the other machine, if `backstory record --remote` started ssh.";

/// `remote-side`
#[derive(Debug, Args)]
pub struct RemoteSideArgs {
    /// Print the version, and run nothing
    #[arg(long)]
    pub ready: bool,

    /// The id of the run
    #[arg(long, value_name = "ID", required_unless_present = "ready")]
    pub run: Option<String>,

    /// The name of the connection, which both machines record
    #[arg(long, value_name = "NAME", required_unless_present = "ready")]
    pub connection: Option<String>,

    #[arg(long, value_name = "MODE", help = CONTENTS, value_parser = words::<ContentsMode>(), default_value_t = ContentsMode::Lazy)]
    pub contents: ContentsMode,

    /// The command line for the user's login shell
    #[arg(value_name = "LINE", required_unless_present = "ready", last = true)]
    pub line: Option<OsString>,
}
