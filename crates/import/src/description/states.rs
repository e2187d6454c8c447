//! Finds the state of a thing that an activity read, if the document has names only.
//!
//! Each activity that makes a thing begins a state of it. An activity that reads the thing read the
//! last state that was complete when it began. It may also have read a state that was made while
//! it ran, or one whose times are not known.

use super::statements::{ActivityNumber, Description, EntityNumber, Flow, Span};
use backstory_graph::model::{EntityKind, Relation};
use std::collections::HashMap;

/// The things of a document, by their names.
#[derive(Debug, Default)]
pub(crate) struct NamedStates {
    numbers: HashMap<Box<[u8]>, usize>,
    things: Vec<NamedThing>,
}

#[derive(Debug)]
struct NamedThing {
    path: Box<[u8]>,
    kind: EntityKind,
    made: Vec<(ActivityNumber, EntityNumber)>,
    read: Vec<(ActivityNumber, Relation, bool)>,
    /// New names: the activity, and the entity that has the new name.
    moved: Vec<(ActivityNumber, EntityNumber)>,
}

impl NamedStates {
    fn thing(&mut self, path: &[u8], kind: EntityKind) -> &mut NamedThing {
        let at = match self.numbers.get(path) {
            Some(at) => *at,
            None => {
                self.numbers.insert(path.into(), self.things.len());
                self.things.push(NamedThing {
                    path: path.into(),
                    kind,
                    made: Vec::new(),
                    read: Vec::new(),
                    moved: Vec::new(),
                });
                self.things.len() - 1
            }
        };
        &mut self.things[at]
    }

    /// An activity made a thing, or a new state of it.
    pub(crate) fn made(
        &mut self,
        description: &mut Description,
        activity: ActivityNumber,
        path: &[u8],
        kind: EntityKind,
    ) {
        let thing = self.thing(path, kind);
        if thing.made.iter().any(|(maker, _)| *maker == activity) {
            return;
        }
        self.changed(description, activity, (Relation::Write, true), path, kind);
    }

    /// An activity made a thing in this way, or can have done so. Returns the new state, which is
    /// the one that the activity made before, if it made one.
    pub(crate) fn changed(
        &mut self,
        description: &mut Description,
        activity: ActivityNumber,
        (relation, is_certain): (Relation, bool),
        path: &[u8],
        kind: EntityKind,
    ) -> EntityNumber {
        let thing = self.thing(path, kind);
        let own = thing.made.iter().find(|(maker, _)| *maker == activity);
        let entity = match own {
            Some((_, entity)) => *entity,
            None => {
                let entity = description.entity(path.to_vec(), kind);
                thing.made.push((activity, entity));
                entity
            }
        };
        description.flow(Flow {
            activity,
            entity,
            relation,
            is_certain,
            span: Span::default(),
        });
        entity
    }

    /// An activity gave the thing at a path a further name, which `entity` has.
    pub(crate) fn moved(
        &mut self,
        activity: ActivityNumber,
        path: &[u8],
        kind: EntityKind,
        entity: EntityNumber,
    ) {
        self.thing(path, kind).moved.push((activity, entity));
    }

    /// An activity read a thing, whose state is found later.
    pub(crate) fn read(
        &mut self,
        activity: ActivityNumber,
        relation: Relation,
        path: &[u8],
        kind: EntityKind,
    ) {
        self.used(activity, (relation, true), path, kind);
    }

    /// An activity used a thing, or can have used it.
    pub(crate) fn used(
        &mut self,
        activity: ActivityNumber,
        (relation, is_certain): (Relation, bool),
        path: &[u8],
        kind: EntityKind,
    ) {
        let thing = self.thing(path, kind);
        let one = (activity, relation, is_certain);
        // Uses by one activity follow each other.
        let of_activity = thing.read.iter().rev().take_while(|of| of.0 == activity);
        if !of_activity.into_iter().any(|of| *of == one) {
            thing.read.push(one);
        }
    }

    /// Adds the readings, once the times of all activities are known.
    pub(crate) fn finish(self, description: &mut Description) {
        for thing in self.things {
            let mut base = None;
            for (activity, relation, has_happened) in &thing.read {
                let states = thing.states(description, *activity);
                let mut found: Vec<(EntityNumber, bool)> = states.possible;
                let is_certain = found.is_empty();
                let before = states.before.unwrap_or_else(|| {
                    *base.get_or_insert_with(|| description.entity(thing.path.to_vec(), thing.kind))
                });
                found.push((before, is_certain));
                for (entity, is_certain) in found {
                    description.flow(Flow {
                        activity: *activity,
                        entity,
                        relation: *relation,
                        is_certain: is_certain && *has_happened,
                        span: Span::default(),
                    });
                }
            }
            for (activity, entity) in &thing.moved {
                let states = thing.states(description, *activity);
                let own = thing.made.iter().find(|(maker, _)| maker == activity);
                let before = states.before.or(own.map(|(_, own)| *own)).into_iter();
                let mut from: Vec<_> = before.collect();
                from.extend(states.possible.iter().map(|(state, _)| *state));
                if from.is_empty() {
                    from.push(*base.get_or_insert_with(|| {
                        description.entity(thing.path.to_vec(), thing.kind)
                    }));
                }
                for from in from {
                    description.derive(*entity, from, Some(*activity), None);
                }
            }
        }
    }
}

/// The states that a reader can have read.
struct ReadableStates {
    /// The last one that was complete.
    before: Option<EntityNumber>,
    /// Those that it may have read.
    possible: Vec<(EntityNumber, bool)>,
}

impl NamedThing {
    fn states(&self, description: &Description, reader: ActivityNumber) -> ReadableStates {
        let span = |of: ActivityNumber| description.activities[of.0 as usize].span;
        let own = span(reader);
        let mut last = None;
        let mut possible = Vec::new();
        for (maker, entity) in self.made.iter().filter(|(maker, _)| *maker != reader) {
            let made = span(*maker);
            let is_later = matches!((made.start, own.end), (Some(made), Some(own)) if made >= own);
            match (made.end, own.start) {
                (Some(end), Some(start)) if end <= start => {
                    let newer = last.is_none_or(|(known, _)| known <= end);
                    last = if newer { Some((end, *entity)) } else { last };
                }
                _ if is_later => {}
                _ => possible.push((*entity, false)),
            }
        }
        ReadableStates {
            before: last.map(|(_, entity)| entity),
            possible,
        }
    }
}
