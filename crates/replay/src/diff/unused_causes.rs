//! Causes of which no byte came into an output, where the byte engine followed the runs.
//!
//! Invariant: such a cause stays in the answer. A branch may have depended on it.

use std::collections::BTreeMap;

use backstory_query::{ByteSources, RefinedRuns};
use backstory_store::EntityKey;

use super::{Diff, Difference, DifferenceKind, FOLLOWED};

/// Pairs of an output and a cause, by their indexes in the list of differences.
#[derive(Debug, Default)]
pub struct UnusedCauses(BTreeMap<usize, Vec<usize>>);

impl UnusedCauses {
    /// The pairs of which it is certain, on each side that has the cause. They are an addition to
    /// another answer, so a trouble is not reported.
    pub fn of(runs: &mut RefinedRuns<'_>, diff: &Diff) -> UnusedCauses {
        let mut found = UnusedCauses::default();
        if runs.is_empty() {
            return found;
        }
        let outputs = diff.differences.iter().enumerate();
        let outputs = outputs.filter(|(_, one)| one.kind == DifferenceKind::Output);
        for (at, output) in outputs.take(FOLLOWED) {
            let sources = output.versions.map(|version| sources(runs, version?));
            let is_unused = |cause: &Difference| {
                let sides = cause.versions.iter().zip(&sources);
                let mut sides = sides.filter_map(|(version, sources)| Some(((*version)?, sources)));
                let has_sides = cause.versions.iter().any(Option::is_some);
                cause.kind == DifferenceKind::Input
                    && has_sides
                    && sides.all(|(version, sources)| gives_none(runs, version, sources.as_ref()))
            };
            let causes = output.fed_by.iter().copied();
            let unused = causes.filter(|&cause| is_unused(&diff.differences[cause]));
            found.0.insert(at, unused.collect());
        }
        found
    }

    /// True if no byte of the cause is in the output.
    pub fn has(&self, output: usize, cause: usize) -> bool {
        self.of_output(output).contains(&cause)
    }

    /// The causes of which no byte is in the output, in the order of the differences.
    pub fn of_output(&self, output: usize) -> &[usize] {
        self.0.get(&output).map(Vec::as_slice).unwrap_or_default()
    }
}

fn sources(runs: &mut RefinedRuns<'_>, version: EntityKey) -> Option<ByteSources> {
    ByteSources::of_version(runs, version).ok().flatten()
}

/// True if this version of an input gave the output of its side no byte.
fn gives_none(runs: &RefinedRuns<'_>, version: EntityKey, sources: Option<&ByteSources>) -> bool {
    let entity = runs.store().entity(version);
    let both = entity.ok().zip(sources);
    both.is_some_and(|(entity, sources)| sources.has_none_of(&entity.path))
}
