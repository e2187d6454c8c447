//! A store in memory. It is strict and simple, and uses the default methods of the traits: tests
//! compare other engines with it.

use std::collections::BTreeMap;

use backstory_eventlog::event::{Bytes, Time};
use backstory_eventlog::run::{RunEnd, RunHeader};
use backstory_files::Ident;
use backstory_graph::model::{Activity, ActivityId, Entity};

use crate::annotations::{Annotation, AnnotationKind, AnnotationRecord, RunAnnotations};
use crate::appender::Body;
use crate::collected_run::CollectedRun;
use crate::facts::{DirectorySnapshot, Fact, JournalPosition, JournalRecord};
use crate::{
    ActivityKey, ContentFacts, EngineControl, Error, GraphStore, Label, Maintenance, Result,
    RunKey, RunRecord, Stream, newest_first, same_version,
};

/// A store that ends with the process.
#[derive(Debug, Default)]
pub struct MemoryStore {
    runs: BTreeMap<RunKey, (RunRecord, CollectedRun)>,
    /// The number of the run that was appended last.
    last: u32,
    facts: Vec<Fact>,
    directory_snapshots: Vec<DirectorySnapshot>,
    read: JournalPosition,
    annotations: BTreeMap<AnnotationName, String>,
    annotations_read: u64,
}

/// Run, kind and key of an annotation.
type AnnotationName = (String, AnnotationKind, String);

impl MemoryStore {
    fn graph(&self, run: RunKey) -> Result<&CollectedRun> {
        let found = self.runs.get(&run).map(|(_, graph)| graph);
        found.ok_or_else(|| Error::NoRun(format!("number {}", run.0)))
    }

    fn annotations_where(&self, wanted: impl Fn(&AnnotationName) -> bool) -> Vec<Annotation> {
        let found = self.annotations.iter().filter(|(name, _)| wanted(name));
        found
            .map(|((run, kind, key), value)| Annotation {
                run: run.clone(),
                kind: *kind,
                key: key.clone(),
                value: Some(value.clone()),
            })
            .collect()
    }

    fn add_fact(&mut self, fact: &Fact) {
        let mut facts = self.facts.iter_mut();
        match facts.find(|old| same_version(&old.ident, &fact.ident)) {
            Some(old) if fact.replaces(old) => *old = fact.clone(),
            Some(_) => {}
            None => self.facts.push(fact.clone()),
        }
    }
}

impl GraphStore for MemoryStore {
    fn append(
        &mut self,
        header: &RunHeader,
        end: &RunEnd,
        log_bytes: u64,
        body: &mut Body<'_>,
    ) -> Result<RunKey> {
        if self.run(&header.id)?.is_some() {
            return Err(Error::Exists(header.id.clone()));
        }
        let graph = CollectedRun::collect(self, &header.id, body)?;
        self.last += 1;
        let key = RunKey(self.last);
        let record = RunRecord {
            key,
            header: header.clone(),
            end: end.clone(),
            name: header.name.clone(),
            note: None,
            log_bytes,
            unknown: graph.unknown.clone(),
            counts: graph.counts,
        };
        self.runs.insert(key, (record, graph));
        Ok(key)
    }

    fn remove(&mut self, id: &str) -> Result<bool> {
        let before = self.runs.len();
        self.runs.retain(|_, (record, _)| record.header.id != id);
        Ok(self.runs.len() < before)
    }

    fn set_label(&mut self, id: &str, label: Label, text: Option<&str>) -> Result<()> {
        let mut records = self.runs.values_mut().map(|(record, _)| record);
        let record = records.find(|record| record.header.id == id);
        let record = record.ok_or_else(|| Error::NoRun(id.to_owned()))?;
        let field = match label {
            Label::Name => &mut record.name,
            Label::Note => &mut record.note,
        };
        *field = text.map(str::to_owned);
        Ok(())
    }

    fn runs(&self) -> Result<Vec<RunRecord>> {
        let mut runs: Vec<_> = self.runs.values().map(|(run, _)| run.clone()).collect();
        newest_first(&mut runs);
        Ok(runs)
    }

    fn activities(&self, run: RunKey) -> Result<Vec<Activity>> {
        Ok(self.graph(run)?.activities.clone())
    }

    fn entities(&self, run: RunKey) -> Result<Vec<Entity>> {
        Ok(self.graph(run)?.entities.clone())
    }

    fn stream(&self, key: ActivityKey) -> Result<Stream> {
        let stream = self.graph(key.run())?.streams.get(key.local().0 as usize);
        stream
            .cloned()
            .ok_or(Error::Damaged("process (it is missing)"))
    }

    fn extended(&self, run: RunKey) -> Result<Vec<(ActivityId, Time, Bytes, Bytes)>> {
        Ok(self.graph(run)?.extended.clone())
    }
}

impl ContentFacts for MemoryStore {
    fn learn(
        &mut self,
        records: &[JournalRecord],
        read: JournalPosition,
        anew: bool,
    ) -> Result<()> {
        if anew {
            self.facts.clear();
            self.directory_snapshots.clear();
        }
        for record in records {
            match record {
                JournalRecord::Fact(fact) => self.add_fact(fact),
                JournalRecord::Run(snapshot) => {
                    self.directory_snapshots
                        .retain(|old| old.run != snapshot.run);
                    self.directory_snapshots.push(snapshot.clone());
                }
                JournalRecord::Forgotten(run) => {
                    self.directory_snapshots.retain(|old| old.run != *run);
                }
            }
        }
        self.read = read;
        Ok(())
    }

    fn learned(&self) -> Result<JournalPosition> {
        Ok(self.read)
    }

    fn fact(&self, ident: &Ident) -> Result<Option<Fact>> {
        let mut facts = self.facts.iter();
        Ok(facts.find(|fact| same_version(&fact.ident, ident)).cloned())
    }

    fn facts(&self) -> Result<Vec<Fact>> {
        Ok(self.facts.clone())
    }

    fn directory_snapshot(&self, run: &str) -> Result<Option<DirectorySnapshot>> {
        let mut snapshots = self.directory_snapshots.iter();
        Ok(snapshots.find(|one| one.run == run).cloned())
    }
}

impl RunAnnotations for MemoryStore {
    fn annotate(&mut self, records: &[AnnotationRecord], read: u64, anew: bool) -> Result<()> {
        if anew {
            self.annotations.clear();
        }
        for record in records {
            match record {
                AnnotationRecord::Set(one) => {
                    let key = (one.run.clone(), one.kind, one.key.clone());
                    match &one.value {
                        Some(value) => drop(self.annotations.insert(key, value.clone())),
                        None => drop(self.annotations.remove(&key)),
                    }
                }
                AnnotationRecord::Forgotten { forgotten } => {
                    self.annotations.retain(|(run, ..), _| run != forgotten);
                }
            }
        }
        self.annotations_read = read;
        Ok(())
    }

    fn annotations_read(&self) -> Result<u64> {
        Ok(self.annotations_read)
    }

    fn annotations(&self, run: &str) -> Result<Vec<Annotation>> {
        Ok(self.annotations_where(|(of, ..)| of == run))
    }

    fn annotations_of(&self, kind: AnnotationKind, key: Option<&str>) -> Result<Vec<Annotation>> {
        Ok(self
            .annotations_where(|(_, of, named)| *of == kind && key.is_none_or(|key| named == key)))
    }
}

impl EngineControl for MemoryStore {}

impl Maintenance for MemoryStore {}
