//! npm: a file below `node_modules/NAME` belongs to the package whose `package.json` is there. npm has checksums of whole archives
//! only (`integrity` in its lock files), so no single file can be verified.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Manager, Owner, Remembered, text};

/// The packages of all directories that were asked about.
#[derive(Default)]
pub struct Npm {
    packages: Remembered<Option<Owner>>,
}

impl Manager for Npm {
    fn owner(&mut self, path: &Path) -> Option<Owner> {
        let dir = package_dir(path)?;
        self.packages.of(&dir, read).clone()
    }
}

/// `…/node_modules/NAME` or `…/node_modules/@SCOPE/NAME` of a file in it.
fn package_dir(path: &Path) -> Option<PathBuf> {
    let parts: Vec<_> = path.components().collect();
    let at = parts
        .iter()
        .rposition(|part| part.as_os_str() == "node_modules")?;
    let scoped = parts.get(at + 1)?.as_os_str().to_str()?.starts_with('@');
    let end = at + if scoped { 3 } else { 2 };
    // A file directly in node_modules is no package's.
    (parts.len() > end).then(|| parts[..end].iter().collect())
}

fn read(dir: &Path) -> Option<Owner> {
    let package: Value = serde_json::from_str(&text(&dir.join("package.json"))?).ok()?;
    Some(Owner {
        manager: "npm",
        name: package["name"].as_str()?.to_owned(),
        version: package["version"].as_str()?.to_owned(),
        checksum: None,
    })
}
