//! StoredRun runs, taken from another store and appended to a new one.

use std::path::PathBuf;
use std::time::Instant;

use backstory_graph::model::*;
use backstory_store::{
    ActivityKey, Appender, Error, GraphStore, Home, RunRecord, SqliteStore, Stream,
};

use crate::report::processor_time;
use crate::synthetic::Filled;

/// One run of the other store, in memory.
struct StoredRun {
    record: RunRecord,
    activities: Vec<Activity>,
    entities: Vec<Entity>,
    streams: Vec<Stream>,
}

impl StoredRun {
    fn read(store: &SqliteStore, record: RunRecord) -> StoredRun {
        let activities = store.activities(record.key).unwrap();
        let stream = |activity: &Activity| {
            store
                .stream(ActivityKey::new(record.key, activity.id))
                .unwrap()
        };
        StoredRun {
            streams: activities.iter().map(stream).collect(),
            entities: store.entities(record.key).unwrap(),
            activities,
            record,
        }
    }

    fn emit(&self, sink: &mut Appender<'_>) -> Result<(), Error> {
        self.activities
            .iter()
            .try_for_each(|one| sink.activity(one))?;
        self.entities.iter().try_for_each(|one| sink.entity(one))?;
        for stream in &self.streams {
            stream.edges.iter().try_for_each(|one| sink.edge(one))?;
            stream
                .derived
                .iter()
                .try_for_each(|one| sink.derived(one))?;
            stream.informs.iter().try_for_each(|one| sink.inform(one))?;
        }
        Ok(())
    }
}

/// Appends all runs of the store at `from`, oldest first; returns the edges, and the time that the
/// new store took.
pub fn copy(from: &Home, to: &mut dyn GraphStore) -> Filled {
    let store = SqliteStore::open(from).unwrap();
    let mut records = store.runs().unwrap();
    records.reverse();
    let mut filled = Filled::default();
    for record in records {
        let run = StoredRun::read(&store, record);
        filled.edges += run.record.counts.edges;
        let (header, end) = (&run.record.header, &run.record.end);
        let (clock, begun) = (processor_time(), Instant::now());
        to.append(header, end, run.record.log_bytes, &mut |sink| {
            run.emit(sink)
        })
        .unwrap();
        filled.processor += processor_time() - clock;
        filled.elapsed += begun.elapsed();
    }
    filled
}

/// Up to `most` files that the runs wrote (`made`) or read, spread evenly over all of them.
pub fn paths(store: &SqliteStore, made: bool, most: usize) -> Vec<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    let mut all = Vec::new();
    for record in store.runs().unwrap() {
        for entity in store.entities(record.key).unwrap() {
            if entity.kind == EntityKind::File
                && (entity.version > 0) == made
                && entity.ident.is_some()
            {
                all.push(PathBuf::from(std::ffi::OsStr::from_bytes(&entity.path)));
            }
        }
    }
    all.sort();
    all.dedup();
    let step = all.len().div_ceil(most).max(1);
    all.into_iter().step_by(step).collect()
}
