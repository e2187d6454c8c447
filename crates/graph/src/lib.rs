//! In: a run's events. Out: its graph, through a [`model::Sink`]. Pure: no I/O, no clock, deterministic.
//!
//! [`fold`] replays the run's world (processes, descriptors, names) and asks [`FinalState`] for the identity of each path that
//! content flows through, once; `docs/graph.md` gives the semantics.
pub mod lineage;
pub mod memory;
pub mod model;
pub mod standard;
pub mod words;

mod activity;
pub(crate) mod fold;
mod object;
mod paths;
mod process;

use backstory_eventlog::event::{Bytes, Event, Time};
use backstory_eventlog::run::{RunEnd, RunHeader};
use backstory_files::Ident;

pub use fold::SLACK;

/// What the file system said of paths right after the run.
///
/// Asked once for each path and `follow`, and never for what was only looked at.
pub trait FinalState {
    /// The identity behind `path`: `None` if it was not asked for, `Some(None)` if nothing is there.
    fn identity(&self, path: &[u8], follow: bool) -> Option<Option<Ident>>;

    /// What was kept of `path` first since a time, before the run changed it, and when. It is told apart from the order of events, since a
    /// change is logged before it is made, and the keeping after that.
    fn preserved(&self, _path: &[u8], _since: Time) -> Option<(Time, Ident)> {
        None
    }

    /// What the kernel runs the program at `path` with, as the program's first bytes named it after the run. Asked once for each
    /// program; none if it runs by itself, or if nobody looked.
    fn interpreter(&self, _path: &[u8]) -> Option<Bytes> {
        None
    }

    /// The text of the symbolic link at `path` after the run. Asked only for links in the paths of files that are not where the log says. `None` if
    /// it is no link, or if its text is not known.
    fn link_text(&self, _path: &[u8]) -> Option<Bytes> {
        None
    }
}

/// Knows nothing.
impl FinalState for () {
    fn identity(&self, _: &[u8], _: bool) -> Option<Option<Ident>> {
        None
    }
}

/// Folds `events` into a graph. They must come in the order in which `eventlog` gives them.
pub fn fold<S: model::Sink + ?Sized>(
    header: &RunHeader,
    end: Option<&RunEnd>,
    events: impl IntoIterator<Item = Event>,
    known: &dyn FinalState,
    sink: &mut S,
) -> Result<(), S::Error> {
    let mut fold = fold::Fold::new(header, end, known, sink);
    for event in events {
        fold.event(event)?;
    }
    fold.finish()
}
