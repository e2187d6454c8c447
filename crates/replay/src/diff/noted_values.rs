//! Compares the values that were noted with the runs: parameters (`--param-from`, or set later) and
//! metrics (`--metric-from`).
//!
//! The content of a file may not be known. A noted value is known for certain.

use std::collections::{BTreeMap, BTreeSet};

use backstory_query::answer::RunDetails;
use backstory_store::AnnotationKind;

use super::{DiffSide, Difference, DifferenceKind, Findings};

/// Compares the values of the newest runs of both sides.
pub(super) fn compare(a: &DiffSide, b: &DiffSide, found: &mut Findings) {
    let (Some(x), Some(y)) = (a.runs.last(), b.runs.last()) else {
        return;
    };
    let last = [a, b].map(|side| side.commands.iter().map(|command| command.at).max());
    let end = last.into_iter().flatten().min().unwrap_or_default();
    for (noted, kind, at) in [
        (AnnotationKind::Parameter, DifferenceKind::Parameter, 0),
        (AnnotationKind::Metric, DifferenceKind::Metric, end),
    ] {
        let (old, new) = (values(x, noted), values(y, noted));
        let names: BTreeSet<&str> = old.keys().chain(new.keys()).copied().collect();
        for name in names {
            let (old, new) = (old.get(name), new.get(name));
            if old != new {
                let bytes = |value: Option<&&str>| value.map(|value| value.as_bytes().to_vec());
                let (old, new) = (bytes(old), bytes(new));
                found
                    .differences
                    .push(Difference::new(kind, name, old, new, at));
            }
        }
    }
}

fn values(run: &RunDetails, kind: AnnotationKind) -> BTreeMap<&str, &str> {
    let all = run.annotations.iter().filter(|one| one.kind == kind);
    all.filter_map(|one| Some((one.key.as_str(), one.value.as_deref()?)))
        .collect()
}
