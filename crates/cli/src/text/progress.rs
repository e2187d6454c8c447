//! Bars for work that takes long: how much of it is done, and how long the rest will take. A bar
//! appears on a terminal only, on stderr, and disappears when the work is done.
//!
//! In: an amount of work, and how much of it is done. Out: a bar with an estimate, or a moving sign
//! where the amount is not known. Attempts have both. Their bar goes up to their bound, which most
//! searches do not reach, so it has no estimate.
//!
//! Invariant: one bar is on the screen at a time. Work within work that has a bar gets none. The
//! work itself only adds to a number: a thread draws.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use backstory_contents::WorkMeter;
use backstory_deep::ReadMeter;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The time before the bar appears.
const PATIENCE: Duration = Duration::from_millis(500);

/// The time between two pictures.
const STEP: Duration = Duration::from_millis(100);

/// A bar is on the screen, or waits to appear.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// A bar is on the screen.
static SHOWN: AtomicBool = AtomicBool::new(false);

/// Clears the line of the bar for a message. The bar follows below the message.
pub fn clear() {
    if SHOWN.load(Ordering::Acquire) {
        let _ = std::io::stderr().write_all(b"\r\x1b[K");
    }
}

/// How much of the work is done. Copies count together.
#[derive(Debug, Clone, Default)]
pub struct WorkDone(Arc<AtomicU64>);

impl WorkDone {
    /// Adds to the work that is done.
    pub fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    /// Sets the work that is done.
    pub fn set(&self, amount: u64) {
        self.0.store(amount, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The things that an amount counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Things, such as runs or files.
    Things,
    /// Attempts, of which as many follow as are needed. The amount is their bound.
    Attempts,
    /// An amount that says nothing to people: only its part is shown.
    Part,
}

/// A line on the terminal while something takes long.
#[derive(Debug)]
pub struct Progress {
    /// The work done, which the caller adds to.
    pub done: WorkDone,
    drawing: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Shows `what` after half a second, for work of an unknown amount.
    pub fn start(what: &str) -> Progress {
        Progress::of(what, 0, Unit::Part)
    }

    /// Shows `what` after half a second, with a bar and an estimate. An amount of 0 is unknown.
    pub fn of(what: &str, amount: u64, unit: Unit) -> Progress {
        let done = WorkDone::default();
        let counted = done.clone();
        Progress::draw(what, unit, done, move || (counted.get(), amount))
    }

    /// Shows `what` after half a second, with a bar and an estimate once the meter expects work.
    pub fn metered(what: &str, meter: &WorkMeter, unit: Unit) -> Progress {
        let meter = meter.clone();
        let counts = move || (meter.done(), meter.expected());
        Progress::draw(what, unit, WorkDone::default(), counts)
    }

    /// Shows `what` after half a second, with a bar and an estimate of the bytes of deep logs that
    /// are read. Without a pass over a whole log, it is a moving sign.
    pub fn reading(what: &str, meter: &ReadMeter) -> Progress {
        let meter = meter.clone();
        let counts = move || {
            let all = meter.expected();
            (meter.done().min(all), all)
        };
        Progress::draw(what, Unit::Bytes, WorkDone::default(), counts)
    }

    /// `counts` returns the work done and all work, 0 while it is unknown.
    fn draw(
        what: &str,
        unit: Unit,
        done: WorkDone,
        counts: impl Fn() -> (u64, u64) + Send + 'static,
    ) -> Progress {
        let drawing = std::io::stderr().is_terminal() && !TAKEN.swap(true, Ordering::AcqRel);
        let (over, wait) = channel();
        let shown = format!("backstory: {what}");
        let draw = move || {
            if let Err(RecvTimeoutError::Timeout) = wait.recv_timeout(PATIENCE) {
                let bar = bar(shown, counts().1, unit).with_elapsed(PATIENCE);
                SHOWN.store(true, Ordering::Release);
                loop {
                    change(&bar, unit, counts());
                    bar.tick();
                    if !matches!(wait.recv_timeout(STEP), Err(RecvTimeoutError::Timeout)) {
                        break;
                    }
                }
                SHOWN.store(false, Ordering::Release);
                bar.finish_and_clear();
            }
            TAKEN.store(false, Ordering::Release);
        };
        // Without a thread for it, only the line is missing.
        let thread = drawing.then(|| {
            std::thread::Builder::new()
                .name("progress".into())
                .spawn(draw)
                .inspect_err(|_| TAKEN.store(false, Ordering::Release))
        });
        Progress {
            done,
            drawing: thread.and_then(Result::ok).map(|thread| (over, thread)),
        }
    }

    /// Removes the line.
    pub fn end(self) {
        drop(self);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((over, thread)) = self.drawing.take() {
            drop(over);
            // The thread has ended, so that it prints nothing after this.
            let _ = thread.join();
        }
    }
}

fn template(amount: u64, unit: Unit) -> &'static str {
    match (amount, unit) {
        (0, _) => "{msg} {spinner} {elapsed}",
        (_, Unit::Bytes) => "{msg} {wide_bar} {percent} % of {total_bytes}, {eta} left",
        (_, Unit::Things) => "{msg} {wide_bar} {pos} of {len}, {eta} left",
        (_, Unit::Attempts) => "{msg} [{wide_bar}] {spinner} {elapsed}",
        (_, Unit::Part) => "{msg} {wide_bar} {percent} %, {eta} left",
    }
}

fn style(amount: u64, unit: Unit) -> ProgressStyle {
    ProgressStyle::with_template(template(amount, unit))
        .map(|style| style.progress_chars("=> ").tick_chars("|/-\\ "))
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
}

fn bar(what: String, amount: u64, unit: Unit) -> ProgressBar {
    let length = (amount > 0).then_some(amount);
    let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr());
    bar.with_style(style(amount, unit)).with_message(what)
}

