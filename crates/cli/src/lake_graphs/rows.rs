//! The lines that `backstory-lake graphs` writes, and the graph that the rows of a run make.
//!
//! Invariant: no line makes a graph with a node that is missing. Many machines write a lake, so a
//! link to a row that is not there is left out.

use std::collections::{HashMap, HashSet};

use backstory_eventlog::event::{Bytes, Via};
use backstory_graph::model::{
    Activity, ActivityId, Certainty, Derived, Edge, Entity, EntityId, EntityKind, Inform, Informed,
    Interval, Relation, Sink,
};
use backstory_hunt::RunGraph;
use backstory_vocabulary::Word;
use backstory_workflow::shell;

use super::LakePlace;

/// A line.
pub enum Row {
    /// How many runs there are, how many follow, and how many of those lack other names of files.
    Counts {
        all: usize,
        chosen: usize,
        older: usize,
    },
    /// A run begins.
    Run {
        id: String,
        place: LakePlace,
        edges: usize,
    },
    /// A part of its graph.
    Part(Part),
    /// It ends.
    EndOfRun,
    /// The answer ends.
    End,
}

/// A node or an edge. The ids are those of the lake, which may have gaps.
pub enum Part {
    Activity(Activity),
    /// The version, and whether no recorded run explains it.
    Entity(Entity, bool),
    Edge(Edge),
    Derived(Derived),
    Inform(Inform),
}

/// The rows of a run.
#[derive(Default)]
pub struct GraphRows {
    activities: Vec<Activity>,
    entities: Vec<(Entity, bool)>,
    edges: Vec<Edge>,
    derived: Vec<Derived>,
    informs: Vec<Inform>,
}

/// The cells of a line.
struct Cells<'l>(std::slice::Split<'l, u8, fn(&u8) -> bool>);

impl<'l> Cells<'l> {
    fn of(line: &'l [u8]) -> Cells<'l> {
        Cells(line.split(|byte| *byte == b','))
    }

    fn word(&mut self) -> Option<&'l str> {
        std::str::from_utf8(self.0.next()?).ok()
    }

    fn number<T: std::str::FromStr>(&mut self) -> Option<T> {
        self.word()?.parse().ok()
    }

    /// A number that may be missing.
    fn maybe<T: std::str::FromStr>(&mut self) -> Option<Option<T>> {
        match self.word()? {
            "" => Some(None),
            word => word.parse().ok().map(Some),
        }
    }

    /// A text in hexadecimal digits.
    fn bytes(&mut self) -> Option<Vec<u8>> {
        let digits = self.0.next()?;
        let digit = |byte: &u8| char::from(*byte).to_digit(16);
        let byte = |pair: &[u8]| match pair {
            [high, low] => u8::try_from(digit(high)? << 4 | digit(low)?).ok(),
            _ => None,
        };
        digits.chunks(2).map(byte).collect()
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?).ok()
    }

    /// The words of a command. A command that was hidden is one word.
    fn words(&mut self) -> Option<Vec<Bytes>> {
        let line = self.text()?;
        let words = shell::words(&line).unwrap_or_else(|| vec![line.into_bytes()]);
        Some(words.into_iter().map(Into::into).collect())
    }

    fn interval(&mut self) -> Option<Interval> {
        let (start, end) = (self.maybe()?.unwrap_or(0), self.maybe()?.unwrap_or(0));
        Some(Interval { start, end })
    }
}

impl Row {
    /// Reads a line. `None`: it is of another kind, or damaged.
    pub fn parse(line: &[u8]) -> Option<Row> {
        let mut cells = Cells::of(line);
        Some(match cells.word()? {
            "n" => Row::Counts {
                all: cells.number()?,
                chosen: cells.number()?,
                older: cells.number()?,
            },
            "r" => {
                let (id, host) = (cells.text()?, cells.text()?);
                let place = LakePlace {
                    host,
                    machine: cells.text()?,
                    is_shared: cells.word()? == "1",
                };
                let edges = cells.number()?;
                Row::Run { id, place, edges }
            }
            "p" => Row::Part(Part::Activity(activity(&mut cells)?)),
            "f" => {
                let entity = entity(&mut cells)?;
                Row::Part(Part::Entity(entity, cells.word()? == "1"))
            }
            "e" => Row::Part(Part::Edge(edge(&mut cells)?)),
            "d" => Row::Part(Part::Derived(Derived {
                entity: EntityId(cells.number()?),
                from: EntityId(cells.number()?),
                activity: ActivityId(cells.maybe()?.unwrap_or(0)),
                time: cells.number()?,
            })),
            "i" => {
                let (to, from) = (ActivityId(cells.number()?), ActivityId(cells.number()?));
                let word = cells.word()?;
                let why = Informed::ALL
                    .into_iter()
                    .find(|why| why.words().word == word)?;
                let time = cells.number()?;
                Row::Part(Part::Inform(Inform {
                    from,
                    to,
                    why,
                    time,
                }))
            }
            "." => Row::EndOfRun,
            "end" => Row::End,
            _ => return None,
        })
    }
}

fn activity(cells: &mut Cells<'_>) -> Option<Activity> {
    let (id, parent) = (ActivityId(cells.number()?), cells.maybe()?.map(ActivityId));
    let pid = cells.maybe()?.unwrap_or(0);
    let program = Some(cells.bytes()?).filter(|path| !path.is_empty());
    Some(Activity {
        id,
        parent,
        pid,
        epoch: 0,
        exec_path: program.map(Into::into),
        argv: cells.words()?,
        env_set: Vec::new(),
        env_unset: Vec::new(),
        cwd: cells.bytes()?.into(),
        interval: cells.interval()?,
        exit: cells.maybe()?,
        signal: None,
        execed: false,
        lookups_known: false,
        via: Via::Library,
    })
}

