//! One step of a lineage: from a node, and the time that matters there, to its neighbours.
//!
//! Backwards (`of`) a node carries the latest moment at which what was in it can have come to the root; forwards (`uses`) the
//! earliest moment at which what comes from the root can be in it. A step exists if the two intervals allow information to
//! flow, so every path taken is one that respects time:
//!
//! ```text
//! entity   ← activity   generated from g0 to g1, entity read until t:    g0 ≤ t, and then min(g1, t)
//! activity ← entity     used from u0 to u1, activity writes until t:     u0 ≤ t, and then min(u1, t)
//! activity ← activity   forked or executed at f:                         min(f, t)
//! entity   ← entity     derived at d:                                    d ≤ t, and then d
//! entity   ← entity     the same version, or content, in another run:     t
//! ```
//!
//! Forwards it is the mirror of this. `backstory_graph::lineage` is the definition; it knows one run, in memory.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use backstory_eventlog::event::{Ident, Time};
use backstory_graph::lineage::{generates, informs as passes_on, uses};
use backstory_graph::model::{Certainty, Derived, Edge, Entity, EntityId, Interval};
use backstory_store::{ActivityKey, EntityKey, Role, RunKey, Store, Stream};

use crate::answer::{Flow, Scope};
use crate::{Result, alike};

/// Which way to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To what it came from.
    Back,
    /// To what came from it.
    Forth,
}

/// A node of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    Entity(EntityKey),
    Activity(ActivityKey),
}

/// A neighbour and how it is reached.
#[derive(Debug, Clone)]
pub struct Step {
    pub to: Key,
    pub flow: Flow,
    pub certainty: Certainty,
    pub interval: Interval,
    /// The time that matters at the neighbour.
    pub time: Time,
}

/// What an activity did, findable by entity.
struct Deeds {
    stream: Stream,
    /// Generating edges going back, using edges going forth.
    edges: HashMap<EntityId, Vec<u32>>,
    /// Derivations: by the new version going back, by the old one going forth.
    derived: HashMap<EntityId, Vec<u32>>,
    /// What it made.
    made: HashSet<EntityId>,
    /// What came of another version while it ran: made, too, unless it is but another name of what was there before the run.
    derived_to: HashSet<EntityId>,
}

/// Takes steps in one direction.
pub struct Steps<'s> {
    store: &'s dyn Store,
    direction: Direction,
    possible: bool,
    lookups: bool,
    /// Stay in this run.
    run: Option<RunKey>,
    deeds: RefCell<HashMap<ActivityKey, Rc<Deeds>>>,
}

impl<'s> Steps<'s> {
    /// Steps as `scope` allows them, within `run` if there is one.
    pub fn new(store: &'s dyn Store, direction: Direction, scope: &Scope, run: Option<RunKey>) -> Self {
        let (possible, lookups) = (scope.possible, scope.lookups);
        Steps {
            store,
            direction,
            possible,
            lookups,
            run,
            deeds: RefCell::default(),
        }
    }

    /// All neighbours of `key`, when `time` matters there. `entity` is what `key` means, if it is one.
    pub fn around(&self, key: Key, entity: Option<&Entity>, time: Time) -> Result<Vec<Step>> {
        match (key, entity) {
            (Key::Entity(key), Some(entity)) => self.around_entity(key, entity, time),
            (Key::Activity(key), _) => self.around_activity(key, time),
            (Key::Entity(key), None) => self.around_entity(key, &self.store.entity(key)?, time),
        }
    }

    fn deeds(&self, key: ActivityKey) -> Result<Rc<Deeds>> {
        if let Some(deeds) = self.deeds.borrow().get(&key) {
            return Ok(deeds.clone());
        }
        let deeds = Rc::new(Deeds::new(self.store.stream(key)?, self.direction));
        self.deeds.borrow_mut().insert(key, deeds.clone());
        Ok(deeds)
    }

    fn follows(&self, edge: &Edge) -> bool {
        let relation = generates(edge.relation) || uses(edge.relation, self.lookups);
        relation && (self.possible || edge.certainty == Certainty::Seen)
    }

    /// If information could flow at a time that matters: what matters on the other side.
    fn meet(&self, interval: Interval, time: Time) -> Option<Time> {
        match self.direction {
            Direction::Back => (interval.start <= time).then(|| interval.end.min(time)),
            Direction::Forth => (interval.end >= time).then(|| interval.start.max(time)),
        }
    }

    fn around_entity(&self, key: EntityKey, entity: &Entity, time: Time) -> Result<Vec<Step>> {
        let mut steps = Vec::new();
        for (activity, generated) in self.store.touching(key)? {
            if !generated && self.direction == Direction::Back {
                continue;
            }
            let doer = ActivityKey::new(key.run(), activity);
            let deeds = self.deeds(doer)?;
            for edge in deeds.edges_of(key.local()) {
                if let Some(time) = self.meet(edge.interval, time).filter(|_| self.follows(edge)) {
                    steps.push(step(Key::Activity(doer), edge, time));
                }
            }
            steps.extend(
                deeds
                    .derived_of(key.local())
                    .filter_map(|derived| self.derived(key.run(), derived, time)),
            );
        }
        self.to_other_runs(key, entity, time, &mut steps)?;
        Ok(steps)
    }

    fn derived(&self, run: RunKey, derived: &Derived, time: Time) -> Option<Step> {
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
        Some(Step {
            to,
            flow: Flow::Derived,
            certainty: Certainty::Seen,
            interval,
            time,
        })
    }

