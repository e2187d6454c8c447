//! One step of a lineage: from a node, and the time that matters there, to its neighbours.
//!
//! Backwards (`of`), a node carries the latest moment at which its content can have flowed to the
//! root. Forwards (`uses`), it carries the earliest moment at which the root's content can be in
//! it. A step exists if the two intervals allow information to flow, so every path respects time:
//!
//! ```text
//! entity   ← activity   generated from g0 to g1, entity read until t:  g0 ≤ t, then min(g1, t)
//! activity ← entity     used from u0 to u1, activity writes until t:   u0 ≤ t, then min(u1, t)
//! activity ← activity   forked or executed at f:                       min(f, t)
//! entity   ← entity     derived at d:                                  d ≤ t, then d
//! entity   ← entity     the same version, or content, in another run:  t, by the other's clock
//!                                                                      if it was set in between
//! ```
//!
//! Forwards the rules are mirrored. `backstory_graph::lineage` is the definition, for one run in
//! memory.

mod activity_index;
mod answers;
mod by_connection;
mod by_name;
mod client_sockets;
mod other_runs;

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use backstory_eventlog::event::Time;
use backstory_files::Ident;
use backstory_graph::lineage::{generates, informs as passes_on, uses};
use backstory_graph::model::{
    ActivityId, Certainty, Derived, Edge, EntityId, EntityKind, Interval,
};
use backstory_store::{ActivityKey, EntityKey, RunKey, Store};
use rustc_hash::FxHashMap;

use crate::Result;
use crate::answer::{Flow, Scope};
use crate::connections::CommonConnections;
use crate::session_clients::SessionClients;
use crate::version_facts::VersionFacts;
use activity_index::ActivityIndex;
use answers::ReadAnswers;
use client_sockets::{ClientSocket, UsersByConnection};

/// The direction of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Towards the origins.
    Back,
    /// Towards the results.
    Forth,
}

impl Direction {
    /// The time that matters at a subject: it restricts nothing.
    pub(crate) fn always(self) -> Time {
        match self {
            Direction::Back => Time::MAX,
            Direction::Forth => Time::MIN,
        }
    }
}

/// A node of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// A version.
    Entity(EntityKey),
    /// An exec epoch.
    Activity(ActivityKey),
}

/// Edges of activities that are kept at most before all are dropped.
const MOST_INDEXED: usize = 1 << 18;

/// A neighbour, and the link to it.
#[derive(Debug, Clone)]
pub struct Neighbour {
    /// The node that the step begins at, if it is another one than that around which it was found.
    pub from: Option<Key>,
    pub to: Key,
    pub flow: Flow,
    pub certainty: Certainty,
    pub interval: Interval,
    /// The time that matters at the neighbour.
    pub time: Time,
}

/// Facts about an entity that a step needs beside its key.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    pub ident: Option<Ident>,
    pub version: u32,
    pub kind: EntityKind,
}

/// The connections that two runs have in common: the run of the clients, and that of the servers.
type ConnectionsOfRuns = FxHashMap<(RunKey, RunKey), Rc<CommonConnections>>;

/// Takes steps in one direction.
pub struct NeighbourFinder<'s> {
    store: &'s dyn Store,
    direction: Direction,
    possible: bool,
    lookups: bool,
    /// If set, stay in this run.
    run: Option<RunKey>,
    /// If set, stay in this run and newer ones.
    since: Option<RunKey>,
    indexes: RefCell<FxHashMap<ActivityKey, Rc<ActivityIndex>>>,
    /// The edges in `indexes`.
    indexed: Cell<usize>,
    /// Whether versions of other runs were made there. Every run that knows a version needs the
    /// same answers.
    made_there: RefCell<FxHashMap<EntityKey, bool>>,
    /// The headers of runs, the ends of their connections, and the recorded clients of servers.
    session_clients: SessionClients<'s>,
    common_connections: RefCell<ConnectionsOfRuns>,
    /// The runs that made a version. All runs that read it need the same answer.
    made: RefCell<FxHashMap<Ident, Rc<[EntityKey]>>>,
    /// The facts about the contents of versions.
    facts: VersionFacts<'s>,
    /// Whether the outputs of a run were put back.
    undone: RefCell<FxHashMap<RunKey, bool>>,
    /// The activities around which steps were looked for, and the best time that mattered there.
    visited: RefCell<FxHashMap<ActivityKey, Time>>,
    /// The connections behind the things that the processes of a run share.
    shared: RefCell<FxHashMap<EntityKey, Rc<Vec<ClientSocket>>>>,
    /// The recorded processes that used connections, by the server's run and the connection's name.
    socket_users: RefCell<UsersByConnection>,
    /// Answers of watched servers that their clients have read.
    answers: RefCell<ReadAnswers>,
}

