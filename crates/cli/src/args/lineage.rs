//! Arguments of the commands about where files come from: `of`, `uses`, `status`, `diff`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::Args;

use super::bytes::ByteArgs;
use super::query::LakeBounds;
use super::scope::ScopeArgs;

/// The text after the options in the help of `of`.
pub const OF: &str = "Examples:\n  \
    backstory of report.txt\n  \
    backstory of report.txt --inputs         only the sources, your own first\n  \
    backstory of report.txt --why raw.csv    how raw.csv got into it\n  \
    backstory of report.txt --depth 1        only the last step\n  \
    backstory of report.txt --level process  the processes and the files of each\n  \
    backstory of report.txt --all --lookups  also system files and look-ups\n  \
    backstory of report.txt --dot | dot -Tsvg > report.svg\n  \
    backstory of --table accounts --key 42   a database row, and its history\n  \
    backstory of --table accounts --column sum   the statements that wrote it\n  \
    backstory of out.csv --line 17           the input bytes behind a line\n\n\
    A step is a command that a person would have written. Steps that differ in\n\
    names of files only are one. Long commands are shortened; --commands prints\n\
    them in full.";

/// The text after the options in the help of `uses`.
pub const USES: &str = "Examples:\n  \
    backstory uses raw.csv\n  \
    backstory uses raw.csv --run nightly\n  \
    backstory uses raw.csv --json\n  \
    backstory uses --table accounts --column sum   the statements that read it\n  \
    backstory uses /usr/bin/cc --level step\n\n\
    Of a file that over 100 processes used, only the newest runs are shown.\n\
    --level step shows all runs.";

/// The text after the options in the help of `origin`.
pub const ORIGIN: &str = "Examples:\n  \
    backstory origin build/app               what was downloaded for it\n  \
    backstory origin data.csv --json\n\n\
    For each address, the steps lead from the file to the program that received\n\
    content from it. `backstory of` shows the sources that are files.\n\
    Exit status: 0 if content came from the network, 1 if none is known.";

/// The text after the options in the help of `exfil`.
pub const EXFIL: &str = "Examples:\n  \
    backstory exfil ~/.ssh/id_ed25519\n  \
    backstory exfil customers.csv --possible\n\n\
    For each address, the steps lead from the file to the program that sent to it.\n\
    The program had content of the file: the record has no payload that would show\n\
    what it sent. `record --deep` has it (`backstory scene`).\n\
    Exit status: 0 if content can have been sent, 1 if none is known.";

/// The text after the options in the help of `status`.
pub const STATUS: &str = "Examples:\n  \
    backstory status                         the results of this project\n  \
    backstory status report.txt counts.txt\n\n\
    Exit status: 0 if all files are current, 1 if a file is not.";

/// The text after the options in the help of `diff`.
pub const DIFF: &str = "Examples:\n  \
    backstory diff 7hx2k9qa 8jq0a3zz         two runs\n  \
    backstory diff report.txt                its two latest versions\n  \
    backstory diff report.txt@nightly 'report.txt@{yesterday}'\n  \
    backstory diff report.txt --in 7hx2k9qa 8jq0a3zz\n  \
    backstory diff nightly nightly-old --json | jq .earliest\n\n\
    The causes come first: your own changed files, then commands and variables,\n\
    then the system. PATH@RUN is the newest version that RUN used or wrote. The\n\
    comparison of two versions covers everything that they came from.\n\
    Exit status: 0 if both sides are the same, 1 if they differ.";

/// How fine an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Level {
    /// The commands that a person would have written, on one screen (the default)
    Step,
    /// The processes and the files, as far as they fit a page (the default of --tree, --dot and
    /// --json)
    Process,
    /// All processes and files, system files one by one, commands and environments in full
    All,
}
/// The command line of `diff` in the help.
pub const DIFF_USAGE: &str = "backstory diff [OPTIONS] <RUN|PATH@RUN|PATH> <RUN|PATH@RUN|PATH>\n       \
    backstory diff [OPTIONS] <PATH>\n       \
    backstory diff [OPTIONS] <PATH> --in <RUN> <RUN>";

/// The text after the options in the help of `blame`.
pub const BLAME: &str = "Examples:\n  \
    backstory blame notes.txt\n  \
    backstory blame notes.txt@nightly        as that run left it\n  \
    backstory blame 'notes.txt@{yesterday}'\n\n\
    The lines are compared in the stored contents of all versions. A line with `?`\n\
    may be older: the version before it is not stored. Lines without a run were not\n\
    written by a recorded one. `backstory log -- PATH` lists the versions.";

