//! rustup. `toolchains/NAME/lib/rustlib/multirust-channel-manifest.toml` has the version of the
//! toolchain, whose name may be `stable-x86_64-unknown-linux-gnu`.

use std::path::Path;

use crate::package_id::PackageId;
use crate::provider::Provider;
use crate::records::{Remembered, above, text};

/// The toolchains that were looked up.
#[derive(Default)]
pub struct Rustup {
    versions: Remembered<Option<String>>,
}

impl Provider for Rustup {
    fn package(&mut self, path: &Path) -> Option<PackageId> {
        let toolchains = above(path, |name| name == "toolchains").next()?;
        let name = path.strip_prefix(toolchains).ok()?.components().next()?;
        let version = self.versions.of(&toolchains.join(name), version).clone()?;
        Some(PackageId {
            environment: Some(toolchains.join(name)),
            ..PackageId::new("rustup", "rust", version)
        })
    }
}

/// `1.95.0` for the toolchain in a directory.
fn version(toolchain: &Path) -> Option<String> {
    let manifest = text(&toolchain.join("lib/rustlib/multirust-channel-manifest.toml"))?;
    let (_, package) = manifest.split_once("\n[pkg.rust]\n")?;
    let value = package.lines().next()?.strip_prefix("version = \"")?;
    Some(value.split([' ', '"']).next()?.to_owned())
}
