//! A run's graph in memory, as rules are matched against it.
//!
//! In: the graph of a stored run, or what the fold makes of a log that still grows: [`RunGraph`] is
//! a sink for both. So a rule has the same matches in a store and in a run in progress.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::ops::Bound;

use backstory_eventlog::event::{Bytes, Time};
use backstory_graph::model::{Activity, ActivityId, Derived, Edge, Entity, EntityId, Inform, Sink};
use backstory_store::{ActivityKey, RunKey, Store};

use crate::unexplained::RunOutputs;
use tables::GraphTables;

mod tables;

/// The graph of one run.
#[derive(Debug, Default, PartialEq)]
pub struct RunGraph {
    pub(crate) activities: Vec<Activity>,
    pub(crate) entities: Vec<Entity>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) informs: Vec<Inform>,
    pub(crate) derived: Vec<Derived>,
    tables: GraphTables,
    /// The versions that no recorded run explains, if the run was compared with its store.
    unexplained: Option<HashSet<EntityId>>,
    /// The answers of inspectors about versions, if they were asked.
    contents: HashMap<EntityId, ContentAnswers>,
}

/// The answers of inspectors about a version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContentAnswers {
    /// Sentences about the change inside of the file.
    pub changes: Vec<Bytes>,
    /// Facts of the content, as `NAME=VALUE`.
    pub facts: Vec<Bytes>,
}

/// Most names that are looked at in the search for a file's successor.
const NAMES: usize = 1_000;

impl RunGraph {
    /// Reads a run of a store. `None`: it has more than `most` edges.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn of_store(
        store: &dyn Store,
        run: RunKey,
        most: usize,
    ) -> backstory_store::Result<Option<RunGraph>> {
        let _one_state = store.reading()?;
        let mut graph = RunGraph {
            activities: store.activities(run)?,
            entities: store.entities(run)?,
            ..RunGraph::default()
        };
        for activity in &graph.activities {
            let stream = store.stream(ActivityKey::new(run, activity.id))?;
            graph.edges.extend(stream.edges);
            graph.informs.extend(stream.informs);
            graph.derived.extend(stream.derived);
            if graph.edges.len() > most {
                return Ok(None);
            }
        }
        graph.complete();
        Ok(Some(graph))
    }

    /// Compares the versions with those that earlier runs made, for rules that ask for it (see
    /// [`Rule::compares_runs`]). `run` is the run of this graph.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    ///
    /// [`Rule::compares_runs`]: crate::Rule::compares_runs
    pub fn compare_with(
        &mut self,
        outputs: &mut RunOutputs<'_>,
        run: RunKey,
    ) -> backstory_store::Result<()> {
        self.unexplained = Some(outputs.unexplained(run, &self.entities)?);
        Ok(())
    }

    /// Says which versions no recorded run explains, if others were compared elsewhere.
    pub fn set_unexplained(&mut self, unexplained: HashSet<EntityId>) {
        self.unexplained = Some(unexplained);
    }

    /// Adds the answers of inspectors about a version: see [`contents_asked`].
    ///
    /// [`contents_asked`]: crate::contents_asked
    pub fn set_content(&mut self, version: EntityId, answers: ContentAnswers) {
        self.contents.insert(version, answers);
    }

    pub(crate) fn content(&self, version: EntityId) -> Option<&ContentAnswers> {
        self.contents.get(&version)
    }

    /// The number of edges.
    pub fn edges(&self) -> usize {
        self.edges.len()
    }

    pub(crate) fn edge_at(&self, at: u32) -> &Edge {
        &self.edges[at as usize]
    }

    /// The places of an activity's edges.
    pub(crate) fn edges_of_activity(&self, id: ActivityId) -> &[u32] {
        self.tables
            .of_activity
            .get(id.0 as usize)
            .map_or(&[], Vec::as_slice)
    }

    /// The places of an entity's edges.
    pub(crate) fn edges_of_entity(&self, id: EntityId) -> &[u32] {
        self.tables
            .of_entity
            .get(id.0 as usize)
            .map_or(&[], Vec::as_slice)
    }

    /// The activities that this one forked or executed, among others.
    pub(crate) fn informs_from(&self, id: ActivityId) -> impl Iterator<Item = &Inform> {
        let places = self.tables.informs.get(id.0 as usize).into_iter().flatten();
        places.map(|at| &self.informs[*at as usize])
    }

    /// The versions that derive from this one.
    pub(crate) fn derived_from(&self, id: EntityId) -> impl Iterator<Item = &Derived> {
        let places = self.tables.derived.get(&id).into_iter().flatten();
        places.map(|at| &self.derived[*at as usize])
    }

    /// The sockets.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = EntityId> {
        self.tables.sockets.iter().copied()
    }

    pub(crate) fn activity(&self, id: ActivityId) -> &Activity {
        &self.activities[id.0 as usize]
    }

    pub(crate) fn entity(&self, id: EntityId) -> &Entity {
        &self.entities[id.0 as usize]
    }

    /// The arguments of an activity's program, joined by spaces. A process that executed nothing
    /// has those of its parent.
    pub(crate) fn command(&self, id: ActivityId) -> &[u8] {
        &self.tables.commands[self.programmed(id).0 as usize]
    }

    /// The path of an activity's program.
    pub(crate) fn image(&self, id: ActivityId) -> Option<&Bytes> {
        self.activity(self.programmed(id)).exec_path.as_ref()
    }

    /// The activity whose program this one runs: itself, or that which forked it.
    pub(crate) fn programmed(&self, id: ActivityId) -> ActivityId {
        let mut chain = self.up(id);
        let found = chain.find(|id| !self.activity(*id).argv.is_empty());
        found.unwrap_or(id)
    }

    /// This activity, its parent, and so on up to the run's command.
    pub(crate) fn up(&self, id: ActivityId) -> impl Iterator<Item = ActivityId> {
        // A damaged store may have a cycle.
        let parents = std::iter::successors(Some(id), |id| self.activity(*id).parent);
        parents.take(self.activities.len())
    }

    /// The activity of the process that started this one.
    pub(crate) fn starter(&self, id: ActivityId) -> Option<ActivityId> {
        let pid = self.activity(id).pid;
        self.up(id).find(|up| self.activity(*up).pid != pid)
    }

    /// True if the process of `upper` started that of `id`, directly or not, or is the same.
    pub(crate) fn is_above_process(&self, upper: ActivityId, id: ActivityId) -> bool {
        let pid = self.activity(upper).pid;
        self.up(id).any(|up| self.activity(up).pid == pid)
    }

    /// The file of another name that a rename, link or copy made this version from.
    pub(crate) fn source(&self, id: EntityId) -> Option<&Entity> {
        self.tables
            .from
            .get(&id)
            .map(|(_, from)| self.entity(*from))
    }

    /// The file that the run made with this version's path and an addition, such as
    /// `report.txt.locked`. `None` also if the run made a later version at the path itself.
    pub(crate) fn successor(&self, id: EntityId) -> Option<&Bytes> {
        let path = &self.entity(id).path;
        // A file may have very many versions. The names after its own begin behind them.
        let behind = (Bound::Excluded((path.clone(), id)), Bound::Unbounded);
        let paths = self.tables.made.range(behind).map(|(path, _)| path);
        let mut longer = paths.take_while(|made| made.starts_with(path)).take(NAMES);
        let is_addition = |made: &&Bytes| !made[path.len()..].contains(&b'/');
        longer.find(is_addition).filter(|made| *made != path)
    }

    /// The newest version that the run made at a path, apart from one. Those before it have no
    /// successor.
    pub(crate) fn newest_made(&self, path: &Bytes, other: EntityId) -> Option<EntityId> {
        let ids = (path.clone(), EntityId(0))..=(path.clone(), EntityId(u32::MAX));
        let mut newest = self.tables.made.range(ids).rev().map(|(_, id)| *id);
        newest.find(|id| *id != other)
    }

    /// Whether no recorded run explains this version. `None`: the run was not compared with others.
    pub(crate) fn is_unexplained(&self, id: EntityId) -> Option<bool> {
        (self.unexplained.as_ref()).map(|unexplained| unexplained.contains(&id))
    }

    /// True if the file, or the file that was renamed to it, is older than the run.
    pub(crate) fn existed(&self, id: EntityId) -> bool {
        let first = self.source(id).map_or(id, |source| source.id);
        self.tables.older[first.0 as usize]
    }
}

