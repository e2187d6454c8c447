//! Tells which outputs a step has not touched.
//!
//! In: the outputs of a step, before it runs and after it has ended. Out: those that are the same
//! inode with the same status-change time, or absent as before.
//!
//! A step may leave an equal output alone (`cmp new out || mv new out`). So an untouched output is
//! no mistake if the step has looked at it. The log of another tool may lack redirections. Then a
//! step that touches nothing has written elsewhere.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_currency::PlannedStep;

use super::inode_state::InodeState;

/// The outputs of a step as they are before it runs.
#[derive(Debug)]
pub struct OutputStates(Vec<OutputState>);

/// The path itself, and the file that it leads to. `None` is absent.
type OutputState = [Option<InodeState>; 2];

impl OutputStates {
    /// The states now. An output that cannot be examined counts as absent.
    pub fn of(step: &PlannedStep) -> OutputStates {
        let outputs = step.outputs.iter();
        OutputStates(outputs.map(|(path, _)| state(path)).collect())
    }

    /// The outputs that the step has not touched. A directory stays as it is.
    pub fn untouched(&self, step: &PlannedStep) -> Vec<Vec<u8>> {
        let now = OutputStates::of(step);
        let outputs = step.outputs.iter().zip(self.0.iter().zip(&now.0));
        let same = outputs.filter(|((path, _), (before, now))| {
            before == now && !Path::new(OsStr::from_bytes(path)).is_dir()
        });
        same.map(|((path, _), _)| path.to_vec()).collect()
    }

    /// True if the step has outputs, and has touched none of them.
    pub fn are_untouched(&self, step: &PlannedStep) -> bool {
        !self.0.is_empty() && self.0 == OutputStates::of(step).0
    }
}

fn state(path: &[u8]) -> OutputState {
    let path = Path::new(OsStr::from_bytes(path));
    [path.symlink_metadata(), path.metadata()].map(|found| Some(InodeState::of(&found.ok()?)))
}
