//! The state of a trace that calls change: its processes, and what was found out about the run.

use super::gaps::TraceGaps;
use super::processes::TracedProcess;
use crate::{CallingThread, Findings, RecordLog};
use backstory_abi::op;
use backstory_eventlog::event::{Pid, Time};
use std::collections::HashMap;

/// The processes of a trace, and its findings.
pub(super) struct TraceState<'a> {
    pub(super) records: &'a mut RecordLog,
    /// Every call is in the log, so that a use without a call did not happen.
    pub(super) has_every_call: bool,
    pub(super) root: Option<Vec<u8>>,
    pub(super) findings: Findings,
    pub(super) gaps: TraceGaps,
    pub(super) processes: HashMap<Pid, TracedProcess>,
    /// The first process.
    pub(super) first: Option<Pid>,
}

impl<'a> TraceState<'a> {
    /// A trace that begins, with what its first reading found.
    pub(super) fn new(
        records: &'a mut RecordLog,
        known: Option<&Findings>,
        root: Option<Vec<u8>>,
    ) -> TraceState<'a> {
        TraceState {
            records,
            has_every_call: known.is_some_and(|known| known.has_every_call),
            root,
            findings: known.cloned().unwrap_or_default(),
            gaps: TraceGaps::default(),
            processes: HashMap::new(),
            first: None,
        }
    }

    /// Notes that all calls of the process's program are in the log.
    pub(super) fn started(&mut self, thread: CallingThread, time: Time, forked: bool) {
        if self.has_every_call {
            self.records.add(op::START, thread, time, |record| {
                record
                    .fd(thread.pid.cast_signed())
                    .aux(u32::from(forked))
                    .result(0);
            });
        }
    }
}
