//! `watch`: records what happens in a file system or in a database.

use std::path::Path;

use backstory_fanotify::{self as fanotify, FilesystemNews, FilesystemTarget};
use backstory_store::Home;

use super::Outcome;
use super::record::check_name;
use super::source_run::{source_options, start_indexer};
use crate::args::watch::{WatchArgs, WatchCommand, WatchMariadbArgs, WatchPostgresArgs};
use crate::error::{Failure, complain};
use crate::index;

/// Watches, and records until a signal or the end of the server.
pub fn run(args: WatchArgs, store: Option<&Path>) -> Outcome {
    match (&args.database, &args.filesystem) {
        (Some(WatchCommand::Postgres(args)), _) => postgres(args, store),
        (Some(WatchCommand::Mariadb(args)), _) => mariadb(args, store),
        (None, Some(directory)) => filesystem(&args, directory, store),
        (None, None) => Err(Failure::misuse("give --filesystem DIR, or a database")),
    }
}

fn filesystem(args: &WatchArgs, directory: &Path, store: Option<&Path>) -> Outcome {
    if let Some(name) = &args.name {
        check_name(name)?;
    }
    let home = Home::locate(store).map_err(Failure::not_found)?;
    let id = home.new_run_id();
    let after = index::in_background(&home);
    let run = source_options(&home, id.clone(), args.name.clone(), args.redact.clone());
    let own = home
        .dir()
        .canonicalize()
        .or_else(|_| std::path::absolute(home.dir()));
    let target = FilesystemTarget {
        directory: directory.to_owned(),
        ignored: vec![own.unwrap_or_else(|_| home.dir().to_owned())],
    };
    let mut news = |news: FilesystemNews| match news {
        FilesystemNews::Watching => complain(&format!(
            "run {id} records the file system of {}, until Ctrl-C",
            directory.display()
        )),
    };
    let recorded = fanotify::watch(&target, run, &mut news).map_err(Failure::not_found)?;
    if let Some(line) = recorded.warning() {
        complain(&line);
    }
    start_indexer(&after);
    Ok(0)
}

#[cfg(feature = "postgres")]
fn postgres(args: &WatchPostgresArgs, store: Option<&Path>) -> Outcome {
    use backstory_postgres::{ConnectionTarget, WatchNews, watch};

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
    let recorded = watch(&target, options, &mut news).map_err(Failure::not_found)?;
    if let Some(line) = recorded.warning() {
        complain(&line);
    }
    start_indexer(&after);
    Ok(0)
}

#[cfg(feature = "mariadb")]
fn mariadb(args: &WatchMariadbArgs, store: Option<&Path>) -> Outcome {
    use backstory_mariadb::{ConnectionTarget, WatchNews, watch};

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
    let recorded = watch(&target, options, &mut news).map_err(Failure::not_found)?;
    if let Some(line) = recorded.warning() {
        complain(&line);
    }
    start_indexer(&after);
    Ok(0)
}

/// The run's command names the connection, but not its password.
#[cfg(any(feature = "postgres", feature = "mariadb"))]
fn hide_password(command: &mut [std::ffi::OsString], connection: &str) {
    let shown = backstory_database::connection_uri::without_password(connection);
    for word in command {
        if *word == *connection {
            *word = std::ffi::OsString::from(&shown);
        }
    }
}

/// This program was built without it.
#[cfg(not(feature = "postgres"))]
fn postgres(_args: &WatchPostgresArgs, _store: Option<&Path>) -> Outcome {
    Err(Failure::misuse(
        "this program was built without `watch postgres`: `cargo install backstory --features postgres` \
         builds one that has it",
    ))
}

/// This program was built without it.
#[cfg(not(feature = "mariadb"))]
fn mariadb(_args: &WatchMariadbArgs, _store: Option<&Path>) -> Outcome {
    Err(Failure::misuse(
        "this program was built without `watch mariadb`: `cargo install backstory --features mariadb` \
         builds one that has it",
    ))
}
