//! An OCI image layout (`blobs/sha256/DIGITS`, image-spec, "OCI Image Layout"), and the models of
//! Ollama (`blobs/sha256-DIGITS`).

use std::path::{Path, PathBuf};

use super::content_store::{ContentStore, sha256, tail};
use crate::checksum::Checksum;

/// Image layouts: also those that podman, skopeo and umoci write.
pub struct Oci;

impl ContentStore for Oci {
    fn name(&self) -> &'static str {
        "an OCI image layout"
    }

    fn holder(&mut self, real: &Path) -> Option<(PathBuf, Checksum)> {
        let [blobs, kind, digits] = tail(real)?;
        // Something else can have such names, and remove its files at any time.
        let layout = real.ancestors().nth(3)?.join("oci-layout");
        ((blobs, kind) == ("blobs", "sha256") && layout.is_file())
            .then(|| sha256(digits))?
            .map(|checksum| (real.to_owned(), checksum))
    }
}

/// The models of Ollama.
pub struct Ollama;

impl ContentStore for Ollama {
    fn name(&self) -> &'static str {
        "the models of Ollama"
    }

    fn holder(&mut self, real: &Path) -> Option<(PathBuf, Checksum)> {
        let [blobs, name] = tail(real)?;
        let digits = name.strip_prefix("sha256-").filter(|_| blobs == "blobs")?;
        Some((real.to_owned(), sha256(digits)?))
    }
}
