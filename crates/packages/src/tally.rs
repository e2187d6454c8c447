//! Counts the files of each package among many paths.

use backstory_ordering::SmallSort;
use std::borrow::Borrow;
use std::collections::HashMap;

use crate::Packages;
use crate::package_id::PackageId;

/// A package, and how many of the paths it provides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageCount {
    /// The package.
    pub package: PackageId,
    /// The number of paths.
    pub files: usize,
}

/// The packages of many paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackageTally {
    /// The packages, those with the most files first; equal numbers in the order of their names.
    pub packages: Vec<PackageCount>,
    /// Indexes of the paths that no package provides, in the order given.
    pub others: Vec<usize>,
}

impl PackageTally {
    /// Looks up each path. A path that is given twice counts twice.
    pub fn of<'p>(
        packages: &mut Packages,
        paths: impl IntoIterator<Item = &'p [u8]>,
    ) -> PackageTally {
        let found = paths.into_iter().map(|path| packages.package(path));
        PackageTally::from_ids(found)
    }

    /// Counts packages that were looked up already. `None`: a path without a package.
    pub fn from_ids<P: Borrow<PackageId>>(
        found: impl IntoIterator<Item = Option<P>>,
    ) -> PackageTally {
        let mut counts: HashMap<PackageId, usize> = HashMap::new();
        let mut others = Vec::new();
        for (at, package) in found.into_iter().enumerate() {
            let Some(package) = package else {
                others.push(at);
                continue;
            };
            let package: &PackageId = package.borrow();
            match counts.get_mut(package) {
                Some(count) => *count += 1,
                None => drop(counts.insert(package.clone(), 1)),
            }
        }
        let counts = counts.into_iter();
        let mut packages: Vec<PackageCount> = counts
            .map(|(package, files)| PackageCount { package, files })
            .collect();
        packages.sort_small_by(|a, b| b.files.cmp(&a.files).then(a.package.cmp(&b.package)));
        PackageTally { packages, others }
    }

    /// The number of paths that packages provide.
    pub fn files(&self) -> usize {
        self.packages.iter().map(|count| count.files).sum()
    }

    /// One line for each label. The labels of environments come before the system's packages, and
    /// those with many files before those with few. A line names at most `most`
    /// packages (at least one) and the number of the others.
    ///
    /// `gcc-12 12.2.0-14, libc6-dev 2.36-9 and 3 more: 214 files`, `numpy 1.26.4 (venv): 212 files`
    pub fn lines(&self, most: usize) -> Vec<String> {
        let most = most.max(1);
        let mut by_label: Vec<(&str, Vec<&PackageCount>)> = Vec::new();
        for count in &self.packages {
            let label = count.package.label.as_str();
            match by_label.iter_mut().find(|(known, _)| *known == label) {
                Some((_, counts)) => counts.push(count),
                None => by_label.push((label, vec![count])),
            }
        }
        let total =
            |counts: &[&PackageCount]| counts.iter().map(|count| count.files).sum::<usize>();
        // A project's own environment says more than the system's packages.
        by_label.sort_small_by_key(|(label, counts)| {
            (label.is_empty(), std::cmp::Reverse(total(counts)))
        });
        let line = |(label, counts): (&str, Vec<&PackageCount>)| {
            let named: Vec<String> = counts
                .iter()
                .take(most)
                .map(|one| one.package.named())
                .collect();
            let mut line = named.join(", ");
            if counts.len() > most {
                line.push_str(&format!(" and {} more", counts.len() - most));
            }
            if !label.is_empty() {
                line.push_str(&format!(" ({label})"));
            }
            let files = total(&counts);
            let noun = if files == 1 { "file" } else { "files" };
            format!("{line}: {files} {noun}")
        };
        by_label.into_iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_the_packages_of_one_label_and_counts_their_files() {
        let numpy = || PackageId {
            label: "venv".to_owned(),
            ..PackageId::new("pip", "numpy", "1.26.4")
        };
        let found = vec![
            Some(PackageId::of_system("dpkg", "gcc-12", "12.2.0-14")),
            Some(PackageId::of_system("dpkg", "gcc-12", "12.2.0-14")),
            Some(PackageId::of_system("dpkg", "libc6-dev", "2.36")),
            None,
            Some(PackageId::of_system("dpkg", "binutils", "2.40")),
            Some(numpy()),
        ];
        let tally = PackageTally::from_ids(found);
        assert_eq!(tally.others, [3]);
        assert_eq!(tally.files(), 5);
        assert_eq!(
            tally.lines(5),
            [
                "numpy 1.26.4 (venv): 1 file",
                "gcc-12 12.2.0-14, binutils 2.40, libc6-dev 2.36: 4 files",
            ]
        );
        assert_eq!(tally.lines(1)[1], "gcc-12 12.2.0-14 and 2 more: 4 files");
    }
}
