//! Seals of runs as other commands make them: at the end of a run, at its removal, and for an
//! exported document.
//!
//! In: a store, and the user's configuration. Out: seals in the chain of the store. A store without
//! a chain is left as it is, unless the configuration asks for seals.

use std::collections::HashSet;
use std::fs::File;

use backstory_evidence::proof::Proof;
use backstory_evidence::{Chain, Head, Journals, Notes, Sealer, Signing};
use backstory_files::Digest;
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

/// Seals each of the runs, those that are sealed already only if `again`. Returns the seals, and
/// the end of the chain.
pub fn seal_runs(
    home: &Home,
    store: &dyn Store,
    runs: &[RunRecord],
    signing: &Signing,
    again: bool,
) -> Result<(Vec<(String, Head)>, Head), Failure> {
    let mut sealer = Sealer::open(home, signing)?;
    // Another process may have sealed or removed runs before this one got the lock.
    let sealed = sealer.sealed_runs()?;
    let journals = Journals::read(home)?;
    let progress = Progress::of("sealing runs", runs.len() as u64, Unit::Things);
    let mut made = Vec::new();
    for run in runs {
        let id = &run.header.id;
        if (again || !sealed.contains(id))
            && let Some(head) = sealer.seal(store, id, &journals)?
        {
            made.push((id.clone(), head));
        }
        progress.done.add(1);
    }
    Ok((made, sealer.head()))
}

/// Seals the user's runs that are not sealed yet, if the configuration says so. A seal that fails
/// for want of the key is made by a later call.
pub fn seal_each_run(home: &Home, store: &dyn Store) -> Result<(), Failure> {
    let policy = EvidencePolicy::load();
    if !policy.each_run {
        return Ok(());
    }
    let sealed = Chain::of(home).sealed_runs()?;
    // The logs of other users of a shared database lie elsewhere, and are theirs to seal.
    let own = store.own_runs()?;
    let mut runs = store.runs()?;
    runs.reverse();
    runs.retain(|run| {
        let is_own = own.as_ref().is_none_or(|own| own.contains(&run.key));
        let settled = !run.header.modes.stores_contents()
            || matches!(store.directory_snapshot(&run.header.id), Ok(Some(_)));
        is_own && settled && !sealed.contains(&run.header.id)
    });
    match runs.is_empty() {
        true => Ok(()),
        false => seal_runs(home, store, &runs, &policy.signing, false).map(drop),
    }
}

/// The chain of a store while something is removed.
///
/// It is dropped after the removal: until then, other processes neither seal nor compare. A process
/// that needs the lock of the contents, too, takes that one first.
pub enum RemovalNotes {
    /// No run was ever sealed. The lock keeps other processes from making the first seal, which
    /// could be about a run that goes.
    NoChain { _lock: File },
    /// The notes.
    Chain(Notes),
}

impl RemovalNotes {
    /// Opens the chain, if a run was ever sealed.
    pub fn open(home: &Home) -> Result<RemovalNotes, Failure> {
        RemovalNotes::open_with(home, EvidencePolicy::load().signing)
    }

    /// The same for contents that make room. There can be many notes at once, and other processes
    /// wait, so that no authority is asked for time stamps.
    pub fn open_unstamped(home: &Home) -> Result<RemovalNotes, Failure> {
        let signing = Signing {
            tsa: None,
            ..EvidencePolicy::load().signing
        };
        RemovalNotes::open_with(home, signing)
    }

    fn open_with(home: &Home, signing: Signing) -> Result<RemovalNotes, Failure> {
        Ok(match Chain::of(home).before_first()? {
            Some(_lock) => RemovalNotes::NoChain { _lock },
            None => RemovalNotes::Chain(Notes::open(home, signing)?),
        })
    }

    /// Writes into the chain that a run is removed next, if it is sealed.
    pub fn removed(&mut self, run: &str) -> Result<(), Failure> {
        match self {
            RemovalNotes::Chain(notes) => Ok(notes.removed(run)?),
            RemovalNotes::NoChain { .. } => Ok(()),
        }
    }

    /// Writes into the chain which sealed runs lose these contents next.
    pub fn forgot(
        &mut self,
        home: &Home,
        store: &dyn Store,
        contents: &HashSet<Digest>,
    ) -> Result<(), Failure> {
        match self {
            RemovalNotes::Chain(notes) if !contents.is_empty() => {
                Ok(notes.forgot(home, store, contents)?)
            }
            _ => Ok(()),
        }
    }
}

impl Drop for RemovalNotes {
    fn drop(&mut self) {
        if let RemovalNotes::Chain(Notes {
            unsigned: Some(why),
            ..
        }) = self
        {
            complain(&format!(
                "the note about the removal is not signed: {why}; the next signed seal confirms it"
            ));
        }
    }
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
