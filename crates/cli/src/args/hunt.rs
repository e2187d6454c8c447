//! Arguments of `hunt` and `timeline`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use backstory_eventlog::event::Time;
use clap::Args;

use super::query::{LakeBounds, LakeMemory};
use crate::when;

/// The text after the options in the help of `hunt`.
pub const HUNT: &str = "Examples:\n  \
    backstory hunt                           look for attacks in the latest run\n  \
    backstory hunt --all                     in all runs\n  \
    backstory hunt nightly --rule secret-sent\n  \
    backstory hunt --all --rules my-rules/ --json\n  \
    backstory hunt --since yesterday --host build7\n  \
    backstory hunt --lake /srv/lake          in all runs of a lake\n  \
    backstory hunt --list                    the rules\n  \
    backstory hunt --fields                  what a rule can ask for\n\n\
    Rules have the form of Sigma. Those in ~/.config/backstory/hunt are used, too.\n\
    A match is a reason to look, and no proof; each rule lists harmless matches.\n\
    Exit status: 0 if something was found, 1 if not, 2 if the command line is wrong,\n\
    or if nothing was found and a rule, file or run was not looked at completely.";

/// The text after the options in the help of `watch-log`.
pub const WATCH_LOG: &str = "Examples:\n  \
    backstory watch-log 7hx2k9qa --rule secret-sent\n\n\
    `backstory record --watch` starts it.";

/// The text after the options in the help of `timeline`.
pub const TIMELINE: &str = "Examples:\n  \
    backstory timeline                       the latest run\n  \
    backstory timeline nightly --all         also system files, one by one\n  \
    backstory timeline report.txt            what happened to a file, in all runs\n  \
    backstory timeline 192.0.2.7             what was sent there, and received\n  \
    backstory timeline --from '08:30' --to '08:35'\n  \
    backstory timeline 192.0.2.7 --lake /srv/lake\n  \
    backstory timeline nightly --csv > events.csv";

/// `hunt`
#[derive(Debug, Args)]
pub struct HuntArgs {
    /// The runs: ids or names. By default the latest
    #[arg(value_name = "RUN")]
    pub runs: Vec<String>,

    /// Look at all runs of the store
    #[arg(long, conflicts_with = "runs")]
    pub all: bool,

    /// Look at the runs of a lake, by default at all of them (package backstory-lake)
    #[arg(long, value_name = "LAKE", value_hint = clap::ValueHint::DirPath)]
    pub lake: Option<OsString>,

    /// Look at all runs that began at this time or later
    #[arg(long, value_name = "TIME", value_parser = when::parse)]
    pub since: Option<Time>,

    /// Look at all runs that began at this time or before
    #[arg(long, value_name = "TIME", value_parser = when::parse)]
    pub until: Option<Time>,

    /// Look at all runs of this host (repeatable)
    #[arg(long, value_name = "HOST")]
    pub host: Vec<String>,

    /// Also use the rules in this file, or in the files *.yml of this directory (repeatable)
    #[arg(long, value_name = "DIR|FILE", value_hint = clap::ValueHint::AnyPath)]
    pub rules: Vec<PathBuf>,

    /// Use this rule only (repeatable)
    #[arg(long, value_name = "ID")]
    pub rule: Vec<String>,

    /// List the rules
    #[arg(long, conflicts_with_all = ["runs", "all", "fields", "lake", "since", "until", "host"])]
    pub list: bool,

    /// List the fields and modifiers that rules can use
    #[arg(long, conflicts_with_all = ["runs", "all", "lake", "since", "until", "host"])]
    pub fields: bool,

    /// Show every finding in full
    #[arg(long)]
    pub full: bool,

    /// Print JSON: an array with one object for each finding
    #[arg(long)]
    pub json: bool,

    /// Longest time for one rule in one run; with --lake also for the choice of runs, and for each
    /// part of them that is read
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub timeout: u64,

    #[command(flatten)]
    pub size: RunSize,

    #[command(flatten)]
    pub memory: LakeMemory,
}

/// The largest run that is read. `hunt` and `timeline` have it in memory.
#[derive(Debug, Args)]
pub struct RunSize {
    /// Leave out runs with more edges than this. A million edges take 200 MB
    #[arg(long, value_name = "N", default_value_t = 5_000_000)]
    pub most: usize,
}

/// The bounds of a rule that may take so many seconds.
pub fn limits(seconds: u64) -> backstory_hunt::Limits {
    backstory_hunt::Limits {
        time: Duration::from_secs(seconds),
        findings: 100,
    }
}

/// Where matches of a run in progress are reported, beside standard error.
#[derive(Debug, Clone, Default, Args)]
pub struct WatchReport {
    /// With --watch: append each match to FILE, as one line of JSON
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub watch_to: Option<PathBuf>,

    /// With --watch: start COMMAND in a shell for each match, with the JSON as its input. Its
    /// standard output is discarded
    #[arg(long, value_name = "COMMAND")]
    pub watch_run: Option<String>,

    /// With --watch: post each match as JSON to http://HOST:PORT/PATH, where HOST is 127.0.0.1,
    /// [::1] or localhost
    #[arg(long, value_name = "URL")]
    pub watch_post: Option<String>,

    /// With --watch: stop the process (SIGSTOP) that made a match of rule ID, and ask at the
    /// terminal whether it goes on (repeatable). Without a terminal a message says how to continue
    /// it
    #[arg(long, value_name = "ID")]
    pub stop_on: Vec<String>,
}

/// `watch-log`
#[derive(Debug, Args)]
pub struct WatchLogArgs {
    /// The run in progress
    #[arg(value_name = "RUN")]
    pub run: String,

    /// Also use the rules in this file or directory (repeatable)
    #[arg(long, value_name = "DIR|FILE")]
    pub rules: Vec<PathBuf>,

    /// Use this rule only (repeatable)
    #[arg(long, value_name = "ID")]
    pub rule: Vec<String>,

    #[command(flatten)]
    pub report: WatchReport,
}

/// `timeline`
#[derive(Debug, Args)]
pub struct TimelineArgs {
    /// A file or directory, the address of a peer (HOST, HOST:PORT), or a run. By default the
    /// latest run
    #[arg(value_name = "PATH|ADDRESS|RUN", value_hint = clap::ValueHint::AnyPath)]
    pub subject: Option<OsString>,

    /// Ask a lake. A subject is needed then (package backstory-lake)
    #[arg(long, value_name = "LAKE", value_hint = clap::ValueHint::DirPath, requires = "subject")]
    pub lake: Option<OsString>,

    /// Only events from this time on
    #[arg(long, value_name = "TIME", value_parser = when::parse)]
    pub from: Option<Time>,

    /// Only events up to this time
    #[arg(long, value_name = "TIME", value_parser = when::parse)]
    pub to: Option<Time>,

    /// Show all events, also those of system files
    #[arg(long)]
    pub all: bool,

    /// Print JSON: an array with one object for each event
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,

    /// Print comma-separated values
    #[arg(long)]
    pub csv: bool,

    #[command(flatten)]
    pub size: RunSize,

    #[command(flatten)]
    pub bounds: LakeBounds,
}
