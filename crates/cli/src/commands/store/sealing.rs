//! Seals of runs as other commands make them: at the end of a run, at its removal, and for an
//! exported document.
//!
//! In: a store, and the user's configuration. Out: seals in the chain of the store. A store without
//! a chain is left as it is, unless the configuration asks for seals.

use std::collections::{BTreeSet, HashSet};

use backstory_evidence::proof::Proof;
use backstory_evidence::{Chain, Head, Journals, Sealer, Signing, removed};
use backstory_exchange::outgoing;
use backstory_files::Digest;
use backstory_store::facts::JournalRecord;
use backstory_store::{GraphStore, Home, RunRecord, Store};

use crate::current_store::CurrentStore;
use crate::error::{Failure, chain, complain};
use crate::evidence_policy::EvidencePolicy;
use crate::text::progress::{Progress, Unit};

impl From<backstory_evidence::Error> for Failure {
    fn from(error: backstory_evidence::Error) -> Failure {
        Failure::not_found(chain(&error))
    }
}

/// Seals each of the runs. Returns the seals, and the end of the chain.
pub fn seal_runs(
    home: &Home,
    store: &dyn Store,
    runs: &[RunRecord],
    signing: &Signing,
) -> Result<(Vec<(String, Head)>, Head), Failure> {
    let journals = Journals::read(home)?;
    let mut sealer = Sealer::open(home, signing)?;
    let progress = Progress::of("sealing runs", runs.len() as u64, Unit::Things);
    let mut made = Vec::new();
    for run in runs {
        let head = sealer.seal(store, run, &journals)?;
        made.push((run.header.id.clone(), head));
        progress.done.add(1);
    }
    Ok((made, sealer.head()))
}

/// Seals the runs that are not sealed yet, if the user's configuration says so. A seal that fails
/// for want of the key is made by a later call.
pub fn seal_each_run(home: &Home, store: &dyn Store) -> Result<(), Failure> {
    let policy = EvidencePolicy::load();
    if !policy.each_run {
        return Ok(());
    }
    let sealed = Chain::of(home).sealed_runs()?;
    let mut runs = store.runs()?;
    runs.reverse();
    runs.retain(|run| {
        let settled = !run.header.modes.stores_contents()
            || matches!(store.directory_snapshot(&run.header.id), Ok(Some(_)));
        settled && !sealed.contains(&run.header.id)
    });
    match runs.is_empty() {
        true => Ok(()),
        false => seal_runs(home, store, &runs, &policy.signing).map(drop),
    }
}

/// Writes into the chain that a run was removed, if it was sealed.
pub fn note_removal(home: &Home, run: &str) -> Result<(), Failure> {
    if !Chain::of(home).exists() {
        return Ok(());
    }
    if let Some(why) = removed(home, run, &EvidencePolicy::load().signing)? {
        complain(&format!(
            "the note that run {run} was removed is not signed: {why}; the next signed seal confirms it"
        ));
    }
    Ok(())
}

/// The sealed runs that refer to one of these contents.
pub fn sealed_with(
    current: &CurrentStore,
    contents: &HashSet<Digest>,
) -> Result<Vec<RunRecord>, Failure> {
    let sealed = Chain::of(&current.home);
    if contents.is_empty() || !sealed.exists() {
        return Ok(Vec::new());
    }
    let sealed: BTreeSet<String> = sealed.sealed_runs()?;
    let mut found = Vec::new();
    for run in current.store.runs()? {
        if !sealed.contains(&run.header.id) {
            continue;
        }
        let learned = outgoing::learned(&current.home, &*current.store, std::slice::from_ref(&run))
            .map_err(|error| Failure::not_found(chain(&error)))?;
        let refers = learned.iter().any(|record| match record {
            JournalRecord::Fact(fact) => fact.digest.is_some_and(|one| contents.contains(&one)),
            _ => false,
        });
        if refers {
            found.push(run);
        }
    }
    Ok(found)
}

/// Seals runs again whose contents were lawfully removed. Those that were removed as a whole are
/// left out.
pub fn seal_again(current: &CurrentStore, runs: &[RunRecord]) -> Result<(), Failure> {
    let mut left = Vec::new();
    for run in runs {
        left.extend(current.store.run(&run.header.id)?);
    }
    if left.is_empty() {
        return Ok(());
    }
    let signing = EvidencePolicy::load().signing;
    if signing.key.is_none() {
        complain(
            "runs that lost contents are sealed again without a signature: config.toml names no key",
        );
    }
    seal_runs(&current.home, &*current.store, &left, &signing).map(drop)
}

/// The seals of runs, for an exported document. `None` if no run is sealed.
pub fn of_runs<'r>(
    current: &CurrentStore,
    runs: impl Iterator<Item = &'r str>,
) -> Result<Option<serde_json::Value>, Failure> {
    if !Chain::of(&current.home).exists() {
        return Ok(None);
    }
    let mut records = Vec::new();
    for run in runs {
        records.extend(current.store.run(run)?);
    }
    let proof = Proof::of(&current.home, &*current.store, &records)?;
    let value = proof.map(|proof| serde_json::to_value(proof).map_err(Failure::not_found));
    value.transpose()
}
