//! The report of what the filters did to a run.
//!
//! The store keeps it as an extended record of the run's first activity ([`KIND`], JSON). It has
//! counts and the names of filters, and no name of a file or process.

use serde::{Deserialize, Serialize};

/// The kind of the record. A program cannot make a record of this kind: the types of its records
/// contain a dot.
pub const KIND: &[u8] = b"filters";

/// The most examples of one filter.
const EXAMPLES: usize = 5;

/// The effect of all filters on one run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PipelineReport {
    /// The digest of the filters.
    pub digest: String,
    /// Each filter, in the order in which it was applied.
    pub filters: Vec<FilterReport>,
    /// Nodes that the graph has no more.
    pub removed: NodeCounts,
    /// Nodes that the graph has without their names, because lineage passes through them.
    pub anonymous: NodeCounts,
}

/// Numbers of nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeCounts {
    /// Files, pipes, sockets and other things.
    pub files: usize,
    /// Processes.
    pub processes: usize,
}

/// The effect of one filter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterReport {
    /// Its name.
    pub name: String,
    /// Its action.
    pub action: String,
    /// The files that it took out or changed.
    pub files: usize,
    /// The processes that it took out, changed, or made part of a step.
    pub processes: usize,
    /// True if it changed the command, the directory or another text about the run as a whole.
    #[serde(default)]
    pub header: bool,
    /// Why it could not decide, and the effect of that.
    #[serde(default)]
    pub warning: Option<String>,
    /// Some names before, and after if they were changed. Not stored.
    #[serde(skip)]
    pub examples: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl FilterReport {
    pub(crate) fn example(&mut self, before: &[u8], after: Option<&[u8]>) {
        if self.examples.len() < EXAMPLES {
            self.examples
                .push((before.to_vec(), after.map(<[u8]>::to_vec)));
        }
    }
}

impl PipelineReport {
    /// The payload of the record.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads a record. `None` for one of another kind.
    pub fn decode(kind: &[u8], payload: &[u8]) -> Option<PipelineReport> {
        let is_report = kind == KIND;
        is_report
            .then(|| serde_json::from_slice(payload).ok())
            .flatten()
    }

    /// The warnings of all filters.
    pub fn warnings(&self) -> impl Iterator<Item = &str> {
        self.filters
            .iter()
            .filter_map(|filter| filter.warning.as_deref())
    }
}
