//! The graph of a run that goes on, and its changes since the last look.
//!
//! In: the nodes and edges of a fold that tells its news, edges again and again. Out: the facts and
//! links that are new or have changed. Each change costs as much as the facts that it concerns.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::convert::Infallible;

use backstory_eventlog::event::{Bytes, Time};
use backstory_graph::lineage::informs;
use backstory_graph::model::{
    Activity, ActivityId, Derived, Edge, Entity, EntityId, EntityKind, Inform, Relation, Sink,
};

use crate::fact::{FactPlace, Field};
use crate::flow::{FlowLink, FlowNode};
use crate::rule::Rule;
use crate::run_graph::{RunGraph, put};

/// The changes since the last look.
#[derive(Debug, Default)]
pub(crate) struct GraphNews {
    /// The facts, and of each whether fields of it have changed, or only its first and last time.
    pub facts: BTreeMap<FactPlace, bool>,
    /// Links that are new, or that begin earlier or end later.
    pub links: Vec<FlowLink>,
}

impl GraphNews {
    fn fact(&mut self, place: FactPlace, has_fields: bool) {
        *self.facts.entry(place).or_default() |= has_fields;
    }
}

/// A graph that grows.
#[derive(Debug, Default)]
pub(crate) struct GrowingGraph {
    pub graph: RunGraph,
    /// The places of the edges.
    uses: HashMap<(ActivityId, EntityId, Relation), u32>,
    news: GraphNews,
    /// A rule asks for exit statuses.
    asks_exit: bool,
    /// The entities at each path, if a rule asks for successors.
    at_path: Option<HashMap<Bytes, BTreeSet<EntityId>>>,
}

impl GrowingGraph {
    /// An empty graph for these rules.
    pub fn new(rules: &[Rule]) -> GrowingGraph {
        let asks = |field| rules.iter().any(|rule| rule.asks_for(field));
        GrowingGraph {
            asks_exit: asks(Field::ExitCode),
            at_path: asks(Field::SuccessorFilename).then(HashMap::new),
            ..GrowingGraph::default()
        }
    }

    /// The changes since the last time.
    pub fn take_news(&mut self) -> GraphNews {
        std::mem::take(&mut self.news)
    }

    /// The fields of an entity's facts have changed.
    fn changed(&mut self, id: EntityId) {
        for edge in self.graph.edges_of_entity(id) {
            self.news.fact(FactPlace::Use(*edge), true);
        }
    }

    /// The run has made a version at a path. It may be the successor of a file whose name begins
    /// its own. The version before it at the same path has no successor any more. Those before that
    /// one had none already: a file may have very many versions.
    fn made(&mut self, id: EntityId, path: &Bytes) {
        let Some(at_path) = &self.at_path else {
            return;
        };
        let name = path
            .iter()
            .rposition(|byte| *byte == b'/')
            .map_or(0, |at| at + 1);
        let mut files: Vec<EntityId> = Vec::new();
        for end in name + 1..=path.len() {
            if let Some((beginning, versions)) = at_path.get_key_value(&path[..end]) {
                let newest = self.graph.newest_made(beginning, id);
                let newest = newest.unwrap_or(EntityId(0));
                files.extend(versions.range(newest..));
            }
        }
        for file in files {
            self.changed(file);
        }
    }

    fn link(&mut self, link: Option<FlowLink>) {
        self.news.links.extend(link);
    }
}

/// Whether facts of an activity can have other fields.
fn differs(known: &Activity, new: &Activity, asks_exit: bool) -> bool {
    let program = |one: &Activity| (one.parent, one.pid);
    program(known) != program(new)
        || (&known.exec_path, &known.argv, &known.cwd) != (&new.exec_path, &new.argv, &new.cwd)
        || asks_exit && known.exit != new.exit
}

impl Sink for GrowingGraph {
    type Error = Infallible;

    fn activity(&mut self, activity: &Activity) -> Result<(), Infallible> {
        let at = activity.id.0 as usize;
        let known = self.graph.activities.get(at);
        let is_other = known.is_none_or(|known| differs(known, activity, self.asks_exit));
        put(&mut self.graph.activities, activity.id.0, activity);
        if is_other {
            self.graph.learn_activity(at);
            for edge in self.graph.edges_of_activity(activity.id) {
                self.news.fact(FactPlace::Use(*edge), true);
            }
        }
        if !activity.argv.is_empty() {
            self.news.fact(FactPlace::Start(activity.id), is_other);
        }
        Ok(())
    }

