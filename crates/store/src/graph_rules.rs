//! The rules that every graph keeps. A broken rule is damage of the database, whatever its engine.
//!
//! In: a run of an open store. Out: a sentence. Nothing is changed. Absent: a comparison with the
//! run's log, of which the store knows nothing.

use backstory_graph::model::{Edge, Entity, Informed};

use crate::{ActivityKey, Result, RunRecord, Store, Stream};

/// The first rule that the graph of a run breaks. `None` if it keeps all rules.
///
/// Errors: if a record cannot be read or decoded.
pub fn broken_rule(store: &dyn Store, run: &RunRecord) -> Result<Option<String>> {
    let activities = store.activities(run.key)?;
    let entities = store.entities(run.key)?;
    let counts = (run.counts.activities, run.counts.entities);
    let found = (activities.len() as u64, entities.len() as u64);
    if counts != found {
        return Ok(Some(format!(
            "it has {} processes and {} files, but {} and {} were counted",
            found.0, found.1, counts.0, counts.1
        )));
    }
    let mut edges = 0;
    for (at, activity) in activities.iter().enumerate() {
        let parent = activity.parent.map(|parent| parent.0 as usize);
        if activity.id.0 as usize != at || parent.is_some_and(|at| at >= activities.len()) {
            return Ok(Some(format!("process {at} has a wrong number or parent")));
        }
        let stream = store.stream(ActivityKey::new(run.key, activity.id))?;
        // An execution is known from its activities, and counts as no edge.
        let informs = stream.informed_by.iter();
        let informs = informs.filter(|inform| inform.why != Informed::Exec);
        edges += stream.edges.len() + stream.derived.len() + informs.count();
        if !refers(&stream, activities.len(), entities.len()) {
            return Ok(Some(format!(
                "process {at} refers to a file or process that is not there"
            )));
        }
    }
    if edges as u64 != run.counts.edges {
        return Ok(Some(format!(
            "it has {edges} edges, but {} were counted",
            run.counts.edges
        )));
    }
    let numbered = |(at, entity): (usize, &Entity)| {
        let previous = entity.previous.map(|id| id.0 as usize);
        entity.id.0 as usize == at && previous.is_none_or(|id| id < entities.len())
    };
    let sound = entities.iter().enumerate().all(numbered);
    Ok((!sound).then(|| "a file has a wrong number or predecessor".to_owned()))
}

/// True if everything that a stream refers to exists, and no interval ends before it starts.
fn refers(stream: &Stream, activities: usize, entities: usize) -> bool {
    let in_order = |edge: &Edge| edge.interval.start <= edge.interval.end;
    let edge = |edge: &Edge| (edge.entity.0 as usize) < entities && in_order(edge);
    stream.edges.iter().all(edge)
        && stream.derived.iter().all(|derived| {
            (derived.entity.0 as usize) < entities && (derived.from.0 as usize) < entities
        })
        && stream.informed_by.iter().all(|inform| {
            (inform.from.0 as usize) < activities && (inform.to.0 as usize) < activities
        })
}