/// Gives the bar the work done and all work.
fn change(bar: &ProgressBar, unit: Unit, (done, all): (u64, u64)) {
    if all != bar.length().unwrap_or_default() {
        bar.set_style(style(all, unit));
        bar.set_length(all);
    }
    bar.set_position(done);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_one_that_can_be_drawn() {
        for amount in [0, 7] {
            for unit in [Unit::Bytes, Unit::Things, Unit::Attempts, Unit::Part] {
                let template = template(amount, unit);
                assert!(ProgressStyle::with_template(template).is_ok(), "{unit:?}");
                assert_eq!(template.contains("{wide_bar}"), amount > 0, "{unit:?}");
                let has_estimate = amount > 0 && unit != Unit::Attempts;
                assert_eq!(template.contains("{eta}"), has_estimate, "{unit:?}");
            }
        }
    }

    #[test]
    fn a_bar_of_attempts_moves_up_to_their_bound_and_says_which_one_is_made() {
        let said = "attempt 3 of at most 9";
        let bar = bar(said.to_owned(), 9, Unit::Attempts);
        let state = || (bar.position(), bar.length(), bar.message());
        assert_eq!(state(), (0, Some(9), said.to_owned()));
        change(&bar, Unit::Attempts, (2, 9));
        assert_eq!(state(), (2, Some(9), said.to_owned()));
    }

    #[test]
    fn an_amount_that_becomes_known_gives_the_bar_its_length() {
        let bar = bar("reading".to_owned(), 0, Unit::Bytes);
        change(&bar, Unit::Bytes, (0, 0));
        assert_eq!(bar.length(), None);
        change(&bar, Unit::Bytes, (3, 7));
        assert_eq!((bar.position(), bar.length()), (3, Some(7)));
    }

    #[test]
    fn work_within_work_counts_apart() {
        let outer = Progress::of("outer", 10, Unit::Things);
        let inner = Progress::of("inner", 3, Unit::Things);
        inner.done.add(3);
        outer.done.set(4);
        assert_eq!((outer.done.get(), inner.done.get()), (4, 3));
    }
}
