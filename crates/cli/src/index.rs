//! Brings the store up to date: for each finalized log that the store does not have, fold → append. While the fold asks for identities
//! of paths for the first time, they are taken from the file system and kept in the log.
//!
//! Runs in the background after each recording and, if that has not happened yet, in the first question. One indexer per store
//! at a time (`flock` on its lock file). Memory is bounded by what the fold keeps alive and one batch of the store.
//!
//! Invariants: a log is never deleted, and changed only by appending what resolves it. A log that cannot be folded is marked
//! (`ID.log.bad`: program version and reason), reported once, and blocks no other; another version tries it again. A failure that
//! is the store's (disk full, locked) marks nothing.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use backstory_eventlog::event::{Bytes, Op, Time};
use backstory_eventlog::run::{RunEnd, RunHeader};
use backstory_eventlog::{self as eventlog, Identities, Log, Reason};
use backstory_files::Ident;
use backstory_files::regular;
use backstory_graph as graph;
use backstory_session::{self as session, IdentityResolver, Recorded};
use backstory_store::{self as store, Home, Store};

use crate::error::chain;
use crate::text::progress::Progress;

/// What to do when somebody else is indexing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Busy {
    /// Leave the work to them: they look once more before they stop.
    Leave,
    /// Wait for them.
    Wait,
}

/// A run that could not be indexed, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bad {
    /// Its id.
    pub run: String,
    /// One line.
    pub reason: String,
}

/// Why nothing more could be indexed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store failed, not a log.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A file beside the logs.
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

/// A failure of one log.
#[derive(Debug, thiserror::Error)]
enum LogError {
    #[error(transparent)]
    Log(#[from] eventlog::Error),
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error("it holds the log of run {run}, not its own")]
    Stranger { run: String },
}

/// The command line of what does in the background what is left to do in a store: this very program.
pub fn in_background(home: &Home) -> Vec<OsString> {
    match std::env::current_exe() {
        Ok(exe) => vec![
            exe.into(),
            "index".into(),
            "--store".into(),
            home.dir().into(),
        ],
        // Without /proc the first question does it.
        Err(_) => Vec::new(),
    }
}

/// Indexes everything that waits to be, and gives what could not be. `retry`: logs marked as bad, too.
pub fn bring_up_to_date(
    home: &Home,
    store: &mut dyn Store,
    busy: Busy,
    retry: bool,
) -> Result<Vec<Bad>, Error> {
    session::sweep();
    let mut failed: Vec<Bad> = Vec::new();
    // Each log is tried once, whatever comes of it: this ends.
    let mut tried: HashSet<String> = HashSet::new();
    loop {
        // A run may be finalized, and left to us, while we work: hence once more after the lock is given back.
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
        for run in runs {
            if let Err(error) = index(home, &run, store) {
                match error {
                    LogError::Store(error) if is_the_stores_own(&error) => return Err(error.into()),
                    error => failed.push(mark(home, run.clone(), &error)?),
                }
            }
            tried.insert(run);
        }
        drop(lock);
    }
}

/// True if another log would fail in the same way, so that this one is not to blame.
fn is_the_stores_own(error: &store::Error) -> bool {
    use store::Error::{Damaged, Exists, NoRun, Source, TooMany, Unannounced};
    !matches!(
        error,
        Source(_) | Unannounced { .. } | TooMany(_) | Exists(_) | NoRun(_) | Damaged(_)
    )
}

/// Runs to be indexed, oldest first.
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

/// Takes the store's lock, or gives none if somebody else has it and is to be left alone.
fn lock(home: &Home, busy: Busy) -> Result<Option<File>, Error> {
    take_lock(
        home.lock_path(),
        busy,
        "waiting for another backstory to index the newest runs",
    )
}

/// Takes a lock file, or gives none if somebody else has it and is to be left alone.
pub fn take_lock(path: PathBuf, busy: Busy, waiting: &str) -> Result<Option<File>, Error> {
    let fail = |source| Error::File {
        what: "lock",
        path: path.clone(),
        source,
    };
    let mut options = File::options();
    options.create(true).truncate(false).write(true).mode(0o600);
    let file = regular::open_with(&mut options, &path).map_err(fail)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(fs::TryLockError::WouldBlock) if busy == Busy::Leave => Ok(None),
        Err(fs::TryLockError::WouldBlock) => {
            let progress = Progress::start(waiting);
            file.lock().map_err(fail)?;
            progress.end();
            Ok(Some(file))
        }
        Err(fs::TryLockError::Error(source)) => Err(fail(source)),
    }
}

/// True if a recorder was killed and left a log that nobody finishes.
fn any_cut_off(home: &Home) -> Result<bool, Error> {
    Ok(home
        .unfinished()?
        .iter()
        .any(|run| !session::is_recording(&home.part_path(run))))
}

/// The headers of runs that are being recorded, newest first.
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
    headers.sort_by_key(|header| std::cmp::Reverse(header.started));
    headers
}

