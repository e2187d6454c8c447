//! Finds the package that provides a file: a system package, a language's package, a toolchain.
//!
//! In: absolute paths. Out: names, versions and checksums. Each kind of package is one file in
//! [`providers`], behind the trait [`Provider`].
//!
//! | question | function |
//! | --- | --- |
//! | Which package provides this path? | [`Packages::package`] |
//! | Which packages provide these paths, and how many of them each? | [`PackageTally::of`] |
//! | Which package can install this file again, and with which checksum? | [`Packages::owners`] |
//! | Which content-addressed store has this content, too? | [`ContentStores::holder`] |
//!
//! A provider looks at the path and at the managers' records as they are now. Where the records are
//! gone, the path itself may name the package: see [`PathLayouts`].
//!
//! Invariants:
//!
//! - No program of a package manager is run, except rpm's (see there).
//! - Records are read once for each [`Packages`], and only if a path may belong to them. The
//!   system's packages have no files of users, and none in `/usr/local`.
//! - Nothing is read for a path in a user's directory, except beside that path and above it.
//!
//! ```no_run
//! use backstory_packages::{PackageTally, Packages};
//!
//! let mut packages = Packages::new("/".as_ref());
//! let paths: [&[u8]; 2] = [b"/w/.venv/lib/python3.11/site-packages/numpy/a.py", b"/w/a.csv"];
//! let tally = PackageTally::of(&mut packages, paths);
//! assert_eq!(tally.lines(5), ["numpy 1.26.4 (venv): 1 file"]);
//! assert_eq!(tally.others, [1]);
//! ```
//!
//! Absent: whether a file is the user's own, which `backstory_workflow::ownership` decides.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod archive;
mod checksum;
mod content_stores;
mod layouts;
mod package_id;
mod provider;
mod providers;
mod records;
mod tally;
#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub use checksum::{Checksum, compare};
pub use content_stores::{ContentStores, HeldFile};
pub use layouts::{LayoutError, PathLayouts};
pub use package_id::PackageId;
pub use provider::{Owner, Provider};
pub use tally::{PackageCount, PackageTally};

use providers::{
    apk, cargo, conda, dpkg, go, maven, npm, pacman, pip, python, r, rpm, rustup, tex_live,
};
use records::Remembered;

/// The records of all providers, read as they are needed.
pub struct Packages {
    /// Providers for files outside of the system's directories, the most specific first: a file
    /// that pip put into a conda directory belongs to pip.
    languages: Vec<Box<dyn Provider>>,
    /// Providers of the system's packages.
    system: Vec<Box<dyn Provider>>,
    layouts: PathLayouts,
    /// Canonical paths of directories.
    real: Remembered<Option<PathBuf>>,
    /// The languages that may own files of the latest directory: one bit for each, in their order.
    near: (PathBuf, u32),
}

impl Packages {
    /// The records below `root` (`/`). None is read yet.
    pub fn new(root: &Path) -> Packages {
        Packages::of(root, None)
    }

    /// The same with a file in which the lists of dpkg's packages stand together. It is made if it
    /// is not there, or not of the present packages. Reading the list of each package takes longer
    /// than most questions.
    pub fn indexed(root: &Path, index: &Path) -> Packages {
        Packages::of(root, Some(index))
    }

    fn of(root: &Path, index: Option<&Path>) -> Packages {
        Packages {
            languages: vec![
                Box::new(pip::Pip::default()),
                Box::new(python::PythonSites::default()),
                Box::new(conda::Conda::default()),
                Box::new(npm::Npm::new()),
                Box::new(cargo::Cargo::default()),
                Box::new(rustup::Rustup::default()),
                Box::new(go::Go::default()),
                Box::new(r::RLibraries::default()),
                Box::new(tex_live::TexLive::default()),
                Box::new(maven::Maven),
            ],
            system: vec![
                Box::new(dpkg::Dpkg::new(root, index)),
                Box::new(apk::Apk::new(root)),
                Box::new(pacman::Pacman::new(root)),
                Box::new(rpm::Rpm::new(root)),
            ],
            layouts: PathLayouts::default(),
            real: Remembered::default(),
            near: (PathBuf::new(), 0),
        }
    }

    /// With layouts of paths that name a package without any records.
    #[must_use]
    pub fn with_layouts(mut self, more: PathLayouts) -> Packages {
        self.layouts.extend(more);
        self
    }

    /// The owners of the file at `path`, an absolute path without links, the most specific first.
    /// There can be several: files of Debian's `nodejs` lie in `node_modules`. Not each of them has
    /// a checksum.
    pub fn owners(&mut self, path: &Path) -> impl Iterator<Item = Owner> {
        let bits = path.parent().map_or(0, |dir| self.owning_languages(dir));
        let may_own = move |(at, language)| (bits >> at & 1 == 1).then_some(language);
        let languages = self.languages.iter_mut().enumerate().filter_map(may_own);
        let system = is_packaged_directory(path).then_some(&mut self.system);
        languages
            .chain(system.into_iter().flatten())
            .filter_map(move |provider| provider.owner(path))
    }

    /// The languages that may own files of this directory: one bit for each. The files of a
    /// directory mostly come one after the other.
    fn owning_languages(&mut self, directory: &Path) -> u32 {
        if self.near.0.as_os_str() != directory.as_os_str() {
            let all = self.languages.iter_mut().enumerate();
            let bits = all.map(|(at, language)| u32::from(language.may_own_in(directory)) << at);
            self.near = (directory.to_owned(), bits.sum());
        }
        self.near.1
    }

    /// The package that provides the file at `path`, an absolute path as it was recorded. `None`
    /// for a file of the user's own, and for a file that no provider knows.
    ///
    /// The path is looked up as it is, then with the links of its directory resolved. If all
    /// records are gone, the path itself may still name the package.
    pub fn package(&mut self, path: &[u8]) -> Option<PackageId> {
        let path = Path::new(OsStr::from_bytes(path));
        self.recorded(path)
            .or_else(|| {
                let real = self.resolved(path)?;
                self.recorded(&real)
            })
            .or_else(|| self.layouts.package(path))
    }

    /// The package that a provider's records name.
    fn recorded(&mut self, path: &Path) -> Option<PackageId> {
        let mut languages = self.languages.iter_mut();
        match is_packaged_directory(path) {
            // Debian's Python modules have records of pip, too.
            true => self
                .system
                .iter_mut()
                .chain(languages)
                .find_map(|provider| provider.package(path)),
            false => languages.find_map(|provider| provider.package(path)),
        }
    }

    /// The path with the links in its directory resolved. `None` for a directory without
    /// links, and for a directory that is gone.
    fn resolved(&mut self, path: &Path) -> Option<PathBuf> {
        let (directory, name) = (path.parent()?, path.file_name()?);
        let real = self.real.of(directory, |dir| dir.canonicalize().ok());
        let real = real.as_ref()?;
        (real != directory).then(|| real.join(name))
    }
}

/// True if system packages put files there. Their records are not read for other paths.
fn is_packaged_directory(path: &Path) -> bool {
    const TOPS: [&str; 11] = [
        "usr", "lib", "lib32", "lib64", "libx32", "bin", "sbin", "etc", "opt", "var", "boot",
    ];
    let mut parts = path.components().skip(1).map(|part| part.as_os_str());
    let top = parts.next().and_then(OsStr::to_str);
    top.is_some_and(|top| TOPS.contains(&top)) && parts.next().is_none_or(|next| next != "local")
}
