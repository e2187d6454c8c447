//! Arguments of `watch`.

use clap::{Args, Subcommand};

/// The text after the options in the help of `watch`.
pub const EXAMPLES: &str = "Examples:\n  \
    backstory watch postgres postgres://postgres@localhost/bank\n  \
    backstory of --table accounts --key 42    what made this row\n  \
    backstory of report.csv                   a file that was exported from tables\n\n\
    The run ends with Ctrl-C here, or with the server.";

/// The text after the options in the help of `watch postgres`.
pub const POSTGRES: &str = "Examples:\n  \
    backstory watch postgres postgres://postgres@localhost/bank\n  \
    backstory watch postgres --name bank 'host=/run/postgresql dbname=bank'\n\n\
    The server must have wal_level=logical, logging_collector=on,\n\
    log_destination=jsonlog and log_statement=all. With log_duration=on, single\n\
    statements are told apart better. The user must be a superuser, and may read\n\
    the server's log. A password comes from PGPASSWORD.";

/// `watch`
#[derive(Debug, Subcommand)]
pub enum WatchCommand {
    /// Record the transactions of a PostgreSQL database: who ran which statements, the tables they
    /// read, and the rows they changed
    #[command(after_help = POSTGRES)]
    Postgres(WatchPostgresArgs),
}

/// `watch postgres`
#[derive(Debug, Args)]
pub struct WatchPostgresArgs {
    /// The database: postgres://USER@HOST:PORT/DATABASE, or host=... port=... dbname=... user=...
    #[arg(value_name = "CONNECTION")]
    pub connection: String,

    /// Name the run; other commands accept the name instead of the id
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// Also redact the values of environment variables and options with this name (`*` and `?`
    /// match; repeatable)
    #[arg(long, value_name = "PATTERN")]
    pub redact: Vec<String>,
}