/// Puts a node at its place. Ids are dense, and a second announcement replaces the first.
pub(crate) fn put<T: Clone>(nodes: &mut Vec<T>, at: u32, node: &T) {
    match nodes.get_mut(at as usize) {
        Some(known) => *known = node.clone(),
        None => nodes.push(node.clone()),
    }
}

impl Sink for RunGraph {
    type Error = Infallible;

    fn activity(&mut self, activity: &Activity) -> Result<(), Infallible> {
        put(&mut self.activities, activity.id.0, activity);
        Ok(())
    }

    fn entity(&mut self, entity: &Entity) -> Result<(), Infallible> {
        put(&mut self.entities, entity.id.0, entity);
        Ok(())
    }

    fn edge(&mut self, edge: &Edge) -> Result<(), Infallible> {
        self.edges.push(*edge);
        Ok(())
    }

    fn inform(&mut self, inform: &Inform) -> Result<(), Infallible> {
        self.informs.push(*inform);
        Ok(())
    }

    fn derived(&mut self, derived: &Derived) -> Result<(), Infallible> {
        self.derived.push(*derived);
        Ok(())
    }

    fn extended(&mut self, _: ActivityId, _: Time, _: &[u8], _: &[u8]) -> Result<(), Infallible> {
        Ok(())
    }

    fn unknown(&mut self, _: &str) -> Result<(), Infallible> {
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use backstory_graph::model::EntityKind;

    use super::*;

    /// A version of a file, made from the one before it.
    pub(crate) fn version(id: u32, path: &str, version: u32) -> Entity {
        Entity {
            id: EntityId(id),
            kind: EntityKind::File,
            path: path.as_bytes().into(),
            aliases: Vec::new(),
            by_name: Vec::new(),
            version,
            previous: version.checked_sub(1).map(EntityId),
            ident: None,
            last: false,
        }
    }

    #[test]
    fn a_file_with_very_many_versions_has_its_successor_and_its_age() {
        let last = 3 * NAMES as u32;
        let mut graph = RunGraph::default();
        let versions = (0..=last).map(|number| version(number, "/f", number));
        graph.entities.extend(versions);
        let mut locked = version(last + 1, "/f.locked", 1);
        locked.previous = None;
        graph.entities.push(locked);
        graph.complete();
        let successor = |id| graph.successor(EntityId(id)).map(|path| &**path);
        assert_eq!(successor(last), Some(&b"/f.locked"[..]));
        assert_eq!(successor(last - 1), None, "the run made another version");
        assert!(graph.existed(EntityId(last)));
        assert!(!graph.existed(EntityId(last + 1)));
    }
}
