//! Causes of which no byte came into an output, where the byte engine followed the runs.
//!
//! Invariant: such a cause stays in the answer. A branch may have depended on it.

use std::collections::{BTreeMap, BTreeSet};

use backstory_query::{ByteSources, RefinedRuns};
use backstory_replay::diff::{Diff, Difference, DifferenceKind};
use backstory_store::EntityKey;

use crate::commands::byte_origins::refined_runs;
use crate::current_store::CurrentStore;

/// The most outputs whose bytes are looked up.
const MOST: usize = 64;

/// Pairs of an output and a cause, by their numbers in the list of differences.
#[derive(Debug, Default)]
pub struct UnusedCauses(BTreeMap<usize, BTreeSet<usize>>);

impl UnusedCauses {
    /// The pairs of which it is certain, on each side that has the cause. They are an addition to
    /// another answer, so a trouble is not reported.
    pub fn of(current: &CurrentStore, diff: &Diff) -> UnusedCauses {
        let mut runs = refined_runs(current);
        let mut found = UnusedCauses::default();
        if runs.is_empty() {
            return found;
        }
        let outputs = diff.differences.iter().enumerate();
        let outputs = outputs.filter(|(_, one)| one.kind == DifferenceKind::Output);
        for (at, output) in outputs.take(MOST) {
            let sources = output.versions.map(|version| sources(&mut runs, version?));
            let is_unused = |cause: &Difference| {
                let sides = cause.versions.iter().zip(&sources);
                let mut sides = sides.filter(|(version, _)| version.is_some()).peekable();
                let is_file = cause.kind == DifferenceKind::Input && sides.peek().is_some();
                is_file && sides.all(|(version, sources)| gives_none(current, *version, sources))
            };
            let causes = output.fed_by.iter().copied();
            let unused = causes.filter(|&cause| is_unused(&diff.differences[cause]));
            found.0.insert(at, unused.collect());
        }
        found
    }

    /// True if no byte of the cause is in the output.
    pub fn has(&self, output: usize, cause: usize) -> bool {
        let causes = self.0.get(&output);
        causes.is_some_and(|causes| causes.contains(&cause))
    }

    /// The causes of which no byte is in the output.
    pub fn of_output(&self, output: usize) -> impl Iterator<Item = usize> {
        self.0.get(&output).into_iter().flatten().copied()
    }
}

fn sources(runs: &mut RefinedRuns<'_>, version: EntityKey) -> Option<ByteSources> {
    ByteSources::of_version(runs, version).ok().flatten()
}

/// True if this version of an input gave the output of its side no byte.
fn gives_none(
    current: &CurrentStore,
    version: Option<EntityKey>,
    sources: &Option<ByteSources>,
) -> bool {
    let entity = version.and_then(|version| current.store.entity(version).ok());
    let (Some(entity), Some(sources)) = (entity, sources) else {
        return false;
    };
    sources.has_bytes_of(&BTreeSet::from([entity.path.to_vec()])) == Some(false)
}
