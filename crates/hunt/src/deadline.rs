//! The end of the time for one rule.
//!
//! A rule takes steps, and looks at the clock after some of them. A search ends where it is, once
//! the time is over.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Facts, and comparisons of facts, between two looks at the clock.
const STEPS: usize = 16;
/// Bytes of fields that are compared between two looks at the clock.
const COMPARED: usize = 1 << 16;

/// The end of the time for one rule.
pub(crate) struct Deadline {
    end: Option<Instant>,
    steps: Cell<usize>,
    /// Bytes that were compared since the last look at the clock.
    compared: Cell<usize>,
    is_over: Cell<bool>,
}

impl Deadline {
    pub fn after(time: Duration) -> Deadline {
        Deadline {
            end: Instant::now().checked_add(time),
            steps: Cell::new(0),
            compared: Cell::new(0),
            is_over: Cell::new(false),
        }
    }

    /// True if the time was over at the last step.
    pub fn is_over(&self) -> bool {
        self.is_over.get()
    }

    /// Counts a step. False if the time is over.
    pub fn goes_on(&self) -> bool {
        let steps = self.steps.get() + 1;
        self.steps.set(steps);
        match steps.is_multiple_of(STEPS) {
            true => self.has_time(),
            false => !self.is_over.get(),
        }
    }

    /// Counts a text that is compared with a value. False if the time is over.
    pub fn compares(&self, text: &[u8]) -> bool {
        let compared = self.compared.get() + 1 + text.len();
        let is_much = compared >= COMPARED;
        self.compared.set(if is_much { 0 } else { compared });
        match is_much {
            true => self.has_time(),
            false => !self.is_over.get(),
        }
    }

    /// Looks at the clock before a step that can be long. False if the time is over.
    pub fn has_time(&self) -> bool {
        if self.end.is_some_and(|end| Instant::now() > end) {
            self.is_over.set(true);
        }
        !self.is_over.get()
    }
}
