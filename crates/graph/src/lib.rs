//! Builds the provenance graph of a run from the events in its log.
//!
//! In: the events of a run, in the order in which `backstory-eventlog` gives them, and the state of
//! the file system after the run ([`FinalState`]). Out: nodes and edges, through a [`model::Sink`].
//!
//! Invariant: the same events and the same final state give the same graph. The crate does no I/O
//! and reads no clock.
//!
//! [`fold`] replays the processes, descriptors and names of the run. It asks [`FinalState`] once
//! for the identity of each path that content flows through. `docs/graph.md` defines what the graph
//! means.
pub mod address_table;
pub mod described_rank;
pub mod lineage;
pub mod marks;
pub mod memory;
pub mod model;
pub mod nested;
pub mod parts;
pub mod processor_time;
pub mod standard;
pub mod words;

mod activity;
pub(crate) mod fold;
mod network_facts;
mod object;
mod paths;
mod process;
mod refused;
mod serial;
mod version;

use backstory_eventlog::event::{Bytes, Event, Time};
use backstory_eventlog::run::{RunEnd, RunHeader};
use backstory_files::Ident;

pub use fold::{Fold, SLACK};
pub use network_facts::{
    ConnectionEnds, ConnectionTraffic, LookedUpName, REPLY, connection_ends, connection_traffic,
    connections_closed_by_exec, looked_up_name,
};
pub use refused::refused_connection;

/// The state of paths in the file system after the run.
///
/// The fold asks once for each path and value of `follow`. It never asks for a path that the run
/// only looked at.
pub trait FinalState {
    /// The identity of the file at `path`. `None`: the file system was not asked. `Some(None)`: no
    /// file is there.
    fn identity(&self, path: &[u8], follow: bool) -> Option<Option<Ident>>;

    /// The identity of the content that was first preserved at `path` after a time, and the time at
    /// which it was preserved. The recorder logs a change before the change happens, and the
    /// preservation after that. So the time shows to which change the content belongs.
    fn preserved(&self, _path: &[u8], _since: Time) -> Option<(Time, Ident)> {
        None
    }

    /// The interpreter or loader that the kernel runs the program at `path` with, as the program's
    /// first bytes name it after the run. The fold asks once for each program. `None`: the program
    /// runs by itself, or its first bytes were not read.
    fn interpreter(&self, _path: &[u8]) -> Option<Bytes> {
        None
    }

    /// The text of the symbolic link at `path` after the run. The fold asks only for links in the
    /// paths of files that are not where the log says. `None`: the path is no link, or its text was
    /// not read.
    fn link_text(&self, _path: &[u8]) -> Option<Bytes> {
        None
    }
}

/// A final state that knows no path.
impl FinalState for () {
    fn identity(&self, _: &[u8], _: bool) -> Option<Option<Ident>> {
        None
    }
}

/// Folds `events` into a graph. The events must come in the order in which `eventlog` gives them.
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
