//! Go: the module cache, vendored modules, and Go itself.
//!
//! - `pkg/mod/MODULE@VERSION/`: an unpacked module. `!m` in a path stands for `M`.
//! - `pkg/mod/cache/download/MODULE/@v/VERSION.zip`: its archive and the checksums.
//! - `vendor/modules.txt`: the modules below `vendor`.
//! - `GOROOT/VERSION`: the version of Go.

use std::path::Path;

use crate::package_id::PackageId;
use crate::provider::Provider;
use crate::records::{Remembered, above, text};

/// Modules and toolchains that were looked up.
#[derive(Default)]
pub struct Go {
    /// Name and version, by the directory `vendor`.
    vendored: Remembered<Option<Vec<(String, String)>>>,
    /// The version of Go, by the directory that may be its root.
    roots: Remembered<Option<String>>,
}

impl Provider for Go {
    fn package(&mut self, path: &Path) -> Option<PackageId> {
        if let Some((name, version)) = module(path.to_str()?) {
            return Some(PackageId::new("go", name, version));
        }
        if let Some((name, version)) = self.vendored(path) {
            return Some(PackageId::new("go", name, version));
        }
        let version = path
            .ancestors()
            .skip(1)
            .find_map(|dir| self.roots.of(dir, root_version).clone())?;
        Some(PackageId::new("go", "go", version))
    }
}

impl Go {
    fn vendored(&mut self, path: &Path) -> Option<(String, String)> {
        let vendor = above(path, |name| name == "vendor").next()?;
        let file = path.strip_prefix(vendor).ok()?;
        let modules = self.vendored.of(vendor, modules).as_ref()?;
        let around = modules.iter().filter(|(name, _)| file.starts_with(name));
        around.max_by_key(|(name, _)| name.len()).cloned()
    }
}

/// Module and version that a path in the module cache names.
fn module(path: &str) -> Option<(String, String)> {
    let (_, rest) = path.rsplit_once("/pkg/mod/")?;
    if let Some(archive) = rest.strip_prefix("cache/download/") {
        let (name, file) = archive.split_once("/@v/")?;
        let version = file.rsplit_once('.').map_or(file, |(version, _)| version);
        return Some((unescaped(name), unescaped(version)));
    }
    let (name, rest) = rest.split_once('@')?;
    let (version, _) = rest.split_once('/')?;
    match (name, version.split_once("-go")) {
        // `golang.org/toolchain@v0.0.1-go1.22.1.linux-amd64`: Go downloads itself as a module.
        ("golang.org/toolchain", Some((_, version))) => {
            let number = version.split(".linux").next().unwrap_or(version);
            Some(("go".to_owned(), number.to_owned()))
        }
        _ => Some((unescaped(name), unescaped(version))),
    }
}

/// Replaces `!m` with `M`.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('!');
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        whole.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        whole.push_str(letters.as_str());
    }
    whole
}

/// The modules of `vendor/modules.txt`: lines such as `# golang.org/x/sys v0.1.0`.
fn modules(vendor: &Path) -> Option<Vec<(String, String)>> {
    let all = text(&vendor.join("modules.txt"))?;
    let named = all.lines().filter_map(|line| {
        let mut words = line.strip_prefix("# ")?.split(' ');
        Some((words.next()?.to_owned(), words.next()?.to_owned()))
    });
    Some(named.collect())
}

/// The version of Go whose root a directory is. `None` for other directories.
fn root_version(dir: &Path) -> Option<String> {
    let first = text(&dir.join("VERSION"))?.lines().next()?.to_owned();
    let version = first.strip_prefix("go")?.to_owned();
    dir.join("src/runtime").is_dir().then_some(version)
}
