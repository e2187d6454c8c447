//! Counts the packages whose files an account used.
//!
//! In: an account. Out: a [`PackageTally`]. Packages whose programs made the most come first, so
//! that a compiler stands before the headers of the C library.

use backstory_ordering::{SmallCollect, SmallSort};
use std::collections::{BTreeSet, HashMap};

use backstory_packages::{PackageId, PackageTally};
use backstory_workflow::ownership::Ownership;
use backstory_workflow::paths::base_name;
use rustc_hash::FxHashMap;

use crate::account::Account;
use crate::importance::weights;
use crate::siblings::siblings;

/// The packages of an account's files.
struct FilePackages {
    /// The package at each path that was looked up.
    found: Vec<Option<PackageId>>,
    /// For each file of the account the number of its path. `None` if it was not looked up.
    paths: Vec<Option<usize>>,
}

impl FilePackages {
    /// Looks up these files. Each run that read a header has a file of its own for it, so each path
    /// is looked up once.
    fn of(account: &Account, files: &[usize], ownership: &mut Ownership) -> FilePackages {
        let mut numbers: FxHashMap<&[u8], usize> = FxHashMap::default();
        let mut found = Vec::new();
        let mut paths = vec![None; account.files.len()];
        for &file in files {
            let path: &[u8] = &account.files[file].path;
            let number = numbers.entry(path).or_insert_with(|| {
                found.push(ownership.package(path));
                found.len() - 1
            });
            paths[file] = Some(*number);
        }
        FilePackages { found, paths }
    }

    /// The package of a file.
    fn of_file(&self, file: usize) -> Option<&PackageId> {
        self.found[self.paths[file]?].as_ref()
    }
}

/// Counts the files of each package.
pub fn packages(account: &Account, ownership: &mut Ownership) -> PackageTally {
    let files = account.packaged();
    let packages = FilePackages::of(account, &files, ownership);
    let mut tally = PackageTally::from_ids(files.iter().map(|file| packages.of_file(*file)));
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
        for package in programs.filter_map(|file| packages.of_file(*file)) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::tests::account;

    /// The path of a package without records names the package.
    #[test]
    fn files_of_several_runs_at_one_path_are_counted_each() {
        let libc = "/nix/store/0abc-glibc-2.38-44/lib/libc.so.6";
        let account = account(&[libc, "/nix/none", libc], &[&[0, 1], &[0, 2]]);
        let mut ownership = Ownership::new("/nonexistent".as_ref(), []);
        let tally = packages(&account, &mut ownership);
        let counts = tally.packages.iter();
        let counts: Vec<_> = counts
            .map(|one| (one.package.to_string(), one.files))
            .collect();
        assert_eq!(counts, [("glibc 2.38-44 (nix)".to_owned(), 2)]);
        assert_eq!(tally.others, [0], "paths are sorted");
    }
}
