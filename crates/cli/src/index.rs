//! The indexer brings the store up to date. It folds each finalized log that the store does not
//! have, and appends the graph to the store. The fold needs identities of paths. At first use the
//! indexer takes an identity from the file system and appends it to the log.
//!
//! The indexer runs in the background after each recording, or before the first question. One
//! indexer per store runs at a time (`flock` on its lock file). In the background it comes last for
//! processors and disks, and hands its work over to a process that the user waits for
//! ([`handover`]). Memory is bounded by the state of the fold and one batch of the store.
//!
//! Invariants:
//!
//! - The indexer never deletes a log, and changes it only by appending identities.
//! - A log that cannot be folded is marked (`ID.log.bad`: program version and reason), reported
//!   once, and blocks no other log. Another version of the program tries it again.
//! - A failure of the store (disk full, locked) marks no log.

use backstory_ordering::SmallSort;
use std::cell::RefCell;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;

use backstory_eventlog::run::{RunEnd, RunHeader};
use backstory_eventlog::{self as eventlog, Log, Reason};
use backstory_files::regular;
use backstory_graph as graph;
use backstory_pipeline::{FilteredRun, Pipeline, PipelineReport};
use backstory_session::{self as session, IdentityResolver, RecordingResult};
use backstory_store::{self as store, Home, Store};

use crate::error::chain;
use crate::filtered_indexing::{LoggedRun, append_filtered, filtered};
use crate::final_identities::{
    FreshIdentities, LoggedIdentities, PreservedIdentities, preserved_identities,
};
use crate::handover::{self, HeldLock};
use crate::pipeline_file::PipelineFiles;
use crate::record_judging::JudgingSink;
use crate::schema_registry::SchemaRegistry;
use crate::text::progress::{Progress, Unit};
use crate::text::when;

/// The choice if another process holds the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Busy {
    /// Leave the work to that process: it looks for new logs once more before it stops.
    Leave,
    /// Wait for it.
    Wait,
}

/// A run that could not be indexed, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bad {
    /// Id of the run.
    pub run: String,
    /// Why, in one line.
    pub reason: String,
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run {} could not be indexed: {}", self.run, self.reason)
    }
}

/// Why indexing stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store failed, not a log.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A file beside the logs failed.
    #[error("cannot {what} {}: {source}", path.display())]
    File {
        /// Verb.
        what: &'static str,
        /// Object.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Why one log could not be indexed.
#[derive(Debug, thiserror::Error)]
enum LogError {
    #[error(transparent)]
    Log(#[from] eventlog::Error),
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error("the file holds the log of run {run}; its name is of another run")]
    Stranger { run: String },
}

/// The command line of a background indexer for a store. It is this program.
pub fn in_background(home: &Home) -> Vec<OsString> {
    match std::env::current_exe() {
        Ok(exe) => vec![
            exe.into(),
            "index".into(),
            "--store".into(),
            home.dir().into(),
        ],
        // Without /proc the first question indexes.
        Err(_) => Vec::new(),
    }
}

/// Indexes all pending logs. Returns the runs that could not be indexed. `retry` includes logs that
/// are marked as bad.
pub fn bring_up_to_date(
    home: &Home,
    store: &mut dyn Store,
    busy: Busy,
    retry: bool,
) -> Result<Vec<Bad>, Error> {
    session::sweep();
    let mut failed: Vec<Bad> = Vec::new();
    // Each log is tried once, so that the loop ends.
    let mut tried: HashSet<String> = HashSet::new();
    loop {
        // Another recording may finalize a log, and leave it to this process, while it works. It
        // looks once more after it released the lock.
        if waiting(home, store, retry, &tried)?.is_empty() && !any_cut_off(home)? {
            return Ok(failed);
        }
        let Some(lock) = lock(home, busy)? else {
            return Ok(failed);
        };
        recover(home)?;
        let runs = waiting(home, store, retry, &tried)?;
        if runs.is_empty() {
            return Ok(failed);
        }
        let bytes = |run: &str| fs::metadata(home.log_path(run)).map_or(0, |meta| meta.len());
        // A single run has a bar of its own.
        let all = match runs.len() {
            1 => None,
            many => {
                let all = runs.iter().map(|run| bytes(run)).sum();
                Some(Progress::of(
                    &format!("indexing {many} runs"),
                    all,
                    Unit::Bytes,
                ))
            }
        };
        let files = PipelineFiles::load(home);
        for run in runs {
            let size = bytes(&run);
            if let Err(error) = index(home, &run, store, files.pipeline.as_ref()) {
                match error {
                    LogError::Store(error) if is_the_stores_own(&error) => return Err(error.into()),
                    error => failed.push(mark(home, run.clone(), &error)?),
                }
            }
            tried.insert(run);
            if let Some(all) = &all {
                all.done.add(size);
            }
        }
        drop((all, lock));
    }
}

/// True if the store failed, so that every other log would fail in the same way.
fn is_the_stores_own(error: &store::Error) -> bool {
    use store::Error::{Damaged, Exists, NoRun, Source, TooMany, Unannounced};
    !matches!(
        error,
        Source(_) | Unannounced { .. } | TooMany(_) | Exists(_) | NoRun(_) | Damaged(_)
    )
}

/// Runs to index, the oldest first.
fn waiting(
    home: &Home,
    store: &dyn Store,
    retry: bool,
    tried: &HashSet<String>,
) -> Result<Vec<String>, Error> {
    let mut runs = home.pending(store)?;
    runs.retain(|run| !tried.contains(run) && (retry || !is_marked(home, run)));
    Ok(runs)
}

/// Takes the lock of the indexer. `None` if another process holds it and `busy` says to leave it.
fn lock(home: &Home, busy: Busy) -> Result<Option<HeldLock>, Error> {
    take_lock(
        home.lock_path(),
        busy,
        "waiting for another backstory process to index the newest runs",
    )
}

/// Takes a lock file. `None` if another process holds it and `busy` says to leave it.
pub fn take_lock(path: PathBuf, busy: Busy, waiting: &str) -> Result<Option<HeldLock>, Error> {
    handover::let_pass(&path);
    let fail = |source| Error::File {
        what: "lock",
        path: path.clone(),
        source,
    };
    let file = regular::open_private(&path).map_err(fail)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(HeldLock::of(file, path))),
        Err(fs::TryLockError::WouldBlock) if busy == Busy::Leave => Ok(None),
        Err(fs::TryLockError::WouldBlock) => {
            let progress = Progress::start(waiting);
            let asked = handover::ask(&path);
            file.lock().map_err(fail)?;
            drop(asked);
            progress.end();
            Ok(Some(HeldLock::of(file, path)))
        }
        Err(fs::TryLockError::Error(source)) => Err(fail(source)),
    }
}

