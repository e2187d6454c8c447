//! Copies a run from one store to another, whatever their engines.
//!
//! In: a run of a store. Out: the same run in another store, with its labels. Facts and annotations
//! are not copied: a store reads them from the journals of its directory.
//!
//! Invariant: the copy has every list in the order of the original, so that
//! [`digest_of_run`](crate::digest_of_run) is the same for both.

mod inform_order;

use backstory_graph::model::Sink;

use crate::{ActivityKey, Label, Result, RunRecord, Store, Stream};

/// Copies a run, atomically, and then its name and note. Takes memory for the whole run.
///
/// Errors: those of both stores; [`Error::Exists`](crate::Error::Exists) if `to` has the run.
pub fn copy_run(from: &dyn Store, run: &RunRecord, to: &mut dyn Store) -> Result<()> {
    let activities = from.activities(run.key)?;
    let entities = from.entities(run.key)?;
    let stream = |activity| from.stream(ActivityKey::new(run.key, activity));
    let streams = activities.iter().map(|activity| stream(activity.id));
    let streams: Vec<Stream> = streams.collect::<Result<_>>()?;
    let extended = from.extended(run.key)?;
    to.append(&run.header, &run.end, run.log_bytes, &mut |sink| {
        for activity in &activities {
            sink.activity(activity)?;
        }
        for entity in &entities {
            sink.entity(entity)?;
        }
        for stream in &streams {
            stream.edges.iter().try_for_each(|edge| sink.edge(edge))?;
            let mut derived = stream.derived.iter();
            derived.try_for_each(|derived| sink.derived(derived))?;
        }
        for inform in inform_order::in_order(&streams) {
            sink.inform(inform)?;
        }
        for (activity, time, kind, payload) in &extended {
            sink.extended(*activity, *time, kind, payload)?;
        }
        run.unknown
            .iter()
            .try_for_each(|reason| sink.unknown(reason))
    })?;
    let id = &run.header.id;
    to.set_label(id, Label::Name, run.name.as_deref())?;
    to.set_label(id, Label::Note, run.note.as_deref())
}
