//! Debian: compares the packages whose files a build read with `Build-Depends` in `debian/control`.
//!
//! A package counts as declared if it is essential. It also counts if `build-essential` or a build
//! dependency needs it, directly or not: with those installed it is always there. A package beyond
//! that was installed on this machine by chance, and the build may fail or differ elsewhere.

use backstory_ordering::SmallCollect;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::Path;

use crate::error::{Error, Result};

/// Build dependencies compared with the packages that were read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackageComparison {
    /// Packages that were read and that no build dependency brings, with the number of files.
    pub undeclared: BTreeMap<String, usize>,
    /// Build dependencies none of whose files, nor those of the packages they need, were read.
    pub unread: BTreeSet<String>,
}

/// Compares `debian/control` below `source` with packages that were read. `status`: dpkg's status
/// file. `None` if `source` is no Debian source package.
///
/// # Errors
/// If a file cannot be read.
pub fn compare(
    source: &Path,
    status: &Path,
    read: &BTreeMap<String, usize>,
) -> Result<Option<PackageComparison>> {
    let control = source.join("debian/control");
    if !control.is_file() {
        return Ok(None);
    }
    let text = |path: &Path| {
        fs::read_to_string(path).map_err(|source| Error::Read {
            path: path.to_owned(),
            source,
        })
    };
    let control = text(&control)?;
    let installed = Installed::parse(&text(status)?);
    let first = control.split("\n\n").next().unwrap_or_default();
    let fields = ["Build-Depends", "Build-Depends-Arch", "Build-Depends-Indep"];
    let declared: BTreeSet<String> = fields
        .iter()
        .filter_map(|name| field(first, name))
        .flat_map(|value| installed.chosen(&value))
        .into_tree();
    let mut roots: Vec<String> = installed.essential.clone();
    roots.push("build-essential".to_owned());
    let always = installed.closure(roots);
    let allowed = installed.closure(
        declared
            .iter()
            .cloned()
            .chain(always.iter().cloned())
            .collect(),
    );
    let is_read = |name: &String| read.contains_key(name);
    let idle = |name: &&String| {
        let brings = installed.closure(vec![(*name).clone()]);
        !brings
            .iter()
            .filter(|one| !always.contains(*one))
            .any(is_read)
            && !always.contains(*name)
    };
    Ok(Some(PackageComparison {
        undeclared: read
            .iter()
            .filter(|(name, _)| !allowed.contains(*name))
            .map(|(name, files)| (name.clone(), *files))
            .collect(),
        unread: declared.iter().filter(idle).cloned().collect(),
    }))
}

/// The installed packages, from dpkg's status file.
#[derive(Default)]
struct Installed {
    /// Dependencies: each a list of alternatives.
    needs: HashMap<String, Vec<Vec<String>>>,
    /// The packages that provide a name.
    provides: HashMap<String, Vec<String>>,
    essential: Vec<String>,
}

impl Installed {
    fn parse(status: &str) -> Installed {
        let mut installed = Installed::default();
        for paragraph in status.split("\n\n") {
            let Some(name) = field(paragraph, "Package") else {
                continue;
            };
            if !field(paragraph, "Status").is_some_and(|status| status.ends_with(" installed")) {
                continue;
            }
            let mut needs = Vec::new();
            for key in ["Pre-Depends", "Depends"] {
                needs.extend(relations(&field(paragraph, key).unwrap_or_default()));
            }
            for provided in relations(&field(paragraph, "Provides").unwrap_or_default()) {
                for virtual_name in provided {
                    installed
                        .provides
                        .entry(virtual_name)
                        .or_default()
                        .push(name.clone());
                }
            }
            if field(paragraph, "Essential").as_deref() == Some("yes") {
                installed.essential.push(name.clone());
            }
            installed.needs.insert(name, needs);
        }
        installed
    }

    /// The installed packages that satisfy a field; for a relation that is not satisfied its first
    /// name.
    fn chosen(&self, value: &str) -> Vec<String> {
        let alternatives = relations(value).into_iter();
        alternatives
            .flat_map(|names| {
                let found: Vec<String> = names.iter().flat_map(|name| self.named(name)).collect();
                match found.is_empty() {
                    true => names.into_iter().take(1).collect(),
                    false => found,
                }
            })
            .collect()
    }

