//! Jobs of launchers of parallel work, such as `mpirun`: which processes of a run are ranks.

use std::collections::BTreeSet;

use backstory_eventlog::job_rank::JobRank;
use backstory_graph::model::Activity;

use crate::answer::JobProcesses;

/// The rank that an activity begins with. `None` for the activities below it, which have the same
/// variables.
pub fn rank_of(activity: &Activity) -> Option<JobRank> {
    JobRank::of_environment(&activity.env_set)
}

/// The jobs whose ranks are processes of a run, in the order of their first rank.
pub(crate) fn jobs(activities: &[Activity]) -> Vec<JobProcesses> {
    let mut jobs: Vec<JobProcesses> = Vec::new();
    for found in activities.iter().filter_map(rank_of) {
        let Some(rank) = found.rank else {
            continue;
        };
        let of = JobRank {
            rank: None,
            ..found
        };
        match jobs.iter_mut().find(|job| job.of == of) {
            Some(job) => {
                job.ranks.insert(rank);
            }
            None => jobs.push(JobProcesses {
                of,
                ranks: BTreeSet::from([rank]),
            }),
        }
    }
    jobs
}
