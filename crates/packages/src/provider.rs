//! The trait of a provider of packages.

use std::path::Path;

use crate::checksum::Checksum;
use crate::package_id::PackageId;

/// A package that owns a file and can install it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// `dpkg`, `rpm`, `pip`, `conda`, `npm`, `cargo`
    pub manager: &'static str,
    /// The package, in the manager's spelling.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The checksum of the installed file.
    pub checksum: Option<Checksum>,
}

/// One kind of packages: a package manager, a language's directory of packages, a toolchain.
pub trait Provider {
    /// The package that provides the file at this absolute path. The path may lead through links.
    fn package(&mut self, path: &Path) -> Option<PackageId>;

    /// The package that can install this file again. `path` is absolute and contains no links.
    /// `None` for a provider whose packages cannot be installed again by name and version.
    fn owner(&mut self, _path: &Path) -> Option<Owner> {
        None
    }

    /// False only if [`Provider::owner`] gives `None` for every file of this directory. `directory`
    /// is absolute and contains no links.
    fn may_own_in(&mut self, _directory: &Path) -> bool {
        true
    }
}
