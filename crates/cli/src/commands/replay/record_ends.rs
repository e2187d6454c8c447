//! Files that programs may have written behind the end of their deep records, or behind the part of
//! the run that ran again.
//!
//! In: a reconstruction, with the programs whose records end before they did, and the verdict on
//! the files. Out: such a file is unknown if it differs, and the reason says that it does.
//! Invariant: a file stays different if only other programs wrote it, or if all of these had closed
//! it before their records end. A damaged log may lack the records of programs altogether: such
//! programs then count as those whose records end at once.

use std::collections::HashMap;

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

/// The same for a file that was written behind the part that ran again.
const BEHIND_PART: &str = "a program had it open for writing behind the part that ran again";

/// Judges all files that the programs which ran again could not leave as in the record. `faithful`:
/// the user changed neither the command nor its files.
pub fn judge_all(
    place: (&CurrentStore, &str),
    source: &DeepRequest,
    (found, faithful): (Option<&Reconstruction>, bool),
    verdict: &mut Verdict,
) -> Result<(), Failure> {
    judge_part(place, source, verdict)?;
    let Some(found) = found else {
        return Ok(());
    };
    source.excuse_others(found, verdict)?;
    match faithful && !source.has_other_input() {
        true => judge(place, source, found, verdict),
        false => Ok(()),
    }
}

/// Judges such files of a run. The program ran again without the user's changes: with these, a file
/// that differs is what the user looks for.
fn judge(
    (current, run): (&CurrentStore, &str),
    source: &DeepRequest,
    found: &Reconstruction,
    verdict: &mut Verdict,
) -> Result<(), Failure> {
    let lacks_records = found.lacks_because.is_some();
    if found.unrecorded.is_empty() && !lacks_records || verdict.is_identical() {
        return Ok(());
    }
    let executed = query::processes(&current.store, run)?;
    let log = source.open()?;
    let mut programs = deep_programs::activities_behind(&log, &found.unrecorded, &executed);
    if lacks_records {
        programs.extend(deep_programs::activities_without_record(&log, &executed));
    }
    excuse((current, run), &programs, ENDS_EARLY, verdict)
}

/// Judges the files of a run that ran again up to a moment. They lack what the record wrote behind
/// it, whatever the user changed.
fn judge_part(
    (current, run): (&CurrentStore, &str),
    source: &DeepRequest,
    verdict: &mut Verdict,
) -> Result<(), Failure> {
    let Some(end) = source.window.1.filter(|_| !verdict.is_identical()) else {
        return Ok(());
    };
    let executed = query::processes(&current.store, run)?;
    let programs = deep_programs::activities_since(&source.open()?, end, &executed);
    excuse((current, run), &programs, BEHIND_PART, verdict)
}

/// The state of a file that one of these activities wrote since its date is unknown, if the file
/// differs.
fn excuse(
    (current, run): (&CurrentStore, &str),
    programs: &HashMap<u64, i64>,
    why: &str,
    verdict: &mut Verdict,
) -> Result<(), Failure> {
    let written = query::written_since(&current.store, run, programs)?;
    for output in &mut verdict.outputs {
        let seen = match output.state {
            OutputState::Different => "it differs",
            OutputState::Missing => "it is missing",
            OutputState::Identical | OutputState::Unknown(_) => continue,
        };
        if written.contains(&output.path) {
            output.state = OutputState::Unknown(format!("{seen}, and {why}"));
        }
    }
    Ok(())
}

/// True for a file that a program wrote behind the end of its record.
pub fn is_behind_record(state: &OutputState) -> bool {
    matches!(state, OutputState::Unknown(why) if why.ends_with(ENDS_EARLY))
}

/// True for a file that the run wrote behind the part that ran again.
pub fn is_behind_part(state: &OutputState) -> bool {
    matches!(state, OutputState::Unknown(why) if why.ends_with(BEHIND_PART))
}
