//! `store rebuild`: makes the database again from the logs.
//!
//! The new database is made beside the old one and takes its place when it is complete. A rebuild
//! that is interrupted leaves the old one. Contents and logs stay as they are. The names and notes
//! of runs are in the database only, and are taken from the old one where it can be read.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use backstory_store::annotation_history;
use backstory_store::{
    self as store, DatabaseFiles, EngineControl, EngineOptions, GraphStore, Home, Label, RunRecord,
    Store, StoreEngine, open_examined,
};

use super::verify::is_damage;
use super::{Outcome, answer, database_locks};
use crate::args::store::StoreRebuildArgs;
use crate::error::{Failure, complain};
use crate::index;
use crate::json;
use crate::pipeline_file::PipelineFiles;
use crate::text::progress::{Progress, Unit};
use crate::text::words::counted;

/// Rebuilds the database.
pub fn run(args: StoreRebuildArgs, chosen: Option<&Path>) -> Outcome {
    let home = Home::open_to_read(&Home::directory(chosen)?)?;
    let engine = StoreEngine::of(&home)?;
    if engine == StoreEngine::Postgresql {
        return Err(Failure::not_found(format!(
            "the database of the store {} is on a server and may have runs of others, so it is not made again; restore the server's backup, or `backstory store migrate --to sqlite`",
            home.dir().display()
        )));
    }
    // The database is open until it is replaced: another process may wait for it, and have a lock.
    let mut old = OldDatabase::open(&home, engine)?;
    let _locks = database_locks(&home)?;
    old.read_runs();
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
    let database = DatabaseFiles::of(&home, engine);
    let new = database.beside(".new");
    new.remove()?;
    let made = build(&home, &new, &old);
    if made.is_err() {
        new.remove()?;
    }
    let indexed = made?;
    replace(&database, &new, old)?;
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
    /// The database itself, if it can be opened.
    open: Option<Box<dyn Store>>,
    /// Its runs; empty if it cannot be read.
    runs: Vec<RunRecord>,
    /// It belongs to another program, perhaps.
    foreign: bool,
}

impl OldDatabase {
    fn open(home: &Home, engine: StoreEngine) -> Result<OldDatabase, Failure> {
        let is_readable = engine == StoreEngine::Sqlite || survives_reading(home);
        let opened = is_readable.then(|| open_examined(home)).transpose();
        let (open, foreign) = match opened {
            Ok(open) => (open, false),
            Err(error) if is_damage(&error) => (None, matches!(error, store::Error::NotOurs(_))),
            Err(error) => return Err(error.into()),
        };
        Ok(OldDatabase {
            open,
            runs: Vec::new(),
            foreign,
        })
    }

    fn read_runs(&mut self) {
        let runs = self.open.as_ref().map(|store| store.runs());
        self.runs = runs.and_then(Result::ok).unwrap_or_default();
        if self.runs.is_empty() {
            complain(
                "the old database cannot be read: names and notes that were given later are lost",
            );
        }
    }
}

/// True if a process can read the runs of the database and goes on. The libraries of the other
/// engines end a process that reads certain damaged files.
fn survives_reading(home: &Home) -> bool {
    let names_of_runs = ["complete-words", "show", ""];
    let reader = std::env::current_exe().and_then(|program| {
        Command::new(program)
            .arg("--store")
            .arg(home.dir())
            .args(names_of_runs)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
    });
    reader.is_ok_and(|status| status.success())
}

/// Makes the new database, and returns the number of its runs.
fn build(home: &Home, database: &DatabaseFiles, old: &OldDatabase) -> Result<usize, Failure> {
    let mut new = database.open(&EngineOptions::default())?;
    let runs = home.pending(&new)?;
    let mut indexed = 0;
    let bytes = |run: &String| fs::metadata(home.log_path(run)).map_or(0, |meta| meta.len());
    let what = format!(
        "building the graphs of {}",
        counted(runs.len(), "run", "runs")
    );
    let files = PipelineFiles::load(home);
    let progress = Progress::of(&what, runs.iter().map(bytes).sum(), Unit::Bytes);
    for run in &runs {
        let done = index::fold_into(home, run, &mut new, files.pipeline.as_ref());
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
    // Names and notes that this version gave are in the journal, too.
    annotation_history::apply_labels(home, &mut new)?;
    store::catch_up(home, &mut new)?;
    new.bring_in_log()?;
    Ok(indexed)
}

/// Replaces the old database by the new one. A question in between finds no database, and makes
/// one from the logs.
fn replace(database: &DatabaseFiles, new: &DatabaseFiles, old: OldDatabase) -> Result<(), Failure> {
    let aside = database.beside(".old");
    drop(old.open);
    new.replace(database, &aside)?;
    match old.foreign {
        true => {
            complain(&format!(
                "{} was no backstory database; it is now {}",
                database.path().display(),
                aside.path().display()
            ));
            Ok(())
        }
        false => Ok(aside.remove()?),
    }
}
