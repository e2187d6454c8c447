//! The place of a run or process in a job: several commands that one launcher of parallel work
//! started. In: variables of the environment. Out: launcher, job, rank.
//!
//! [`LAUNCHERS`] is the only list of these variables. `docs/howto/jobs.md` is checked against it.
//!
//! ```
//! use backstory_eventlog::job_rank::JobRank;
//! let environment = ["SLURM_JOB_ID=71", "SLURM_STEP_ID=0", "SLURM_PROCID=3"];
//! let found = JobRank::of_environment(&environment).unwrap();
//! assert_eq!((found.job.as_deref(), found.rank), (Some("71.0"), Some(3)));
//! ```
//!
//! [`JobRank::terms`] is the only list of the names that documents have for the parts of a place.
//! Exports write these names, and imports read them.
//!
//! Absent: jobs that no variable tells. `session` finds those of xargs.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The variables by which a launcher tells a process its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LauncherVariables {
    /// The launcher.
    pub launcher: &'static str,
    /// The commands that start such jobs.
    pub commands: &'static str,
    /// The number of the process in its job. A value that is no number does not count.
    pub rank: &'static str,
    /// The number of processes of the job. Empty if no variable has it.
    pub size: &'static str,
    /// The job's id: the values of all these, joined by points.
    pub job: &'static [&'static str],
    /// The id is the number of the launcher's process. Another process may get it later.
    pub job_is_process: bool,
}

const fn row(
    launcher: &'static str,
    commands: &'static str,
    rank: &'static str,
    size: &'static str,
    job: &'static [&'static str],
) -> LauncherVariables {
    LauncherVariables {
        launcher,
        commands,
        rank,
        size,
        job,
        job_is_process: false,
    }
}

/// All launchers that are known. The first whose rank and job are set counts. A program that
/// `mpirun` started below `srun` also has the variables of `srun`. These are those of a daemon.
pub const LAUNCHERS: &[LauncherVariables] = &[
    row(
        "Open MPI",
        "`mpirun` up to version 4",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        // The namespace of these versions has 16 bits that differ.
        &["OMPI_MCA_orte_precondition_transports"],
    ),
    row(
        "Open MPI",
        "`mpirun` from version 5 on",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        &["PMIX_NAMESPACE"],
    ),
    row(
        "PMIx",
        "`prun`, `srun --mpi=pmix`",
        "PMIX_RANK",
        "",
        &["PMIX_NAMESPACE"],
    ),
    row(
        "Flux",
        "`flux run`",
        "FLUX_TASK_RANK",
        "FLUX_JOB_SIZE",
        &["FLUX_JOB_ID"],
    ),
    row(
        "PMI",
        "`srun --mpi=pmi2`",
        "PMI_RANK",
        "PMI_SIZE",
        &["PMI_JOBID"],
    ),
    // Hydra tells no job: `session` adds the launcher's process.
    row("PMI", "`mpiexec` of MPICH", "PMI_RANK", "PMI_SIZE", &[]),
    row(
        "Slurm",
        "`srun`",
        "SLURM_PROCID",
        "SLURM_STEP_NUM_TASKS",
        &["SLURM_JOB_ID", "SLURM_STEP_ID"],
    ),
    row(
        "Slurm array",
        "`sbatch --array`",
        "SLURM_ARRAY_TASK_ID",
        "SLURM_ARRAY_TASK_COUNT",
        &["SLURM_ARRAY_JOB_ID"],
    ),
    row(
        "Grid Engine array",
        "`qsub -t`",
        "SGE_TASK_ID",
        "",
        &["JOB_ID"],
    ),
    row(
        "PBS array",
        "`qsub -J`",
        "PBS_ARRAY_INDEX",
        "",
        &["PBS_ARRAY_ID"],
    ),
    LauncherVariables {
        job_is_process: true,
        ..row(
            "GNU parallel",
            "`parallel`",
            "PARALLEL_SEQ",
            "",
            &["PARALLEL_PID"],
        )
    },
];

