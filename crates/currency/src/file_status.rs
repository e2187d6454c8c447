//! The status of a file, with what has changed behind it.

use std::collections::{BTreeMap, BTreeSet};

use backstory_eventlog::event::Bytes;

use crate::Result;
use crate::file_state::FileState;
use crate::reason::Reason;
use crate::step_group::StepGroup;

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

/// The reasons of all stale steps from `step` backwards.
pub fn reasons_behind(group: &StepGroup<'_>, step: usize) -> Result<BTreeSet<Reason>> {
    let mut reasons = BTreeSet::new();
    let (mut waiting, mut seen) = (vec![step], BTreeSet::from([step]));
    while let Some(at) = waiting.pop() {
        let facts = group.facts(at)?;
        reasons.extend(facts.reasons.iter().cloned());
        reasons.extend(facts.guided.values().flatten().cloned());
        reasons.extend(facts.differs.values().cloned());
        for (from, path) in facts.feeders() {
            reasons.extend(group.output_reason(from, path)?);
            if seen.insert(from) {
                waiting.push(from);
            }
        }
    }
    Ok(reasons)
}

/// The paths of reasons, each with the state of its file.
pub fn changed(reasons: &BTreeSet<Reason>) -> Vec<(Bytes, FileState)> {
    let mut changed = BTreeMap::new();
    for reason in reasons {
        let state = match reason {
            Reason::OutputGone(_) | Reason::InputGone(_) => FileState::Removed,
            Reason::Appeared(_) => FileState::Appeared,
            Reason::MayHaveLooked(_) => FileState::Uncertain,
            Reason::Environment(_) => continue,
            _ => FileState::Modified,
        };
        changed.insert(reason.subject().clone(), state);
    }
    changed.into_iter().collect()
}
