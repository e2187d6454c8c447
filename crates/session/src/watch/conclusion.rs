//! The end of a run: everything that is left is drained, the log gets its end and is finalized.
//!
//! Invariants:
//!
//! - The log has its end before the launcher answers. A death of this process from then on costs at
//!   most the rest of the deep log.
//! - The log is finalized when the deep log is whole. Until then, the keeper and a later recovery
//!   find the run unfinished.

use super::CommandWatch;
use crate::control::{LOGGED, SEALED, SUMMARY};
use crate::deep_mark::DeepMark;
use crate::drain::{ChunkSelection, Drainer};
use crate::guarding::GuardReport;
use backstory_eventlog::Reason;
use backstory_eventlog::run::RunEnd;
use std::sync::PoisonError;

impl CommandWatch {
    /// Drains the rest, ends and finalizes the log, and notifies the launcher.
    pub(super) fn conclude(&mut self) {
        // A supervisor that answered and died then left only the deep log to be finished.
        let logged = self.control.reached(LOGGED);
        let answered = logged.then(|| self.control.summary()).flatten();
        if answered.is_none() {
            self.end_writers();
        }
        self.stock.stop();
        self.reporter.finish();
        let drainer = self.drainer();
        let mut drainer = drainer.lock().unwrap_or_else(PoisonError::into_inner);
        let (mark, answered) = match answered {
            Some(end) => (drainer.mark_deep_log(), Some(end)),
            None => self.answer(&mut drainer).unzip(),
        };
        drainer.end_deep_log();
        let mut end = match answered {
            Some(end) => drainer.add_deep_warnings(end),
            None => drainer.finish(|drainer| self.end(drainer)),
        };
        self.concluded = Some(end.clone());
        self.add_replaced(&mut end, &drainer);
        if let Err(error) = std::fs::rename(&self.plan.part, &self.plan.log) {
            let path = self.plan.log.display().to_string();
            let error = error.to_string();
            end.warnings
                .push(Reason::NotFinalized { path, error }.to_string());
        }
        self.control.reach(SEALED);
        if !self.control.reached(SUMMARY) {
            self.control.set_summary(&end);
        }
        self.ring();
        drop(mark);
        // Not earlier: it would wait for the drainer's thread, which may just be adding chunks.
        self.stock.arena.remove();
    }

    /// Adds a reason that became known when the log had its end. Of several ends in a log the last
    /// one counts.
    pub(crate) fn add_late_reason(&mut self, reason: &Reason) {
        if let Some(mut end) = self.concluded.take() {
            end.incomplete_because.push(reason.to_string());
            self.lock().finish(|_| end.clone());
            self.sync();
        }
    }

    /// Ends the other writers of the arena.
    fn end_writers(&mut self) {
        self.look_for_keeper();
        let told = self
            .at_end
            .take()
            .map_or_else(GuardReport::default, |end| end());
        for reason in told.reasons {
            self.add_sentence(reason);
        }
        self.warnings = told.warnings;
        self.unmatched = told.unmatched;
    }

    /// Writes the end of the log, and publishes it to the launcher, if only the deep log is to be
    /// finished then. Returns the mark of the deep log, and that end.
    fn answer(&self, drainer: &mut Drainer) -> Option<(DeepMark, RunEnd)> {
        drainer.end_lines(self.command_status(), &[]);
        drainer.pass(ChunkSelection::Last);
        if self.plan.waits_for_deep_log || self.control.reached(SUMMARY) {
            return None;
        }
        let mark = drainer.mark_deep_log()?;
        let end = drainer.finish(|drainer| self.end(drainer));
        let mut summary = end.clone();
        self.add_replaced(&mut summary, drainer);
        self.control.reach(LOGGED);
        self.control.set_summary(&summary);
        self.ring();
        Some((mark, end))
    }

    /// The log that lacks this reason is lost, so that only the launcher says it. It is the first.
    fn add_replaced(&self, end: &mut RunEnd, drainer: &Drainer) {
        if let Some(reason) = drainer.replaced(&self.plan.part) {
            end.incomplete_because.insert(0, reason.to_string());
        }
    }
}
