//! git. A committed file has a blob, by the path of the file in the tree of `HEAD`. The id of the
//! blob is the SHA-1 of `blob SIZE\0` and the content.
//!
//! Only the commit that is checked out counts. git keeps its objects as long as a branch leads to
//! it. A blob that only the index has can be gone after the next `git gc`, and the index does not
//! say so. Thus the index is not read. Its times and sizes are not needed either, because the file
//! is compared with its blob.
//!
//! Absent: repositories that use SHA-256, files of more than [`MOST`] bytes, and files whose blob
//! has another size. Those of git LFS and files with other line ends are among them.

use std::path::{Path, PathBuf};

use backstory_git_objects::{CommittedFiles, LARGEST, STORE, open_blob};

use super::content_store::ContentStore;
use crate::checksum::Checksum;

/// The most bytes of a file. `git gc` can turn the blob into a delta to a version that is larger.
/// The blob can only be read again if each version on the way has at most [`LARGEST`] bytes.
const MOST: u64 = LARGEST / 4;

/// The repositories of files that were looked up.
#[derive(Default)]
pub struct GitRepository(CommittedFiles);

impl ContentStore for GitRepository {
    fn name(&self) -> &'static str {
        STORE
    }

    fn holder(&mut self, real: &Path) -> Option<(PathBuf, Checksum)> {
        let size = real.symlink_metadata().ok()?.len();
        if size > MOST {
            return None;
        }
        let blob = self.0.blob(real)?;
        let id: [u8; 20] = blob.id.bytes().try_into().ok()?;
        // A changed file mostly has another size. It is not read in vain then.
        let is_alike = open_blob(&blob.path).is_ok_and(|object| object.size() == size);
        is_alike.then_some((blob.path, Checksum::GitBlob { size, id }))
    }

    /// The object can be in a pack. It was opened before.
    fn has(&self, _object: &Path) -> bool {
        true
    }
}
