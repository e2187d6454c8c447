//! The jobs of launchers of parallel work (`mpirun`, `srun`) in a view.
//!
//! OpenLineage groups runs by a run above them, the parent. So a job is a run of its own, and the
//! parent of its ranks. Its own parent is the launcher, if the view has it.

use backstory_eventlog::job_rank::JobRank;
use backstory_graph::model::Interval;

use crate::View;
use crate::view::ViewActivity;

/// A job with ranks in a view.
pub(super) struct RankJob {
    /// Its name, which no other job has.
    pub name: String,
    /// The job, without a rank.
    pub place: JobRank,
    /// From the begin of its first rank to the end of its last one.
    pub interval: Interval,
    /// A rank failed.
    pub failed: bool,
    /// The activity that started its first rank.
    pub parent: Option<usize>,
}

/// The name of the job of an activity. A job without an id is one of its run.
pub(super) fn job_name(view: &View, activity: &ViewActivity, place: &JobRank) -> String {
    match place.job {
        Some(_) => place.job_text(),
        None => format!(
            "{} in run {}",
            place.job_text(),
            view.runs[activity.run].summary.id
        ),
    }
}

/// The jobs of a view, in the order of their first rank.
pub(super) fn rank_jobs(view: &View) -> Vec<RankJob> {
    let mut jobs: Vec<RankJob> = Vec::new();
    for activity in &view.activities {
        let Some(place) = &activity.job_rank else {
            continue;
        };
        let name = job_name(view, activity, place);
        let known = jobs.iter().position(|job| job.name == name);
        let at = known.unwrap_or_else(|| {
            jobs.push(RankJob {
                name,
                place: place.whole(),
                interval: activity.interval,
                failed: false,
                parent: activity.parent,
            });
            jobs.len() - 1
        });
        let job = &mut jobs[at];
        job.interval.start = job.interval.start.min(activity.interval.start);
        job.interval.end = job.interval.end.max(activity.interval.end);
        job.failed |= activity.failed();
    }
    jobs
}
