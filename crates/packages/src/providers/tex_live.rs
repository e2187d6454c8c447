//! TeX Live that people installed themselves. `tlpkg/texlive.tlpdb` lists the files of each
//! package, relative to the root.

use std::collections::HashMap;
use std::path::Path;

use crate::package_id::PackageId;
use crate::provider::Provider;
use crate::records::{Remembered, hash, text};

/// The trees that were looked up.
#[derive(Default)]
pub struct TexLive {
    trees: Remembered<Option<Tree>>,
}

/// A tree of TeX Live.
#[derive(Default)]
struct Tree {
    packages: Vec<(String, String)>,
    /// The number of the package that has a file, by the hash of the file's path.
    files: HashMap<u64, u32>,
}

impl Provider for TexLive {
    fn package(&mut self, path: &Path) -> Option<PackageId> {
        // The database is large. It is read only for paths below the directories it lists.
        let parts = path.iter().filter_map(|part| part.to_str());
        let mut lists =
            parts.map(|part| part.starts_with("texmf") || part == "tlpkg" || part == "bin");
        if !lists.any(|found| found) {
            return None;
        }
        let hash = hash(path.as_os_str().as_encoded_bytes());
        let mut around = path.ancestors().skip(1);
        let root = around.find(|dir| self.trees.of(dir, Tree::read).is_some())?;
        let tree = self.trees.of(root, Tree::read).as_ref()?;
        let number = tree.files.get(&hash);
        let (name, version) = match number {
            Some(number) => tree.packages.get(*number as usize)?.clone(),
            // Formats and lists that TeX Live made at its installation.
            None => ("texlive".to_owned(), release(root)),
        };
        Some(PackageId {
            environment: Some(root.to_owned()),
            ..PackageId::new("TeX Live", name, version)
        })
    }
}

/// `2023` for `/usr/local/texlive/2023`.
fn release(root: &Path) -> String {
    let name = root.file_name().and_then(|name| name.to_str());
    name.unwrap_or_default().to_owned()
}

impl Tree {
    /// `None` if the directory is no root of TeX Live.
    fn read(root: &Path) -> Option<Tree> {
        let database = text(&root.join("tlpkg/texlive.tlpdb"))?;
        let mut tree = Tree::default();
        for line in database.lines() {
            if let Some(name) = line.strip_prefix("name ") {
                // `hyperref.x86_64-linux` is a part of `hyperref`.
                let name = name.split('.').next().unwrap_or(name);
                tree.packages.push((name.to_owned(), String::new()));
            } else if let Some((_, version)) = tree.packages.last_mut() {
                if let Some(number) = line.strip_prefix("revision ") {
                    version.insert_str(0, &format!("r{number}"));
                } else if let Some(own) = line.strip_prefix("catalogue-version ") {
                    own.clone_into(version);
                } else if let Some(file) = line.strip_prefix(' ') {
                    tree.list(root, file);
                }
            }
        }
        Some(tree)
    }

    /// Adds a file to the last package. Details may follow the path.
    fn list(&mut self, root: &Path, line: &str) {
        let file = line.split(" details=").next().unwrap_or(line);
        let file = file.strip_prefix("RELOC/").map_or_else(
            || root.join(file),
            |below| root.join("texmf-dist").join(below),
        );
        let number = self.packages.len() as u32 - 1;
        self.files
            .insert(hash(file.as_os_str().as_encoded_bytes()), number);
    }
}
