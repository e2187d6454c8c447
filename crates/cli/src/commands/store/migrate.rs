//! `store migrate`: gives the store another storage engine.
//!
//! The new database is made beside the old one and compared with it, run by run. Then one rename,
//! of the file that names the engine, makes the new database the store's. A migration that is
//! interrupted before leaves the old database as it is. Logs and contents stay as they are.
//!
//! A database of a server may have runs of other stores. Each run is appended to it, or compared
//! with the one that is there. An interrupted migration leaves runs, which the next one compares.

use backstory_ordering::SmallSort;
use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use backstory_files::Digest;
use backstory_store::{
    self as store, ConnectionFile, DatabaseFiles, EngineControl, EngineOptions, Home, Maintenance,
    RunRecord, Store, StoreEngine, combined, copy_run, digest_of_facts, digest_of_run,
    open_examined,
};
use backstory_vocabulary::Word;

use super::{Outcome, answer, database_locks};
use crate::args::store::StoreMigrateArgs;
use crate::error::Failure;
use crate::json;
use crate::text::progress::{Progress, Unit};
use crate::text::when::size;
use crate::text::words::counted;

/// Moves the store to another engine.
pub fn run(args: StoreMigrateArgs, chosen: Option<&Path>) -> Outcome {
    let home = Home::open(&Home::directory(chosen)?)?;
    let from = StoreEngine::of(&home)?;
    let is_server = args.to == StoreEngine::Postgresql;
    let connection = args.connection.as_deref().filter(|_| is_server);
    if connection.is_none() && args.connection.is_some() {
        return Err(Failure::misuse(format!(
            "--connection is for --to postgresql; the storage engine {} has its own files",
            args.to
        )));
    }
    if !args.to.is_built() {
        return Err(args.to.not_offered().into());
    }
    if from == args.to {
        remove_leftovers(&home, from)?;
        let text = format!("the store has the storage engine {from} already");
        return answer(|out| match args.json {
            true => json::object(
                out,
                vec![("from", from.word().into()), ("to", from.word().into())],
            ),
            false => writeln!(out, "{text}"),
        });
    }
    // The old database is open until it is replaced: another process may wait for it, and have a
    // lock.
    let mut old = open_examined(&home)?;
    let _locks = database_locks(&home)?;
    let target = DatabaseFiles::of(&home, args.to);
    let new = target.beside(".new");
    new.remove()?;
    if let Some(connection) = connection {
        ConnectionFile::new(connection)?.write(new.path())?;
    }
    let moved = copy(&home, &mut old, &new);
    if moved.is_err() {
        new.remove()?;
    }
    let moved = moved?;
    drop(old);
    // A database of this name is what an interrupted migration left.
    new.take_name_of(&target)?;
    target.sync()?;
    args.to.choose(&home)?;
    // The store has the new engine from here on.
    let source = DatabaseFiles::of(&home, from);
    let kept = match args.keep_old {
        true => Some(source.set_aside()?.path().to_owned()),
        false => source.remove().map(|()| None)?,
    };
    print(&moved, (from, args.to), kept, args.json)
}

/// Replaces the database by a copy of its runs. A database keeps the names of files in directories
/// that other runs use, and the copy has no name of a removed run.
///
/// # Errors
///
/// If the database is on a server, or the copy fails. The old database then stays.
pub fn renew(home: &Home) -> Result<(), Failure> {
    let engine = StoreEngine::of(home)?;
    if engine == StoreEngine::Postgresql {
        return Err(Failure::not_found(
            "the database is on a server and is not copied: it may still have names of files in directories that other runs use",
        ));
    }
    let mut old = open_examined(home)?;
    let _locks = database_locks(home)?;
    let database = DatabaseFiles::of(home, engine);
    let new = database.beside(".new");
    new.remove()?;
    let copied = copy(home, &mut old, &new);
    if copied.is_err() {
        new.remove()?;
    }
    copied?;
    drop(old);
    let aside = database.beside(".old");
    new.replace(&database, &aside)?;
    Ok(aside.remove()?)
}

/// The result of a migration.
struct MovedStore {
    runs: usize,
    edges: u64,
    digest: Digest,
    /// Bytes of the database, before and after.
    bytes: (u64, u64),
}

/// Removes databases of other engines. A migration that was killed after its last step but one
/// leaves such a database.
fn remove_leftovers(home: &Home, engine: StoreEngine) -> Result<(), Failure> {
    for &other in StoreEngine::ALL {
        if other != engine {
            DatabaseFiles::of(home, other).remove()?;
        }
    }
    Ok(())
}