    /// A version that nobody in its run made came, perhaps, from another run, where one made it.
    fn to_other_runs(
        &self,
        key: EntityKey,
        entity: &Entity,
        time: Time,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let Some(ident) = entity.ident.filter(|_| self.run.is_none()) else {
            return Ok(());
        };
        let back = self.direction == Direction::Back;
        if self.is_made(key, entity)? == back {
            return Ok(());
        }
        let mut found = Vec::new();
        if back {
            found.extend(
                self.made_elsewhere(key, &ident)?
                    .into_iter()
                    .map(|other| (other, Flow::Same)),
            );
        } else {
            for other in self.store.same(&ident, Role::Any)? {
                if other.run() != key.run() && !self.is_made_there(other)? {
                    found.push((other, Flow::Same));
                }
            }
        }
        let alike = match self.direction {
            Direction::Back if found.is_empty() => self.origin(key, &ident)?.into_iter().collect(),
            Direction::Back => Vec::new(),
            Direction::Forth => self.copies(key, &ident)?,
        };
        found.extend(alike.into_iter().map(|other| (other, Flow::Alike)));
        for (other, flow) in found {
            let interval = Interval {
                start: ident.mtime.min(time),
                end: ident.mtime.max(time.min(ident.ctime)),
            };
            steps.push(Step {
                to: Key::Entity(other),
                flow,
                certainty: Certainty::Seen,
                interval,
                time,
            });
        }
        Ok(())
    }

    /// Versions of other runs that nobody made there, and whose content, as far as is known, came from this one.
    fn copies(&self, key: EntityKey, ident: &Ident) -> Result<Vec<EntityKey>> {
        let mut found = Vec::new();
        for other in alike::others(self.store, ident)? {
            for copy in self.store.same(&other, Role::Any)? {
                let joined = copy.run() == key.run() || self.is_made_there(copy)?;
                let by_identity = || Result::Ok(!self.made_elsewhere(copy, &other)?.is_empty());
                if !joined && !by_identity()? && self.origin(copy, &other)? == Some(key) {
                    found.push(copy);
                }
            }
        }
        Ok(found)
    }

    /// Where its content came from, if nobody is known to have made it.
    fn origin(&self, key: EntityKey, ident: &Ident) -> Result<Option<EntityKey>> {
        alike::origin(self.store, ident, |other| self.made_elsewhere(key, other))
    }

    /// The same version, where another run made it.
    fn made_elsewhere(&self, key: EntityKey, ident: &Ident) -> Result<Vec<EntityKey>> {
        let mut found = Vec::new();
        for other in self.store.same(ident, Role::Made)? {
            if other.run() != key.run() && self.is_made_there(other)? {
                found.push(other);
            }
        }
        Ok(found)
    }

    fn is_made_there(&self, key: EntityKey) -> Result<bool> {
        self.is_made(key, &self.store.entity(key)?)
    }

    /// Whether something in its run made this version. What was there before the run (version 0) was not made by being used by a
    /// second name, though that name's node derives from the first's: two runs could else each have it from the other.
    fn is_made(&self, key: EntityKey, entity: &Entity) -> Result<bool> {
        for (activity, generated) in self.store.touching(key)? {
            if !generated {
                continue;
            }
            let deeds = self.deeds(ActivityKey::new(key.run(), activity))?;
            let grew = entity.version > 0 && deeds.derived_to.contains(&key.local());
            if grew || deeds.made.contains(&key.local()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn around_activity(&self, key: ActivityKey, time: Time) -> Result<Vec<Step>> {
        let deeds = self.deeds(key)?;
        let mut steps = Vec::new();
        for edge in &deeds.stream.edges {
            let wanted = edge.relation.is_use() == (self.direction == Direction::Back);
            if let Some(time) = self
                .meet(edge.interval, time)
                .filter(|_| wanted && self.follows(edge))
            {
                steps.push(step(
                    Key::Entity(EntityKey::new(key.run(), edge.entity)),
                    edge,
                    time,
                ));
            }
        }
        let informs = match self.direction {
            Direction::Back => &deeds.stream.informed_by,
            Direction::Forth => &deeds.stream.informs,
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
                steps.push(Step {
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

impl Deeds {
    fn new(stream: Stream, direction: Direction) -> Deeds {
        let mut deeds = Deeds {
            stream,
            edges: HashMap::new(),
            derived: HashMap::new(),
            made: HashSet::new(),
            derived_to: HashSet::new(),
        };
        for (at, edge) in (0..).zip(&deeds.stream.edges) {
            if edge.relation.is_use() == (direction == Direction::Forth) {
                deeds.edges.entry(edge.entity).or_default().push(at);
            }
            if generates(edge.relation) {
                deeds.made.insert(edge.entity);
            }
        }
        for (at, derived) in (0..).zip(&deeds.stream.derived) {
            let end = if direction == Direction::Back {
                derived.entity
            } else {
                derived.from
            };
            deeds.derived.entry(end).or_default().push(at);
            deeds.derived_to.insert(derived.entity);
        }
        deeds
    }

    fn edges_of(&self, entity: EntityId) -> impl Iterator<Item = &Edge> {
        self.edges
            .get(&entity)
            .into_iter()
            .flatten()
            .map(|at| &self.stream.edges[*at as usize])
    }

    fn derived_of(&self, entity: EntityId) -> impl Iterator<Item = &Derived> {
        self.derived
            .get(&entity)
            .into_iter()
            .flatten()
            .map(|at| &self.stream.derived[*at as usize])
    }
}

fn step(to: Key, edge: &Edge, time: Time) -> Step {
    let flow = if edge.relation.is_use() {
        Flow::Used(edge.relation)
    } else {
        Flow::Generated(edge.relation)
    };
    Step {
        to,
        flow,
        certainty: edge.certainty,
        interval: edge.interval,
        time,
    }
}
