//! Differences between listed directories of two sides.

use backstory_ordering::SmallCollect;
use std::collections::BTreeMap;

use super::listings::DirectoryListing;
use super::{DiffSide, Difference, DifferenceKind, Findings};

/// Compares the names in directories that both sides listed.
pub(super) fn compare(a: &DiffSide, b: &DiffSide, found: &mut Findings) {
    let both = |name: &Vec<u8>| Some((a.listings.get(name)?, b.listings.get(name)?));
    let names: BTreeMap<&Vec<u8>, _> = a
        .listings
        .keys()
        .filter_map(|name| Some((name, both(name)?)))
        .into_tree();
    for (name, (x, y)) in names {
        if x.names == y.names {
            continue;
        }
        let (only_a, only_b) = (only(x, y), only(y, x));
        let mut difference = Difference::new(
            DifferenceKind::Listing,
            name.clone(),
            only_a,
            only_b,
            x.at.min(y.at),
        );
        difference.activities = x.by.iter().chain(&y.by).copied().collect();
        found.differences.push(difference);
    }
}

/// The names that the first listing alone has; `None` without such names.
fn only(one: &DirectoryListing, other: &DirectoryListing) -> Option<Vec<u8>> {
    let names: Vec<&[u8]> = one
        .names
        .difference(&other.names)
        .map(Vec::as_slice)
        .collect();
    (!names.is_empty()).then(|| names.join(&b' '))
}