impl<'s> NeighbourFinder<'s> {
    /// NeighbourFinder as `scope` allows them, within `run` if there is one.
    pub fn new(
        store: &'s dyn Store,
        direction: Direction,
        scope: &Scope,
        run: Option<RunKey>,
    ) -> Self {
        let (possible, lookups) = (scope.possible, scope.lookups);
        NeighbourFinder {
            store,
            direction,
            possible,
            lookups,
            run,
            since: scope.since,
            indexes: RefCell::default(),
            indexed: Cell::default(),
            made_there: RefCell::default(),
            made: RefCell::default(),
            facts: VersionFacts::new(store),
            session_clients: SessionClients::new(store),
            common_connections: RefCell::default(),
            undone: RefCell::default(),
            visited: RefCell::default(),
            shared: RefCell::default(),
            socket_users: RefCell::default(),
            answers: RefCell::default(),
        }
    }

    /// All neighbours of `key`, where `time` matters there. `seen` holds the known facts of an
    /// entity.
    pub fn around(&self, key: Key, seen: Option<Seen>, time: Time) -> Result<Vec<Neighbour>> {
        match (key, seen) {
            (Key::Entity(key), Some(seen)) => self.around_entity(key, seen, time),
            (Key::Activity(key), _) => self.around_activity(key, time),
            (Key::Entity(key), None) => self.around_entity(key, self.seen(key)?, time),
        }
    }

