//! Stops a question that takes too long.

use std::cell::{Cell, RefCell};
use std::path::Path;

use crate::{Error, Result, StopQuestion};

/// Rows between two looks at the clock.
const ROWS: u32 = 64;

/// Says, again and again while rows are read, whether the question should stop.
#[derive(Default)]
pub struct QuestionStop {
    stop: RefCell<Option<StopQuestion>>,
    rows: Cell<u32>,
}

impl QuestionStop {
    /// Calls `stop` from now on. `None` ends that.
    pub fn set(&self, stop: Option<StopQuestion>) {
        *self.stop.borrow_mut() = stop;
        // The first row asks, so that a question without time reads nothing.
        self.rows.set(0);
    }

    /// Counts a row. Fails if the question should stop.
    pub fn check(&self, path: &Path) -> Result<()> {
        let rows = self.rows.get();
        self.rows.set((rows + 1) % ROWS);
        if rows > 0 {
            return Ok(());
        }
        let stops = self.stop.borrow_mut().as_mut().is_some_and(|stop| stop());
        match stops {
            true => Err(Error::Interrupted(path.to_owned())),
            false => Ok(()),
        }
    }
}