/// `of` and `uses`
#[derive(Debug, Args)]
pub struct LineageArgs {
    /// The file
    #[arg(value_name = "PATH", value_hint = clap::ValueHint::AnyPath,
          required_unless_present = "table")]
    pub path: Option<PathBuf>,

    /// Ask about a table of a database: TABLE, SCHEMA.TABLE, DATABASE/TABLE or
    /// DATABASE/SCHEMA.TABLE
    #[arg(long, value_name = "TABLE", conflicts_with = "path")]
    pub table: Option<String>,

    /// With --table: ask about the row with this key, VALUE or COLUMN=VALUE,...
    #[arg(
        long,
        value_name = "KEY",
        requires = "table",
        allow_negative_numbers = true
    )]
    pub key: Option<String>,

    /// With --table: list the statements that used this column: `of` those that wrote it, `uses`
    /// those that read it
    #[arg(
        long,
        value_name = "COLUMN",
        requires = "table",
        conflicts_with_all = ["key", "dot", "tree", "only", "through", "why", "commands"]
    )]
    pub column: Option<String>,

    /// Print the graph as JSON
    #[arg(long, group = "form")]
    pub json: bool,

    /// Print the graph for Graphviz
    #[arg(long, group = "form")]
    pub dot: bool,

    /// Print a tree of processes and files
    #[arg(long, group = "form")]
    pub tree: bool,

    /// How fine the answer is
    #[arg(long, value_name = "LEVEL", value_enum)]
    pub level: Option<Level>,

    /// Cross at most N steps, or N processes at the other levels
    #[arg(long, value_name = "N")]
    pub depth: Option<usize>,

    /// Only the steps that used or made a file that matches GLOB (repeatable)
    #[arg(long, value_name = "GLOB", conflicts_with_all = ["dot", "tree"])]
    pub only: Vec<String>,

    /// Only the ways that lead through a file that matches GLOB (repeatable)
    #[arg(long, value_name = "GLOB", conflicts_with_all = ["dot", "tree"])]
    pub through: Vec<String>,

    /// Only the shortest way between the two files, step by step
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::AnyPath,
          conflicts_with_all = ["dot", "tree", "commands"])]
    pub why: Option<PathBuf>,

    /// Print all commands in the order in which they ran, as a script to read
    #[arg(long, conflicts_with_all = ["dot", "tree", "json"])]
    pub commands: bool,

    /// Leave out files whose paths match GLOB, and what lies behind them (repeatable; `*` stays
    /// within a directory, `**` crosses directories)
    #[arg(long, value_name = "GLOB")]
    pub exclude: Vec<String>,

    /// Show everything: the same as --level all
    #[arg(long)]
    pub all: bool,

    /// Also follow, and show in the tree, what may have happened but was not observed (--json and
    /// --dot of processes always include it)
    #[arg(long, overrides_with = "no_possible")]
    pub possible: bool,

    /// Leave out what was not observed
    #[arg(long)]
    pub no_possible: bool,

    /// Also follow look-ups (stat, missing files, directory listings), not only contents and
    /// programs
    #[arg(long)]
    pub lookups: bool,

    /// Search this run only
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
}

/// `origin` and `exfil`
#[derive(Debug, Args)]
pub struct NetworkArgs {
    /// The file
    #[arg(value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    pub path: PathBuf,

    /// Print JSON: an array of objects
    #[arg(long)]
    pub json: bool,

    /// Also follow what may have happened but was not observed
    #[arg(long)]
    pub possible: bool,

    /// Search this run only
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,

    /// Ask a lake, at the level of processes (package backstory-lake)
    #[arg(long, value_name = "LAKE", value_hint = clap::ValueHint::DirPath, conflicts_with = "run")]
    pub lake: Option<OsString>,

    #[command(flatten)]
    #[allow(missing_docs)]
    pub bounds: LakeBounds,
}

/// `of`
#[derive(Debug, Args)]
pub struct OriginArgs {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub lineage: LineageArgs,

    /// List the sources only: the files that no recorded step made, your own first
    #[arg(long, conflicts_with_all = ["dot", "tree", "json", "commands", "why"])]
    pub inputs: bool,

