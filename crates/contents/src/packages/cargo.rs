//! cargo: sources lie in `registry/src/REGISTRY/NAME-VERSION`. A vendored crate has a `.cargo-checksum.json` with the SHA-256 of each file; one that
//! cargo unpacked itself has none, only its archive's.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Checksum, Manager, Owner, Remembered, hex, text};

/// The crates of all directories that were asked about.
#[derive(Default)]
pub struct Cargo {
    sums: Remembered<Option<Vendored>>,
}

type Vendored = (Option<(String, String)>, HashMap<String, [u8; 32]>);

impl Manager for Cargo {
    fn owner(&mut self, path: &Path) -> Option<Owner> {
        if let Some((dir, name, version)) = unpacked(path) {
            let sum = self.sum(&dir, path);
            return Some(owner(name, version, sum));
        }
        let dir = path
            .ancestors()
            .skip(1)
            .find(|dir| self.sums.of(dir, read).is_some())?
            .to_owned();
        let (name, version) = self.sums.of(&dir, read).as_ref()?.0.clone()?;
        let sum = self.sum(&dir, path);
        Some(owner(name, version, sum))
    }
}

impl Cargo {
    fn sum(&mut self, dir: &Path, path: &Path) -> Option<[u8; 32]> {
        let file = path.strip_prefix(dir).ok()?.to_str()?;
        self.sums.of(dir, read).as_ref()?.1.get(file).copied()
    }
}

fn owner(name: String, version: String, sum: Option<[u8; 32]>) -> Owner {
    Owner {
        manager: "cargo",
        name,
        version,
        checksum: sum.map(Checksum::Sha256),
    }
}

/// The crate's directory, name and version, of a file below `registry/src/REGISTRY/`.
fn unpacked(path: &Path) -> Option<(PathBuf, String, String)> {
    let parts: Vec<_> = path.components().collect();
    let at = parts
        .windows(2)
        .rposition(|two| two[0].as_os_str() == "registry" && two[1].as_os_str() == "src")?;
    let (name, version) = split(parts.get(at + 3)?.as_os_str().to_str()?)?;
    (parts.len() > at + 4).then(|| (parts[..at + 4].iter().collect(), name, version))
}

/// `serde_json-1.0.1` → `serde_json`, `1.0.1`: the version begins with the first digit after a dash.
fn split(dir: &str) -> Option<(String, String)> {
    let at = dir
        .match_indices('-')
        .map(|(at, _)| at)
        .find(|at| dir[at + 1..].starts_with(|c: char| c.is_ascii_digit()))?;
    Some((dir[..at].to_owned(), dir[at + 1..].to_owned()))
}

/// What a vendored crate's directory says; none if it is none.
fn read(dir: &Path) -> Option<Vendored> {
    let sums: Value = serde_json::from_str(&text(&dir.join(".cargo-checksum.json"))?).ok()?;
    let files = sums["files"].as_object()?.iter();
    let files = files.filter_map(|(file, sum)| Some((file.clone(), hex(sum.as_str()?)?)));
    let manifest = text(&dir.join("Cargo.toml")).unwrap_or_default();
    Some((named(&manifest), files.collect()))
}

/// Name and version of a manifest, as cargo itself normalises it: one key a line, quoted.
fn named(manifest: &str) -> Option<(String, String)> {
    let package = manifest
        .lines()
        .skip_while(|line| line.trim() != "[package]")
        .skip(1);
    let lines: Vec<&str> = package.take_while(|line| !line.starts_with('[')).collect();
    let value = |key: &str| {
        lines.iter().find_map(|line| {
            let (name, value) = line.split_once('=')?;
            (name.trim() == key).then(|| value.trim().trim_matches('"').to_owned())
        })
    };
    Some((value("name")?, value("version")?))
}
