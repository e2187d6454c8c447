//! The lines of a recorded shell: each command line is a run of its own.
//!
//! The shell is the command of one recording, the session. The shell's marks ([`mark`]) say when a
//! line begins and ends. For every chunk, the router ([`router`]) decides which line's log its
//! records belong to ([`process_lines`], [`splitting`]). All other records stay in the session's
//! log.
//!
//! Invariant: a recording without lines has no router, and does nothing of this.

mod environments;
mod line_log;
pub(crate) mod mark;
mod policy;
mod process_lines;
mod router;
mod snapshot;
mod splitting;

pub(crate) use line_log::LinePlan;
pub use policy::LinePolicy;
pub(crate) use router::LineRouter;
pub(crate) use splitting::{done_up_to, part_of};

use backstory_sys::clock::counter as clock_reading;