/// True if a recording was killed and left an unfinished log.
fn any_cut_off(home: &Home) -> Result<bool, Error> {
    Ok(home
        .unfinished()?
        .iter()
        .any(|run| !session::is_recording(&home.part_path(run))))
}

/// The headers of the runs that are being recorded, the newest first.
pub fn recording(home: &Home) -> Vec<RunHeader> {
    let parts = home
        .unfinished()
        .unwrap_or_default()
        .into_iter()
        .map(|run| home.part_path(&run));
    let live = parts.filter(|part| session::is_recording(part));
    let mut headers: Vec<RunHeader> = live
        .filter_map(|part| Some(Log::open(part).ok()?.header().clone()))
        .collect();
    headers.sort_small_by_key(|header| std::cmp::Reverse(header.started));
    headers
}

/// Ends the logs of killed recordings. A log that cannot be ended stays as it is, and `log` lists
/// it.
fn recover(home: &Home) -> Result<(), Error> {
    for run in home.unfinished()? {
        let part = home.part_path(&run);
        if session::is_recording(&part) {
            continue;
        }
        let arena = Log::open(&part)
            .ok()
            .and_then(|log| log.header().arena.clone().map(PathBuf::from));
        let _ = session::recover(arena.as_deref(), &part, &home.log_path(&run));
    }
    Ok(())
}

/// Folds one finalized log into a store that does not have the run, through filters if there are
/// any. An error says in one line why the log cannot be folded.
pub fn fold_into(
    home: &Home,
    run: &str,
    store: &mut dyn Store,
    pipeline: Option<&Pipeline>,
) -> Result<(), String> {
    index(home, run, store, pipeline).map_err(|error| chain(&error))
}

/// Filters the graph of a finalized log, and changes nothing.
pub fn filter_log(
    home: &Home,
    run: &str,
    store: &dyn Store,
    pipeline: &Pipeline,
) -> Result<(FilteredRun, PipelineReport), String> {
    let mut result = None;
    with_log(home, run, &mut |run, body| {
        result = Some(filtered(store, run.header, pipeline, body)?);
        Ok(())
    })
    .map_err(|error| chain(&error))?;
    result.ok_or_else(|| "the log was not read".to_owned())
}

/// Indexes one finalized log.
fn index(
    home: &Home,
    run: &str,
    store: &mut dyn Store,
    pipeline: Option<&Pipeline>,
) -> Result<(), LogError> {
    with_log(home, run, &mut |run, body| match pipeline {
        None => store.append(run.header, run.end, run.bytes, body).map(drop),
        Some(pipeline) => append_filtered(store, run, pipeline, body),
    })?;
    forget_mark(home, run);
    Ok(())
}

