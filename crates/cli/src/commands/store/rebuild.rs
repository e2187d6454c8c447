//! `store rebuild`: makes the database again from the logs.
//!
//! The new database is made beside the old one and takes its place when it is complete. A rebuild
//! that is interrupted leaves the old one. Contents and logs stay as they are. The names and notes
//! of runs are in the database only, and are taken from the old one where it can be read.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use backstory_store::{self as store, GraphStore, Home, Label, RunRecord, SqliteStore};

use super::verify::is_damage;
use super::{Outcome, answer, keep_lock};
use crate::args::store::StoreRebuildArgs;
use crate::error::{Failure, chain, complain};
use crate::index::{self, Busy};
use crate::json;
use crate::text::progress::{Progress, Unit};
use crate::text::words::counted;

/// Files that SQLite keeps for a database: itself, and those beside it.
const ENDINGS: [&str; 3] = ["-wal", "-shm", ""];

/// Rebuilds the database.
pub fn run(args: StoreRebuildArgs, chosen: Option<&Path>) -> Outcome {
    let home = Home::open_to_read(&Home::directory(chosen)?)?;
    let waiting = "waiting for another backstory process to index the newest runs";
    let _indexes = index::take_lock(home.lock_path(), Busy::Wait, waiting)
        .map_err(|error| Failure::not_found(chain(&error)))?;
    let _keeps = keep_lock(&home)?;
    let old = OldDatabase::read(&home)?;
    let logs = home.finalized()?;
    let lost: Vec<&str> = old
        .runs
        .iter()
        .map(|run| run.header.id.as_str())
        .filter(|id| !logs.iter().any(|log| log == id))
        .collect();
    if !lost.is_empty() && !args.force {
        return Err(Failure::not_found(format!(
            "the logs of {} runs are gone, and a rebuild would forget these runs: {}; --force rebuilds without them",
            lost.len(),
            lost.join(", ")
        )));
    }
    let new = beside(&home.database_path(), ".new");
    remove(&new)?;
    let made = build(&home, &new, &old);
    if made.is_err() {
        remove(&new)?;
    }
    let indexed = made?;
    replace(&home, &new, &old)?;
    answer(|out| match args.json {
        true => json::object(
            out,
            vec![("runs", indexed.into()), ("logs", logs.len().into())],
        ),
        false => writeln!(
            out,
            "the database has {indexed} of {} runs again",
            logs.len()
        ),
    })?;
    Ok(u8::from(indexed < logs.len()))
}

/// The facts of the old database that no log has.
struct OldDatabase {
    /// Its runs; empty if it cannot be read.
    runs: Vec<RunRecord>,
    /// It belongs to another program, perhaps.
    foreign: bool,
}

impl OldDatabase {
    fn read(home: &Home) -> Result<OldDatabase, Failure> {
        let (runs, foreign) = match SqliteStore::open(home) {
            Ok(store) => (store.runs().unwrap_or_default(), false),
            Err(error) if is_damage(&error) => {
                (Vec::new(), matches!(error, store::Error::NotOurs(_)))
            }
            Err(error) => return Err(error.into()),
        };
        if runs.is_empty() {
            complain(
                "the old database cannot be read: names and notes that were given later are lost",
            );
        }
        Ok(OldDatabase { runs, foreign })
    }
}

/// Makes the new database, and returns the number of its runs.
fn build(home: &Home, path: &Path, old: &OldDatabase) -> Result<usize, Failure> {
    let mut new = SqliteStore::open_at(home, path)?;
    let runs = home.pending(&new)?;
    let mut indexed = 0;
    let bytes = |run: &String| fs::metadata(home.log_path(run)).map_or(0, |meta| meta.len());
    let what = format!(
        "building the graphs of {}",
        counted(runs.len(), "run", "runs")
    );
    let progress = Progress::of(&what, runs.iter().map(bytes).sum(), Unit::Bytes);
    for run in &runs {
        let done = index::fold_into(home, run, &mut new);
        progress.done.add(bytes(run));
        match done {
            Ok(()) => indexed += 1,
            Err(reason) => complain(&format!("run {run} could not be indexed: {reason}")),
        }
    }
    for run in &old.runs {
        let id = &run.header.id;
        if new.run(id)?.is_some() {
            new.set_label(id, Label::Name, run.name.as_deref())?;
            new.set_label(id, Label::Note, run.note.as_deref())?;
        }
    }
    store::catch_up(home, &mut new)?;
    new.bring_in_log()?;
    Ok(indexed)
}

/// Replaces the old database by the new one. A question in between finds no database, and makes
/// one from the logs.
fn replace(home: &Home, new: &Path, old: &OldDatabase) -> Result<(), Failure> {
    let path = home.database_path();
    let aside = beside(&path, ".old");
    remove(&aside)?;
    // The log of the old database must not be taken for one of the new.
    for ending in ENDINGS {
        rename(&beside(&path, ending), &beside(&aside, ending))?;
    }
    for ending in ENDINGS {
        rename(&beside(new, ending), &beside(&path, ending))?;
    }
    match old.foreign {
        true => {
            complain(&format!(
                "{} was no backstory database; it is now {}",
                path.display(),
                aside.display()
            ));
            Ok(())
        }
        false => remove(&aside),
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

fn rename(from: &Path, to: &Path) -> Result<(), Failure> {
    match fs::rename(from, to) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Failure::not_found(format!(
            "cannot rename {} to {}: {error}",
            from.display(),
            to.display()
        ))),
        _ => Ok(()),
    }
}

/// Removes a database with the files beside it.
fn remove(path: &Path) -> Result<(), Failure> {
    for ending in ENDINGS {
        let path = beside(path, ending);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                let line = format!("cannot remove {}: {error}", path.display());
                return Err(Failure::not_found(line));
            }
            _ => {}
        }
    }
    Ok(())
}
