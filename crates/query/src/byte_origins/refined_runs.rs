//! Follows bytes over all runs that the byte engine followed, from the newest to the oldest.
//!
//! A file that an earlier refined run wrote is no source: the search goes on in that run. The order
//! of runs is that of their beginnings.

use backstory_ordering::SmallSort;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use backstory_bytes::{ByteFlow, EntityFacts, EntityKind, FlowKind, Origins, RangeSet};
use backstory_eventlog::event::Time;
use backstory_store::{RunKey, Store};

use crate::{Result, runs};

/// Bytes that no refined run wrote.
#[derive(Debug)]
pub struct FoundSource {
    /// The file, pipe or other entity.
    pub entity: EntityFacts,
    /// The run that read it.
    pub run: String,
    /// Bytes that came into the answer's range, by kind.
    ranges: [RangeSet; 3],
}

impl FoundSource {
    /// The bytes of a kind. Those that only decided are no others.
    pub fn of(&self, kind: FlowKind) -> RangeSet {
        let own = &self.ranges[kind as usize];
        match kind {
            FlowKind::Implicit => own.without(&self.ranges[0]).without(&self.ranges[1]),
            _ => own.clone(),
        }
    }
}

/// The whole answer.
#[derive(Debug, Default)]
pub struct FoundBytes {
    /// The sources, by kind and path.
    pub sources: Vec<FoundSource>,
    /// The first run's own answer.
    pub first: Origins,
    /// Why more is possible.
    pub possible: Vec<Vec<u8>>,
    /// True if ranges are coarser than bytes.
    pub coarse: bool,
    /// The files on the way: the sources, and those that refined runs made.
    pub passed: BTreeSet<Vec<u8>>,
}

fn origins_in(flows: &[ByteFlow], path: &[u8], ranges: &[Range<u64>]) -> Option<Origins> {
    flows
        .iter()
        .find_map(|flow| flow.origins_of_all(path, ranges))
}

/// The runs of a store that the byte engine followed.
pub struct RefinedRuns<'s> {
    store: &'s dyn Store,
    directory: PathBuf,
    flows: HashMap<String, Vec<ByteFlow>>,
    /// Newest first.
    order: Vec<(Time, String)>,
    /// The runs that made a file and were not refined, with their beginnings, by the file's path.
    others: HashMap<Vec<u8>, Vec<(RunKey, i64)>>,
}

impl<'s> RefinedRuns<'s> {
    /// The runs that have a directory of the engine in `directory`, which is that of the store.
    pub fn of(store: &'s dyn Store, directory: &Path) -> RefinedRuns<'s> {
        let mut order = Vec::new();
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let Some(run) = entry.file_name().to_str().map(str::to_owned) else {
                continue;
            };
            // A directory that a killed `refine` left has the name of no run.
            if let Ok(facts) = runs::facts(store, &run) {
                order.push((facts.summary.started, run));
            }
        }
        order.sort_small_by(|a, b| b.cmp(a));
        RefinedRuns {
            store,
            directory: directory.to_owned(),
            flows: HashMap::new(),
            order,
            others: HashMap::new(),
        }
    }

    /// The store.
    pub fn store(&self) -> &'s dyn Store {
        self.store
    }

    /// True if no run was refined.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The bytes of a run: those of parts of it, and those of all of it.
    fn flows(&mut self, run: &str) -> Result<&[ByteFlow]> {
        if !self.flows.contains_key(run) {
            let flows = ByteFlow::read_all(&self.directory.join(run))?;
            self.flows.insert(run.to_owned(), flows);
        }
        Ok(&self.flows[run])
    }

    /// True if the run was refined.
    pub fn has(&self, run: &str) -> bool {
        self.order.iter().any(|(_, own)| own == run)
    }

    /// True if all of the run was refined, and not only the commands behind some files.
    pub fn is_whole(&self, run: &str) -> bool {
        self.directory.join(run).join("1.bytes").exists()
    }

    /// True if another run that was not refined made one of these files before this run ended.
    pub(super) fn is_open(&mut self, run: RunKey, paths: &BTreeSet<Vec<u8>>) -> Result<bool> {
        let Some(record) = self.store.run_by_key(run)? else {
            return Ok(true);
        };
        for path in paths {
            if !self.others.contains_key(path) {
                let others = self.other_makers(path)?;
                self.others.insert(path.clone(), others);
            }
            let mut others = self.others[path].iter();
            if others.any(|&(other, started)| other != run && started < record.end.ended) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn other_makers(&self, path: &[u8]) -> Result<Vec<(RunKey, i64)>> {
        let mut others = Vec::new();
        for key in self.store.at_path(path)? {
            let run = key.run();
            if others.iter().any(|&(known, _)| known == run) || self.store.entity(key)?.version == 0
            {
                continue;
            }
            let record = self.store.run_by_key(run)?;
            let record = record.filter(|record| !self.has(&record.header.id));
            others.extend(record.map(|record| (run, record.header.started)));
        }
        Ok(others)
    }

    /// The newest refined run before another one that wrote a file.
    fn writer_before(&mut self, run: &str, path: &[u8]) -> Result<Option<String>> {
        let own = self.order.iter().position(|(_, id)| id == run);
        let older: Vec<String> = match own {
            Some(own) => self.order[own + 1..].iter(),
            None => self.order[..0].iter(),
        }
        .map(|(_, id)| id.clone())
        .collect();
        for id in older {
            let mut flows = self.flows(&id)?.iter();
            if flows.any(|flow| flow.written_length(path).is_some()) {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    /// Where the bytes of these ranges came from. `None` if the run did not write the file.
    pub fn origins(
        &mut self,
        run: &str,
        path: &[u8],
        ranges: &[Range<u64>],
    ) -> Result<Option<FoundBytes>> {
        let Some(first) = origins_in(self.flows(run)?, path, ranges) else {
            return Ok(None);
        };
        let mut found = FoundBytes {
            first: first.clone(),
            ..FoundBytes::default()
        };
        let mut sources: BTreeMap<(EntityKind, Vec<u8>, String), FoundSource> = BTreeMap::new();
        // Each step leads to an older run, so the search ends.
        let mut pending = vec![(run.to_owned(), first, FlowKind::Copied)];
        while let Some((run, origins, until_here)) = pending.pop() {
            found.possible.extend(origins.possible);
            found.coarse |= origins.coarse;
            found.passed.extend(origins.passed);
            for source in origins.sources {
                let path = &source.entity.path;
                let parts = FlowKind::ALL.map(|kind| (source.of(kind), kind.max(until_here)));
                if source.entity.kind == EntityKind::File
                    && let Some(writer) = self.writer_before(&run, path)?
                {
                    let flows = self.flows(&writer)?;
                    for (part, kind) in parts {
                        let origins = |range| origins_in(flows, path, &[range]);
                        let ranges = part.iter().filter_map(origins);
                        pending.extend(ranges.map(|next| (writer.clone(), next, kind)));
                    }
                    continue;
                }
                let key = (source.entity.kind, path.clone(), run.clone());
                let entry = sources.entry(key).or_insert_with(|| FoundSource {
                    entity: source.entity.clone(),
                    run: run.clone(),
                    ranges: Default::default(),
                });
                for (part, kind) in parts {
                    for range in part.iter() {
                        entry.ranges[kind as usize].insert(range);
                    }
                }
            }
        }
        found.sources = sources.into_values().collect();
        found.possible.sort_small();
        found.possible.dedup();
        Ok(Some(found))
    }
}
