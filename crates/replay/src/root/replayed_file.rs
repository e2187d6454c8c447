//! One result of a replay, as it is copied out of the replay's root.

use serde::{Deserialize, Serialize};

/// The operation in error messages.
pub(super) const TAKE: &str = "take what was left at";

/// A file that a replay left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayedFile {
    /// Absolute path inside the replay.
    pub path: Vec<u8>,
    /// The digest of its content.
    pub digest: [u8; 32],
    /// Size in bytes.
    pub size: u64,
}
