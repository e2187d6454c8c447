//! Arguments of `spade`.

use std::ffi::OsString;

use clap::Args;

/// The text after the options in the help of `spade`.
pub const SPADE: &str = "Examples:\n  \
    backstory spade                       a prompt, for the latest run\n  \
    backstory spade report.txt < queries  all that report.txt came from\n  \
    backstory spade -c '$p = $base.getVertex(name == '\\''cc'\\'')' -c 'dump $p'\n\n\
    `help` lists the statements. Vertices and edges have the keys of `export opm`.\n\
    A search respects time; `env set time 0` follows all edges, as SPADE does.";

/// `spade`
#[derive(Debug, Args)]
pub struct SpadeArgs {
    /// A run (id or name), or a file for all that it came from, over all runs; by default the
    /// latest run
    #[arg(value_name = "RUN|PATH", value_hint = clap::ValueHint::AnyPath)]
    pub subject: Option<OsString>,

    /// Statements to run instead of those on standard input (repeatable)
    #[arg(short, long, value_name = "STATEMENTS")]
    pub command: Vec<String>,
}