    fn entity(&mut self, entity: &Entity) -> Result<(), Infallible> {
        let at = entity.id.0 as usize;
        let is_named = |known: &Entity| {
            (known.kind, known.version, known.previous)
                == (entity.kind, entity.version, entity.previous)
                && (&known.path, &known.aliases) == (&entity.path, &entity.aliases)
        };
        let known = self.graph.entities.get(at);
        let is_known = known.is_some();
        if known.is_some_and(is_named) {
            put(&mut self.graph.entities, entity.id.0, entity);
            return Ok(());
        }
        if is_known {
            self.graph.unlearn_entity(at);
        }
        put(&mut self.graph.entities, entity.id.0, entity);
        self.graph.learn_entity(at);
        if let Some(at_path) = &mut self.at_path {
            let same = at_path.entry(entity.path.clone()).or_default();
            same.insert(entity.id);
        }
        self.changed(entity.id);
        if entity.kind == EntityKind::File && entity.version > 0 {
            self.made(entity.id, &entity.path);
        }
        Ok(())
    }

    fn edge(&mut self, edge: &Edge) -> Result<(), Infallible> {
        let at = match self.uses.entry((edge.activity, edge.entity, edge.relation)) {
            Entry::Occupied(known) => {
                let at = *known.get();
                let known = &mut self.graph.edges[at as usize];
                let former = std::mem::replace(known, *edge);
                if former == *edge {
                    return Ok(());
                }
                self.news
                    .fact(FactPlace::Use(at), former.certainty != edge.certainty);
                if former.interval == edge.interval {
                    return Ok(());
                }
                at
            }
            Entry::Vacant(new) => {
                let at = self.graph.edges.len();
                new.insert(at as u32);
                self.graph.edges.push(*edge);
                self.graph.learn_edge(at);
                self.news.fact(FactPlace::Use(at as u32), true);
                at as u32
            }
        };
        let link = self.graph.link(self.graph.edge_at(at));
        self.link(link);
        Ok(())
    }

    fn inform(&mut self, inform: &Inform) -> Result<(), Infallible> {
        let at = self.graph.informs.len();
        self.graph.informs.push(*inform);
        self.graph.learn_inform(at);
        self.link(informs(inform.why).then_some(FlowLink {
            from: FlowNode::Activity(inform.from),
            to: FlowNode::Activity(inform.to),
            start: inform.time,
            end: inform.time,
        }));
        Ok(())
    }

    fn derived(&mut self, derived: &Derived) -> Result<(), Infallible> {
        let at = self.graph.derived.len();
        self.graph.derived.push(*derived);
        self.graph.learn_derived(at);
        self.link(Some(FlowLink {
            from: FlowNode::Entity(derived.from),
            to: FlowNode::Entity(derived.entity),
            start: derived.time,
            end: derived.time,
        }));
        // The source is a field of the version's facts.
        self.changed(derived.entity);
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
mod tests {
    use backstory_eventlog::event::Via;
    use backstory_graph::model::{Certainty, Interval};

    use super::*;
    use crate::run_graph::tests::version;
    use crate::yaml;

    fn write(entity: u32) -> Edge {
        Edge {
            activity: ActivityId(0),
            entity: EntityId(entity),
            relation: Relation::Write,
            interval: Interval { start: 0, end: 0 },
            certainty: Certainty::Seen,
            via: Via::Library,
        }
    }

    #[test]
    fn a_new_version_of_a_file_concerns_only_the_one_before_it() {
        const LAST: u32 = 100;
        let text =
            "title: t\nid: t\ndetection: {a: {SuccessorFilename|exists: true}, condition: a}\n";
        let rule = Rule::parse(&yaml::documents(text).unwrap()[0], "t.yml").unwrap();
        let mut growing = GrowingGraph::new(&[rule]);
        for number in 0..=LAST {
            let Ok(()) = growing.entity(&version(number, "/f", number));
            let Ok(()) = growing.edge(&write(number));
            let places: Vec<FactPlace> = growing.take_news().facts.into_keys().collect();
            let before = number.checked_sub(1).map(FactPlace::Use);
            let expected: Vec<FactPlace> =
                before.into_iter().chain([FactPlace::Use(number)]).collect();
            assert_eq!(places, expected);
        }
        let mut locked = version(LAST + 1, "/f.locked", 1);
        locked.previous = None;
        let Ok(()) = growing.entity(&locked);
        let facts = growing.take_news().facts;
        assert_eq!(facts, BTreeMap::from([(FactPlace::Use(LAST), true)]));
    }
}
