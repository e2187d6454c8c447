//! Arguments of the commands that search: `log`, `files`.

use backstory_eventlog::event::Time;
use clap::Args;

use super::runs::RunArgs;
use crate::when;

/// The text after the options in the help of `files`.
pub const FILES: &str = "Examples:\n  \
    backstory files                          files of the latest run\n  \
    backstory files nightly --exclude '/usr/**'\n  \
    backstory files --all                    also system files, one by one\n  \
    backstory files --json | jq -r '.[]|select(.access|index(\"write\")).path'";

/// The text after the options in the help of `log`.
pub const LOG: &str = "Examples:\n  \
    backstory log -n 20\n  \
    backstory log --failed --since '2 days ago'\n  \
    backstory log --file 'results/*.csv'     runs that read or changed such a file\n  \
    backstory log --command make --name 'nightly*'\n  \
    backstory log --running\n  \
    backstory log --json | jq -r '.[].run'\n  \
    backstory log --raw 7hx2k9qa | less      every operation, as recorded\n\n\
    A run must meet all conditions. At a terminal, times are relative and lines are cut\n\
    to its width.";

/// `files`
#[derive(Debug, Args)]
pub struct FilesArgs {
    /// Which run, and how to print
    #[command(flatten)]
    pub run: RunArgs,

    /// Leave out files whose paths match GLOB (repeatable; `*` stays within a directory, `**`
    /// crosses directories)
    #[arg(long, value_name = "GLOB")]
    pub exclude: Vec<String>,

    /// List system files one by one instead of counting them
    #[arg(long)]
    pub all: bool,
}

/// `log`
#[derive(Debug, Args)]
pub struct LogArgs {
    /// Which runs
    #[command(flatten)]
    pub which: RunChoice,

    /// List the runs that are still being recorded, and no others
    #[arg(long)]
    pub running: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    /// Print the operations of one run as they were recorded
    #[arg(long, value_name = "RUN", conflicts_with = "json")]
    pub raw: Option<String>,
}

/// Conditions on runs.
#[derive(Debug, Args)]
pub struct RunChoice {
    /// At most N runs, the newest
    #[arg(short = 'n', value_name = "N")]
    pub most: Option<usize>,

    /// Runs that started at this time or later: a date, a time of day, or a distance such as `2
    /// days ago`
    #[arg(long, value_name = "TIME", value_parser = when::parse)]
    pub since: Option<Time>,

    /// Runs that started at this time or earlier
    #[arg(long, value_name = "TIME", value_parser = when::parse)]
    pub until: Option<Time>,

    /// Runs whose command failed: another status than 0, or a signal
    #[arg(long)]
    pub failed: bool,

    /// Runs whose command matches GLOB: the whole line, or the base name of a word of it (`*`
    /// matches anything)
    #[arg(long, value_name = "GLOB")]
    pub command: Option<String>,

    /// Runs that read, executed or changed a file whose path matches GLOB. `*` stays within a
    /// directory, `**` crosses directories. Without a slash GLOB is a name in any directory
    #[arg(long, value_name = "GLOB", value_hint = clap::ValueHint::AnyPath)]
    pub file: Option<String>,

    /// Runs that were recorded on a machine whose name matches GLOB
    #[arg(long, value_name = "GLOB")]
    pub host: Option<String>,

    /// Runs whose name matches GLOB
    #[arg(long, value_name = "GLOB")]
    pub name: Option<String>,
}
