//! Recorded runs, taken from another store and appended to a new one, once or several times.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Instant;

use backstory_eventlog::event::{Bytes, Time};
use backstory_files::VersionId;
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
    extended: Vec<(ActivityId, Time, Bytes, Bytes)>,
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
            extended: store.extended(record.key).unwrap(),
            activities,
            record,
        }
    }

    /// Makes it the same run at a later time. The files that runs made get other inodes, so that a
    /// repetition has a history of its own.
    fn repeat(&mut self, round: u64, later: Time, made: &HashSet<VersionId>) {
        if round == 0 {
            return;
        }
        let later = later * round as Time;
        let header = &mut self.record.header;
        header.id = format!("{}-{round}", header.id);
        header.name = None;
        header.started += later;
        header.since_boot += later;
        self.record.end.ended += later;
        let shift = |interval: &mut Interval| {
            interval.start += later;
            interval.end += later;
        };
        for activity in &mut self.activities {
            shift(&mut activity.interval);
        }
        for ident in self
            .entities
            .iter_mut()
            .filter_map(|one| one.ident.as_mut())
        {
            if made.contains(&ident.version_id()) {
                ident.ino += round << 40;
                ident.mtime += later;
                ident.ctime += later;
                ident.birth += if ident.birth == 0 { 0 } else { later };
            }
        }
        for stream in &mut self.streams {
            stream
                .edges
                .iter_mut()
                .for_each(|one| shift(&mut one.interval));
            stream.derived.iter_mut().for_each(|one| one.time += later);
            stream.informs.iter_mut().for_each(|one| one.time += later);
        }
        self.extended
            .iter_mut()
            .for_each(|(_, time, ..)| *time += later);
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
        for (activity, time, kind, payload) in &self.extended {
            sink.extended(*activity, *time, kind, payload)?;
        }
        Ok(())
    }
}

/// Appends all runs of the store at `from` so many times, oldest first; returns the edges, and the
/// time that the new store took.
pub fn copy(from: &Home, times: u64, to: &mut dyn GraphStore) -> Filled {
    let store = SqliteStore::open(from).unwrap();
    let mut records = store.runs().unwrap();
    records.reverse();
    let ends = records.iter().map(|record| record.end.ended);
    let (first, last) = (records[0].header.started, ends.max().unwrap());
    let later = last - first + 3_600_000_000_000;
    let made = match times {
        1 => HashSet::new(),
        _ => made_versions(&store, &records),
    };
    let mut filled = Filled::default();
    let all = (0..times).flat_map(|round| records.iter().map(move |record| (round, record)));
    for (round, record) in all {
        let mut run = StoredRun::read(&store, record.clone());
        run.repeat(round, later, &made);
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

/// The versions that the runs made.
fn made_versions(store: &SqliteStore, records: &[RunRecord]) -> HashSet<VersionId> {
    let entities = records
        .iter()
        .flat_map(|one| store.entities(one.key).unwrap());
    let made = entities.filter(|entity| entity.version > 0);
    made.filter_map(|entity| Some(entity.ident?.version_id()))
        .collect()
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
