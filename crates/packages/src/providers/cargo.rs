//! cargo. Sources lie in `registry/src/REGISTRY/NAME-VERSION`. A vendored crate has a
//! `.cargo-checksum.json` with the SHA-256 of each file. A crate that cargo itself unpacked has no
//! such file. Its archive lies in `registry/cache`, and the archive's checksum in `registry/index`.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::archive::{Published, Sums, sums};
use crate::checksum::Checksum;
use crate::package_id::PackageId;
use crate::provider::{Owner, Provider};
use crate::records::{Remembered, hex, small, split_version, text};

/// The crates of all directories that were looked up.
#[derive(Default)]
pub struct Cargo {
    vendored: Remembered<Option<Vendored>>,
    unpacked: Remembered<Option<Sums>>,
    /// The programs that cargo installed, by the directory that has `bin`: package, version, names.
    programs: Remembered<Vec<(String, String, Vec<String>)>>,
}

type Vendored = (Option<(String, String)>, Sums);

impl Provider for Cargo {
    fn package(&mut self, path: &Path) -> Option<PackageId> {
        if let Some(unpacked) = Unpacked::of(path) {
            return Some(PackageId::new("cargo", unpacked.name, unpacked.version));
        }
        if let Some((name, revision)) = checked_out(path) {
            return Some(PackageId::new("cargo", name, revision));
        }
        if let Some((name, version)) = self.installed(path) {
            return Some(PackageId::new("cargo", name, version));
        }
        let mut around = path.ancestors().skip(1);
        let vendored = around.find_map(|dir| self.vendored.of(dir, read).as_ref()?.0.clone());
        let (name, version) = vendored?;
        Some(PackageId::new("cargo", name, version))
    }

    fn owner(&mut self, path: &Path) -> Option<Owner> {
        if let Some(unpacked) = Unpacked::of(path) {
            let sums = self
                .unpacked
                .of(&unpacked.dir, |_| unpacked.sums())
                .as_ref()?;
            let sum = sum(sums, &unpacked.dir, path);
            return Some(owner(unpacked.name, unpacked.version, sum));
        }
        let dir = path
            .ancestors()
            .skip(1)
            .find(|dir| self.vendored.of(dir, read).is_some())?
            .to_owned();
        let (named, sums) = self.vendored.of(&dir, read).as_ref()?;
        let (name, version) = named.clone()?;
        Some(owner(name, version, sum(sums, &dir, path)))
    }

    fn may_own_in(&mut self, directory: &Path) -> bool {
        let is_vendored = |dir| self.vendored.of(dir, read).is_some();
        directory.iter().any(|part| part == "registry") || directory.ancestors().any(is_vendored)
    }
}

impl Cargo {
    /// The package of a program in `bin`, from `.crates.toml` beside that directory.
    fn installed(&mut self, path: &Path) -> Option<(String, String)> {
        let directory = path.parent().filter(|dir| dir.ends_with("bin"))?.parent()?;
        let program = path.file_name()?.to_str()?;
        let all = self.programs.of(directory, programs).iter();
        all.filter(|(_, _, names)| names.iter().any(|name| name == program))
            .map(|(name, version, _)| (name.clone(), version.clone()))
            .next()
    }
}

/// `.crates.toml` has lines such as `"ripgrep 14.1.0 (registry+…)" = ["rg"]`.
fn programs(directory: &Path) -> Vec<(String, String, Vec<String>)> {
    let all = text(&directory.join(".crates.toml")).unwrap_or_default();
    let lines = all.lines().filter_map(|line| {
        let (package, names) = line.split_once(" = ")?;
        let mut words = package.trim_matches('"').split(' ');
        let quoted = names.split('"').skip(1).step_by(2);
        Some((
            words.next()?.to_owned(),
            words.next()?.to_owned(),
            quoted.map(str::to_owned).collect(),
        ))
    });
    lines.collect()
}

