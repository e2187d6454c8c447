//! The part of `watch` that all databases share: names, options, and messages.

use std::ffi::OsString;
use std::path::Path;

use backstory_database::connection_target::ConnectionTarget;
use backstory_database::connection_uri::without_password;
use backstory_database::database_watch::{WatchNews, WatchScope};
use backstory_database::error::Error;
use backstory_session::{Options, RecordingResult};
use backstory_store::Home;

use super::Outcome;
use super::record::check_name;
use super::source_run::{source_options, start_indexer};
use crate::args::watch::WatchDatabaseArgs;
use crate::error::{Failure, complain};
use crate::index;

/// Reads the text of a connection, with variables of the environment.
type ReadsTarget = fn(&str, &dyn Fn(&str) -> Option<String>) -> Result<ConnectionTarget, Error>;
/// Records a database.
type Watches = fn(
    &ConnectionTarget,
    WatchScope,
    Options,
    &mut dyn FnMut(WatchNews),
) -> Result<RecordingResult, Error>;

/// The server, database and user that a text names.
pub fn connection(text: &str, read: ReadsTarget) -> Result<ConnectionTarget, Failure> {
    let environment = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    read(text, &environment).map_err(Failure::misuse)
}

/// Records a database until a signal, or with status 1 until the end of the server. `connection` is
/// the text that named the target. `most_kept`: the most bytes that the server may keep for the
/// stream of rows.
pub fn database(
    connection: &str,
    target: &ConnectionTarget,
    (args, most_kept): (&WatchDatabaseArgs, u64),
    store: Option<&Path>,
    watch: Watches,
) -> Outcome {
    let WatchDatabaseArgs { rows, run: args } = args;
    if let Some(name) = &args.name {
        check_name(name)?;
    }
    let home = Home::locate(store).map_err(Failure::not_found)?;
    let id = home.new_run_id();
    let after = index::in_background(&home);
    let mut options = source_options(&home, id.clone(), args.name.clone(), args.redact.clone());
    hide_password(&mut options.command, connection);
    let mut news = |news: WatchNews| match news {
        WatchNews::Watching => {
            let name = target.name();
            complain(&format!("run {id} records {name}, until Ctrl-C"));
        }
        WatchNews::ServerGone(reason) => complain(&format!("the server is gone: {reason}")),
    };
    let scope = WatchScope {
        rows: *rows,
        most_kept,
    };
    let recorded = watch(target, scope, options, &mut news).map_err(Failure::not_found)?;
    if let Some(line) = recorded.warning() {
        complain(&line);
    }
    start_indexer(&after);
    Ok(recorded.status() as u8)
}

/// The run's command names the connection, but not its password.
fn hide_password(command: &mut [OsString], connection: &str) {
    let shown = without_password(connection);
    for word in command {
        if *word == *connection {
            *word = OsString::from(&shown);
        }
    }
}