/// Copies everything into a new database, and compares.
fn copy(home: &Home, old: &mut Box<dyn Store>, new: &DatabaseFiles) -> Result<MovedStore, Failure> {
    store::catch_up(home, old)?;
    store::catch_up_annotations(home, old)?;
    let runs = in_order(&**old)?;
    let edges = runs.iter().map(|run| run.counts.edges).sum();
    let what = format!("copying {}", counted(runs.len(), "run", "runs"));
    // Each edge is copied and read again.
    let progress = Progress::of(&what, 2 * edges, Unit::Part);
    let mut copied = new.open(&EngineOptions::default())?;
    let mut digests = Vec::new();
    for run in &runs {
        digests.push(digest_of_run(&**old, run)?);
        append(&**old, run, &mut *copied, digests.last())?;
        progress.done.add(run.counts.edges);
    }
    store::catch_up(home, &mut copied)?;
    store::catch_up_annotations(home, &mut copied)?;
    copied.bring_in_log()?;
    drop(copied);
    new.sync()?;
    let examined = EngineOptions {
        examined: true,
        ..EngineOptions::default()
    };
    let copied = new.open(&examined)?;
    digests.push(digest_of_facts(&**old)?);
    compare(&runs, &digests, &*copied, &progress)?;
    if in_order(&**old)? != runs {
        return Err(Failure::not_found(
            "a run got a name or a note, or was removed, while the store was copied, so the store stays as it was; try again",
        ));
    }
    Ok(MovedStore {
        runs: runs.len(),
        edges,
        digest: combined(&digests),
        bytes: (old.stats()?.bytes, copied.stats()?.bytes),
    })
}

/// Appends a run to the copy, unless the copy has it with the same digest.
fn append(
    old: &dyn Store,
    run: &RunRecord,
    copied: &mut dyn Store,
    digest: Option<&Digest>,
) -> Result<(), Failure> {
    if let Some(there) = copied.run(&run.header.id)? {
        if Some(&digest_of_run(copied, &there)?) == digest {
            return Ok(());
        }
        copied.remove(&run.header.id)?;
    }
    Ok(copy_run(old, run, copied)?)
}

/// The runs of a store, in the order in which they were appended.
fn in_order(store: &dyn Store) -> store::Result<Vec<RunRecord>> {
    let mut runs = store.runs()?;
    runs.sort_small_by_key(|run| run.key);
    Ok(runs)
}

/// Fails unless the copy has the same runs, in the same order, and the same facts.
fn compare(
    runs: &[RunRecord],
    digests: &[Digest],
    copied: &dyn Store,
    progress: &Progress,
) -> Result<(), Failure> {
    let differs = |what: &str| {
        Failure::not_found(format!(
            "{what} differs in the copy, so the store stays as it was; `backstory store verify` checks the store"
        ))
    };
    let mut copies = in_order(copied)?;
    if copied.is_shared() {
        // Other stores have runs there, too, and an earlier migration may have left some.
        let ids = runs.iter().map(|run| run.header.id.as_str());
        let order: HashMap<&str, usize> = ids.zip(0..).collect();
        copies.retain(|copy| order.contains_key(copy.header.id.as_str()));
        copies.sort_small_by_key(|copy| order.get(copy.header.id.as_str()));
    }
    let ids = |runs: &[RunRecord]| -> Vec<String> {
        runs.iter().map(|run| run.header.id.clone()).collect()
    };
    if ids(runs) != ids(&copies) {
        return Err(differs("the list of runs"));
    }
    for (copy, right) in copies.iter().zip(digests) {
        if digest_of_run(copied, copy)? != *right {
            return Err(differs(&format!("run {}", copy.header.id)));
        }
        progress.done.add(copy.counts.edges);
    }
    match digests.last() == Some(&digest_of_facts(copied)?) {
        true => Ok(()),
        false => Err(differs("the list of facts, tags and metrics")),
    }
}

fn print(
    moved: &MovedStore,
    (from, to): (StoreEngine, StoreEngine),
    kept: Option<PathBuf>,
    json: bool,
) -> Outcome {
    let kept = kept.map(|path| path.display().to_string());
    answer(|out| match json {
        true => json::object(
            out,
            vec![
                ("from", from.word().into()),
                ("to", to.word().into()),
                ("runs", moved.runs.into()),
                ("edges", moved.edges.into()),
                ("digest", Some(moved.digest).into()),
                ("bytes_before", moved.bytes.0.into()),
                ("bytes", moved.bytes.1.into()),
                ("kept", kept.as_deref().into()),
            ],
        ),
        false => {
            writeln!(
                out,
                "the store has the storage engine {to} now: {} with {} edges in {}, before {}",
                counted(moved.runs, "run", "runs"),
                moved.edges,
                size(moved.bytes.1),
                size(moved.bytes.0),
            )?;
            if let Some(kept) = &kept {
                writeln!(out, "the old database is {kept}")?;
            }
            let connection = match from {
                StoreEngine::Postgresql => " --connection CONNECTION",
                _ => "",
            };
            writeln!(
                out,
                "`backstory store migrate --to {from}{connection}` goes back"
            )
        }
    })
}
