//! Arguments of `refine`.

use std::ffi::OsString;

use clap::Args;

/// The text after the options in the help of `refine`.
pub const REFINE: &str = "Examples:\n  \
    backstory refine nightly\n  \
    backstory refine out.csv                 only the commands that made it\n  \
    backstory refine out.csv@nightly         as that run made it\n  \
    backstory refine server --request 7      one request of a `record --deep`\n  \
    backstory of out.csv --line 17           afterwards\n\n\
    The run is replayed from stored contents under the byte engine, which is 14 to\n\
    102 times as slow, and 396 times with an image filter. Of a file, only the\n\
    commands behind it are replayed. If they do not make it again, the run is.\n\
    A run of `record --deep` is replayed from its deep log, with its connections.\n\
    Then all programs run again, and only those behind the file are followed.\n\
    The results are kept if no output differs.\n\
    The engine is optional: install valgrind and gcc, and run bytes/build.\n\
    Exit status: 0 if the run is refined; 1 if it cannot be replayed, or an output\n\
    differs.";

/// `refine`
#[derive(Debug, Args)]
pub struct RefineArgs {
    /// Id or name of the run, or a file. Of a file, only the commands behind it are replayed. They
    /// are those of the run that made its newest version, or of the run in FILE@RUN
    #[arg(value_name = "RUN|PATH", value_hint = clap::ValueHint::AnyPath)]
    pub subject: OsString,

    /// Also follow which input bytes decided about a byte by branches and comparisons, as those of
    /// matching lines about their count. Such bytes are shown apart
    #[arg(long)]
    pub implicit: bool,

    /// Of a run that was recorded with `record --deep`, refine request N of those that `requests`
    /// lists, and those that it needs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub request: Option<u32>,
}
