//! Arguments of `shell` and `init`.

use std::ffi::OsString;

use backstory_vocabulary::ContentsMode;
use clap::Args;

use super::record::{CONTENTS, words};
use crate::recorded_shell::ShellKind;

/// The text after the options in the help of `shell`.
pub const SHELL: &str = "Examples:\n  \
    backstory shell\n  \
    backstory shell -- zsh\n  \
    backstory log                     in the shell: the lines that were typed\n  \
    backstory of report.pdf           the line that made the file\n\n\
    A line that begins with a space is not recorded. Exit status: that of the shell.\n\
    `sudo` works in the shell. The programs that it starts are not recorded\n\
    (see docs/howto/shell.md).";

/// The text after the options in the help of `init`.
pub const INIT: &str = "Examples:\n  \
    eval \"$(backstory init bash)\"     the last line of ~/.bashrc\n  \
    eval \"$(backstory init zsh)\"      the last line of ~/.zshrc\n  \
    backstory init fish | source      the last line of ~/.config/fish/config.fish\n\n\
    The line replaces an interactive shell by a recorded one.";

/// The text after the options in the help of `pause`.
pub const PAUSE: &str = "Examples:\n  \
    backstory pause\n  \
    backstory resume\n\n\
    The lines in between are not recorded. $BACKSTORY_PAUSED names a file that\n\
    exists meanwhile, for prompts.";

/// The text after the options in the help of `config`.
pub const CONFIG: &str = "Examples:\n  \
    backstory config\n  \
    backstory config --json | jq .mistakes\n\n\
    The file is ~/.config/backstory/config.toml:\n\n  \
    [shell]\n  \
    private = [\"~/.ssh\", \"pass *\"]     lines that are not recorded\n  \
    noise = [\"ls\", \"git status\"]      of these, only the line\n  \
    remote = true                      also what ssh starts on other machines\n  \
    [limits]\n  \
    store = \"5G\"                       noise, old and large runs go first\n  \
    day = \"500M\"                       the same, for the runs of one day\n  \
    contents = \"20G\"                   stored contents; or \"none\"\n  \
    run = \"2G\"                         contents that one run stores\n  \
    file = \"500M\"                      one file\n  \
    [limits.directories]\n  \
    \"~/Videos/**\" = \"0\"              contents that one run stores of these\n\n\
    Exit status: 0 if the file has no mistake, 1 if it has one.";

/// `config`
#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `shell`
#[derive(Debug, Args)]
pub struct ShellArgs {
    #[arg(long, value_name = "MODE", help = CONTENTS, value_parser = words::<ContentsMode>(), default_value_t = ContentsMode::Lazy)]
    pub contents: ContentsMode,

    /// Also record what the lines start on other machines through ssh, scp, sftp, rsync and git
    /// (see `record --remote`)
    #[arg(long)]
    pub remote: bool,

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
