//! Finds the execution that stands for an earlier one: a step that `rerun` executed again.
//!
//! A shell of the first run heard a status of the command. If the command ended in the same way
//! when it was executed again, the shell would hear the same now. So the influence of the status
//! goes on from the later execution.

use backstory_graph::lineage::generates;
use backstory_graph::model::{ActivityId, EntityKind};
use backstory_store::ActivityKey;

use crate::Result;
use crate::loaded_runs::{LoadedRun, LoadedRuns};
use crate::present_makers::PresentMakers;

/// How many commands before and behind one are looked at.
const NEIGHBOURS: usize = 16;

/// The activity of a later run that executed the command of an activity again with the same end.
/// The later run repeats this one, and made a file that is there now.
pub fn repetition(
    runs: &LoadedRuns<'_>,
    makers: &PresentMakers<'_>,
    run: &LoadedRun,
    at: usize,
) -> Result<Option<ActivityKey>> {
    let recording = &run.recording;
    let activity = &recording.activities[at];
    if activity.epoch == 0 {
        return Ok(None);
    }
    for member in beside(run, at) {
        for edge in &recording.edges[member] {
            let made = recording.entity(edge.entity);
            if !generates(edge.relation) || made.kind != EntityKind::File || !made.last {
                continue;
            }
            let Some(now) = makers.of(run, made)? else {
                continue;
            };
            let later = runs.get(now.run())?;
            let repeated = &later.recording.details.summary.repeats;
            if repeated.as_ref() != Some(&recording.details.summary.id) {
                continue;
            }
            let mut all = later.recording.activities.iter();
            let same = all.position(|other| {
                (&other.argv, &other.cwd) == (&activity.argv, &activity.cwd)
                    && (other.exit, other.signal) == (activity.exit, activity.signal)
                    && other.epoch > 0
            });
            if let Some(same) = same {
                let same = ActivityKey::new(now.run(), ActivityId(same as u32));
                return Ok(Some(same));
            }
        }
    }
    Ok(None)
}

/// The activity and its neighbours: the commands that the same shell started before and after it.
/// One of them may have made the file that the whole step leaves.
fn beside(run: &LoadedRun, at: usize) -> Vec<usize> {
    let recording = &run.recording;
    let all = &recording.activities;
    let parent = |at: usize| all[at].parent.map(|parent| parent.0 as usize);
    let fork = match parent(at) {
        Some(before) if all[before].pid == all[at].pid => before,
        _ => at,
    };
    let siblings = parent(fork).map_or(&[][..], |shell| &recording.children[shell]);
    let place = siblings.iter().position(|&one| one == fork);
    let place = place.unwrap_or_default();
    let near = place.saturating_sub(NEIGHBOURS)..siblings.len().min(place + NEIGHBOURS + 1);
    let mut found = vec![at];
    for &sibling in &siblings[near] {
        let programs = recording.children[sibling].iter().copied();
        let programs = programs.filter(|&next| all[next].pid == all[sibling].pid);
        found.extend(
            std::iter::once(sibling)
                .chain(programs)
                .filter(|&one| one != at),
        );
    }
    found
}
