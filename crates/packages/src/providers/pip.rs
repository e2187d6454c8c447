//! pip, and other installers of wheels. `site-packages/NAME-VERSION.dist-info/RECORD` lists files
//! with their SHA-256.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::checksum::Checksum;
use crate::package_id::PackageId;
use crate::provider::{Owner, Provider};
use crate::records::{Remembered, at_or_above, base64, text, within};

/// The records of all directories that were looked up.
#[derive(Default)]
pub struct Pip {
    sites: Remembered<HashMap<PathBuf, Owner>>,
    environments: Remembered<Vec<PathBuf>>,
}

impl Provider for Pip {
    /// [`super::python`] names packages, also those without checksums.
    fn package(&mut self, _path: &Path) -> Option<PackageId> {
        None
    }

    fn owner(&mut self, path: &Path) -> Option<Owner> {
        let sites = self.sites_around(path.parent()?);
        sites
            .iter()
            .find_map(|site| self.sites.of(site, read).get(path).cloned())
    }

    fn may_own_in(&mut self, directory: &Path) -> bool {
        !self.sites_around(directory).is_empty()
    }
}

impl Pip {
    /// The directories whose packages can list a file of this directory.
    fn sites_around(&mut self, directory: &Path) -> Vec<PathBuf> {
        let is_site = |name: &str| matches!(name, "site-packages" | "dist-packages");
        let mut sites: Vec<PathBuf> = at_or_above(directory, is_site)
            .map(Path::to_owned)
            .collect();
        // A package in the neighbouring `lib` lists the scripts in `bin`.
        let mut programs = at_or_above(directory, |name| name == "bin");
        if let Some(environment) = programs.next().and_then(Path::parent) {
            sites.extend(self.environments.of(environment, sites_of).iter().cloned());
        }
        sites
    }
}

/// The `site-packages` of a virtual environment.
fn sites_of(environment: &Path) -> Vec<PathBuf> {
    // Only the scripts of an environment are looked up: /usr/bin belongs to other managers.
    if !environment.join("pyvenv.cfg").is_file() {
        return Vec::new();
    }
    let found = fs::read_dir(environment.join("lib"))
        .into_iter()
        .flatten()
        .flatten();
    found
        .map(|entry| entry.path().join("site-packages"))
        .collect()
}

/// All files that the packages in `site` list.
fn read(site: &Path) -> HashMap<PathBuf, Owner> {
    let mut files = HashMap::new();
    for entry in fs::read_dir(site).into_iter().flatten().flatten() {
        let dir = entry.path();
        let Some(stem) = dir
            .file_name()
            .and_then(|name| name.to_str()?.strip_suffix(".dist-info"))
        else {
            continue;
        };
        let Some((name, version)) = stem.split_once('-') else {
            continue;
        };
        for line in text(&dir.join("RECORD")).unwrap_or_default().lines() {
            let Some((file, sum)) = fields(line) else {
                continue;
            };
            let owner = Owner {
                manager: "pip",
                name: name.to_owned(),
                version: version.to_owned(),
                checksum: sum
                    .strip_prefix("sha256=")
                    .and_then(base64)
                    .map(Checksum::Sha256),
            };
            files.insert(within(site, &file), owner);
        }
    }
    files
}

/// The path and the checksum in a line of CSV. A path with a comma or a quote is quoted.
pub fn fields(line: &str) -> Option<(String, &str)> {
    if let Some(quoted) = line.strip_prefix('"') {
        let end = quoted.find("\",")?;
        let sum = quoted[end + 2..].split(',').next()?;
        return Some((quoted[..end].replace("\"\"", "\""), sum));
    }
    let mut parts = line.split(',');
    Some((parts.next()?.to_owned(), parts.next()?))
}
