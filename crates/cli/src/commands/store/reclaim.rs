//! Removes runs, and what no other run refers to.
//!
//! Invariant: facts without a reference are removed before the contents that they refer to. If the
//! program is killed at any moment, no fact refers to a removed content.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::ErrorKind;

use backstory_contents::Reclaimed;
use backstory_eventlog::Log;
use backstory_exchange::signature;
use backstory_files::{Digest, Ident, VersionId};
use backstory_store::annotation_history::AnnotationHistory;
use backstory_store::annotations::{self, AnnotationRecord};
use backstory_store::facts::{self, Availability, Fact, JournalRecord};
use backstory_store::{
    self as store, EngineControl, GraphStore, Home, Maintenance, RunKey, RunRecord, Store,
};
use backstory_vocabulary::ContentsMode;

use super::sealing::RemovalNotes;
use super::{keep_lock, open_contents};
use crate::current_store::CurrentStore;
use crate::error::{Failure, chain};
use crate::index;
use crate::text::progress::{Progress, Unit};

/// The runs that this user recorded, the newest first.
pub fn own_runs(current: &CurrentStore) -> Result<Vec<RunRecord>, Failure> {
    let mut runs = current.store.runs()?;
    if let Some(own) = current.store.own_runs()? {
        runs.retain(|run| own.contains(&run.key));
    }
    Ok(runs)
}

/// Bytes of the whole store. The database of a group is not a part of it.
pub fn total(current: &CurrentStore) -> Result<u64, Failure> {
    let contents = match open_contents(&current.home)? {
        Some(contents) => contents.disk()?,
        None => 0,
    };
    let runs = own_runs(current)?;
    let logs: u64 = runs.iter().map(|run| log_bytes(&current.home, run)).sum();
    let database = match current.store.is_shared() {
        true => 0,
        false => current.store.stats()?.bytes,
    };
    Ok(contents + logs + database)
}

/// Bytes of the log of a run, and of its deep log.
pub fn log_bytes(home: &Home, run: &RunRecord) -> u64 {
    let deep = fs::metadata(home.deep_log_path(&run.header.id));
    run.log_bytes + deep.map_or(0, |meta| meta.len())
}

/// Removes runs and what no other run refers to, and contents that runs refer to. Returns how much
/// space that frees. With `dry`, space in the database is not counted.
pub fn reclaim(
    current: &mut CurrentStore,
    runs: &[RunRecord],
    forgotten: &HashSet<Digest>,
    dry: bool,
) -> Result<Reclaimed, Failure> {
    let _lock = keep_lock(&current.home)?;
    let logs: u64 = runs.iter().map(|run| log_bytes(&current.home, run)).sum();
    let before = current.store.stats()?.bytes;
    let mut _notes = None;
    if !dry {
        let notes = _notes.insert(RemovalNotes::open(&current.home)?);
        for run in runs {
            remove_noted(current, &run.header.id, notes)?;
        }
        notes.forgot(&current.home, &*current.store, forgotten)?;
        current.store.forget_unreferred()?;
    }
    let gone: HashSet<RunKey> = runs.iter().map(|run| run.key).collect();
    // The digest of a forgotten content goes, too.
    let change = |fact| match is_one_of(&fact, |digest| forgotten.contains(digest)) {
        true => Fact {
            digest: None,
            availability: Availability::Missing("`backstory forget` removed it".to_owned()),
            ..fact
        },
        false => fact,
    };
    let mut given = sweep(&current.home, &mut *current.store, &gone, &change, dry)?;
    given.bytes += logs + before.saturating_sub(current.store.stats()?.bytes);
    Ok(given)
}

/// Drops contents that runs refer to, each with the reason. Their digests stay known, so that
/// files are still found by their content. For sealed runs, a note in the chain comes first. The
/// caller holds the lock of the contents.
pub fn drop_contents(
    home: &Home,
    store: &mut dyn Store,
    dropped: &HashMap<Digest, String>,
    dry: bool,
) -> Result<Reclaimed, Failure> {
    let mut _notes = None;
    if !dry {
        let notes = _notes.insert(RemovalNotes::open_unstamped(home)?);
        notes.forgot(home, store, &dropped.keys().copied().collect())?;
    }
    let change = |fact: Fact| {
        let why = fact.digest.and_then(|digest| dropped.get(&digest));
        match why.filter(|_| fact.availability.is_stored()) {
            Some(why) => Fact {
                availability: Availability::Missing(why.clone()),
                ..fact
            },
            None => fact,
        }
    };
    sweep(home, store, &HashSet::new(), &change, dry)
}

fn is_one_of(fact: &Fact, is_meant: impl Fn(&Digest) -> bool) -> bool {
    fact.digest.as_ref().is_some_and(is_meant)
}

