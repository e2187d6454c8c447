//! `store gc`: frees space.
//!
//! In the database of a group, it removes runs of this user only.
//!
//! Invariant: `gc` removes facts without a reference before the contents that they refer to. If it
//! is killed at any moment, no fact refers to a removed content.

use backstory_vocabulary::ContentsMode;
use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::Path;

use backstory_contents::Reclaimed;
use backstory_eventlog::Log;
use backstory_eventlog::event::Op;
use backstory_exchange::remove_left_files;
use backstory_files::{Digest, Ident, VersionId};
use backstory_store::facts::{self, Availability, Fact, JournalRecord};
use backstory_store::{
    self as store, ContentFacts, EngineControl, GraphStore, Maintenance, RunRecord,
};

use super::{keep_lock, limits, open_contents};
use crate::args::store::StoreGcArgs;
use crate::commands::{Outcome, answer, manage};
use crate::contents_writer;
use crate::current_store::CurrentStore;
use crate::error::{Failure, chain, complain};
use crate::index::Busy;
use crate::json::{self, Value};
use crate::shell_policy::{ShellPolicy, StoreLimits};
use crate::text::progress::{Progress, Unit};
use crate::text::when::size;

/// Removes runs, then what no run refers to.
pub fn run(args: StoreGcArgs, store: Option<&Path>) -> Outcome {
    let mut current = CurrentStore::open(store)?;
    // Pending runs may refer to contents that no indexed run refers to.
    contents_writer::bring_up_to_date(&current.home, &mut current.store, Busy::Wait)
        .map_err(|error| Failure::not_found(chain(&error)))?;
    let (forgotten, given) = match args.limits {
        true => limits::keep(&mut current, configured_limits()?, 0, args.dry_run)?,
        false => old_runs(&mut current, &args)?,
    };
    let ids: Vec<&str> = forgotten.iter().map(|run| run.header.id.as_str()).collect();
    answer(|out| match args.json {
        true => json::object(
            out,
            vec![
                ("dry_run", args.dry_run.into()),
                ("runs", Value::array(ids)),
                ("contents", given.objects.into()),
                ("bytes", given.bytes.into()),
            ],
        ),
        false => {
            let would = if args.dry_run {
                "would forget"
            } else {
                "forgot"
            };
            let runs = match ids.len() {
                0 => String::new(),
                1 => format!("1 run ({}), ", ids[0]),
                n => format!("{n} runs ({}), ", ids.join(" ")),
            };
            writeln!(
                out,
                "{would} {runs}{} contents; {}",
                given.objects,
                size(given.bytes)
            )
        }
    })
}

/// The limits of the user's `config.toml`.
fn configured_limits() -> Result<StoreLimits, Failure> {
    let policy = ShellPolicy::load();
    policy.warnings.iter().for_each(|warning| complain(warning));
    if policy.limits == StoreLimits::default() {
        let file = policy.file.map(|file| format!(" in {}", file.display()));
        return Err(Failure::misuse(format!(
            "there are no limits{}: `backstory config --help` has an example",
            file.unwrap_or_default()
        )));
    }
    Ok(policy.limits)
}

/// Removes the runs that the options mean, and what no run refers to.
fn old_runs(
    current: &mut CurrentStore,
    args: &StoreGcArgs,
) -> Result<(Vec<RunRecord>, Reclaimed), Failure> {
    let all = own_runs(current)?;
    let mut forgotten: Vec<RunRecord> = match args.older_than {
        Some(seconds) => {
            let age = seconds.saturating_mul(1_000_000_000);
            let now = backstory_session::Moment::now();
            all.iter()
                .filter(|run| now.age_of(&run.header) > age)
                .cloned()
                .collect()
        }
        None => Vec::new(),
    };
    let none = HashSet::new();
    let mut given = reclaim(current, &forgotten, &none, args.dry_run)?;
    if let Some(most) = args.max_size {
        // One run after the other: what only this run refers to is known once the run is removed.
        let mut rest: Vec<&RunRecord> = all.iter().filter(|run| !has(&forgotten, run)).collect();
        while total(current)? > most.saturating_add(if args.dry_run { given.bytes } else { 0 }) {
            let Some(oldest) = rest.pop() else { break };
            forgotten.push(oldest.clone());
            let more = match args.dry_run {
                true => reclaim(current, &forgotten, &none, true)?,
                false => reclaim(current, std::slice::from_ref(oldest), &none, false)?,
            };
            given = match args.dry_run {
                true => more,
                false => Reclaimed {
                    objects: given.objects + more.objects,
                    bytes: given.bytes + more.bytes,
                },
            };
        }
    }
    if !args.dry_run {
        remove_left_files(&current.home);
        // Also for runs that `rm` removed, and after a `gc` that was killed.
        current.store.compact()?;
    }
    Ok((forgotten, given))
}

