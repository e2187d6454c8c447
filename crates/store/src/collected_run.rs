//! One run's graph in memory, for an engine that writes a run only when the graph is complete.
//!
//! In: the calls of a [`Sink`]. Out: dense lists of activities and entities, and one stream for
//! each activity. The collector refuses a graph that names what it did not announce, and counts.

use std::collections::HashSet;

use backstory_eventlog::event::{Bytes, Time};
use backstory_files::Ident;
use backstory_graph::model::{
    Activity, ActivityId, Derived, Edge, Entity, EntityId, EntityKind, Inform, Informed, Relation,
    Sink,
};

use crate::appender::{Appender, Body};
use crate::graph_store::{VersionMatch, makes};
use crate::{Counts, Error, GraphStore, Result, Stream};

/// A run's graph.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CollectedRun {
    /// In the order of their ids.
    pub activities: Vec<Activity>,
    /// In the order of their ids.
    pub entities: Vec<Entity>,
    /// One for each activity.
    pub streams: Vec<Stream>,
    /// Activity, time, kind, payload, in the order they were appended.
    pub extended: Vec<(ActivityId, Time, Bytes, Bytes)>,
    /// Gaps of the graph: one sentence each, each once.
    pub unknown: Vec<String>,
    /// How much the run has.
    pub counts: Counts,
}

impl CollectedRun {
    /// Collects what `body` emits for the run `id`. `store` says which versions earlier runs made.
    pub fn collect<S: GraphStore + ?Sized>(
        store: &S,
        id: &str,
        body: &mut Body<'_>,
    ) -> Result<CollectedRun> {
        let made_before = |ident: &Ident| {
            let made = store.same(ident, VersionMatch::Made);
            made.is_ok_and(|made| !made.is_empty())
        };
        let mut collector = Collector {
            run: id,
            made_before: &made_before,
            activities: Vec::new(),
            entities: Vec::new(),
            collected: CollectedRun::default(),
        };
        body(&mut Appender::new(&mut collector))?;
        collector.finish()
    }

    fn counts(&self) -> Counts {
        use Relation::*;
        let edges = || self.streams.iter().flat_map(|stream| &stream.edges);
        let derived: usize = self.streams.iter().map(|one| one.derived.len()).sum();
        // Each exec is an edge of the process tree already.
        let informs = self.streams.iter().flat_map(|stream| &stream.informs);
        let informs = informs.filter(|inform| inform.why != Informed::Exec);
        let paths = |wanted: &[Relation]| {
            let edges = edges().filter(|edge| wanted.contains(&edge.relation));
            let entities = edges.map(|edge| &self.entities[edge.entity.0 as usize]);
            let files = entities.filter(|entity| entity.kind == EntityKind::File);
            files.map(|file| &file.path).collect::<HashSet<_>>().len() as u64
        };
        Counts {
            activities: self.activities.len() as u64,
            entities: self.entities.len() as u64,
            edges: (edges().count() + derived + informs.count()) as u64,
            files_read: paths(&[Read, Execute]),
            files_written: paths(&[Write, Make, Rename, Delete]),
        }
    }

    /// Whether the run gave this entity its content.
    pub fn makes(&self, id: EntityId) -> bool {
        self.streams.iter().any(|stream| {
            let mut edges = stream.edges.iter();
            edges.any(|edge| edge.entity == id && makes(edge.relation))
                || stream.derived.iter().any(|derived| derived.entity == id)
        })
    }
}

/// The sink that collects.
struct Collector<'a> {
    run: &'a str,
    made_before: &'a dyn Fn(&Ident) -> bool,
    activities: Vec<Option<Activity>>,
    entities: Vec<Option<Entity>>,
    collected: CollectedRun,
}

impl Collector<'_> {
    fn unannounced(&self, what: &'static str, id: u32) -> Error {
        Error::Unannounced {
            run: self.run.to_owned(),
            what,
            id: u64::from(id),
        }
    }

    /// The stream of an activity that was announced.
    fn stream(&mut self, id: ActivityId) -> Result<&mut Stream> {
        match self.activities.get(id.0 as usize) {
            Some(Some(_)) => Ok(&mut self.collected.streams[id.0 as usize]),
            _ => Err(self.unannounced("activity", id.0)),
        }
    }

    fn check_entity(&self, id: EntityId) -> Result<()> {
        match self.entities.get(id.0 as usize) {
            Some(Some(_)) => Ok(()),
            _ => Err(self.unannounced("entity", id.0)),
        }
    }

    fn finish(mut self) -> Result<CollectedRun> {
        for (id, activity) in (0..).zip(std::mem::take(&mut self.activities)) {
            let activity = activity.ok_or_else(|| self.unannounced("activity", id))?;
            self.collected.activities.push(activity);
        }
        for (id, entity) in (0..).zip(std::mem::take(&mut self.entities)) {
            let entity = entity.ok_or_else(|| self.unannounced("entity", id))?;
            self.collected.entities.push(entity);
        }
        self.collected.counts = self.collected.counts();
        Ok(self.collected)
    }
}

impl Sink for Collector<'_> {
    type Error = Error;

    fn activity(&mut self, activity: &Activity) -> Result<()> {
        let id = activity.id.0 as usize;
        if self.activities.len() <= id {
            self.activities.resize(id + 1, None);
            self.collected.streams.resize(id + 1, Stream::default());
        }
        self.activities[id] = Some(activity.clone());
        Ok(())
    }

    fn entity(&mut self, entity: &Entity) -> Result<()> {
        let id = entity.id.0 as usize;
        self.entities.resize(self.entities.len().max(id + 1), None);
        self.entities[id] = Some(entity.clone());
        Ok(())
    }

    fn edge(&mut self, edge: &Edge) -> Result<()> {
        self.check_entity(edge.entity)?;
        self.stream(edge.activity)?.edges.push(*edge);
        Ok(())
    }

    fn inform(&mut self, inform: &Inform) -> Result<()> {
        self.stream(inform.to)?;
        self.stream(inform.from)?.informs.push(*inform);
        self.stream(inform.to)?.informed_by.push(*inform);
        Ok(())
    }

    fn derived(&mut self, derived: &Derived) -> Result<()> {
        self.check_entity(derived.from)?;
        self.check_entity(derived.entity)?;
        self.stream(derived.activity)?.derived.push(*derived);
        Ok(())
    }

    fn extended(
        &mut self,
        activity: ActivityId,
        time: Time,
        kind: &[u8],
        payload: &[u8],
    ) -> Result<()> {
        self.stream(activity)?;
        let record = (activity, time, kind.into(), payload.into());
        self.collected.extended.push(record);
        Ok(())
    }

    fn unknown(&mut self, reason: &str) -> Result<()> {
        let unknown = &mut self.collected.unknown;
        if !unknown.iter().any(|known| known == reason) {
            unknown.push(reason.to_owned());
        }
        Ok(())
    }

    fn made_before(&self, ident: &Ident) -> bool {
        (self.made_before)(ident)
    }
}