/// The beginning of the URIs of backstory's own terms in documents.
pub const TERMS: &str = "urn:backstory:term:";
/// The name of [`JobRank::launcher`] in documents.
pub const LAUNCHER_TERM: &str = "launcher";
/// The name of [`JobRank::job`] in documents.
pub const JOB_TERM: &str = "job";
/// The name of [`JobRank::rank`] in documents.
pub const RANK_TERM: &str = "rank";
/// The name of [`JobRank::size`] in documents.
pub const RANKS_TERM: &str = "ranks";

/// The facet of OpenLineage with the terms of a run that is a job.
pub const JOB_FACET: &str = "backstory_job";
/// The facet of OpenLineage with the terms of a run that is a rank. Its parent is the job.
pub const RANK_FACET: &str = "backstory_rank";

/// The launcher `xargs`, which sets no variable.
pub const XARGS: &str = "xargs";

/// The place of a run or process in a job.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct JobRank {
    /// The launcher.
    pub launcher: String,
    /// The job's id. `None` if no variable tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// The place in the job. `None` if the launcher does not number its processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u64>,
    /// The number of processes in the job. `None` if no variable has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

impl JobRank {
    /// The place that variables (`NAME=VALUE`) tell.
    pub fn of_environment(environment: &[impl AsRef<[u8]>]) -> Option<JobRank> {
        JobRank::with_row(environment).map(|(_, found)| found)
    }

    /// The same, with the row of the table that it is from.
    pub fn with_row(
        environment: &[impl AsRef<[u8]>],
    ) -> Option<(&'static LauncherVariables, JobRank)> {
        let value = |name: &str| {
            let mut pairs = environment.iter();
            pairs.find_map(|pair| {
                let rest = pair.as_ref().strip_prefix(name.as_bytes())?;
                std::str::from_utf8(rest.strip_prefix(b"=")?).ok()
            })
        };
        let number = |name: &str| value(name)?.parse::<u64>().ok();
        LAUNCHERS.iter().find_map(|row| {
            let rank = number(row.rank)?;
            let job: Vec<&str> = row
                .job
                .iter()
                .map(|name| value(name))
                .collect::<Option<_>>()?;
            let found = JobRank {
                launcher: row.launcher.to_owned(),
                job: (!job.is_empty()).then(|| job.join(".")),
                rank: Some(rank),
                size: number(row.size),
            };
            Some((row, found))
        })
    }

