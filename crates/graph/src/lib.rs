//! In: a run's events. Out: its graph, through a [`model::Sink`]. Pure: no I/O, no clock, deterministic.
//!
//! [`names`] says which paths a run mentions, so that their identities can be taken; [`fold`] turns the events into activities,
//! entities and edges. Both replay the same world (processes, descriptors, names); `docs/graph.md` gives the semantics.
pub mod lineage;
pub mod memory;
pub mod model;

mod activity;
pub(crate) mod fold;
mod object;
mod paths;
mod process;

use backstory_eventlog::event::{Event, Ident};
use backstory_eventlog::run::{RunEnd, RunHeader};

pub use fold::SLACK;

/// What the file system said of paths right after the run.
pub trait Known {
    /// The identity behind `path`: `None` if it was not asked for, `Some(None)` if nothing is there.
    fn of(&self, path: &[u8], follow: bool) -> Option<Option<Ident>>;
}

/// Knows nothing.
impl Known for () {
    fn of(&self, _: &[u8], _: bool) -> Option<Option<Ident>> {
        None
    }
}

/// Gives every absolute path that `events` mention, each once per `follow`: whether a symbolic link at its end is to be followed.
pub fn names(header: &RunHeader, events: impl IntoIterator<Item = Event>, each: impl FnMut(&[u8], bool)) {
    let listener = Listener {
        seen: std::cell::RefCell::default(),
        each: std::cell::RefCell::new(each),
    };
    // Nothing goes into this sink, so nothing can go wrong in it.
    let mut sink = memory::NullSink;
    let mut fold = fold::Fold::new(header, &listener, &mut sink, true);
    for event in events {
        let Ok(()) = fold.event(event);
    }
}

/// Folds `events` into a graph. They must come in the order in which `eventlog` gives them.
pub fn fold<S: model::Sink + ?Sized>(
    header: &RunHeader,
    end: Option<&RunEnd>,
    events: impl IntoIterator<Item = Event>,
    known: &dyn Known,
    sink: &mut S,
) -> Result<(), S::Error> {
    let mut fold = fold::Fold::new(header, known, sink, false);
    for event in events {
        fold.event(event)?;
    }
    fold.finish(end)
}

/// Knows nothing, but remembers what it was asked: the first pass asks for exactly what the second will want to know.
struct Listener<F> {
    seen: std::cell::RefCell<rustc_hash::FxHashSet<(Box<[u8]>, bool)>>,
    each: std::cell::RefCell<F>,
}

impl<F: FnMut(&[u8], bool)> Known for Listener<F> {
    fn of(&self, path: &[u8], follow: bool) -> Option<Option<Ident>> {
        if self.seen.borrow_mut().insert((path.into(), follow)) {
            (self.each.borrow_mut())(path, follow);
        }
        None
    }
}
