//! Follows bytes over all runs that the byte engine followed, from the newest to the oldest.
//!
//! A file that an earlier refined run wrote is no source: the search goes on in that run. The order
//! of runs is that of their beginnings.

use backstory_ordering::SmallSort;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::ops::Range;

use backstory_bytes::{ByteFlow, EntityFacts, EntityKind, FlowKind, Origins, RangeSet};
use backstory_eventlog::event::Time;
use backstory_query as query;

use crate::current_store::CurrentStore;
use crate::error::{Failure, chain};

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
    /// The files on the way: the sources, and those that an earlier refined run made.
    pub passed: BTreeSet<Vec<u8>>,
}

fn origins_in(flows: &[ByteFlow], path: &[u8], ranges: &[Range<u64>]) -> Option<Origins> {
    flows
        .iter()
        .find_map(|flow| flow.origins_of_all(path, ranges))
}

/// The refined runs of a store.
pub struct RefinedRuns<'c> {
    current: &'c CurrentStore,
    flows: HashMap<String, Vec<ByteFlow>>,
    /// Newest first.
    order: Vec<(Time, String)>,
}

impl<'c> RefinedRuns<'c> {
    /// The runs that have a directory of the engine.
    pub fn of(current: &'c CurrentStore) -> Result<RefinedRuns<'c>, Failure> {
        let mut order = Vec::new();
        let parent = current.home.bytes_dir("");
        for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
            let Some(run) = entry.file_name().to_str().map(str::to_owned) else {
                continue;
            };
            // A directory that a killed `refine` left has the name of no run.
            if let Ok(details) = query::details(&current.store, &run) {
                order.push((details.summary.started, run));
            }
        }
        order.sort_small_by(|a, b| b.cmp(a));
        Ok(RefinedRuns {
            current,
            flows: HashMap::new(),
            order,
        })
    }

    /// The bytes of a run: those of parts of it, and those of all of it.
    fn flows(&mut self, run: &str) -> Result<&[ByteFlow], Failure> {
        if !self.flows.contains_key(run) {
            let read = ByteFlow::read_all(&self.current.home.bytes_dir(run));
            let flows = read.map_err(|error| Failure::not_found(chain(&error)))?;
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
        self.current.home.bytes_dir(run).join("1.bytes").exists()
    }

    /// The newest refined run before another one that wrote a file.
    fn writer_before(&mut self, run: &str, path: &[u8]) -> Result<Option<String>, Failure> {
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
    ) -> Result<Option<FoundBytes>, Failure> {
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
            for source in origins.sources {
                let path = &source.entity.path;
                let parts = FlowKind::ALL.map(|kind| (source.of(kind), kind.max(until_here)));
                if source.entity.kind == EntityKind::File {
                    found.passed.insert(path.clone());
                }
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
