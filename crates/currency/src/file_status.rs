//! The status of a file, with what has changed behind it.

use std::collections::{BTreeMap, BTreeSet};

use backstory_eventlog::event::Bytes;

use crate::file_state::FileState;
use crate::reason::Reason;

/// Whether a file is as its steps would make it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStatus {
    /// The path, absolute.
    pub path: Bytes,
    /// The last run that wrote the file, if one did.
    pub run: Option<String>,
    /// Its state. [`FileState::Outdated`] if its own content is that of its last run.
    pub state: FileState,
    /// The files behind it that have changed, programs included.
    pub changed_inputs: Vec<(Bytes, FileState)>,
    /// Why the steps behind it are stale.
    pub reasons: Vec<Reason>,
    /// The run left the file, and a step made it. False for directories, for files in caches, and
    /// for files that the run itself removed.
    pub is_result: bool,
}

impl FileStatus {
    /// True if the file is as its run left it, and no step behind it is stale.
    pub fn is_current(&self) -> bool {
        self.state == FileState::Current
    }
}

/// The paths of reasons, each with the state of its file.
pub fn changed(reasons: &BTreeSet<Reason>) -> Vec<(Bytes, FileState)> {
    let mut changed = BTreeMap::new();
    for reason in reasons {
        let state = match reason {
            Reason::OutputGone(_) | Reason::InputGone(_) => FileState::Removed,
            Reason::Appeared(_) => FileState::Appeared,
            _ if reason.is_uncertain() => FileState::Uncertain,
            Reason::Environment(_) | Reason::MakerFailed(_) => continue,
            _ => FileState::Modified,
        };
        changed.insert(reason.subject().clone(), state);
    }
    changed.into_iter().collect()
}
