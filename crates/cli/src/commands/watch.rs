//! `watch`: records what happens in a database.

use std::path::Path;

use super::Outcome;
use crate::args::watch::WatchCommand;
use crate::error::Failure;

/// Watches, and records until a signal or the end of the server.
#[cfg(feature = "postgres")]
pub fn run(command: WatchCommand, store: Option<&Path>) -> Outcome {
    use backstory_postgres::{self as postgres, ConnectionTarget, WatchNews};
    use backstory_store::Home;

    use super::record::check_name;
    use super::source_run::{source_options, start_indexer};
    use crate::error::complain;
    use crate::index;

    let WatchCommand::Postgres(args) = command;
    if let Some(name) = &args.name {
        check_name(name)?;
    }
    let environment = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let target = ConnectionTarget::parse(&args.connection, environment).map_err(Failure::misuse)?;
    let home = Home::locate(store).map_err(Failure::not_found)?;
    let id = home.new_run_id();
    let after = index::in_background(&home);
    let mut options = source_options(&home, id.clone(), args.name.clone(), args.redact.clone());
    hide_password(&mut options.command, &args.connection);
    let mut news = |news: WatchNews| match news {
        WatchNews::Watching => {
            let name = target.name();
            complain(&format!("run {id} records {name}, until Ctrl-C"));
        }
        WatchNews::ServerGone(reason) => complain(&format!("the server is gone: {reason}")),
    };
    let recorded = postgres::watch(&target, options, &mut news).map_err(Failure::not_found)?;
    if let Some(line) = recorded.warning() {
        complain(&line);
    }
    start_indexer(&after);
    Ok(0)
}

/// The run's command names the connection, but not its password.
#[cfg(feature = "postgres")]
fn hide_password(command: &mut [std::ffi::OsString], connection: &str) {
    let shown = backstory_postgres::without_password(connection);
    for word in command {
        if *word == *connection {
            *word = std::ffi::OsString::from(&shown);
        }
    }
}

/// This program was built without it.
#[cfg(not(feature = "postgres"))]
pub fn run(_command: WatchCommand, _store: Option<&Path>) -> Outcome {
    Err(Failure::misuse(
        "this program was built without `watch postgres`: `cargo install backstory --features postgres` \
         builds one that has it",
    ))
}
