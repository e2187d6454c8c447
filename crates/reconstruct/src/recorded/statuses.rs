//! How recorded processes ended: their parents' `wait4` has the status.

use super::RecordedRun;
use crate::process::{CallObject, ResultKey};
use std::collections::{HashMap, HashSet};

impl RecordedRun {
    /// The status of a program whose `main` returned, or that was killed, is in the `wait4` of its
    /// parent. Some of the forked children have no record.
    pub(super) fn find_statuses(&mut self, forked: &HashSet<u32>) {
        let key = ResultKey {
            call: libc::SYS_wait4 as u16,
            object: CallObject::Process,
            detail: 0,
        };
        let waits = self.processes.iter().filter_map(|p| p.results.get(&key));
        let mut statuses = HashMap::new();
        for (result, time) in waits.flatten() {
            let status = result.entered.first().and_then(|b| b.first_chunk());
            if let Some(status) = status.map(|bytes| i32::from_le_bytes(*bytes)) {
                statuses.insert(result.value, (status, *time));
            }
        }
        let known: HashSet<u32> = self.processes.iter().map(|one| one.pid).collect();
        let early = forked.difference(&known).filter_map(|pid| {
            let (status, _) = statuses.get(&i64::from(*pid))?;
            libc::WIFSIGNALED(*status).then_some((*pid, libc::WTERMSIG(*status)))
        });
        self.killed_early = early.collect();
        for process in &mut self.processes {
            if let Some((status, time)) = statuses.get(&i64::from(process.pid)) {
                process.ended_with(*status);
                process.killed_at = process.killed_by.map(|_| *time);
            }
        }
    }
}
