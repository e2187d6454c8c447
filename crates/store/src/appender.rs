//! The sink through which a caller of [`GraphStore::append`](crate::GraphStore::append) passes a
//! run's graph.

use backstory_eventlog::event::Time;
use backstory_files::Ident;
use backstory_graph::model::{Activity, ActivityId, Derived, Edge, Entity, Inform, Sink};

use crate::{Error, Result};

/// Emits a run's graph into the appender.
pub type Body<'a> = dyn FnMut(&mut Appender<'_>) -> Result<()> + 'a;

/// Passes everything to another sink. A concrete type, for callers that need a `Sink` of known
/// size.
pub struct Appender<'a> {
    sink: &'a mut dyn Sink<Error = Error>,
}

impl<'a> Appender<'a> {
    /// Passes everything to `sink`.
    pub fn new(sink: &'a mut dyn Sink<Error = Error>) -> Self {
        Appender { sink }
    }
}

impl Sink for Appender<'_> {
    type Error = Error;
    fn activity(&mut self, activity: &Activity) -> Result<()> {
        self.sink.activity(activity)
    }
    fn entity(&mut self, entity: &Entity) -> Result<()> {
        self.sink.entity(entity)
    }
    fn edge(&mut self, edge: &Edge) -> Result<()> {
        self.sink.edge(edge)
    }
    fn inform(&mut self, inform: &Inform) -> Result<()> {
        self.sink.inform(inform)
    }
    fn derived(&mut self, derived: &Derived) -> Result<()> {
        self.sink.derived(derived)
    }
    fn extended(
        &mut self,
        activity: ActivityId,
        time: Time,
        kind: &[u8],
        payload: &[u8],
    ) -> Result<()> {
        self.sink.extended(activity, time, kind, payload)
    }
    fn unknown(&mut self, reason: &str) -> Result<()> {
        self.sink.unknown(reason)
    }
    fn made_before(&self, ident: &Ident) -> bool {
        self.sink.made_before(ident)
    }
}
