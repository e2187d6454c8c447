//! The graph of one run in memory, from the fold and into a store.

use std::convert::Infallible;

use backstory_eventlog::event::Time;
use backstory_files::Ident;
use backstory_graph::memory::MemorySink;
use backstory_graph::model::{Activity, ActivityId, Derived, Edge, Entity, Inform, Sink};
use backstory_store::{Appender, Body, Error, Result};

/// Collects the graph that `body` emits. `made_before` says whether an earlier run left a file.
///
/// Errors: those of `body`.
pub fn collect(made_before: &dyn Fn(&Ident) -> bool, body: &mut Body<'_>) -> Result<MemorySink> {
    let mut collector = Collector {
        graph: MemorySink::default(),
        made_before,
    };
    body(&mut Appender::new(&mut collector))?;
    Ok(collector.graph)
}

/// Passes a graph to a store.
///
/// Errors: those of the store.
pub fn emit(graph: &MemorySink, sink: &mut Appender<'_>) -> Result<()> {
    graph
        .activities
        .values()
        .try_for_each(|activity| sink.activity(activity))?;
    graph
        .entities
        .values()
        .try_for_each(|entity| sink.entity(entity))?;
    graph.edges.iter().try_for_each(|edge| sink.edge(edge))?;
    graph
        .informs
        .iter()
        .try_for_each(|inform| sink.inform(inform))?;
    graph
        .derived
        .iter()
        .try_for_each(|derived| sink.derived(derived))?;
    for (activity, time, kind, payload) in &graph.extended {
        sink.extended(*activity, *time, kind, payload)?;
    }
    graph
        .unknown
        .iter()
        .try_for_each(|reason| sink.unknown(reason))
}

struct Collector<'a> {
    graph: MemorySink,
    made_before: &'a dyn Fn(&Ident) -> bool,
}

/// The result of a sink that cannot fail.
fn sure<T>(result: std::result::Result<T, Infallible>) -> Result<T> {
    match result {
        Ok(value) => Ok(value),
        Err(never) => match never {},
    }
}

impl Sink for Collector<'_> {
    type Error = Error;

    fn activity(&mut self, activity: &Activity) -> Result<()> {
        sure(self.graph.activity(activity))
    }

    fn entity(&mut self, entity: &Entity) -> Result<()> {
        sure(self.graph.entity(entity))
    }

    fn edge(&mut self, edge: &Edge) -> Result<()> {
        sure(self.graph.edge(edge))
    }

    fn inform(&mut self, inform: &Inform) -> Result<()> {
        sure(self.graph.inform(inform))
    }

    fn derived(&mut self, derived: &Derived) -> Result<()> {
        sure(self.graph.derived(derived))
    }

    fn extended(&mut self, id: ActivityId, time: Time, kind: &[u8], payload: &[u8]) -> Result<()> {
        sure(self.graph.extended(id, time, kind, payload))
    }

    fn unknown(&mut self, reason: &str) -> Result<()> {
        match self.graph.unknown.iter().any(|known| known == reason) {
            true => Ok(()),
            false => sure(self.graph.unknown(reason)),
        }
    }

    fn made_before(&self, ident: &Ident) -> bool {
        (self.made_before)(ident)
    }
}