/// The name and the revision that a path below `git/checkouts/NAME-HASH/REVISION/` says.
fn checked_out(path: &Path) -> Option<(String, String)> {
    let (_, below) = path.to_str()?.rsplit_once("/git/checkouts/")?;
    let mut parts = below.split('/');
    let (name, _hash) = parts.next()?.rsplit_once('-')?;
    let revision = parts.next()?.to_owned();
    parts.next()?;
    Some((name.to_owned(), revision))
}

fn sum(sums: &Sums, dir: &Path, path: &Path) -> Option<[u8; 32]> {
    let file = path.strip_prefix(dir).ok()?.to_str()?;
    sums.get(file).copied()
}

fn owner(name: String, version: String, sum: Option<[u8; 32]>) -> Owner {
    Owner {
        manager: "cargo",
        name,
        version,
        checksum: sum.map(Checksum::Sha256),
    }
}

/// A crate below `registry/src/REGISTRY/`.
struct Unpacked {
    dir: PathBuf,
    name: String,
    version: String,
}

impl Unpacked {
    /// The crate that contains the file at `path`.
    fn of(path: &Path) -> Option<Unpacked> {
        let parts: Vec<_> = path.components().collect();
        let at = parts
            .windows(2)
            .rposition(|two| two[0].as_os_str() == "registry" && two[1].as_os_str() == "src")?;
        let (name, version) = split_version(parts.get(at + 3)?.as_os_str().to_str()?)?;
        (parts.len() > at + 4).then(|| Unpacked {
            dir: parts[..at + 4].iter().collect(),
            name,
            version,
        })
    }

    /// The checksums of its files when they were unpacked. `None` if they are unknown, or if cargo
    /// did not unpack it.
    fn sums(&self) -> Option<Sums> {
        let by_cargo = self.dir.join(".cargo-ok").is_file();
        by_cargo.then(|| self.archived().unwrap_or_default())
    }

    fn archived(&self) -> Option<Sums> {
        let source = self.dir.parent()?;
        let (registry, place) = (source.file_name()?, source.parent()?.parent()?);
        let mut archive = self.dir.file_name()?.to_owned();
        archive.push(".crate");
        let published = Published::Sha256(self.published(&place.join("index").join(registry))?);
        sums(
            &place.join("cache").join(registry).join(archive),
            &published,
        )
    }

    /// The SHA-256 of its archive, from the part of the registry's index that cargo has downloaded.
    /// That file holds texts and JSON, each followed by a zero byte.
    fn published(&self, index: &Path) -> Option<[u8; 32]> {
        let name = self.name.to_ascii_lowercase();
        let place = match name.len() {
            1 | 2 => Path::new(&name.len().to_string()).join(&name),
            3 => Path::new("3").join(name.get(..1)?).join(&name),
            _ => Path::new(name.get(..2)?).join(name.get(2..4)?).join(&name),
        };
        let known = small(&index.join(".cache").join(place), MOST_OF_INDEX)?;
        let mut versions = known
            .split(|byte| *byte == 0)
            .filter(|part| part.starts_with(b"{"));
        versions.find_map(|version| {
            let version: Value = serde_json::from_slice(version).ok()?;
            (version["vers"] == self.version.as_str()).then(|| hex(version["cksum"].as_str()?))?
        })
    }
}

/// Even a crate with ten thousand versions needs less.
const MOST_OF_INDEX: u64 = 64 << 20;

/// The checksums of a vendored crate. `None` if the directory is not a vendored crate.
fn read(dir: &Path) -> Option<Vendored> {
    let sums: Value = serde_json::from_str(&text(&dir.join(".cargo-checksum.json"))?).ok()?;
    let files = sums["files"].as_object()?.iter();
    let files = files.filter_map(|(file, sum)| Some((file.clone(), hex(sum.as_str()?)?)));
    let manifest = text(&dir.join("Cargo.toml")).unwrap_or_default();
    Some((named(&manifest), files.collect()))
}

/// Name and version in a manifest as cargo normalizes it: one key on each line, quoted.
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