/// Appends a run, of which `body` emits the graph.
type Append<'a> = dyn FnMut(LoggedRun<'_>, &mut store::Body<'_>) -> store::Result<()> + 'a;

/// Passes the run of a finalized log and its fold to `append`.
fn with_log(home: &Home, run: &str, append: &mut Append<'_>) -> Result<(), LogError> {
    let path = home.log_path(run);
    let log = Log::open(&path)?;
    let bytes = fs::metadata(&path).map_or(0, |meta| meta.len());
    let what = format!("indexing run {run} ({})", when::size(bytes));
    let mut header = log.header().clone();
    if header.id.is_empty() {
        // The header was lost with the beginning of the log. The file's name still has the id.
        header.id = run.to_owned();
    } else if header.id != run {
        return Err(LogError::Stranger { run: header.id });
    }
    let end = end_of(&log);
    header.complete_line(&end);
    // Events come in order of time, so that the time of an event says how much is done.
    let lasted = end.ended.saturating_sub(header.started);
    let progress = Progress::of(&what, u64::try_from(lasted).unwrap_or(0), Unit::Part);
    let started = header.started;
    let events = || {
        log.events().inspect(|event| {
            let passed = event.time.saturating_sub(started);
            progress.done.set(u64::try_from(passed).unwrap_or(0));
        })
    };
    let kept = match header.modes.stores_contents() {
        true => preserved_identities(&log),
        false => PreservedIdentities::new(),
    };
    let logged = LoggedRun {
        header: &header,
        end: &end,
        bytes,
    };
    let schemas = SchemaRegistry::load(home).map_err(store::Error::source_failed)?;
    append(logged, &mut |sink| {
        let mut sink = JudgingSink::new(sink, &schemas);
        if log.resolved() {
            let known = LoggedIdentities(log.identities(), &kept);
            graph::fold(&header, Some(&end), events(), &known, &mut sink)?;
            return sink.finish();
        }
        let resolver = IdentityResolver::begin(&path).map_err(store::Error::source_failed)?;
        let known = FreshIdentities(RefCell::new(resolver), &kept);
        graph::fold(&header, Some(&end), events(), &known, &mut sink)?;
        sink.finish()?;
        // Before the store commits: a second fold of the log must give the same graph.
        known
            .0
            .into_inner()
            .finish()
            .map_err(store::Error::source_failed)
    })?;
    progress.end();
    Ok(())
}

/// The run's end from the log, with the damage of the log. If the command never ran, the end has
/// the exit status of `record`.
fn end_of(log: &Log) -> RunEnd {
    let mut end = log.end().cloned().unwrap_or_else(|| RunEnd {
        incomplete_because: vec![Reason::NoEnd {}.to_string()],
        ..RunEnd::default()
    });
    if end.exit.is_none() && end.not_started.is_some() {
        end.exit = Some(
            RecordingResult {
                not_started: end.not_started,
                ..RecordingResult::default()
            }
            .status(),
        );
    }
    if let Some(reason) = log.damage().reason() {
        let sentence = reason.to_string();
        if !end.incomplete_because.contains(&sentence) {
            end.incomplete_because.push(sentence);
        }
    }
    end
}

/// Marks a log that this version cannot fold.
fn mark(home: &Home, run: String, error: &LogError) -> Result<Bad, Error> {
    let path = mark_path(home, &run);
    let reason = chain(error);
    fs::write(&path, format!("{}\n{reason}\n", env!("CARGO_PKG_VERSION"))).map_err(|source| {
        Error::File {
            what: "write",
            path,
            source,
        }
    })?;
    Ok(Bad { run, reason })
}

fn mark_path(home: &Home, run: &str) -> PathBuf {
    home.runs_dir().join(format!("{run}.log.bad"))
}

fn is_marked(home: &Home, run: &str) -> bool {
    bad(home, run).is_some()
}

/// The mark of a run that this version could not index.
pub fn bad(home: &Home, run: &str) -> Option<Bad> {
    let text = String::from_utf8(regular::read(mark_path(home, run)).ok()?).ok()?;
    let (version, reason) = text.split_once('\n')?;
    let same = version == env!("CARGO_PKG_VERSION");
    same.then(|| Bad {
        run: run.to_owned(),
        reason: reason.trim_end().to_owned(),
    })
}

/// Removes the mark of a run.
pub fn forget_mark(home: &Home, run: &str) {
    let _ = fs::remove_file(mark_path(home, run));
}
