//! git-annex, and DataLad on top of it. A file of the work tree is a link to
//! `.git/annex/objects/aa/bb/KEY/KEY`. The key `SHA256E-s123--DIGITS.csv` has the checksum
//! (<https://git-annex.branchable.com/internals/key_format/>).

use std::path::{Path, PathBuf};

use super::content_store::{ContentStore, md5, sha256, tail};
use crate::checksum::Checksum;

pub struct GitAnnex;

impl ContentStore for GitAnnex {
    fn name(&self) -> &'static str {
        "git-annex"
    }

    fn holder(&mut self, real: &Path) -> Option<(PathBuf, Checksum)> {
        let [annex, objects, _, _, directory, key] = tail(real)?;
        if (annex, objects, directory) != ("annex", "objects", key) {
            return None;
        }
        let (kind, digits) = key.split_once("--")?;
        // A kind that ends with E keeps the extension of the file.
        let digits = digits.split('.').next()?;
        let checksum = match kind.split('-').next()? {
            "SHA256" | "SHA256E" => sha256(digits),
            "MD5" | "MD5E" => md5(digits),
            _ => None,
        };
        Some((real.to_owned(), checksum?))
    }
}
