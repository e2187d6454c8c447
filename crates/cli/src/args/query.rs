//! Arguments of `query`.

use std::ffi::OsString;
use std::time::Duration;

use clap::{Arg, Args};

/// The text after the options in the help of `query`.
pub const QUERY: &str = "Examples:\n  \
    backstory query --schema\n  \
    backstory query 'SELECT run, command FROM runs ORDER BY started DESC LIMIT 5'\n  \
    backstory query \"SELECT command FROM edges JOIN processes USING (process)\n    \
        JOIN files USING (file) WHERE path = '$PWD/out' AND how = 'write'\"\n  \
    backstory query --json 'SELECT * FROM steps' | jq .\n  \
    backstory query --csv - < question.sql\n\n\
    The SQL is that of SQLite. A question only reads. Equality with a key (run,\n\
    process, file, path) reads single runs or files; any other condition reads all.\n\
    Exit status: 0 if the question was answered; 1 if not; 2 if it is no SELECT.";

/// `query`
#[derive(Debug, Args)]
pub struct QueryArgs {
    /// The question: one SELECT statement. `-`: read it from standard input
    #[arg(value_name = "SQL", required_unless_present = "schema")]
    pub sql: Option<String>,

    /// List the tables and their columns
    #[arg(long, conflicts_with_all = ["sql", "csv"])]
    pub schema: bool,

    /// Ask a lake in DuckDB's SQL (package backstory-lake)
    #[arg(long, value_name = "LAKE", value_hint = clap::ValueHint::DirPath)]
    pub lake: Option<OsString>,

    /// Print JSON: an array of objects
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,

    /// Print comma-separated values
    #[arg(long)]
    pub csv: bool,

    #[command(flatten)]
    pub bounds: SqlBounds,
}

/// The bounds of an answer in SQL.
#[derive(Debug, Clone, Copy, Args)]
pub struct SqlBounds {
    /// Longest time for the answer; 0: no bound
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub timeout: u64,

    #[command(flatten)]
    pub memory: SqlMemory,
}

/// The memory of an answer in SQL.
#[derive(Debug, Clone, Copy, Args)]
pub struct SqlMemory {
    /// Most memory for sorting and grouping
    #[arg(id = "memory", long = "memory", value_name = "MB", default_value_t = 512, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub megabytes: u64,
}

/// [`SqlBounds`] of a command that answers in SQL only if it asks a lake.
#[derive(Debug, Clone, Copy, Args)]
#[command(mut_args(of_lake))]
pub struct LakeBounds {
    #[command(flatten)]
    pub sql: SqlBounds,
}

/// [`SqlMemory`] of a command that answers in SQL only if it asks a lake.
#[derive(Debug, Clone, Copy, Args)]
#[command(mut_arg("memory", of_lake))]
pub struct LakeMemory {
    #[command(flatten)]
    pub sql: SqlMemory,
}

/// The bounds of SQL mean something only with `--lake`. Other options stay as they are.
fn of_lake(option: Arg) -> Arg {
    match option.get_id().as_str() {
        "timeout" | "memory" => option.requires("lake"),
        _ => option,
    }
}

impl SqlBounds {
    /// The bounds of a question to the store.
    pub fn limits(&self) -> backstory_sql::Limits {
        backstory_sql::Limits {
            time: (self.timeout > 0).then(|| Duration::from_secs(self.timeout)),
            megabytes: self.memory.megabytes,
        }
    }
}