/// Removes facts and contents that no run refers to but the runs `gone`, after `change` has changed
/// the facts.
fn sweep(
    home: &Home,
    store: &mut dyn Store,
    gone: &HashSet<RunKey>,
    change: &dyn Fn(Fact) -> Fact,
    dry: bool,
) -> Result<Reclaimed, Failure> {
    let mut left = store.runs()?;
    left.retain(|run| !gone.contains(&run.key));
    let referred = referred(home, store, &left)?;
    let known = store.facts()?;
    let live: Vec<Fact> = known
        .iter()
        .filter(|fact| referred.contains(&fact.ident.version_id()))
        .cloned()
        .map(change)
        .collect();
    let keep: HashSet<Digest> = live
        .iter()
        .filter(|fact| fact.availability.is_stored())
        .filter_map(|fact| fact.digest)
        .collect();
    if !dry && (live != known || !gone.is_empty()) {
        let mut learned: Vec<JournalRecord> = live.into_iter().map(JournalRecord::Fact).collect();
        for run in &left {
            let snapshot = store.directory_snapshot(&run.header.id)?;
            learned.extend(snapshot.map(JournalRecord::Run));
        }
        facts::rewrite(&home.facts_path(), &learned)?;
        store::catch_up(home, store)?;
    }
    let Some(contents) = open_contents(home)? else {
        return Ok(Reclaimed::default());
    };
    let all = contents.digests()?.len() as u64;
    let progress = Progress::of("removing contents", all, Unit::Things);
    let keeps = |digest: &Digest| {
        progress.done.add(1);
        keep.contains(digest)
    };
    Ok(contents.gc(&keeps, dry)?)
}

/// Removes a run: its graph and its log.
///
/// Removes the log first. If the program is killed in between, `rm` can remove the graph without a
/// log later. A log without a graph would be indexed again.
pub fn remove(current: &mut CurrentStore, run: &str) -> Result<(), Failure> {
    let mut notes = RemovalNotes::open(&current.home)?;
    remove_noted(current, run, &mut notes)
}

fn remove_noted(
    current: &mut CurrentStore,
    run: &str,
    notes: &mut RemovalNotes,
) -> Result<(), Failure> {
    notes.removed(run)?;
    let log = current.home.log_path(run);
    match fs::remove_file(&log) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(Failure::not_found(format!(
                "cannot remove {}: {error}",
                log.display()
            )));
        }
        _ => {}
    }
    index::forget_mark(&current.home, run);
    let _ = fs::remove_file(signature::path(&current.home, run));
    let bytes = current.home.bytes_dir(run);
    match fs::remove_dir_all(&bytes) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(Failure::not_found(format!(
                "cannot remove {}: {error}",
                bytes.display()
            )));
        }
        _ => {}
    }
    let deep = current.home.deep_log_path(run);
    match fs::remove_file(&deep) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(Failure::not_found(format!(
                "cannot remove {}: {error}",
                deep.display()
            )));
        }
        _ => {}
    }
    // `store gc` removes contents, because other runs may refer to them. Preserved files that wait
    // to be stored belong to this run only.
    match fs::remove_dir_all(current.home.kept_dir(run)) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(Failure::not_found(format!(
                "cannot remove {}: {error}",
                current.home.kept_dir(run).display()
            )));
        }
        _ => {}
    }
    let history = AnnotationHistory::of(&current.home)?;
    if history.of_run(run).next().is_some() {
        let forgotten = run.to_owned();
        annotations::append(&current.home, &[AnnotationRecord::Forgotten { forgotten }])?;
    }
    current.store.remove(run)?;
    Ok(())
}

/// Every version that these runs used, wrote or preserved.
fn referred(
    home: &Home,
    store: &dyn Store,
    runs: &[RunRecord],
) -> Result<HashSet<VersionId>, Failure> {
    let mut found = HashSet::new();
    let what = "finding the contents that runs refer to";
    let progress = Progress::of(what, runs.len() as u64, Unit::Things);
    for run in runs {
        progress.done.add(1);
        let entities = store.entities(run.key)?;
        found.extend(
            entities
                .iter()
                .filter_map(|entity| entity.ident.as_ref().map(Ident::version_id)),
        );
        if run.header.modes.contents == Some(ContentsMode::All)
            && fs::exists(home.log_path(&run.header.id)).unwrap_or(false)
        {
            let log = Log::open(home.log_path(&run.header.id))
                .map_err(|error| Failure::not_found(chain(&error)))?;
            found.extend(log.preserved().map(|kept| kept.ident.version_id()));
        }
    }
    Ok(found)
}
