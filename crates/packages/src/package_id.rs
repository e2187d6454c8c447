//! The name of a package as people read it.

use std::fmt;
use std::path::PathBuf;

/// A package, toolchain or environment that provides files.
///
/// The text form is `gcc-12 12.2.0-14` for a system package and `numpy 1.26.4 (venv)` for others.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PackageId {
    /// What provides it: `dpkg`, `rpm`, `pip`, `conda`, `npm`, `cargo`, `nix` …
    pub provider: String,
    /// Its name, in the provider's spelling, without an architecture.
    pub name: String,
    /// Its version; empty if it is unknown.
    pub version: String,
    /// The word in parentheses: `venv`, `npm`; empty for system packages.
    pub label: String,
    /// The directory of the environment that it is installed in; `None` outside of environments.
    pub environment: Option<PathBuf>,
}

impl PackageId {
    /// A package outside of environments, labelled with its provider.
    pub fn new(provider: &str, name: impl Into<String>, version: impl Into<String>) -> PackageId {
        PackageId {
            provider: provider.to_owned(),
            name: name.into(),
            version: version.into(),
            label: provider.to_owned(),
            environment: None,
        }
    }

    /// A package of the operating system, without a label.
    pub fn of_system(
        provider: &str,
        name: impl Into<String>,
        version: impl Into<String>,
    ) -> PackageId {
        PackageId {
            label: String::new(),
            ..PackageId::new(provider, name, version)
        }
    }

    /// Name and version without the label.
    pub fn named(&self) -> String {
        match self.version.as_str() {
            "" => self.name.clone(),
            version => format!("{} {version}", self.name),
        }
    }
}

impl fmt::Display for PackageId {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.named())?;
        match self.label.as_str() {
            "" => Ok(()),
            label => write!(to, " ({label})"),
        }
    }
}
