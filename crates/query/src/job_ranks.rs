//! Jobs of launchers of parallel work, such as `mpirun`: which processes of a run are ranks.
//!
//! Variables of the environment tell the rank of a recorded process. The document of an imported
//! run states it.

use std::collections::{BTreeSet, HashMap};

use backstory_eventlog::job_rank::JobRank;
use backstory_graph::described_rank;
use backstory_graph::model::{Activity, ActivityId};
use backstory_store::{RunRecord, Store};

use crate::Result;
use crate::answer::JobProcesses;

/// The rank that an activity begins with. `None` for the activities below it, which have the same
/// variables.
pub fn rank_of(activity: &Activity) -> Option<JobRank> {
    JobRank::of_environment(&activity.env_set)
}

/// The jobs whose ranks are processes of a run, in the order of their first rank. The run's own
/// place in a job does not count.
pub(crate) fn jobs(
    store: &dyn Store,
    record: &RunRecord,
    activities: &[Activity],
) -> Result<Vec<JobProcesses>> {
    let mut stated: HashMap<ActivityId, JobRank> = HashMap::new();
    if record.header.imported.is_some() {
        for (activity, _, kind, payload) in store.extended(record.key)? {
            if let Some(rank) = described_rank::decode(&kind, &payload) {
                stated.insert(activity, rank);
            }
        }
    }
    let own = record.header.job_rank.as_ref();
    let ranks = activities.iter().filter_map(|activity| {
        let rank = rank_of(activity).or_else(|| stated.get(&activity.id).cloned());
        rank.filter(|rank| Some(rank) != own)
    });
    Ok(grouped(ranks))
}

fn grouped(ranks: impl Iterator<Item = JobRank>) -> Vec<JobProcesses> {
    let mut jobs: Vec<JobProcesses> = Vec::new();
    for found in ranks {
        let Some(rank) = found.rank else {
            continue;
        };
        let of = found.whole();
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
