//! The directories that the processes of a run changed into. A run may use no file of such a
//! directory, and the store then has nothing of it.

use std::collections::BTreeSet;

use backstory_eventlog::event::{Bytes, Op};
use backstory_eventlog::log::Log;
use backstory_store::Home;

/// The absolute directories. A log that is gone names none.
pub fn entered(home: &Home, run: &str) -> BTreeSet<Bytes> {
    let Ok(log) = Log::open(home.log_path(run)) else {
        return BTreeSet::new();
    };
    let events = log.events().filter(|event| !event.outcome.failed());
    let directories = events.filter_map(|event| match event.op {
        Op::Chdir { now, .. } if now.starts_with(b"/") => Some(now),
        _ => None,
    });
    directories.collect()
}
