//! `watch`: records what happens in a file system or in a database.

use std::path::Path;

use backstory_fanotify::{self as fanotify, FilesystemNews, FilesystemTarget};
use backstory_session::Options;
use backstory_store::Home;
use backstory_vocabulary::ContentsMode;

use super::Outcome;
use super::record::check_name;
use super::source_run::{source_options, start_indexer};
use super::watch_database::{connection, database};
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
    if let Some(name) = &args.run.name {
        check_name(name)?;
    }
    if args.contents == ContentsMode::All {
        return Err(Failure::misuse(
            "no program waits for --filesystem, so contents before a change are lost: give \
             --contents=lazy, or record with `backstory mount --contents=all`",
        ));
    }
    let home = Home::locate(store).map_err(Failure::not_found)?;
    let id = home.new_run_id();
    let after = index::in_background(&home);
    let (name, redact) = (args.run.name.clone(), args.run.redact.clone());
    let run = Options {
        contents: args.contents,
        ..source_options(&home, id.clone(), name, redact)
    };
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

fn postgres(args: &WatchPostgresArgs, store: Option<&Path>) -> Outcome {
    let target = connection(&args.connection, backstory_postgres::connection_target)?;
    database(
        &args.connection,
        &target,
        (&args.run, args.wal_limit),
        store,
        backstory_postgres::watch,
    )
}

fn mariadb(args: &WatchMariadbArgs, store: Option<&Path>) -> Outcome {
    let target = connection(&args.connection, backstory_mariadb::connection_target)?;
    database(
        &args.connection,
        &target,
        // The server keeps its binlog for no replica.
        (&args.run, u64::MAX),
        store,
        backstory_mariadb::watch,
    )
}
