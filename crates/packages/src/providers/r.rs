//! R. `LIBRARY/NAME/DESCRIPTION` names an installed package. R adds the field `Built` when it
//! installs a package, so that the sources of a user's own package do not count.

use std::path::Path;

use crate::package_id::PackageId;
use crate::provider::Provider;
use crate::records::{Remembered, above, text};

/// The packages that were looked up.
#[derive(Default)]
pub struct RLibraries {
    packages: Remembered<Option<(String, String)>>,
}

impl Provider for RLibraries {
    fn package(&mut self, path: &Path) -> Option<PackageId> {
        // `library`, `site-library`, `x86_64-pc-linux-gnu-library`; renv has directories between.
        let library = above(path, |name| name.ends_with("library")).last()?;
        let below = path.ancestors().skip(1).take_while(|dir| *dir != library);
        let mut found = below.filter_map(|dir| self.packages.of(dir, installed).clone());
        let (name, version) = found.next()?;
        Some(PackageId::new("R", name, version))
    }
}

fn installed(dir: &Path) -> Option<(String, String)> {
    let description = text(&dir.join("DESCRIPTION"))?;
    let field = |name: &str| {
        let mut lines = description.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    };
    field("Built")?;
    Some((field("Package")?.to_owned(), field("Version")?.to_owned()))
}
