//! The part of a store that controls its engine: the engine's log, the time that a question may
//! take, and whether other processes wait.
//!
//! Every method has a default, for an engine that has neither a log nor files.

use std::collections::HashSet;

use crate::{GraphStore, Result, RunKey};

/// Called again and again while a question reads. True: the question fails.
pub type StopQuestion = Box<dyn FnMut() -> bool + Send>;

/// Controls of an engine. Object safe.
pub trait EngineControl: GraphStore {
    /// Leaves work that waits for the disk, such as a checkpoint of a log, to the next process that
    /// closes the database.
    fn leave_log(&self) -> Result<()> {
        Ok(())
    }

    /// True if the engine's log is so long that it shows, and this process may write.
    fn has_long_log(&self) -> bool {
        false
    }

    /// Does a checkpoint and empties the log. Waits for the disk.
    fn bring_in_log(&self) -> Result<()> {
        Ok(())
    }

    /// Calls `stop` again and again while a question reads. When it returns true, the question
    /// fails with [`Error::Interrupted`](crate::Error::Interrupted). `None` ends that.
    fn interrupt_when(&self, stop: Option<StopQuestion>) {
        drop(stop);
    }

    /// True while a [`GraphStore::reading`] guard is alive.
    fn is_reading(&self) -> bool {
        false
    }

    /// True if other processes wait while this process has the database open.
    fn is_exclusive(&self) -> bool {
        false
    }

    /// True if the database has runs of other directories, too, whose users append to it.
    fn is_shared(&self) -> bool {
        false
    }

    /// The runs that this user recorded. `None`: all runs, because no other user appends.
    fn own_runs(&self) -> Result<Option<HashSet<RunKey>>> {
        Ok(None)
    }
}
