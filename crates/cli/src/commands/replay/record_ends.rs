//! Files that programs may have written behind the end of their deep records.
//!
//! In: a reconstruction, with the programs whose records end before they did, and the verdict on
//! the files. Out: such a file is unknown if it differs, and the reason says that it does.
//! Invariant: a file stays different if only other programs wrote it, or if all of these had closed
//! it before their records end.

use backstory_query as query;
use backstory_reconstruct::verdict::Reconstruction;
use backstory_replay::verdict::{OutputState, Verdict};

use super::deep::DeepRequest;
use crate::commands::deep_programs;
use crate::current_store::CurrentStore;
use crate::error::Failure;

/// Why the state of such a file is unknown.
const ENDS_EARLY: &str =
    "a program that had it open for writing went on behind the end of its deep record";

/// Judges such files of a run. The program ran again without the user's changes: with these, a file
/// that differs is what the user looks for.
pub fn judge(
    (current, run): (&CurrentStore, &str),
    source: &DeepRequest,
    found: &Reconstruction,
    verdict: &mut Verdict,
) -> Result<(), Failure> {
    if found.unrecorded.is_empty() || verdict.is_identical() {
        return Ok(());
    }
    let executed = query::processes(&current.store, run)?;
    let programs = deep_programs::activities_behind(&source.open()?, &found.unrecorded, &executed);
    let written = query::written_since(&current.store, run, &programs)?;
    for output in &mut verdict.outputs {
        let seen = match output.state {
            OutputState::Different => "it differs",
            OutputState::Missing => "it is missing",
            OutputState::Identical | OutputState::Unknown(_) => continue,
        };
        if written.contains(&output.path) {
            output.state = OutputState::Unknown(format!("{seen}, and {ENDS_EARLY}"));
        }
    }
    Ok(())
}

/// True for such a file.
pub fn is_behind_record(state: &OutputState) -> bool {
    matches!(state, OutputState::Unknown(why) if why.ends_with(ENDS_EARLY))
}
