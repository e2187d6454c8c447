//! The marks of the shell begin and end lines, whose logs the router makes and finalizes.

use super::{LineRouter, PATIENCE};
use crate::clock;
use crate::lines::line_log::{LineBeginning, LineLog, LineText};
use crate::lines::mark::{HOOK_OPENS, LineMark, WaitingMark};
use crate::lines::policy::LineVerdict;
use crate::lines::process_lines::{LineNumber, SESSION};
use crate::lines::snapshot::ProcessSnapshot;
use crate::lines::splitting::for_each_record;
use backstory_abi::op;
use backstory_eventlog::Reason;
use backstory_sys as sys;
use std::time::Instant;

impl LineRouter {
    /// The next mark of the shell.
    pub(crate) fn next_mark(&mut self) -> Option<WaitingMark> {
        // After the shell's end, its last records still have to be attributed.
        if let Some(shell) = self.control.command_pid() {
            self.processes.set_shell(shell as u32);
        }
        self.marks.pop()
    }

    /// Changes the active line as a mark says. `shells` is the part of the shell's own chunk that
    /// was not taken yet. Its records are routed afterwards.
    pub(crate) fn turn(&mut self, mark: &WaitingMark, shells: &[u8]) {
        match mark.mark {
            LineMark::Begin(_) => self.processes.activate(mark.time, self.latest + 1),
            LineMark::End(_) => self.processes.activate(mark.time, SESSION),
            LineMark::HookEnd(_) => {
                let mut time = mark.time;
                for_each_record(shells, |_, raw| {
                    if raw.head.op == op::OPEN && raw.strings()[0] == HOOK_OPENS {
                        time = raw.head.time;
                    }
                });
                self.processes.activate(time, SESSION);
            }
            LineMark::Text(_) | LineMark::Private => {}
        }
    }

    /// Does what a mark says, after all records before it were routed. `lost` is the number of
    /// operations of the session that were lost so far.
    pub(crate) fn follow(&mut self, mut waiting: WaitingMark, lost: u64) {
        match std::mem::replace(&mut waiting.mark, LineMark::Private) {
            LineMark::Begin(text) => self.begin(waiting, text, lost),
            LineMark::End(status) => {
                self.end(status, waiting.time);
                self.waiting = Some((Instant::now(), self.latest, waiting));
            }
            LineMark::HookEnd(status) => self.end(status, waiting.time),
            LineMark::Text(text) => self.complete(self.judged(text), waiting),
            LineMark::Private => self.complete(LineText::Private, waiting),
        }
    }

    fn begin(&mut self, waiting: WaitingMark, text: Option<Vec<u8>>, lost: u64) {
        self.give_up_waiting_for_text();
        self.latest += 1;
        let shell = self.processes.shell();
        let snapshot = ProcessSnapshot::of(shell);
        let time = waiting.time;
        // The line itself may be one that pauses or resumes.
        let excluded = self.plan.policy.excludes(&snapshot.directory);
        drop(waiting); // the shell goes on
        let text = match excluded {
            true => LineText::Private,
            false => text.map_or(LineText::Pending, |text| self.judged(text)),
        };
        let beginning = LineBeginning {
            number: self.latest,
            time,
            shell,
            text,
            snapshot,
            lost,
        };
        match LineLog::begin(&self.plan, beginning) {
            Ok(log) => drop(self.lines.insert(self.latest, log)),
            Err(error) => {
                self.failed.get_or_insert_with(|| error.to_string());
            }
        }
    }

    /// The text of a line, by the user's policy.
    fn judged(&self, text: Vec<u8>) -> LineText {
        match self.plan.policy.judge(&text) {
            LineVerdict::Private => LineText::Private,
            LineVerdict::OnlyLine => LineText::Noise(text),
            LineVerdict::Whole => LineText::Known(text),
        }
    }

    /// The line before did not say how it ended, or what its text was, and never will.
    fn give_up_waiting_for_text(&mut self) {
        if let Some(log) = self.lines.get_mut(&self.latest) {
            log.ended
                .get_or_insert((0, clock::now(), sys::clock::counter()));
            if *log.text() == LineText::Pending {
                *log.text() = LineText::Known(Vec::new());
            }
        }
    }

    fn end(&mut self, status: i32, time: u64) {
        // A shell shows a prompt again without having run a line.
        if let Some(log) = self.lines.get_mut(&self.latest) {
            log.ended.get_or_insert((status, clock::now(), time));
        }
    }

    fn complete(&mut self, text: LineText, waiting: WaitingMark) {
        if let Some(log) = self.lines.get_mut(&self.latest)
            && *log.text() == LineText::Pending
        {
            *log.text() = text;
            self.waiting = Some((Instant::now(), self.latest, waiting));
        }
    }

    /// The lines that have ended and of which no process lives. A pass must follow, so that the
    /// records of all their processes are in their logs.
    pub(crate) fn ready(&mut self) -> Vec<LineNumber> {
        let ended = self.lines.iter_mut().filter_map(|(line, log)| {
            let over = log.ended.is_some() && *log.text() != LineText::Pending;
            over.then_some(*line)
        });
        let ended: Vec<LineNumber> = ended.collect();
        let lives = |pid: u32| sys::thread_exists(pid as i32, pid as i32);
        ended
            .into_iter()
            .filter(|line| self.processes.living(*line, lives) == 0)
            .collect()
    }

    /// Finalizes the logs of lines, unless the pass has found more processes. Lets the shell go on
    /// that waits for one of them, or has waited long enough.
    pub(crate) fn finalize(&mut self, ready: Vec<LineNumber>, lost: u64) {
        for line in ready {
            if self.processes.living(line, |_| true) > 0 {
                continue;
            }
            if let Some(log) = self.lines.remove(&line) {
                log.finish(&self.plan, lost, &[]);
            }
            self.processes.forget(line);
        }
        let goes_on = self.waiting.as_ref().is_some_and(|(since, line, _)| {
            !self.lines.contains_key(line) || since.elapsed() >= PATIENCE
        });
        if goes_on {
            self.waiting = None;
        }
    }

    /// Finalizes all lines, because the session ends. The shell has ended with this status. The
    /// `reasons` concern all lines that are not over.
    pub(crate) fn finalize_all(&mut self, status: Option<i32>, lost: u64, reasons: &[Reason]) {
        for (_, mut log) in std::mem::take(&mut self.lines) {
            let now = (status.unwrap_or(0), clock::now(), sys::clock::counter());
            let over = log.ended.is_some();
            log.ended.get_or_insert(now);
            if *log.text() == LineText::Pending {
                *log.text() = LineText::Known(Vec::new());
            }
            log.finish(&self.plan, lost, if over { &[] } else { reasons });
        }
        self.waiting = None;
        while self.marks.pop().is_some() {}
    }
}
