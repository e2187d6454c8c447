//! The versions of a file that a history has found so far.
//!
//! In: identities, one at a time. Out: whether a given identity is one of their versions. A file
//! can have ten thousand versions, so they are indexed by the numbers that distinguish them.
//!
//! Invariant: the answer is that of [`same_version`] for each identity that was added.

use std::collections::HashMap;

use backstory_files::{Ident, VersionId};
use backstory_store::same_version;

/// The versions of a file, as a set.
#[derive(Default)]
pub(super) struct KnownVersions(HashMap<VersionId, Vec<Ident>>);

impl KnownVersions {
    /// True if the identity is of a version in the set.
    pub(super) fn contains(&self, ident: &Ident) -> bool {
        let alike = self.0.get(&ident.version_id());
        alike.is_some_and(|alike| alike.iter().any(|other| same_version(other, ident)))
    }
}

impl Extend<Ident> for KnownVersions {
    fn extend<I: IntoIterator<Item = Ident>>(&mut self, idents: I) {
        for ident in idents {
            // A writer that keeps the file open may leave one version with thousands of events.
            let alike = self.0.entry(ident.version_id()).or_default();
            if !alike.iter().any(|other| other.birth == ident.birth) {
                alike.push(ident);
            }
        }
    }
}

impl FromIterator<Ident> for KnownVersions {
    fn from_iter<I: IntoIterator<Item = Ident>>(idents: I) -> KnownVersions {
        let mut known = KnownVersions::default();
        known.extend(idents);
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All identities with small numbers.
    fn idents() -> Vec<Ident> {
        let mut idents = Vec::new();
        for number in 0..64_i64 {
            idents.push(Ident {
                dev: 1,
                ino: (number & 3) as u64,
                size: number >> 2 & 1,
                mtime: number >> 3 & 1,
                birth: number >> 4 & 3,
                ..Ident::default()
            });
        }
        idents
    }

    #[test]
    fn the_set_of_versions_answers_as_a_search_through_all_of_them() {
        let idents = idents();
        // Steps of different lengths select different subsets, in different orders.
        for step in [1, 3, 5, 7, 11, 13] {
            let added: Vec<Ident> = idents.iter().rev().step_by(step).copied().collect();
            let known: KnownVersions = added.iter().copied().collect();
            for ident in &idents {
                let is_among = added.iter().any(|other| same_version(other, ident));
                assert_eq!(known.contains(ident), is_among, "{ident:?} of {added:?}");
            }
        }
    }
}
