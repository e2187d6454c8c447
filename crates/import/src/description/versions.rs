//! Orders the states of each thing, and numbers them.
//!
//! Files, directories and things that a source names have versions, by their names. Every pipe is
//! another one.

use super::moments::DescribedMoments;
use super::statements::{Description, EntityNumber};
use backstory_eventlog::event::Time;
use backstory_graph::lineage;
use backstory_graph::model::{EntityKind, Relation};
use backstory_ordering::SmallSort;
use std::collections::HashMap;

/// The state of a thing.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DescribedVersion {
    /// The entity of the document that stands for it and its equals.
    pub(super) first: u32,
    /// Its number.
    pub(super) version: u32,
    /// The entity before it.
    pub(super) previous: Option<u32>,
    /// No later state is described.
    pub(super) last: bool,
}

/// Makes the pairs of equal entities one, and numbers the versions of each name.
pub(super) fn versions(
    description: &Description,
    moments: &DescribedMoments,
) -> Vec<DescribedVersion> {
    let many = description.entities.len();
    let first = united(description);
    let mut made: Vec<Option<Time>> = vec![None; many];
    let mut used: Vec<Option<Time>> = vec![None; many];
    let mut gone = vec![false; many];
    for (flow, interval) in description.flows.iter().zip(&moments.flows) {
        let at = first[flow.entity.0 as usize] as usize;
        gone[at] |= flow.relation == Relation::Delete;
        let moment = match lineage::generates(flow.relation) {
            true => &mut made[at],
            false => &mut used[at],
        };
        *moment = Some(moment.map_or(interval.start, |known| known.min(interval.start)));
    }
    for derivation in &description.derivations {
        let at = first[derivation.entity.0 as usize] as usize;
        let time = derivation.time.or(used[at]).unwrap_or(Time::MIN);
        made[at].get_or_insert(time);
    }
    let mut by_name: HashMap<&[u8], Vec<u32>> = HashMap::new();
    let mut all = vec![DescribedVersion::default(); many];
    for (at, entity) in description.entities.iter().enumerate() {
        all[at] = DescribedVersion {
            first: first[at],
            version: entity.version.unwrap_or(u32::from(made[at].is_some())),
            ..DescribedVersion::default()
        };
        if first[at] as usize == at && has_versions(entity.kind) {
            by_name.entry(&entity.path).or_default().push(at as u32);
        }
    }
    for states in by_name.values_mut() {
        // The state from before comes first, then those that were made, by their time.
        let key = |at: &u32| {
            let known = description.entities[*at as usize].version;
            let made = made[*at as usize];
            (
                made.or(used[*at as usize].filter(|_| states_are_many(description, known))),
                known,
                *at,
            )
        };
        states.sort_small_by_key(key);
        number(description, states, &made, &mut all);
        if let Some(last) = states.last() {
            all[*last as usize].last = !gone[*last as usize];
        }
    }
    all
}

/// True if the document itself numbers versions, so that a number says nothing across its runs.
fn states_are_many(description: &Description, known: Option<u32>) -> bool {
    known.is_some() && !description.same.is_empty()
}

fn has_versions(kind: EntityKind) -> bool {
    use EntityKind::{Directory, File, Missing, Resource, Symlink};
    matches!(kind, File | Directory | Symlink | Missing | Resource)
}

/// Numbers the states of one name. The document's own numbers count if they rise.
fn number(
    description: &Description,
    states: &[u32],
    made: &[Option<Time>],
    all: &mut [DescribedVersion],
) {
    let own: Option<Vec<u32>> = states
        .iter()
        .map(|at| description.entities[*at as usize].version)
        .collect();
    let own = own.filter(|own| own.windows(2).all(|pair| pair[0] < pair[1]));
    let begin = states
        .first()
        .is_some_and(|at| made[*at as usize].is_some());
    for (index, at) in states.iter().enumerate() {
        let version = &mut all[*at as usize];
        version.version = match &own {
            Some(own) => own[index],
            None => u32::from(begin) + index as u32,
        };
        version.previous = index.checked_sub(1).map(|before| states[before]);
    }
}

/// The first of the entities that each is one with.
fn united(description: &Description) -> Vec<u32> {
    let mut first: Vec<u32> = (0..description.entities.len() as u32).collect();
    let find = |first: &mut Vec<u32>, at: EntityNumber| {
        let mut one = at.0;
        while first[one as usize] != one {
            // Halves the way for the next search.
            first[one as usize] = first[first[one as usize] as usize];
            one = first[one as usize];
        }
        one
    };
    for (one, other) in &description.same {
        let (one, other) = (find(&mut first, *one), find(&mut first, *other));
        let (low, high) = (one.min(other), one.max(other));
        first[high as usize] = low;
    }
    for at in 0..first.len() {
        first[at] = find(&mut first, EntityNumber(at as u32));
    }
    first
}