    /// With --inputs: also list each file of packages
    #[arg(long, requires = "inputs")]
    pub files: bool,

    /// List the packages only, with the number of files that were used of each
    #[arg(long, conflicts_with_all = ["dot", "tree", "json", "commands", "why", "inputs"])]
    pub packages: bool,

    #[command(flatten)]
    #[allow(missing_docs)]
    pub bytes: ByteArgs,
}

impl OriginArgs {
    /// The question about steps that these arguments ask. `None` if they ask for processes.
    pub fn list(&self) -> Option<SourceList> {
        match (self.inputs, self.packages) {
            (true, _) => Some(SourceList::Inputs {
                files: self.files || self.lineage.all || self.lineage.level == Some(Level::All),
            }),
            (_, true) => Some(SourceList::Packages),
            _ => None,
        }
    }
}

/// A list that `of` prints instead of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceList {
    /// The files that no recorded step made.
    Inputs {
        /// List the files of packages, too.
        files: bool,
    },
    /// The packages.
    Packages,
}

impl LineageArgs {
    /// True if the answer is for one screen, and not narrowed to a part of the whole.
    pub fn is_for_a_screen(&self) -> bool {
        let narrowed = !self.only.is_empty() || !self.through.is_empty() || self.why.is_some();
        let whole =
            self.level.is_some() || self.all || self.json || self.commands || self.run.is_some();
        !narrowed && !whole && self.depth.is_none()
    }

    /// True if the answer may tell what changed inside of the file. A script, a drawing and a way
    /// between two files have no place for it.
    pub fn tells_change(&self) -> bool {
        !self.commands && !self.dot && !self.tree && self.why.is_none()
    }

    /// The file's name, as the user wrote it.
    pub fn path_text(&self) -> &[u8] {
        let path = self.path.as_ref().map(|path| path.as_os_str().as_bytes());
        path.unwrap_or_default()
    }

    /// The requested level, or that of the requested form.
    pub fn level(&self) -> Level {
        let graph = self.json || self.dot || self.tree;
        let narrowed = !self.only.is_empty() || !self.through.is_empty();
        match self.level {
            _ if narrowed || self.why.is_some() || self.commands => Level::Step,
            Some(level) => level,
            None if self.all => Level::All,
            None if graph => Level::Process,
            None => Level::Step,
        }
    }
}

/// `status`
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Files to check. By default all files of the project that recorded steps made and that still
    /// exist
    #[arg(value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,

    #[command(flatten)]
    pub scope: ScopeArgs,

    /// Print nothing: the exit status is 0 if all files are current, else 1
    #[arg(short, long, conflicts_with_all = ["json", "porcelain"])]
    pub quiet: bool,

    /// Print one line for each file, in a form that stays: the state, a tab, and the path
    #[arg(long, conflicts_with = "json")]
    pub porcelain: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `diff`
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// A run (id or name), a version of a file (PATH@RUN, PATH@{DATE}), or a file
    #[arg(value_name = "RUN|PATH@RUN|PATH", value_hint = clap::ValueHint::AnyPath)]
    pub a: OsString,

    /// The other side of the comparison, in the same notation. Without it, the two latest versions
    /// of the file are compared
    #[arg(value_name = "RUN|PATH@RUN|PATH", value_hint = clap::ValueHint::AnyPath)]
    pub b: Option<OsString>,

    /// Compare the versions of the file in these two runs
    #[arg(long = "in", value_name = "RUN", num_args = 2, conflicts_with = "b")]
    pub within: Vec<String>,

    /// Match the rows of tables (CSV, TSV, Parquet, Arrow) by this column, not by the first one.
    /// For a key of several columns, give the option for each
    #[arg(long, value_name = "COLUMN")]
    pub key: Vec<String>,

    /// Print all causes, outputs and changed lines, not only the first of them
    #[arg(long)]
    pub full: bool,

    /// `step`: the causes, then the outputs with what changed in them. `process` or `all`: every
    /// difference, in order of time
    #[arg(
        long,
        value_name = "LEVEL",
        default_value = "step",
        hide_possible_values = true
    )]
    pub level: Level,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `blame`
#[derive(Debug, Args)]
pub struct BlameArgs {
    /// The file: PATH, PATH@RUN or PATH@{DATE}
    #[arg(value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    pub path: OsString,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
