//! The progress: a line when a step starts, a line with its result, and a last line.

use std::collections::HashMap;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use backstory_replay::rerun::PlannedStep;
use backstory_replay::rerun::execution::{StepOutcome, StepProgress};
use backstory_replay::rerun::work_list::Standing;
use backstory_store::{ActivityKey, Store};

use super::convergence::Convergence;
use super::plan_text::{file, subject};
use super::refusal_text::command;
use super::{Plan, refusal_text};
use crate::ending;
use crate::text::line::{Line, columns, cut};
use crate::text::style::{Role, Style};
use crate::text::when;
use crate::text::words::counted;

/// The most columns of a command where the terminal does not limit them.
const COMMAND: usize = 120;

/// Nanoseconds. A shorter estimate is not printed.
const LEAST: i64 = 2_000_000_000;

/// Prints the progress.
pub struct ProgressLines {
    style: Style,
    quiet: bool,
    /// The steps that may run.
    most: usize,
    begun: usize,
    /// The number in the progress of each step that has begun.
    numbers: HashMap<usize, usize>,
    /// How long each step took that may still begin, in ns. Empty where no estimate is printed.
    left: HashMap<usize, i64>,
}

impl ProgressLines {
    /// The progress of a plan. `quiet`: prints nothing.
    ///
    /// On a terminal, the line of each step says how long the rest takes, if each step takes as
    /// long as in its recorded run.
    pub fn new(plan: &Plan<'_>, store: &dyn Store, quiet: bool) -> ProgressLines {
        let may_run = plan.work.with(&[Standing::Stale, Standing::Waits]);
        let estimated = !quiet && io::stdout().is_terminal();
        let lasted = may_run.iter().filter(|_| estimated).map(|&at| {
            let members = &plan.work.steps[at].members;
            (at, recorded_duration(store, members).unwrap_or(0))
        });
        ProgressLines {
            style: Style::of_stdout(),
            quiet,
            left: lasted.collect(),
            most: may_run.len(),
            begun: 0,
            numbers: HashMap::new(),
        }
    }

    fn print(&self, at: usize, step: &PlannedStep, role: Role, text: &str, estimate: &str) {
        // A signal may be ending the program: then the work cannot be completed.
        ending::unless_ended();
        if self.quiet {
            return;
        }
        let number = self.numbers.get(&at).copied().unwrap_or(self.begun);
        let mut line = Line::default();
        line.add(Role::Dim, format!("[{number}/{}] ", self.most));
        line.add(Role::Subject, file(step));
        line.add(None, "  ");
        line.add_flexible(role, text);
        line.add(Role::Dim, estimate);
        let text = format!("{}\n", line.text(self.style, columns()));
        // A closed output does not stop the work.
        let _ = io::stdout().lock().write_all(text.as_bytes());
    }

    /// Prints the last lines.
    pub fn summary(
        &self,
        plan: &Plan<'_>,
        done: &[StepOutcome],
        took: Duration,
        end: &Convergence,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let kept = plan.kept.iter().map(refusal_text::kept);
        for note in end.notes.iter().chain(&end.stale).cloned().chain(kept) {
            writeln!(out, "note: {note}")?;
        }
        let count = |is: &dyn Fn(&StepOutcome) -> bool| done.iter().filter(|done| is(done)).count();
        let ran = count(&|done| matches!(done, StepOutcome::Again(_)));
        let same =
            count(&|done| matches!(done, StepOutcome::Again(different) if different.is_empty()));
        let failed =
            count(&|done| matches!(done, StepOutcome::Failed(_) | StepOutcome::NotMade(_)));
        let left = count(&|done| matches!(done, StepOutcome::NotBegun));
        let outside = count(&|done| matches!(done, StepOutcome::Outside));
        let (files, are) = subject(plan);
        let is_stale = !end.stale.is_empty() || plan.has_stale_edit();
        if ran + failed + left + outside == 0 && !is_stale {
            return writeln!(
                out,
                "{files} {are} up to date: {}",
                counted(done.len(), "step", "steps")
            );
        }
        let mut parts = vec![format!("{} ran", counted(ran, "step", "steps"))];
        if same > 0 {
            parts.push(format!("{same} of them with the same result"));
        }
        let current = count(&|done| *done == StepOutcome::Current);
        let others = [
            (current, "current"),
            (failed, "failed"),
            (left, "not started"),
            (outside, "stale outside the project"),
        ];
        parts.extend(
            others
                .iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, what)| format!("{count} {what}")),
        );
        let state = match failed + left + outside {
            0 if !is_stale => self.style.paint(Role::Good, &format!("{are} up to date")),
            _ => self
                .style
                .paint(Role::Bad, &format!("{are} not up to date")),
        };
        writeln!(
            out,
            "{files} {state}: {}; {}",
            parts.join(", "),
            spent(took)
        )
    }
}

/// From the begin of the first of these activities to the end of the last, in ns.
fn recorded_duration(store: &dyn Store, members: &[ActivityKey]) -> Option<i64> {
    let intervals = members
        .iter()
        .filter_map(|&key| Some(store.activity(key).ok()?.interval));
    let (start, end) = intervals.fold((i64::MAX, i64::MIN), |(start, end), interval| {
        (start.min(interval.start), end.max(interval.end))
    });
    end.checked_sub(start).filter(|lasted| *lasted > 0)
}

fn spent(took: Duration) -> String {
    when::duration(i64::try_from(took.as_nanos()).unwrap_or(i64::MAX))
}

impl StepProgress for ProgressLines {
    fn begins(&mut self, at: usize, step: &PlannedStep) {
        self.begun += 1;
        self.numbers.insert(at, self.begun);
        let left: i64 = self.left.values().sum();
        let estimate = match left {
            ..LEAST => String::new(),
            left => format!("  (about {} left)", when::duration(left)),
        };
        let text = cut(&command(step), COMMAND);
        self.print(at, step, Role::Command, &text, &estimate);
    }

    fn done(&mut self, at: usize, step: &PlannedStep, done: &StepOutcome, took: Duration) {
        self.left.remove(&at);
        let took = spent(took);
        match done {
            StepOutcome::Again(different) if different.is_empty() => {
                self.print(
                    at,
                    step,
                    Role::Good,
                    &format!("made, the same as before ({took})"),
                    "",
                );
            }
            StepOutcome::Again(_) => {
                self.print(
                    at,
                    step,
                    Role::Good,
                    &format!("made, different from before ({took})"),
                    "",
                );
            }
            StepOutcome::Failed(_) => {
                self.print(
                    at,
                    step,
                    Role::Bad,
                    &format!("failed, and the old files were put back ({took})"),
                    "",
                );
            }
            StepOutcome::NotMade(paths) => {
                let text = format!("did not make {} ({took})", refusal_text::some(paths));
                self.print(at, step, Role::Bad, &text, "");
            }
            StepOutcome::Current | StepOutcome::NotBegun | StepOutcome::Outside => {}
        }
    }
}
