//! Counts the packages whose files an account used.
//!
//! In: an account. Out: a [`PackageTally`]. Packages whose programs made the most come first, so
//! that a compiler stands before the headers of the C library.
//!
//! Invariant: the version of a package is that of the run. The store has it from the moment at
//! which the contents of the run were stored. Without it, the version that is installed now counts
//! if the file is still the one that the run used. Else the version is unknown, and is empty.

use backstory_ordering::{SmallCollect, SmallSort};
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use backstory_packages::{PackageId, PackageTally};
use backstory_store::facts::Package;
use backstory_store::{EntityKey, RunKey, Store};
use backstory_workflow::ownership::Ownership;
use backstory_workflow::paths::base_name;
use rustc_hash::FxHashMap;

use crate::Result;
use crate::account::{Account, PathNode};
use crate::importance::weights;
use crate::siblings::siblings;

/// The packages of an account's files, as numbers in a list of packages.
struct FilePackages {
    packages: Vec<PackageId>,
    /// For each file of the account its package. `None` if it has none, or was not looked up.
    of_files: Vec<Option<usize>>,
}

/// The package of a file, as the store has it from the end of a run.
type RecordedPackage<'s> = &'s dyn Fn(&PathNode) -> Result<Option<Package>>;

impl FilePackages {
    /// Looks up these files. Each run that read a header has a file of its own for it, so each path
    /// is looked up once. The files of a package have one version in a run, so the store is asked
    /// for a few of them.
    fn of(
        account: &Account,
        files: &[usize],
        ownership: &mut Ownership,
        recorded: RecordedPackage<'_>,
    ) -> Result<FilePackages> {
        let mut installed: FxHashMap<&[u8], Option<PackageId>> = FxHashMap::default();
        let mut versions: FxHashMap<(PackageId, RunKey), (Option<PackageId>, usize)> =
            FxHashMap::default();
        let mut numbers: FxHashMap<PackageId, usize> = FxHashMap::default();
        let mut found = FilePackages {
            packages: Vec::new(),
            of_files: vec![None; account.files.len()],
        };
        for &at in files {
            let file = &account.files[at];
            let path: &[u8] = &file.path;
            let now = installed
                .entry(path)
                .or_insert_with(|| ownership.package(path));
            let package = match now {
                None => recorded(file)?.map(named),
                Some(now) => {
                    let run = EntityKey(file.entity).run();
                    let known = versions.entry((now.clone(), run)).or_default();
                    if known.0.is_none() && known.1 < ASKED {
                        known.1 += 1;
                        known.0 = of_run(file, now, recorded)?;
                    }
                    let unknown = || PackageId {
                        version: String::new(),
                        ..now.clone()
                    };
                    Some(known.0.clone().unwrap_or_else(unknown))
                }
            };
            let Some(package) = package else { continue };
            let number = *numbers.entry(package.clone()).or_insert_with(|| {
                found.packages.push(package);
                found.packages.len() - 1
            });
            found.of_files[at] = Some(number);
        }
        Ok(found)
    }

    /// The package of a file.
    fn of_file(&self, file: usize) -> Option<&PackageId> {
        self.of_files[file].map(|number| &self.packages[number])
    }
}

/// The most files of a package in a run that the store is asked for, until its version is known.
const ASKED: usize = 8;

/// The package in the version that the run of a file used. `None` if that is not known.
fn of_run(
    file: &PathNode,
    now: &PackageId,
    recorded: RecordedPackage<'_>,
) -> Result<Option<PackageId>> {
    let is_same = |package: &Package| plain(&package.name) == plain(&now.name);
    if let Some(package) = recorded(file)?.filter(is_same) {
        return Ok(Some(PackageId {
            version: package.version,
            ..now.clone()
        }));
    }
    // The path of a package without records has the version.
    let version = now.version.as_bytes();
    let mut parts = file.path.windows(version.len().max(1));
    let is_in_path = !version.is_empty() && parts.any(|part| part == version);
    Ok((is_in_path || is_as_used(file)).then(|| now.clone()))
}

