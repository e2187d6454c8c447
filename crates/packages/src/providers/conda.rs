//! conda. `ENVIRONMENT/conda-meta/*.json` list a package's files with their SHA-256. If conda
//! replaced a prefix in a file, `sha256_in_prefix` is the checksum of the installed file.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::checksum::Checksum;
use crate::package_id::PackageId;
use crate::provider::{Owner, Provider};
use crate::records::{Remembered, hash, hex, text};

/// The records of all environments that were looked up.
#[derive(Default)]
pub struct Conda {
    environments: Remembered<Option<HashMap<PathBuf, Owner>>>,
    named: Remembered<Option<NamedFiles>>,
}

/// The packages of an environment.
#[derive(Default)]
struct NamedFiles {
    packages: Vec<(String, String)>,
    /// The number of the package that has a file, by the hash of the file's path.
    files: HashMap<u64, u32>,
}

/// The part of a record that names files.
#[derive(Deserialize)]
struct NameRecord<'r> {
    name: String,
    version: String,
    #[serde(borrow, default)]
    files: Vec<Cow<'r, str>>,
}

impl Provider for Conda {
    fn package(&mut self, path: &Path) -> Option<PackageId> {
        // conda does not list what Python compiled later.
        let source = compiled_from(path);
        let path = source.as_deref().unwrap_or(path);
        let hash = hash(path.as_os_str().as_encoded_bytes());
        path.ancestors().skip(1).find_map(|dir| {
            let named = self.named.of(dir, NamedFiles::read).as_ref()?;
            let number = named.files.get(&hash)?;
            let (name, version) = named.packages.get(*number as usize)?.clone();
            Some(PackageId {
                environment: Some(dir.to_owned()),
                ..PackageId::new("conda", name, version)
            })
        })
    }

    fn owner(&mut self, path: &Path) -> Option<Owner> {
        path.ancestors()
            .skip(1)
            .find_map(|dir| self.environments.of(dir, read).as_ref()?.get(path).cloned())
    }

    fn may_own_in(&mut self, directory: &Path) -> bool {
        let is_one = |dir| self.environments.of(dir, read).is_some();
        directory.ancestors().any(is_one)
    }
}

impl NamedFiles {
    /// `None` if the directory is no environment.
    fn read(dir: &Path) -> Option<NamedFiles> {
        let records = fs::read_dir(dir.join("conda-meta")).ok()?;
        let mut named = NamedFiles::default();
        for entry in records.flatten() {
            let path = entry.path();
            if path.extension().is_none_or(|e| e != "json") {
                continue;
            }
            let record = text(&path);
            let record = record
                .as_deref()
                .map(serde_json::from_str::<NameRecord<'_>>);
            let Some(Ok(record)) = record else { continue };
            let number = named.packages.len() as u32;
            named.packages.push((record.name, record.version));
            for file in &record.files {
                let path = dir.join(&**file);
                named
                    .files
                    .insert(hash(path.as_os_str().as_encoded_bytes()), number);
            }
        }
        Some(named)
    }
}

/// `lib/x.py` for `lib/__pycache__/x.cpython-311.pyc`.
fn compiled_from(path: &Path) -> Option<PathBuf> {
    let directory = path.parent().filter(|dir| dir.ends_with("__pycache__"))?;
    let module = path.file_name()?.to_str()?.split('.').next()?;
    Some(directory.parent()?.join(format!("{module}.py")))
}

/// All files of an environment. `None` if the directory is no environment.
fn read(dir: &Path) -> Option<HashMap<PathBuf, Owner>> {
    let records = fs::read_dir(dir.join("conda-meta")).ok()?;
    let mut files = HashMap::new();
    for entry in records.flatten() {
        let path = entry.path();
        let json = path.extension().is_some_and(|e| e == "json");
        let Some(record) = text(&path)
            .filter(|_| json)
            .and_then(|text| serde_json::from_str::<Value>(&text).ok())
        else {
            continue;
        };
        add(dir, &record, &mut files);
    }
    Some(files)
}

fn add(dir: &Path, record: &Value, files: &mut HashMap<PathBuf, Owner>) -> Option<()> {
    let (name, version) = (record["name"].as_str()?, record["version"].as_str()?);
    for file in record["paths_data"]["paths"].as_array()? {
        let Some(path) = file["_path"].as_str() else {
            continue;
        };
        let sum = file["sha256_in_prefix"]
            .as_str()
            .or(file["sha256"].as_str());
        let owner = Owner {
            manager: "conda",
            name: name.to_owned(),
            version: version.to_owned(),
            checksum: sum.and_then(hex).map(Checksum::Sha256),
        };
        files.insert(dir.join(path), owner);
    }
    Some(())
}
