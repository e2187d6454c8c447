//! Arguments of `watch`.

use std::path::PathBuf;

use backstory_vocabulary::{ContentsMode, RowsMode};
use clap::{Args, Subcommand};

use super::amounts::size;
use super::record::words;

/// The text after the options in the help of `watch`.
pub const EXAMPLES: &str = "Examples:\n  \
    backstory watch --filesystem /srv         all programs on this file system\n  \
    backstory watch postgres postgres://postgres@localhost/bank\n  \
    backstory watch mariadb mysql://root@localhost/bank\n  \
    backstory of /srv/report.csv              what made this file\n  \
    backstory of --table accounts --key 42    what made this row\n\n\
    The run ends with Ctrl-C here, or with the server.\n\n\
    --filesystem needs root and Linux 5.17. No program waits for it, so the record\n\
    is weaker than that of `mount`: a program that ended at once may be unknown,\n\
    times are those at which the kernel's notifications were read, and mappings,\n\
    look-ups and changes of attributes are absent.";

/// The text after the options in the help of `watch postgres`.
pub const POSTGRES: &str = "Examples:\n  \
    backstory watch postgres postgres://postgres@localhost/bank\n  \
    backstory watch postgres --name bank 'host=/run/postgresql dbname=bank'\n\n\
    The server must have wal_level=logical, logging_collector=on,\n\
    log_destination=jsonlog (or csvlog) and log_statement=all. With log_duration=on,\n\
    single statements are told apart better. The user must be a superuser, and may\n\
    read the server's log. A password comes from PGPASSWORD.\n\n\
    With --rows off, wal_level may be any.";

/// The text after the options in the help of `watch mariadb`.
pub const MARIADB: &str = "Examples:\n  \
    backstory watch mariadb mysql://root@localhost/bank\n  \
    backstory watch mariadb --name bank 'mysql://root@/bank?socket=/tmp/server.sock'\n\n\
    The server must have log_bin=ON, binlog_format=ROW and the plug-in server_audit\n\
    with server_audit_logging=ON and server_audit_events=CONNECT,QUERY,TABLE. The\n\
    user needs REPLICATION SLAVE, BINLOG MONITOR, PROCESS, SELECT, SHOW VIEW and\n\
    TRIGGER. Watch as root, or as the server's user. A password comes from MYSQL_PWD.\n\n\
    With --rows off, log_bin and binlog_format may have any value, and the user needs\n\
    neither REPLICATION SLAVE nor BINLOG MONITOR.";

/// `watch`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub struct WatchArgs {
    /// Record what any program does in the whole file system of this directory, without a mount
    /// point
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath, required = true)]
    pub filesystem: Option<PathBuf>,

    /// Whether contents are stored. With `lazy`, those of files that a program used, as they are
    /// when the watch ends. Former contents need `mount --contents=all`
    #[arg(long, value_name = "MODE", value_parser = words::<ContentsMode>(), default_value_t = ContentsMode::Off)]
    pub contents: ContentsMode,

    /// The run's name and secrets
    #[command(flatten)]
    pub run: WatchRunArgs,

    /// Another source than a file system
    #[command(subcommand)]
    pub database: Option<WatchCommand>,
}

/// Arguments about the run of any watch.
#[derive(Debug, Args)]
pub struct WatchRunArgs {
    /// Name the run; other commands accept the name instead of the id
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// Also redact the values of environment variables and options with this name (`*` and `?`
    /// match; repeatable)
    #[arg(long, value_name = "PATTERN")]
    pub redact: Vec<String>,
}

/// Arguments about the run of a watch of a database.
#[derive(Debug, Args)]
pub struct WatchDatabaseArgs {
    /// Whether the rows that transactions changed are recorded. With `off`, the record has the
    /// statements, their clients, and the tables and columns that they read and change. The server
    /// needs no stream of row changes
    #[arg(long, value_name = "MODE", value_parser = words::<RowsMode>(), default_value_t = RowsMode::On)]
    pub rows: RowsMode,

    /// The run's name and secrets
    #[command(flatten)]
    pub run: WatchRunArgs,
}

/// A database to watch.
#[derive(Debug, Subcommand)]
pub enum WatchCommand {
    /// Record the transactions of a PostgreSQL database: the statements of each client, the
    /// tables and columns they used, and the rows they changed
    #[command(after_help = POSTGRES)]
    Postgres(WatchPostgresArgs),

    /// Record the transactions of a MariaDB database: the statements of each client, the
    /// tables and columns they used, and the rows they changed
    #[command(after_help = MARIADB)]
    Mariadb(WatchMariadbArgs),
}

/// `watch mariadb`
#[derive(Debug, Args)]
pub struct WatchMariadbArgs {
    /// The database: mysql://USER@HOST:PORT/DATABASE, or mysql://USER@/DATABASE?socket=PATH
    #[arg(value_name = "CONNECTION")]
    pub connection: String,

    /// The rows, and the run's name and secrets
    #[command(flatten)]
    pub run: WatchDatabaseArgs,
}

/// `watch postgres`
#[derive(Debug, Args)]
pub struct WatchPostgresArgs {
    /// The database: postgres://USER@HOST:PORT/DATABASE, or host=... port=... dbname=... user=...
    #[arg(value_name = "CONNECTION")]
    pub connection: String,

    /// End the record of rows if the server keeps more of its write-ahead log for it, as while a
    /// transaction stays open. The record goes on without rows
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "10G")]
    pub wal_limit: u64,

    /// The rows, and the run's name and secrets
    #[command(flatten)]
    pub run: WatchDatabaseArgs,
}