fn entity(cells: &mut Cells<'_>) -> Option<Entity> {
    Some(Entity {
        id: EntityId(cells.number()?),
        path: cells.bytes()?.into(),
        kind: kind(cells.word()?),
        version: cells.maybe()?.unwrap_or(0),
        previous: cells.maybe()?.map(EntityId),
        aliases: cells.words()?,
        by_name: Vec::new(),
        ident: None,
        last: false,
    })
}

/// The kind with this word. A kind of a later version is like a device, of which rules ask nothing.
fn kind(word: &str) -> EntityKind {
    let known = EntityKind::ALL.into_iter().find(|kind| kind.word() == word);
    known.unwrap_or(EntityKind::Device)
}

fn edge(cells: &mut Cells<'_>) -> Option<Edge> {
    let (activity, entity) = (ActivityId(cells.number()?), EntityId(cells.number()?));
    let word = cells.word()?;
    let mut relations = Relation::ALL.into_iter();
    let relation = relations.find(|relation| relation.words().word == word)?;
    Some(Edge {
        activity,
        entity,
        relation,
        certainty: Certainty::from_word(cells.word()?).ok()?,
        interval: cells.interval()?,
        via: Via::Library,
    })
}

impl GraphRows {
    /// Adds a row.
    pub fn add(&mut self, part: Part) {
        match part {
            Part::Activity(activity) => self.activities.push(activity),
            Part::Entity(entity, unexplained) => self.entities.push((entity, unexplained)),
            Part::Edge(edge) => self.edges.push(edge),
            Part::Derived(derived) => self.derived.push(derived),
            Part::Inform(inform) => self.informs.push(inform),
        }
    }

    /// The graph. The ids become dense and keep their order. If runs were compared, the graph has
    /// what no recorded run explains.
    pub fn graph(mut self, compares: bool) -> RunGraph {
        self.activities.sort_by_key(|one| one.id);
        self.activities.dedup_by_key(|one| one.id);
        self.entities.sort_by_key(|(one, _)| one.id);
        self.entities.dedup_by_key(|(one, _)| one.id);
        let ids = self.activities.iter().map(|one| one.id);
        let ids: HashMap<ActivityId, ActivityId> = ids.zip((0..).map(ActivityId)).collect();
        let activity = |id: ActivityId| ids.get(&id).copied();
        let ids = self.entities.iter().map(|(one, _)| one.id);
        let ids: HashMap<EntityId, EntityId> = ids.zip((0..).map(EntityId)).collect();
        let entity = |id: EntityId| ids.get(&id).copied();
        let mut graph = RunGraph::default();
        let mut unexplained = HashSet::new();
        for (place, one) in (0..).zip(&mut self.activities) {
            one.id = ActivityId(place);
            one.parent = one.parent.and_then(activity);
            let Ok(()) = graph.activity(one);
        }
        for (place, (one, is_unexplained)) in (0..).zip(&mut self.entities) {
            one.id = EntityId(place);
            one.previous = one.previous.and_then(entity);
            if *is_unexplained {
                unexplained.insert(one.id);
            }
            let Ok(()) = graph.entity(one);
        }
        for mut one in self.edges {
            if let (Some(by), Some(of)) = (activity(one.activity), entity(one.entity)) {
                (one.activity, one.entity) = (by, of);
                let Ok(()) = graph.edge(&one);
            }
        }
        for mut one in self.derived {
            if let (Some(new), Some(from)) = (entity(one.entity), entity(one.from)) {
                (one.entity, one.from) = (new, from);
                let Ok(()) = graph.derived(&one);
            }
        }
        for mut one in self.informs {
            if let (Some(from), Some(to)) = (activity(one.from), activity(one.to)) {
                (one.from, one.to) = (from, to);
                let Ok(()) = graph.inform(&one);
            }
        }
        graph.complete();
        if compares {
            graph.set_unexplained(unexplained);
        }
        graph
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The graph of these lines.
    fn graph(lines: &[&str]) -> RunGraph {
        let mut rows = GraphRows::default();
        for line in lines {
            match Row::parse(line.as_bytes()) {
                Some(Row::Part(part)) => rows.add(part),
                _ => panic!("{line}"),
            }
        }
        rows.graph(false)
    }

    const PROCESS: &str = "p,0,,7,2f7368,7368,2f,1,2,0";

    #[test]
    fn a_link_to_a_row_that_is_not_there_is_left_out() {
        let graph = graph(&[
            PROCESS,
            "f,4294967295,2f61,file,0,3,,0",
            "f,9,2f62,file,1,,,0",
            "e,0,4294967295,read,seen,1,2",
            "e,0,7,read,seen,1,2",
            "e,5,9,read,seen,1,2",
            "d,9,8,0,1",
            "i,0,9,fork,1",
        ]);
        assert_eq!(graph.edges(), 1);
        let facts: Vec<_> = graph.facts().map(|fact| fact.entity).collect();
        assert_eq!(facts, [None, Some(EntityId(1))]);
    }

    #[test]
    fn a_line_that_is_none_of_a_graph_is_refused() {
        for line in [
            "",
            "x",
            "p,0",
            "f,a,,file,0,,,0",
            "e,0,0,eat,seen,1,2",
            "f,0,2,file,0,,,0",
        ] {
            assert!(Row::parse(line.as_bytes()).is_none(), "{line}");
        }
        assert!(Row::parse(PROCESS.as_bytes()).is_some());
    }
}