    /// The installed packages of this name, virtual names included.
    fn named(&self, name: &str) -> Vec<String> {
        let own = self.needs.contains_key(name).then(|| name.to_owned());
        let provided = self.provides.get(name).into_iter().flatten().cloned();
        own.into_iter().chain(provided).collect()
    }

    /// The packages with these names, and all that they need.
    fn closure(&self, roots: Vec<String>) -> HashSet<String> {
        let mut found = HashSet::new();
        let mut waiting: Vec<String> = roots.iter().flat_map(|name| self.named(name)).collect();
        while let Some(name) = waiting.pop() {
            if found.insert(name.clone()) {
                let needs = self.needs.get(&name).into_iter().flatten().flatten();
                waiting.extend(needs.flat_map(|name| self.named(name)));
            }
        }
        found
    }
}

/// The value of a field, whose continuation lines begin with a space.
fn field(paragraph: &str, name: &str) -> Option<String> {
    let mut lines = paragraph.lines().skip_while(|line| {
        !line
            .strip_prefix(name)
            .is_some_and(|rest| rest.starts_with(':'))
    });
    let mut value = lines.next()?.split_once(':')?.1.trim().to_owned();
    for line in lines.take_while(|line| line.starts_with([' ', '\t', '#'])) {
        if !line.starts_with('#') {
            value.push(' ');
            value.push_str(line.trim());
        }
    }
    Some(value)
}

/// `a (>= 1) | b:any, c [amd64] <!nocheck>` as names: `[[a, b], [c]]`.
fn relations(value: &str) -> Vec<Vec<String>> {
    let all = value
        .split(',')
        .map(str::trim)
        .filter(|one| !one.is_empty());
    let name = |one: &str| {
        let name = one.split_whitespace().next()?;
        Some(name.split([':', '(', '[', '<']).next()?.to_owned())
    };
    all.map(|one| one.split('|').filter_map(name).collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Package: dash\nStatus: install ok installed\nEssential: yes\n\n\
        Package: build-essential\nStatus: install ok installed\nDepends: gcc (>= 12), libc6-dev | libc-dev\n\n\
        Package: gcc\nStatus: install ok installed\nDepends: gcc-12\n\n\
        Package: gcc-12\nStatus: install ok installed\n\n\
        Package: zlib1g-dev\nStatus: install ok installed\nDepends: zlib1g\nProvides: libz-dev\n\n\
        Package: zlib1g\nStatus: install ok installed\n\n\
        Package: libpng-dev\nStatus: install ok installed\n\n\
        Package: libfoo-dev\nStatus: install ok installed\n\n\
        Package: libold-dev\nStatus: deinstall ok config-files\n";

    #[test]
    fn packages_beyond_the_build_dependencies_and_idle_build_dependencies_are_found() {
        let tmp = tempfile::tempdir().unwrap();
        fs::create_dir(tmp.path().join("debian")).unwrap();
        let control = "Source: x\nBuild-Depends: debhelper-compat (= 13),\n libz-dev | nothing-dev,\n# a comment\n libfoo-dev:any [amd64]\n\nPackage: x\nDepends: libpng-dev\n";
        fs::write(tmp.path().join("debian/control"), control).unwrap();
        let status = tmp.path().join("status");
        fs::write(&status, STATUS).unwrap();
        let read = [("dash", 1), ("gcc-12", 9), ("zlib1g", 2), ("libpng-dev", 3)];
        let read: BTreeMap<String, usize> = read
            .iter()
            .map(|(name, files)| ((*name).to_owned(), *files))
            .collect();
        let found = compare(tmp.path(), &status, &read).unwrap().unwrap();
        assert_eq!(
            found.undeclared,
            BTreeMap::from([("libpng-dev".to_owned(), 3)])
        );
        let unread = ["debhelper-compat", "libfoo-dev"].map(str::to_owned);
        assert_eq!(found.unread, BTreeSet::from(unread));
        let elsewhere = tmp.path().join("debian");
        assert_eq!(compare(&elsewhere, &status, &read).unwrap(), None);
    }
}
