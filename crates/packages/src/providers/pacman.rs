//! pacman, Arch Linux's package manager. `var/lib/pacman/local/NAME-VERSION-RELEASE/files` lists a
//! package's files after the line `%FILES%`, without a slash at the beginning.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::package_id::PackageId;
use crate::provider::Provider;
use crate::records::{hash, text};

/// pacman's records, read at the first look-up.
pub struct Pacman {
    database: PathBuf,
    records: Option<LocalPackages>,
}

#[derive(Default)]
struct LocalPackages {
    packages: Vec<(String, String)>,
    /// The number of the package that has a file, by the hash of the file's path.
    files: HashMap<u64, u32>,
}

impl Pacman {
    /// The records below `root`.
    pub fn new(root: &Path) -> Pacman {
        Pacman {
            database: root.join("var/lib/pacman/local"),
            records: None,
        }
    }
}

impl Provider for Pacman {
    fn package(&mut self, path: &Path) -> Option<PackageId> {
        let database = &self.database;
        let records = self
            .records
            .get_or_insert_with(|| LocalPackages::read(database));
        let number = records.files.get(&hash(path.to_str()?.as_bytes()))?;
        let (name, version) = records.packages.get(*number as usize)?.clone();
        Some(PackageId::of_system("pacman", name, version))
    }
}

impl LocalPackages {
    fn read(database: &Path) -> LocalPackages {
        let mut records = LocalPackages::default();
        for entry in fs::read_dir(database).into_iter().flatten().flatten() {
            let directory = entry.path();
            let Some(named) = directory.file_name().and_then(|name| split(name.to_str()?)) else {
                continue;
            };
            let number = records.packages.len() as u32;
            records.packages.push(named);
            let listed = text(&directory.join("files")).unwrap_or_default();
            let files = listed.lines().skip_while(|line| *line != "%FILES%").skip(1);
            for file in files.take_while(|line| !line.is_empty()) {
                if !file.ends_with('/') {
                    records
                        .files
                        .insert(hash(format!("/{file}").as_bytes()), number);
                }
            }
        }
        records
    }
}

/// Splits `gcc-libs-13.2.1-3` into `gcc-libs` and `13.2.1-3`.
fn split(directory: &str) -> Option<(String, String)> {
    let (rest, release) = directory.rsplit_once('-')?;
    let (name, version) = rest.rsplit_once('-')?;
    Some((name.to_owned(), format!("{version}-{release}")))
}
