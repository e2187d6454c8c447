//! Counts the packages whose files an account used.
//!
//! In: an account. Out: a [`PackageTally`]. Packages whose programs made the most come first, so
//! that a compiler stands before the headers of the C library.

use backstory_ordering::{SmallCollect, SmallSort};
use std::collections::{BTreeSet, HashMap};

use backstory_packages::{PackageId, PackageTally};
use backstory_workflow::ownership::Ownership;
use backstory_workflow::paths::base_name;

use crate::account::Account;
use crate::importance::weights;
use crate::siblings::siblings;

/// Counts the files of each package.
pub fn packages(account: &Account, ownership: &mut Ownership) -> PackageTally {
    let files = account.packaged();
    let found: HashMap<usize, Option<PackageId>> = files
        .iter()
        .map(|&file| (file, ownership.package(&account.files[file].path)))
        .collect();
    let mut tally = PackageTally::from_ids(files.iter().map(|file| found[file].clone()));
    let mut rank: HashMap<&PackageId, f64> = HashMap::new();
    let steps = siblings(account, &account.chain);
    let weights = weights(account, &steps);
    for (step, weight) in steps.iter().zip(weights) {
        let programs: BTreeSet<usize> = step
            .commands
            .iter()
            .flat_map(|&at| &account.commands[at].executes)
            .copied()
            .into_tree();
        let loader = |file: &&usize| base_name(&account.files[**file].path).starts_with(b"ld");
        let programs = programs.iter().filter(|file| !loader(file));
        for package in programs.filter_map(|file| found.get(file)?.as_ref()) {
            let known = rank.entry(package).or_default();
            *known = known.max(if weight.helps { 0.0 } else { weight.flow });
        }
    }
    let of = |package: &PackageId| rank.get(package).copied().unwrap_or_default();
    tally.packages.sort_small_by(|a, b| {
        let ranks = of(&b.package).total_cmp(&of(&a.package));
        ranks.then(b.files.cmp(&a.files))
    });
    tally
}
