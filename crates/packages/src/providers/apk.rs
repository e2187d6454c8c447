//! apk, Alpine's package manager. `lib/apk/db/installed` has a paragraph for each package: `P:` its
//! name, `V:` its version, `F:` a directory, `R:` a file in it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::package_id::PackageId;
use crate::provider::Provider;
use crate::records::{hash, text};

/// apk's records, read at the first look-up.
pub struct Apk {
    database: PathBuf,
    records: Option<Installed>,
}

#[derive(Default)]
struct Installed {
    packages: Vec<(String, String)>,
    /// The number of the package that has a file, by the hash of the file's path.
    files: HashMap<u64, u32>,
}

impl Apk {
    /// The records below `root`.
    pub fn new(root: &Path) -> Apk {
        Apk {
            database: root.join("lib/apk/db/installed"),
            records: None,
        }
    }
}

impl Provider for Apk {
    fn package(&mut self, path: &Path) -> Option<PackageId> {
        let database = &self.database;
        let records = self
            .records
            .get_or_insert_with(|| Installed::read(database));
        let number = records.files.get(&hash(path.to_str()?.as_bytes()))?;
        let (name, version) = records.packages.get(*number as usize)?.clone();
        Some(PackageId::of_system("apk", name, version))
    }
}

impl Installed {
    fn read(database: &Path) -> Installed {
        let mut records = Installed::default();
        let mut directory = String::new();
        for line in text(database).unwrap_or_default().lines() {
            let Some((key, value)) = line.split_once(':') else {
                continue;
            };
            match (key, records.packages.last_mut()) {
                ("P", _) => records.packages.push((value.to_owned(), String::new())),
                ("V", Some((_, version))) => value.clone_into(version),
                ("F", _) => value.clone_into(&mut directory),
                ("R", Some(_)) => {
                    let file = match directory.as_str() {
                        "" => format!("/{value}"),
                        directory => format!("/{directory}/{value}"),
                    };
                    let number = records.packages.len() as u32 - 1;
                    records.files.insert(hash(file.as_bytes()), number);
                }
                _ => {}
            }
        }
        records
    }
}