/// Finishes the logs of runs whose recorder was killed. Those that cannot be finished stay what they are, and `log` lists them.
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

/// Indexes one finalized log.
fn index(home: &Home, run: &str, store: &mut dyn Store) -> Result<(), LogError> {
    let path = home.log_path(run);
    let log = Log::open(&path)?;
    let bytes = fs::metadata(&path).map_or(0, |meta| meta.len());
    let progress = Progress::of_run(run, bytes);
    let mut header = log.header().clone();
    if header.id.is_empty() {
        // The header was lost with the beginning of the log: the file's name still says whose it is.
        header.id = run.to_owned();
    } else if header.id != run {
        return Err(LogError::Stranger { run: header.id });
    }
    let end = end_of(&log);
    let kept = match header.modes.stores_contents() {
        true => all_kept(&log),
        false => PreservedIdentities::new(),
    };
    store.append(&header, &end, bytes, &mut |sink| {
        if log.resolved() {
            let known = LoggedIdentities(log.identities(), &kept);
            return graph::fold(&header, Some(&end), log.events(), &known, sink);
        }
        let resolver = IdentityResolver::begin(&path).map_err(store::Error::source_failed)?;
        let known = FreshIdentities(RefCell::new(resolver), &kept);
        graph::fold(&header, Some(&end), log.events(), &known, sink)?;
        // Before the store commits: the log must give the same answers should the graph ever be built again.
        known
            .0
            .into_inner()
            .finish()
            .map_err(store::Error::source_failed)
    })?;
    forget_mark(home, run);
    progress.end();
    Ok(())
}

/// What was kept of each path before it changed, and when, in that order.
type PreservedIdentities = HashMap<Bytes, Vec<(Time, Ident)>>;

fn all_kept(log: &Log) -> PreservedIdentities {
    let mut all = PreservedIdentities::new();
    for event in log.events() {
        if let (Op::Kept { path, .. }, Some(ident)) = (event.op, event.ident) {
            all.entry(path).or_default().push((event.time, ident));
        }
    }
    all
}

fn first_since(kept: &PreservedIdentities, path: &[u8], since: Time) -> Option<(Time, Ident)> {
    let mut kept = kept.get(path)?.iter();
    kept.find(|(at, _)| *at >= since).copied()
}

/// What resolving took, as the fold asks for it: `graph` knows nothing of logs, and `eventlog` nothing of graphs.
struct LoggedIdentities<'a>(Identities, &'a PreservedIdentities);

impl graph::FinalState for LoggedIdentities<'_> {
    fn identity(&self, path: &[u8], follow: bool) -> Option<Option<Ident>> {
        self.0.of(path, follow)
    }

    fn preserved(&self, path: &[u8], since: Time) -> Option<(Time, Ident)> {
        first_since(self.1, path, since)
    }

    fn interpreter(&self, path: &[u8]) -> Option<Bytes> {
        self.0.interpreter(path).map(Into::into)
    }

    fn link_text(&self, path: &[u8]) -> Option<Bytes> {
        self.0.link_text(path).map(Into::into)
    }
}

/// Takes identities now, while they are what the run left.
struct FreshIdentities<'a>(RefCell<IdentityResolver>, &'a PreservedIdentities);

impl graph::FinalState for FreshIdentities<'_> {
    fn identity(&self, path: &[u8], follow: bool) -> Option<Option<Ident>> {
        Some(self.0.borrow_mut().of(path, follow))
    }

    fn preserved(&self, path: &[u8], since: Time) -> Option<(Time, Ident)> {
        first_since(self.1, path, since)
    }

    fn interpreter(&self, path: &[u8]) -> Option<Bytes> {
        self.0.borrow_mut().interpreter(path).map(Into::into)
    }

    fn link_text(&self, path: &[u8]) -> Option<Bytes> {
        self.0.borrow_mut().link_text(path).map(Into::into)
    }
}

/// The log's end, with what is wrong with the log itself, and with the status that `record` exited with if the command never ran.
fn end_of(log: &Log) -> RunEnd {
    let mut end = log.end().cloned().unwrap_or_else(|| RunEnd {
        incomplete_because: vec![Reason::NoEnd {}.to_string()],
        ..RunEnd::default()
    });
    if end.exit.is_none() && end.not_started.is_some() {
        end.exit = Some(
            Recorded {
                not_started: end.not_started,
                ..Recorded::default()
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

/// Marks a log as one this version cannot fold.
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

/// Why this version could not index a run, if that is so.
pub fn bad(home: &Home, run: &str) -> Option<Bad> {
    let text = String::from_utf8(regular::read(mark_path(home, run)).ok()?).ok()?;
    let (version, reason) = text.split_once('\n')?;
    let same = version == env!("CARGO_PKG_VERSION");
    same.then(|| Bad {
        run: run.to_owned(),
        reason: reason.trim_end().to_owned(),
    })
}

/// Forgets that a run could not be indexed.
pub fn forget_mark(home: &Home, run: &str) {
    let _ = fs::remove_file(mark_path(home, run));
}