    /// The facts about the contents of versions.
    pub(crate) fn facts(&self) -> &VersionFacts<'s> {
        &self.facts
    }

    /// The known facts of an entity.
    fn seen(&self, key: EntityKey) -> Result<Seen> {
        let entity = self.store.entity(key)?;
        Ok(Seen {
            ident: entity.ident,
            version: entity.version,
            kind: entity.kind,
        })
    }

    fn index_of(&self, key: ActivityKey) -> Result<Rc<ActivityIndex>> {
        if let Some(index) = self.indexes.borrow().get(&key) {
            return Ok(index.clone());
        }
        let mut stream = self.store.stream(key)?;
        // Most edges of a compiler are look-ups, and a large answer has thousands of compilers.
        stream
            .edges
            .retain(|edge| generates(edge.relation) || self.follows(edge));
        stream.edges.shrink_to_fit();
        let index = Rc::new(ActivityIndex::new(stream, self.direction));
        let mut indexes = self.indexes.borrow_mut();
        if self.indexed.get() > MOST_INDEXED {
            // A search goes on in the order of time, and hardly returns to these.
            indexes.clear();
            self.indexed.set(0);
        }
        self.indexed
            .set(self.indexed.get() + index.stream.edges.len());
        indexes.insert(key, index.clone());
        drop(indexes);
        Ok(index)
    }

    fn follows(&self, edge: &Edge) -> bool {
        let relation = generates(edge.relation) || uses(edge.relation, self.lookups);
        relation && (self.possible || edge.certainty == Certainty::Seen)
    }

    /// The time that matters on the other side. `None` if information cannot flow at the given
    /// time.
    fn meet(&self, interval: Interval, time: Time) -> Option<Time> {
        match self.direction {
            Direction::Back => (interval.start <= time).then(|| interval.end.min(time)),
            Direction::Forth => (interval.end >= time).then(|| interval.start.max(time)),
        }
    }

    fn around_entity(&self, key: EntityKey, seen: Seen, time: Time) -> Result<Vec<Neighbour>> {
        let mut steps = Vec::new();
        let touching = match self.direction {
            Direction::Back => self.store.generators(key)?,
            Direction::Forth => {
                let touching = self.store.touching(key)?.into_iter();
                let mut touching: Vec<_> = touching.map(|(activity, _)| activity).collect();
                // One that read and wrote is there twice.
                touching.sort_unstable();
                touching.dedup();
                touching
            }
        };
        for &activity in &touching {
            let doer = ActivityKey::new(key.run(), activity);
            let index = self.index_of(doer)?;
            for edge in index.edges_of(key.local()) {
                if let Some(time) = self
                    .meet(edge.interval, time)
                    .filter(|_| self.follows(edge))
                {
                    if seen.kind == EntityKind::Socket {
                        self.note_maker(key, doer, edge.interval.start);
                    }
                    steps.push(step(Key::Activity(doer), edge, time));
                }
            }
            steps.extend(
                index
                    .derived_of(key.local())
                    .filter_map(|derived| self.derived(key.run(), derived, time)),
            );
        }
        let generators = match self.direction {
            Direction::Back => Some(&touching[..]),
            Direction::Forth => None,
        };
        self.to_other_runs(key, (seen, generators), time, &mut steps)?;
        self.to_same_name(key, seen, time, &mut steps)?;
        Ok(steps)
    }

    fn derived(&self, run: RunKey, derived: &Derived, time: Time) -> Option<Neighbour> {
        let interval = Interval {
            start: derived.time,
            end: derived.time,
        };
        let time = self.meet(interval, time)?;
        let to = match self.direction {
            Direction::Back => derived.from,
            Direction::Forth => derived.entity,
        };
        let to = Key::Entity(EntityKey::new(run, to));
        Some(Neighbour {
            from: None,
            to,
            flow: Flow::Derived,
            certainty: Certainty::Seen,
            interval,
            time,
        })
    }

    /// True if its run made this version. By two rules, two runs never each have it from the other:
    ///
    /// - A file from before the run (version 0) may be used by a second name, whose node derives
    ///   from the first one's. That does not make the file.
    /// - A program may open a file to read and write, and only read. Its write is possible. It
    ///   wrote nothing if the status of the file last changed before the run.
    ///
    /// `generators` are those of the version, if they are known already.
    fn is_made(
        &self,
        key: EntityKey,
        generators: Option<&[ActivityId]>,
        seen: impl Fn() -> Result<Seen>,
    ) -> Result<bool> {
        let generators = match generators {
            Some(known) => Cow::Borrowed(known),
            None => Cow::Owned(self.store.generators(key)?),
        };
        for &activity in &*generators {
            let index = self.index_of(ActivityKey::new(key.run(), activity))?;
            let is_in = |list: &[EntityId]| list.binary_search(&key.local()).is_ok();
            if is_in(&index.made)
                || (is_in(&index.derived_to) && seen()?.version > 0)
                || (is_in(&index.perhaps_made) && !self.is_older(key.run(), seen()?.ident)?)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// True if a file surely did not change since the run began.
    fn is_older(&self, run: RunKey, ident: Option<Ident>) -> Result<bool> {
        let started = self.header(run)?.started;
        Ok(ident.is_some_and(|ident| ident.changed_before(started)))
    }

    fn around_activity(&self, key: ActivityKey, time: Time) -> Result<Vec<Neighbour>> {
        let index = self.index_of(key)?;
        let mut steps = Vec::new();
        for edge in &index.stream.edges {
            let wanted = edge.relation.is_use() == (self.direction == Direction::Back);
            if !wanted || !self.follows(edge) {
                continue;
            }
            let reach = self.reach_of_use(key, edge, time)?;
            if let Some(time) = self.meet(edge.interval, reach) {
                steps.push(step(
                    Key::Entity(EntityKey::new(key.run(), edge.entity)),
                    edge,
                    time,
                ));
            }
        }
        self.note_visit(key, &index.stream.edges, time);
        self.to_own_connections(key, &index.stream.edges, time, &mut steps)?;
        let informs = match self.direction {
            Direction::Back => &index.stream.informed_by,
            Direction::Forth => &index.stream.informs,
        };
        for inform in informs.iter().filter(|inform| passes_on(inform.why)) {
            let (other, known) = match self.direction {
                Direction::Back => (inform.from, Some(inform.time.min(time))),
                Direction::Forth => (inform.to, (inform.time >= time).then_some(inform.time)),
            };
            if let Some(time) = known {
                let (to, flow) = (
                    Key::Activity(ActivityKey::new(key.run(), other)),
                    Flow::Informed(inform.why),
                );
                let interval = Interval {
                    start: inform.time,
                    end: inform.time,
                };
                steps.push(Neighbour {
                    from: None,
                    to,
                    flow,
                    certainty: Certainty::Seen,
                    interval,
                    time,
                });
            }
        }
        Ok(steps)
    }
}

fn step(to: Key, edge: &Edge, time: Time) -> Neighbour {
    let flow = if edge.relation.is_use() {
        Flow::Used(edge.relation)
    } else {
        Flow::Generated(edge.relation)
    };
    Neighbour {
        from: None,
        to,
        flow,
        certainty: edge.certainty,
        interval: edge.interval,
        time,
    }
}
