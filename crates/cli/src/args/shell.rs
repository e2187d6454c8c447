//! Arguments of `shell` and `init`.

use std::ffi::OsString;

use backstory_vocabulary::ContentsMode;
use clap::Args;

use super::record::words;
use crate::recorded_shell::ShellKind;

/// The text after the options in the help of `shell`.
pub const SHELL: &str = "Examples:\n  \
    backstory shell\n  \
    backstory shell -- zsh\n  \
    backstory log                     in the shell: the lines that were typed\n  \
    backstory of report.pdf           the line that made the file\n\n\
    A line that begins with a space is not recorded. Exit status: that of the shell.\n\
    Without root, `sudo` does not work in the shell (see docs/howto/shell.md).";

/// The text after the options in the help of `init`.
pub const INIT: &str = "Examples:\n  \
    eval \"$(backstory init bash)\"     the last line of ~/.bashrc\n  \
    eval \"$(backstory init zsh)\"      the last line of ~/.zshrc\n  \
    backstory init fish | source      the last line of ~/.config/fish/config.fish\n\n\
    The line replaces an interactive shell by a recorded one.";

/// `shell`
#[derive(Debug, Args)]
pub struct ShellArgs {
    /// Which contents of files to store: `lazy` stores what was read and what is left at the end,
    /// `all` stores every version, `off` stores nothing
    #[arg(long, value_name = "MODE", value_parser = words::<ContentsMode>(), default_value_t = ContentsMode::Lazy)]
    pub contents: ContentsMode,

    /// Also redact the values of environment variables and options whose names match PATTERN
    /// (repeatable; `*` matches anything)
    #[arg(long, value_name = "PATTERN")]
    pub redact: Vec<String>,

    /// The shell and its arguments; by default $SHELL
    #[arg(
        value_name = "SHELL",
        last = true,
        value_hint = clap::ValueHint::CommandWithArguments
    )]
    pub shell: Vec<OsString>,
}

/// `init`
#[derive(Debug, Args)]
pub struct InitArgs {
    /// The shell whose start-up file evaluates the output
    #[arg(value_name = "SHELL")]
    pub shell: ShellKind,
}
