//! The place of a run or process in a job of a launcher of parallel work, such as `mpirun`.

use backstory_eventlog::job_rank::JobRank;
use backstory_query::answer::JobProcesses;
use serde::Serialize;
#[cfg(test)]
use utoipa::ToSchema;

/// The place of a run or process in a job of a launcher of parallel work.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct JobRow {
    /// The launcher: `Open MPI`, `Slurm`, `GNU parallel`, `xargs` and others.
    pub launcher: String,
    /// The id of the job. `null` if no variable of the launcher tells it.
    pub id: Option<String>,
    /// The number of the run or process in its job. `null` if the launcher gives none.
    pub rank: Option<u64>,
    /// The number of ranks of the job. `null` if no variable of the launcher tells it.
    pub size: Option<u64>,
}

/// A job of which processes of one run are ranks.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct RunJobRow {
    /// The launcher.
    pub launcher: String,
    /// The id of the job. `null` if no variable of the launcher tells it.
    pub id: Option<String>,
    /// The number of ranks of the job. `null` if no variable of the launcher tells it.
    pub size: Option<u64>,
    /// The ranks that are processes of the run.
    pub ranks: Vec<u64>,
}

impl From<&JobRank> for JobRow {
    fn from(place: &JobRank) -> JobRow {
        JobRow {
            launcher: place.launcher.clone(),
            id: place.job.clone(),
            rank: place.rank,
            size: place.size,
        }
    }
}

impl From<&JobProcesses> for RunJobRow {
    fn from(job: &JobProcesses) -> RunJobRow {
        RunJobRow {
            launcher: job.of.launcher.clone(),
            id: job.of.job.clone(),
            size: job.of.size,
            ranks: job.ranks.iter().copied().collect(),
        }
    }
}
