//! Arguments of the commands that search: `log`, `files`, `processes`, `who`, `tag`,
//! `compare`.

use std::ffi::OsString;
use std::path::PathBuf;

use backstory_eventlog::event::Time;
use clap::Args;

use super::lineage::Level;
use super::query::LakeBounds;
use super::runs::RunArgs;
use crate::when;

/// The text after the options in the help of `files`.
pub const FILES: &str = "Examples:\n  \
    backstory files                          files of the latest run\n  \
    backstory files --written --sort size    results, the largest first\n  \
    backstory files --by cc1 --under src     what the compiler used there\n  \
    backstory files nightly --exclude '/usr/**'\n  \
    backstory files --level process          how each path was used\n  \
    backstory files --all                    also system files, one by one\n  \
    backstory files --json | jq -r '.[]|select(.access|index(\"write\")).path'";

/// The text after the options in the help of `processes`.
pub const PROCESSES: &str = "Examples:\n  \
    backstory processes\n  \
    backstory processes --written --under build\n  \
    backstory processes --sort time          the longest first\n  \
    backstory processes nightly --json | jq '.[].argv'\n\n\
    With conditions on files, those processes are listed that used such a file.\n\
    A program is listed once, with the recorded calls of its functions below it.\n\
    --json lists each part of a program between two calls, and `show` counts these\n\
    parts.";

/// The text after the options in the help of `who`.
pub const WHO: &str = "Examples:\n  \
    backstory who report.txt                 also a file that is gone\n  \
    backstory who report.txt -n 5\n  \
    backstory who report.txt --level process  each process, in full\n  \
    backstory who 192.0.2.7                  what talked to this host\n  \
    backstory who tcp:192.0.2.7:443\n  \
    backstory who /etc/hosts --lookups --json";

/// The text after the options in the help of `peers`.
pub const PEERS: &str = "Examples:\n  \
    backstory peers\n  \
    backstory peers nightly --json | jq -r '.[].address'\n  \
    backstory uses tcp:192.0.2.7:443         files that came from that peer\n\n\
    The record has no payload: a name is from /etc/hosts or from the arguments of a\n\
    process, and bytes are not known.";

/// The text after the options in the help of `tag`.
pub const TAG: &str = "Examples:\n  \
    backstory tag 7hx2k9qa stage=final reviewed=anna\n  \
    backstory tag nightly stage=             remove the tag\n  \
    backstory tag nightly                    print the tags";

/// The text after the options in the help of `compare`.
pub const COMPARE: &str = "Examples:\n  \
    backstory compare 7hx2k9qa 8jq0a3zz\n  \
    backstory compare --tag stage=tune -n 5\n  \
    backstory compare --name 'lr-*' --csv > runs.csv\n\n\
    Rows that differ come first: metrics, parameters, tags, the run itself, and the\n\
    digests of its results.";

/// The text after the options in the help of `log`.
pub const LOG: &str = "Examples:\n  \
    backstory log -n 20\n  \
    backstory log --failed --since '2 days ago'\n  \
    backstory log --file 'results/*.csv'     runs that read or changed such a file\n  \
    backstory log --command make --name 'nightly*'\n  \
    backstory log --running\n  \
    backstory log -- notes.txt               what happened to this file\n  \
    backstory log --json | jq -r '.[].run'\n  \
    backstory log --raw 7hx2k9qa | less      every operation, as recorded\n\n\
    A run must meet all conditions. At a terminal, times are relative and lines are\n\
    cut to its width.";

/// `files`
#[derive(Debug, Args)]
pub struct FilesArgs {
    /// Which run, and how to print
    #[command(flatten)]
    pub run: RunArgs,

    /// Which files
    #[command(flatten)]
    pub which: FileChoice,

    /// Leave out files whose paths match GLOB (repeatable; `*` stays within a directory, `**`
    /// crosses directories)
    #[arg(long, value_name = "GLOB")]
    pub exclude: Vec<String>,

    /// `step`: the files that commands used, made and removed, with these commands. `process` or
    /// `all`: all that processes did to each path (the default of --json, --looked-up and --all)
    #[arg(long, value_name = "LEVEL", hide_possible_values = true)]
    pub level: Option<Level>,

    /// The order: by path, the largest first, or the last used first
    #[arg(long, value_name = "KEY", default_value = "path")]
    pub sort: SortKey,
}

impl FilesArgs {
    /// The level of the answer. Commands do not look up: their processes do.
    pub fn level(&self) -> Level {
        match self.level {
            Some(level) => level,
            None if self.which.all => Level::All,
            None if self.run.json || self.which.looked_up => Level::Process,
            None => Level::Step,
        }
    }
}

