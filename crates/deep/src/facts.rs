//! The first and the last frame of a deep log.
//!
//! Invariant: fields are added, never removed or renamed. A missing field has its default.

use serde::{Deserialize, Serialize};

/// First frame: everything known before the command starts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DeepHeader {
    /// The id of the run.
    pub run: String,
    /// The boot in which the counters of this file count.
    pub boot_id: String,
    /// How bytes that left are here: `digest` or `full`.
    pub outputs: String,
    /// True if files are here by reference, because the run stores contents.
    pub references: bool,
    /// Time-stamp counter, read together with `real`.
    pub counter: u64,
    /// ns since 1970.
    pub real: i64,
}

/// Last frame.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DeepEnd {
    /// Time-stamp counter, read together with `real`.
    pub counter: u64,
    /// ns since 1970.
    pub real: i64,
    /// Number of records that could not be stored.
    pub records_lost: u64,
    /// Why deep recording ended before the run did.
    pub shallow_because: Option<String>,
}
