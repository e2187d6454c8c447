//! The place of this recording in a job of a launcher of parallel work.
//!
//! Variables of the environment tell it ([`LAUNCHERS`](backstory_eventlog::job_rank::LAUNCHERS)).
//! They may name no job, or one that is not unique. Then the launcher's process is the job: its
//! number and the clock tick at which it started.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use backstory_eventlog::job_rank::{JobRank, XARGS};
use backstory_sys::process_tree::stat_fields;

/// How many ancestors are looked at. Between a launcher and the recording there may be shells.
const ANCESTORS: usize = 8;

/// The place of this process. `None` if no launcher is known.
pub(crate) fn own(environment: &[Vec<u8>]) -> Option<JobRank> {
    let Some((row, mut found)) = JobRank::with_row(environment) else {
        return below_xargs();
    };
    if row.job.is_empty() {
        let launcher = Ancestor::all().find(|ancestor| !ancestor.has_variable(row.rank));
        found.job = launcher.map(|launcher| launcher.job());
    } else if row.job_is_process
        && let Some(job) = &found.job
        && let Some(launcher) = Ancestor::all().find(|one| one.pid.to_string() == *job)
    {
        // On another machine than the launcher's, its number alone is known.
        found.job = Some(launcher.job());
    }
    Some(found)
}

fn below_xargs() -> Option<JobRank> {
    let xargs = Ancestor::all().find(|one| one.name == XARGS.as_bytes())?;
    Some(JobRank {
        launcher: XARGS.to_owned(),
        job: Some(xargs.job()),
        ..JobRank::default()
    })
}

/// A process above this one.
struct Ancestor {
    pid: u32,
    name: Vec<u8>,
    parent: u32,
    /// The clock tick of its start.
    start: u64,
}

impl Ancestor {
    /// The parent first.
    fn all() -> impl Iterator<Item = Ancestor> {
        let parent = Ancestor::read(std::os::unix::process::parent_id());
        std::iter::successors(parent, |below| Ancestor::read(below.parent)).take(ANCESTORS)
    }

    fn read(pid: u32) -> Option<Ancestor> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let from = stat.iter().position(|byte| *byte == b'(')? + 1;
        let to = stat.iter().rposition(|byte| *byte == b')')?;
        let mut fields = stat_fields(&stat)?;
        Some(Ancestor {
            pid,
            name: stat.get(from..to)?.to_vec(),
            parent: fields.nth(1)?.parse().ok()?,
            start: fields.nth(17)?.parse().ok()?,
        })
    }

    /// True if it was started with this variable. False for another user's process.
    fn has_variable(&self, name: &str) -> bool {
        let environment = fs::read(format!("/proc/{}/environ", self.pid)).unwrap_or_default();
        let mut pairs = environment.split(|byte| *byte == 0);
        pairs.any(|pair| {
            let rest = pair.strip_prefix(name.as_bytes());
            rest.is_some_and(|rest| rest.first() == Some(&b'='))
        })
    }

    /// Its number, the tick of its start, and the machine.
    fn job(&self) -> String {
        let host = rustix::system::uname();
        let host = OsStr::from_bytes(host.nodename().to_bytes()).to_string_lossy();
        format!("{}.{}@{host}", self.pid, self.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_a_parent_that_started_before_it() {
        let own = Ancestor::read(std::process::id()).unwrap();
        let parent = Ancestor::all().next().unwrap();
        assert_eq!(own.parent, parent.pid);
        assert!(parent.start <= own.start);
        assert!(parent.job().starts_with(&format!("{}.", parent.pid)));
    }

    #[test]
    fn a_variable_of_an_ancestor_is_found_by_its_whole_name() {
        let own = Ancestor::read(std::process::id()).unwrap();
        assert!(own.has_variable("PATH"));
        assert!(!own.has_variable("PAT"));
    }
}