/// `processes`
#[derive(Debug, Args)]
pub struct ProcessesArgs {
    /// Which run, and how to print
    #[command(flatten)]
    pub run: RunArgs,

    /// Which processes
    #[command(flatten)]
    pub which: FileChoice,

    /// List the processes without a tree: by path of the program, by bytes of the files that they
    /// wrote, or by duration
    #[arg(long, value_name = "KEY")]
    pub sort: Option<SortKey>,
}

/// `who`
#[derive(Debug, Args)]
pub struct WhoArgs {
    /// The file, which may be gone; or a host or address, 192.0.2.7 or tcp:192.0.2.7:443
    #[arg(value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    pub path: std::path::PathBuf,

    /// At most N commands or processes, the newest. By default 100 in text, and all in JSON
    #[arg(short = 'n', value_name = "N")]
    pub most: Option<usize>,

    /// `step`: the commands that a person would have written. `process`: the processes, each with
    /// its whole command line (the default of --json). `all`: all processes, however many
    #[arg(
        long,
        value_name = "LEVEL",
        conflicts_with = "json",
        default_value = "step",
        hide_possible_values = true
    )]
    pub level: Level,

    /// Also those that only looked the file up
    #[arg(long)]
    pub lookups: bool,

    /// In this run only
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    /// Ask a lake, at the level of processes (package backstory-lake)
    #[arg(long, value_name = "LAKE", value_hint = clap::ValueHint::DirPath, conflicts_with_all = ["run", "level"])]
    pub lake: Option<OsString>,

    #[command(flatten)]
    pub bounds: LakeBounds,
}

/// `tag`
#[derive(Debug, Args)]
pub struct TagArgs {
    /// Id or name of the run
    #[arg(value_name = "RUN")]
    pub run: String,

    /// Tags to attach; an empty value removes a tag. Without any, the run's tags are printed
    #[arg(value_name = "KEY=VALUE", value_parser = tag)]
    pub tags: Vec<(String, String)>,
}

/// `compare`
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Runs to compare; by default those that the other options select, at most 10
    #[arg(value_name = "RUN")]
    pub runs: Vec<String>,

    /// Conditions, if no run is named
    #[command(flatten)]
    pub which: RunChoice,

    /// Also list the rows in which all runs agree
    #[arg(long)]
    pub all: bool,

    /// Print CSV
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A tag in an argument. The key is a word.
pub fn tag(text: &str) -> Result<(String, String), String> {
    let odd = |c: char| c.is_control() || c.is_whitespace();
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() && !key.chars().any(odd) => {
            Ok((key.to_owned(), value.to_owned()))
        }
        _ => Err("give KEY=VALUE, as in `stage=test`; a key has no spaces".to_owned()),
    }
}

/// The order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SortKey {
    /// By path
    Path,
    /// The largest first
    Size,
    /// The latest, or the longest, first
    Time,
}

/// Conditions on files.
#[derive(Debug, Args)]
pub struct FileChoice {
    /// Files that were read or executed
    #[arg(long)]
    pub read: bool,

    /// Files that were written, made or renamed, or whose attributes were changed
    #[arg(long)]
    pub written: bool,

    /// Files that were removed
    #[arg(long)]
    pub deleted: bool,

    /// Files that were looked up: stat, listings, links, missing files
    #[arg(long)]
    pub looked_up: bool,

    /// Used by PROGRAM: its name, its path, or its script's (`*` matches anything)
    #[arg(long, value_name = "PROGRAM")]
    pub by: Option<String>,

    /// Files in DIR or below (repeatable)
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub under: Vec<std::path::PathBuf>,

    /// The user's own files only: no packages, no system files, no caches of tools. This is the
    /// default at a terminal, unless --under is given. The others are counted
    #[arg(long, overrides_with = "all")]
    pub own: bool,

    /// Everything, one by one
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

    /// List what happened to this file: every run that made, changed, renamed or deleted it. What
    /// happened outside of recorded runs is inferred from the versions, and marked
    #[arg(last = true, value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    pub path: Option<PathBuf>,
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

    /// Runs that are ranks of a job whose id matches GLOB: the job of `mpirun`, `srun`, `parallel`
    /// or `xargs` that `log` names
    #[arg(long, value_name = "GLOB")]
    pub job: Option<String>,

    /// Runs whose name matches GLOB
    #[arg(long, value_name = "GLOB")]
    pub name: Option<String>,

    /// Runs that have this tag (repeatable; VALUE is a GLOB)
    #[arg(long, value_name = "KEY[=VALUE]")]
    pub tag: Vec<String>,

    /// Runs that used a git work tree at this commit: a hash or its beginning, or a revision of the
    /// current directory's repository
    #[arg(long, value_name = "REV")]
    pub commit: Option<String>,
}
