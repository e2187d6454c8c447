//! conda. `ENVIRONMENT/conda-meta/*.json` list a package's files with their SHA-256. If conda
//! replaced a prefix in a file, `sha256_in_prefix` is the checksum of the installed file.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Checksum, Manager, Owner, Remembered, hex, text};

/// The records of all environments that were looked up.
#[derive(Default)]
pub struct Conda {
    environments: Remembered<Option<HashMap<PathBuf, Owner>>>,
}

impl Manager for Conda {
    fn owner(&mut self, path: &Path) -> Option<Owner> {
        path.ancestors()
            .skip(1)
            .find_map(|dir| self.environments.of(dir, read).as_ref()?.get(path).cloned())
    }
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
