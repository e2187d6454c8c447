//! The end of a run: everything that is left is drained, the log gets its end and is finalized.
//!
//! Invariants:
//!
//! - The log has its end before the launcher answers. A death of this process from then on costs at
//!   most the rest of the deep log.
//! - The log is finalized when the deep log is whole, and when the verdicts of earlier runs that
//!   this run believed are confirmed (`--guard=auto`). Until then, the keeper and a later recovery
//!   find the run unfinished.
//! - A log whose verdicts are not confirmed says so, whenever this process dies.

use super::CommandWatch;
use crate::control::{LOGGED, SEALED, SUMMARY};
use crate::deep_mark::DeepMark;
use crate::drain::{ChunkSelection, Drainer};
use crate::guarding::GuardReport;
use crate::plain_programs::KnownPrograms;
use backstory_eventlog::Reason;
use backstory_eventlog::run::RunEnd;
use backstory_sys as sys;
use std::sync::PoisonError;

impl CommandWatch {
    /// Confirms what this run believed of earlier ones about its programs, before the log is
    /// finalized.
    pub(crate) fn confirm_at_end(&mut self, programs: KnownPrograms) {
        self.programs = Some(programs);
    }

    /// Drains the rest, ends and finalizes the log, and notifies the launcher.
    pub(super) fn conclude(&mut self) {
        // A supervisor that answered and died then left only the deep log to be finished. Verdicts
        // that it had to confirm stay unconfirmed, as its log says.
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
            None => self.end_log(&mut drainer),
        };
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

    /// Writes the end of the log, and confirms the verdicts of earlier runs that this one believed.
    /// Returns the end. The launcher waits for the confirmation if its readers want all.
    fn end_log(&mut self, drainer: &mut Drainer) -> RunEnd {
        let programs = self.programs.take();
        let believed = programs.and_then(|programs| Some((programs.unconfirmed()?, programs)));
        let Some((unconfirmed, programs)) = believed else {
            return drainer.finish(|drainer| self.end(drainer));
        };
        if !self.plan.waits_for_deep_log {
            return self.confirm_after_end(drainer, &unconfirmed, &programs);
        }
        if let Some(wrong) = programs.confirm() {
            self.add_reason(&wrong);
        }
        drainer.finish(|drainer| self.end(drainer))
    }

    /// The same, with an answer to the launcher before the confirmation. Until then, and if the
    /// last end cannot be written, the log has the reason that its verdicts are not confirmed.
    fn confirm_after_end(
        &self,
        drainer: &mut Drainer,
        unconfirmed: &Reason,
        programs: &KnownPrograms,
    ) -> RunEnd {
        let mut end = drainer.finish(|drainer| {
            let mut end = self.end(drainer);
            end.incomplete_because.push(unconfirmed.to_string());
            end
        });
        end.incomplete_because.pop();
        if !self.control.reached(SUMMARY) {
            self.answer_with(&end, drainer);
        }
        // The user has the prompt. The rest of this process's work comes last, too.
        sys::come_last();
        let wrong = programs.confirm().map(|wrong| wrong.to_string());
        end.incomplete_because.extend(wrong);
        drainer.replace_end(&end);
        end
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
        self.answer_with(&end, drainer);
        Some((mark, end))
    }

    /// Publishes the end of the log to the launcher before the log is finalized.
    fn answer_with(&self, end: &RunEnd, drainer: &Drainer) {
        let mut summary = end.clone();
        self.add_replaced(&mut summary, drainer);
        self.control.reach(LOGGED);
        self.control.set_summary(&summary);
        self.ring();
    }

    /// The log that lacks this reason is lost, so that only the launcher says it. It is the first.
    fn add_replaced(&self, end: &mut RunEnd, drainer: &Drainer) {
        if let Some(reason) = drainer.replaced(&self.plan.part) {
            end.incomplete_because.insert(0, reason.to_string());
        }
    }
}