    /// The parts that are known, by their names in documents: attributes of PROV, members of facets
    /// of OpenLineage, keys of SPADE.
    pub fn terms(&self) -> Vec<(&'static str, Value)> {
        let launcher = Some(Value::from(&*self.launcher));
        let job = self.job.as_deref().map(Value::from);
        let number = |part: Option<u64>| part.map(Value::from);
        let all = [
            (LAUNCHER_TERM, launcher),
            (JOB_TERM, job),
            (RANK_TERM, number(self.rank)),
            (RANKS_TERM, number(self.size)),
        ];
        let known = |(name, part): (&'static str, Option<Value>)| Some((name, part?));
        all.into_iter().filter_map(known).collect()
    }

    /// The place whose parts have these texts in a document. `None` without a launcher.
    pub fn of_terms(mut text: impl FnMut(&str) -> Option<String>) -> Option<JobRank> {
        let launcher = text(LAUNCHER_TERM).filter(|launcher| !launcher.is_empty())?;
        let mut number = |name: &str| text(name)?.parse().ok();
        let (rank, size) = (number(RANK_TERM), number(RANKS_TERM));
        Some(JobRank {
            launcher,
            job: text(JOB_TERM),
            rank,
            size,
        })
    }

    /// The place that a `DESCRIBED` record has.
    pub fn of_record(payload: &[u8]) -> Option<JobRank> {
        serde_json::from_slice(payload).ok()
    }

    /// The place as a `DESCRIBED` record has it.
    pub fn record(&self) -> Vec<u8> {
        // It has texts and numbers alone, so that writing cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The same without the number of one rank: the job itself.
    pub fn whole(&self) -> JobRank {
        JobRank {
            rank: None,
            ..self.clone()
        }
    }

    /// The job in words: `Slurm job 71.0`.
    pub fn job_text(&self) -> String {
        let launcher = &self.launcher;
        match &self.job {
            Some(job) => format!("{launcher} job {job}"),
            None => format!("a job of {launcher}"),
        }
    }

    /// The place in the job in words: `rank 3 of 4`. Empty if it has no number.
    pub fn rank_text(&self) -> String {
        match (self.rank, self.size) {
            (Some(rank), Some(size)) => format!("rank {rank} of {size}"),
            (Some(rank), None) => format!("rank {rank}"),
            (None, _) => String::new(),
        }
    }
}

/// `rank 3 of 4 in Slurm job 71.0`
impl fmt::Display for JobRank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rank {
            Some(_) => write!(f, "{} in {}", self.rank_text(), self.job_text()),
            None => write!(f, "part of {}", self.job_text()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(environment: &[&str]) -> String {
        JobRank::of_environment(environment).map_or(String::new(), |found| found.to_string())
    }

    #[test]
    fn the_rank_of_an_mpi_program_counts_before_that_of_the_daemon_that_started_it() {
        let environment = [
            "SLURM_PROCID=0",
            "SLURM_JOB_ID=71",
            "SLURM_STEP_ID=0",
            "PMIX_RANK=1",
            "PMIX_NAMESPACE=prterun-box-9@1",
            "OMPI_COMM_WORLD_RANK=1",
            "OMPI_COMM_WORLD_SIZE=2",
        ];
        let expected = "rank 1 of 2 in Open MPI job prterun-box-9@1";
        assert_eq!(text(&environment), expected);
    }

    #[test]
    fn a_batch_script_is_no_rank_and_a_step_of_it_is() {
        let batch = ["SLURM_JOB_ID=71", "SLURM_PROCID=0"];
        assert_eq!(text(&batch), "");
        let step = [&batch[..], &["SLURM_STEP_ID=2"]].concat();
        assert_eq!(text(&step), "rank 0 in Slurm job 71.2");
    }

    #[test]
    fn a_value_that_is_no_number_is_no_rank() {
        assert_eq!(text(&["JOB_ID=5", "SGE_TASK_ID=undefined"]), "");
        assert_eq!(
            text(&["JOB_ID=5", "SGE_TASK_ID=7"]),
            "rank 7 in Grid Engine array job 5"
        );
    }

    #[test]
    fn a_place_is_read_from_the_terms_that_it_is_written_in() {
        let all = JobRank {
            launcher: "Slurm".to_owned(),
            job: Some("71.0".to_owned()),
            rank: Some(3),
            size: Some(4),
        };
        for place in [
            &all,
            &all.whole(),
            &JobRank {
                job: None,
                size: None,
                ..all.clone()
            },
        ] {
            let terms = place.terms();
            let read = JobRank::of_terms(|name| {
                let (_, value) = terms.iter().find(|(term, _)| *term == name)?;
                Some(
                    value
                        .as_str()
                        .map_or_else(|| value.to_string(), str::to_owned),
                )
            });
            assert_eq!(read.as_ref(), Some(place));
        }
        assert_eq!(
            JobRank::of_terms(|name| (name == "rank").then(|| "1".to_owned())),
            None
        );
    }

    #[test]
    fn a_launcher_that_tells_no_job_is_named_all_the_same() {
        assert_eq!(
            text(&["PMI_RANK=1", "PMI_SIZE=2"]),
            "rank 1 of 2 in a job of PMI"
        );
    }
}
