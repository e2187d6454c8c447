//! npm. A file below `node_modules/NAME` belongs to the package whose `package.json` lies there. A
//! program in `node_modules/.bin` is a link to a file of its package.
//!
//! npm has checksums of whole archives only (`integrity` in `node_modules/.package-lock.json`). If
//! the archive is still in npm's cache, the checksums of its files are known.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::archive::{Published, Sums, sums};
use crate::checksum::Checksum;
use crate::package_id::PackageId;
use crate::provider::{Owner, Provider};
use crate::records::{Remembered, base64, text};

/// The packages of all directories that were looked up.
pub struct Npm {
    /// npm's cache directory.
    cache: Option<PathBuf>,
    packages: Remembered<Option<Package>>,
    names: Remembered<Option<(String, String)>>,
    locks: Remembered<Option<Value>>,
}

struct Package {
    owner: Owner,
    /// Checksums of its files, if its archive is in the cache.
    sums: Option<Sums>,
}

impl Npm {
    /// With the cache of this user.
    pub fn new() -> Npm {
        let set = std::env::var_os("npm_config_cache").map(PathBuf::from);
        let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".npm"));
        Npm::with_cache(set.or(home))
    }

    /// With the cache directory `cache`.
    pub fn with_cache(cache: Option<PathBuf>) -> Npm {
        Npm {
            cache,
            packages: Remembered::default(),
            names: Remembered::default(),
            locks: Remembered::default(),
        }
    }
}

impl Provider for Npm {
    fn package(&mut self, path: &Path) -> Option<PackageId> {
        let dir = package_dir(&linked(path))?;
        let (name, version) = self.names.of(&dir, name_of).clone()?;
        Some(PackageId::new("npm", name, version))
    }

    fn owner(&mut self, path: &Path) -> Option<Owner> {
        let dir = package_dir(path)?;
        let (locks, cache) = (&mut self.locks, self.cache.as_deref());
        let package = self
            .packages
            .of(&dir, |dir| read(dir, locks, cache))
            .as_ref()?;
        let file = path.strip_prefix(&dir).ok()?.to_str();
        let sum = file.and_then(|file| package.sums.as_ref()?.get(file).copied());
        Some(Owner {
            checksum: sum.map(Checksum::Sha256),
            ..package.owner.clone()
        })
    }

    fn may_own_in(&mut self, directory: &Path) -> bool {
        directory.iter().any(|part| part == "node_modules")
    }
}

/// The file that a program of `node_modules/.bin` is a link to. Any other path as it is. pnpm has
/// scripts there, which belong to no package.
fn linked(path: &Path) -> Cow<'_, Path> {
    let directory = path.parent();
    let is_program = directory.is_some_and(|directory| directory.ends_with("node_modules/.bin"));
    let file = is_program.then(|| path.canonicalize().ok()).flatten();
    file.map_or(Cow::Borrowed(path), Cow::Owned)
}

/// The directory `…/node_modules/NAME` or `…/node_modules/@SCOPE/NAME` that contains a file.
fn package_dir(path: &Path) -> Option<PathBuf> {
    let parts: Vec<_> = path.components().collect();
    let at = parts
        .iter()
        .rposition(|part| part.as_os_str() == "node_modules")?;
    let scoped = parts.get(at + 1)?.as_os_str().to_str()?.starts_with('@');
    let end = at + if scoped { 3 } else { 2 };
    // A file directly in node_modules belongs to no package.
    (parts.len() > end).then(|| parts[..end].iter().collect())
}

/// The name and the version of the package in a directory below `node_modules`. A link there leads
/// to a package of the same workspace, which is the user's own, or to another `node_modules`.
fn name_of(dir: &Path) -> Option<(String, String)> {
    let real = dir.canonicalize();
    let in_workspace = |real: &PathBuf| !real.iter().any(|part| part == "node_modules");
    if real.as_ref().is_ok_and(in_workspace) {
        return None;
    }
    let read = || {
        let package: Value = serde_json::from_str(&text(&dir.join("package.json"))?).ok()?;
        let name = package["name"].as_str()?.to_owned();
        Some((
            name,
            package["version"].as_str().unwrap_or_default().to_owned(),
        ))
    };
    read().or_else(|| named_by_path(dir))
}

/// The name that the path of a package's directory says. pnpm's directory has the version, too:
/// `.pnpm/@scope+name@1.2.3_peers/node_modules/@scope/name`.
fn named_by_path(dir: &Path) -> Option<(String, String)> {
    let name = dir.file_name()?.to_str()?;
    let above = dir.parent()?;
    let (name, modules) = match above.file_name()?.to_str()? {
        "node_modules" => (name.to_owned(), above),
        scope => (format!("{scope}/{name}"), above.parent()?),
    };
    // `.bin`, `.cache`, `.package-lock.json`
    if name.starts_with('.') {
        return None;
    }
    let version = modules.parent().and_then(|stored| {
        let stored = stored.file_name()?.to_str()?;
        let rest = stored.strip_prefix(&name.replace('/', "+"))?;
        let version = rest.strip_prefix('@')?.split(['_', '(']).next()?;
        Some(version.to_owned())
    });
    Some((name, version.unwrap_or_default()))
}

fn read(
    dir: &Path,
    locks: &mut Remembered<Option<Value>>,
    cache: Option<&Path>,
) -> Option<Package> {
    let package: Value = serde_json::from_str(&text(&dir.join("package.json"))?).ok()?;
    let owner = Owner {
        manager: "npm",
        name: package["name"].as_str()?.to_owned(),
        version: package["version"].as_str()?.to_owned(),
        checksum: None,
    };
    let sums = integrity(dir, &owner.version, locks)
        .and_then(|sum| sums(&cached(cache?, &sum), &Published::Sha512(sum)));
    Some(Package { owner, sums })
}

/// The SHA-512 of the archive that the package in `dir` was unpacked from. It comes from the lock
/// file of one of the enclosing `node_modules`.
fn integrity(dir: &Path, version: &str, locks: &mut Remembered<Option<Value>>) -> Option<[u8; 64]> {
    let around = dir.ancestors().filter(|dir| dir.ends_with("node_modules"));
    around
        .filter_map(|modules| {
            let lock = locks.of(&modules.join(".package-lock.json"), |path| {
                serde_json::from_str(&text(path)?).ok()
            });
            let package =
                &lock.as_ref()?["packages"][dir.strip_prefix(modules.parent()?).ok()?.to_str()?];
            let words = package["integrity"]
                .as_str()
                .filter(|_| package["version"] == version)?;
            words
                .split(' ')
                .find_map(|word| base64(word.strip_prefix("sha512-")?))
        })
        .next()
}

/// The path of the archive with this checksum in the cache.
fn cached(cache: &Path, sum: &[u8; 64]) -> PathBuf {
    let name: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
    let (first, rest) = name.split_at(2);
    let (second, rest) = rest.split_at(2);
    cache
        .join("_cacache/content-v2/sha512")
        .join(first)
        .join(second)
        .join(rest)
}
