//! Digests of what a store contains, whatever its engine. Two stores with the same runs, facts and
//! annotations have the same digests, so that a copy can be compared with the original.
//!
//! Absent from a digest: the numbers that a store gives (`RunKey`), which an engine may choose.

use std::hash::{Hash, Hasher};

use backstory_files::Digest;

use crate::annotations::AnnotationKind;
use crate::{ActivityKey, Error, Result, RunRecord, Store};

/// Feeds everything that has a hash into a cryptographic digest.
#[derive(Default)]
struct ContentHasher(blake3::Hasher);

impl Hasher for ContentHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        self.digest().prefix()
    }
}

impl ContentHasher {
    fn digest(&self) -> Digest {
        Digest(*self.0.finalize().as_bytes())
    }
}

/// The digest of a run: what the store lists of it, and its whole graph.
///
/// Errors: if a record cannot be read or decoded.
pub fn digest_of_run(store: &dyn Store, run: &RunRecord) -> Result<Digest> {
    let mut hasher = ContentHasher::default();
    for part in [json(&run.header)?, json(&run.end)?] {
        part.hash(&mut hasher);
    }
    (&run.name, &run.note, run.log_bytes, &run.unknown).hash(&mut hasher);
    run.counts.hash(&mut hasher);
    store.entities(run.key)?.hash(&mut hasher);
    for activity in store.activities(run.key)? {
        activity.hash(&mut hasher);
        let stream = store.stream(ActivityKey::new(run.key, activity.id))?;
        stream.hash(&mut hasher);
    }
    store.extended(run.key)?.hash(&mut hasher);
    Ok(hasher.digest())
}

fn json(value: &impl serde::Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(Error::source_failed)
}

/// The digest of all facts about contents, directory snapshots and annotations.
///
/// Errors: if a record cannot be read or decoded.
pub fn digest_of_facts(store: &dyn Store) -> Result<Digest> {
    let mut hasher = ContentHasher::default();
    // Facts have no order.
    let mut facts = Vec::new();
    for fact in store.facts()? {
        let mut one = ContentHasher::default();
        fact.hash(&mut one);
        facts.push(one.digest());
    }
    facts.sort_unstable();
    facts.hash(&mut hasher);
    let mut runs: Vec<String> = store.run_ids()?.into_iter().collect();
    runs.sort_unstable();
    for run in runs {
        // A shared database has runs without a snapshot, which its copy need not have.
        if let Some(snapshot) = store.directory_snapshot(&run)? {
            snapshot.hash(&mut hasher);
        }
    }
    for kind in AnnotationKind::ALL {
        store.annotations_of(kind, None)?.hash(&mut hasher);
    }
    Ok(hasher.digest())
}

/// One digest of many, in their order.
pub fn combined(digests: &[Digest]) -> Digest {
    let mut hasher = ContentHasher::default();
    digests.hash(&mut hasher);
    hasher.digest()
}