/// True unless the file at the path is known to be another one than the run used.
fn is_as_used(file: &PathNode) -> bool {
    let (Some(modified), Some(size)) = (file.modified, file.size) else {
        return true;
    };
    let path = Path::new(OsStr::from_bytes(&file.path));
    std::fs::metadata(path).is_ok_and(|now| {
        let at = now.mtime() * 1_000_000_000 + now.mtime_nsec();
        (at, now.len() as i64) == (modified, size)
    })
}

/// A package that is not installed any more.
fn named(package: Package) -> PackageId {
    match package.manager.as_str() {
        "dpkg" | "rpm" | "apk" | "pacman" => {
            PackageId::of_system(&package.manager, package.name, package.version)
        }
        _ => PackageId::new(&package.manager, package.name, package.version),
    }
}

/// A name without its architecture. Managers spell names in several ways (`ruamel.yaml`,
/// `ruamel_yaml`).
fn plain(name: &str) -> String {
    let name = name.split(':').next().unwrap_or(name);
    name.to_ascii_lowercase().replace(['_', '.'], "-")
}

/// Counts the files of each package.
///
/// # Errors
///
/// If the store fails.
pub fn packages(
    store: &dyn Store,
    account: &Account,
    ownership: &mut Ownership,
) -> Result<PackageTally> {
    let recorded = |file: &PathNode| -> Result<Option<Package>> {
        let ident = store.entity(EntityKey(file.entity))?.ident;
        let fact = ident.map(|ident| store.fact(&ident)).transpose()?.flatten();
        Ok(fact.and_then(|fact| fact.availability.package().cloned()))
    };
    counted(account, ownership, &recorded)
}

fn counted(
    account: &Account,
    ownership: &mut Ownership,
    recorded: RecordedPackage<'_>,
) -> Result<PackageTally> {
    let mut files = account.packaged();
    let packages = FilePackages::of(account, &files, ownership, recorded)?;
    // Compiled modules of the user's own are no files of packages.
    files.retain(|&file| !account.files[file].cache || packages.of_file(file).is_some());
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
    Ok(tally)
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
        let tally = counted(&account, &mut ownership, &|_| Ok(None)).unwrap();
        let counts = tally.packages.iter();
        let counts: Vec<_> = counts
            .map(|one| (one.package.to_string(), one.files))
            .collect();
        assert_eq!(counts, [("glibc 2.38-44 (nix)".to_owned(), 2)]);
        assert_eq!(tally.others, [0], "paths are sorted");
    }

    /// The store has version 2.37 of a library, of which 2.38 is installed now.
    #[test]
    fn the_version_of_a_package_is_that_of_the_run() {
        let account = account(&["/nix/store/0abc-glibc-2.38-44/lib/libc.so.6"], &[&[0]]);
        let mut ownership = Ownership::new("/nonexistent".as_ref(), []);
        let recorded = |_: &PathNode| {
            Ok(Some(Package {
                manager: "nix".to_owned(),
                name: "Glibc".to_owned(),
                version: "2.37".to_owned(),
                verified: false,
            }))
        };
        let tally = counted(&account, &mut ownership, &recorded).unwrap();
        assert_eq!(tally.packages[0].package.to_string(), "glibc 2.37 (nix)");
    }

    #[test]
    fn a_compiled_module_counts_only_for_a_package() {
        let mut account = account(&["/w/__pycache__/a.pyc", "/gone/b.pyc"], &[&[0, 1]]);
        account.files.iter_mut().for_each(|file| file.cache = true);
        let mut ownership = Ownership::new("/nonexistent".as_ref(), []);
        let recorded = |file: &PathNode| {
            Ok((&*file.path == b"/gone/b.pyc").then(|| Package {
                manager: "pip".to_owned(),
                name: "b".to_owned(),
                version: "1".to_owned(),
                verified: false,
            }))
        };
        let tally = counted(&account, &mut ownership, &recorded).unwrap();
        assert_eq!(tally.packages[0].package.to_string(), "b 1 (pip)");
        assert!(tally.others.is_empty(), "{tally:?}");
    }
}
