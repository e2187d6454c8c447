//! The cache of Hugging Face. `models--ORG--NAME/snapshots/REVISION/FILE` is a link to
//! `models--ORG--NAME/blobs/DIGITS`. A large file has the name of its SHA-256, a small one that of
//! its git object (<https://huggingface.co/docs/huggingface_hub/guides/manage-cache>).

use std::path::{Path, PathBuf};

use super::content_store::{ContentStore, sha256, tail};
use crate::checksum::Checksum;

pub struct HuggingFace;

impl ContentStore for HuggingFace {
    fn name(&self) -> &'static str {
        "the cache of Hugging Face"
    }

    fn holder(&mut self, real: &Path) -> Option<(PathBuf, Checksum)> {
        let [repository, blobs, digits] = tail(real)?;
        let kinds = ["models--", "datasets--", "spaces--"];
        let is_repository = kinds.iter().any(|kind| repository.starts_with(kind));
        (is_repository && blobs == "blobs")
            .then(|| sha256(digits))?
            .map(|checksum| (real.to_owned(), checksum))
    }
}
