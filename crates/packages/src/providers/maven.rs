//! Maven's local repository: `.m2/repository/GROUP/…/NAME/VERSION/FILE`. Other tools of the JVM use
//! it, too. The path says all.

use std::path::Path;

use crate::package_id::PackageId;
use crate::provider::Provider;

/// Maven's local repository.
pub struct Maven;

impl Provider for Maven {
    fn package(&mut self, path: &Path) -> Option<PackageId> {
        let (_, below) = path.to_str()?.rsplit_once("/.m2/repository/")?;
        let parts: Vec<&str> = below.split('/').collect();
        let [group @ .., name, version, _file] = parts.as_slice() else {
            return None;
        };
        (!group.is_empty())
            .then(|| PackageId::new("maven", format!("{}:{name}", group.join(".")), *version))
    }
}