fn has(runs: &[RunRecord], run: &RunRecord) -> bool {
    runs.iter().any(|other| other.key == run.key)
}

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
        Some(contents) => contents.stats()?.disk,
        None => 0,
    };
    let logs: u64 = own_runs(current)?.iter().map(|run| run.log_bytes).sum();
    let database = match current.store.is_shared() {
        true => 0,
        false => current.store.stats()?.bytes,
    };
    Ok(contents + logs + database)
}

/// Removes runs and what no other run refers to, and contents that runs refer to. Returns how much
/// space that frees. With `dry`, space in the database is not counted.
pub fn reclaim(
    current: &mut CurrentStore,
    runs: &[RunRecord],
    contents_too: &HashSet<Digest>,
    dry: bool,
) -> Result<Reclaimed, Failure> {
    let _lock = keep_lock(&current.home)?;
    let logs: u64 = runs.iter().map(|run| run.log_bytes).sum();
    let before = current.store.stats()?.bytes;
    if !dry {
        for run in runs {
            manage::remove(current, &run.header.id)?;
        }
        current.store.forget_unreferred()?;
    }
    let left: Vec<RunRecord> = current
        .store
        .runs()?
        .into_iter()
        .filter(|run| !has(runs, run))
        .collect();
    let referred = referred(current, &left)?;
    let known = current.store.facts()?;
    let live: Vec<Fact> = known
        .iter()
        .filter(|fact| referred.contains(&fact.ident.version_id()))
        .cloned()
        .map(|fact| without(fact, contents_too))
        .collect();
    let keep: HashSet<Digest> = live
        .iter()
        .filter(|fact| fact.availability.is_stored())
        .filter_map(|fact| fact.digest)
        .collect();
    if !dry && (live != known || !runs.is_empty()) {
        let mut learned: Vec<JournalRecord> = live.into_iter().map(JournalRecord::Fact).collect();
        for run in &left {
            learned.extend(
                current
                    .store
                    .directory_snapshot(&run.header.id)?
                    .map(JournalRecord::Run),
            );
        }
        facts::rewrite(&current.home.facts_path(), &learned)?;
        store::catch_up(&current.home, &mut current.store)?;
    }
    let mut given = match open_contents(&current.home)? {
        Some(contents) => {
            let all = contents.digests()?.len() as u64;
            let progress = Progress::of("removing contents", all, Unit::Things);
            let keeps = |digest: &Digest| {
                progress.done.add(1);
                keep.contains(digest)
            };
            contents.gc(&keeps, dry)?
        }
        None => Reclaimed::default(),
    };
    given.bytes += logs + before.saturating_sub(current.store.stats()?.bytes);
    Ok(given)
}

/// The fact, without its content if that is one of these.
fn without(fact: Fact, contents: &HashSet<Digest>) -> Fact {
    if !fact.digest.is_some_and(|digest| contents.contains(&digest)) {
        return fact;
    }
    Fact {
        digest: None,
        availability: Availability::Missing("`backstory forget` removed it".to_owned()),
        ..fact
    }
}

/// Every version that these runs used, wrote or preserved.
fn referred(current: &CurrentStore, runs: &[RunRecord]) -> Result<HashSet<VersionId>, Failure> {
    let mut found = HashSet::new();
    let what = "finding the contents that runs refer to";
    let progress = Progress::of(what, runs.len() as u64, Unit::Things);
    for run in runs {
        progress.done.add(1);
        let entities = current.store.entities(run.key)?;
        found.extend(
            entities
                .iter()
                .filter_map(|entity| entity.ident.as_ref().map(Ident::version_id)),
        );
        if run.header.modes.contents == Some(ContentsMode::All)
            && fs::exists(current.home.log_path(&run.header.id)).unwrap_or(false)
        {
            let log = Log::open(current.home.log_path(&run.header.id))
                .map_err(|error| Failure::not_found(chain(&error)))?;
            let kept = log
                .events()
                .filter(|event| matches!(event.op, Op::Preserved { .. }));
            found.extend(kept.filter_map(|event| event.ident.as_ref().map(Ident::version_id)));
        }
    }
    Ok(found)
}
