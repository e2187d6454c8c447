//! Follows bytes backwards through the images of a run.
//!
//! A byte that was read comes from the last earlier write of it. Without one, it was there before
//! the run: then it is a source. Each leaf and each set of an image is followed at most once
//! for each kind of flow. So the time is bounded by the size of the files.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::image::{
    self, ActiveFunction, EntityFacts, EntityId, EntityKind, Image, Node, RunLabel, WriteOrigin,
};
use crate::ranges::RangeSet;

/// The byte engine's record of a run.
#[derive(Debug)]
pub struct ByteFlow {
    images: Vec<Image>,
    entities: BTreeMap<EntityId, EntityFacts>,
    /// The entities that had a path at some time.
    names: BTreeMap<Vec<u8>, BTreeSet<EntityId>>,
    /// (image, write) by entity, in order of ticks.
    writes: HashMap<EntityId, Vec<(usize, usize)>>,
}

/// Bytes that were there before the run, of one entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceBytes {
    /// The entity.
    pub entity: EntityFacts,
    /// Bytes of which a copy was asked about.
    pub copied: RangeSet,
    /// Bytes that what was asked about was computed from.
    pub computed: RangeSet,
    /// Other bytes that decided about it by branches. Known if the engine followed them.
    pub implicit: RangeSet,
}

/// How bytes came into others. The weakest kind of a path is that of the whole path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FlowKind {
    /// They were only moved.
    Copied,
    /// They were operands.
    Computed,
    /// They decided about a branch on which the others depend.
    Implicit,
}

/// The answer about a range of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Origins {
    /// The sources, files first, by path.
    pub sources: Vec<SourceBytes>,
    /// The bytes of the range that the run wrote.
    pub written: RangeSet,
    /// The bytes of the range by the functions that were active at their writes, the innermost
    /// first. Bytes of unknown functions are left out.
    pub writers: BTreeMap<Vec<ActiveFunction>, RangeSet>,
    /// The bytes of the range that depend on no input that is followed: constants of programs.
    pub constant: RangeSet,
    /// The paths of the files that the bytes came from or passed through, by all of their names.
    pub passed: BTreeSet<Vec<u8>>,
    /// Why more bytes are possible: reasons of the images that the answer leads through.
    pub possible: Vec<Vec<u8>>,
    /// True if ranges are larger than what was used, because there were too many sets.
    pub coarse: bool,
}

/// A part of a range, and the image and number of its write.
type WrittenPart = (Range<u64>, Option<(usize, usize)>);

impl SourceBytes {
    /// The bytes of a kind.
    pub fn of(&self, kind: FlowKind) -> &RangeSet {
        match kind {
            FlowKind::Copied => &self.copied,
            FlowKind::Computed => &self.computed,
            FlowKind::Implicit => &self.implicit,
        }
    }
}

impl FlowKind {
    /// All kinds, the strongest first.
    pub const ALL: [FlowKind; 3] = [FlowKind::Copied, FlowKind::Computed, FlowKind::Implicit];
}

#[derive(Debug, Clone)]
struct Step {
    entity: EntityId,
    range: Range<u64>,
    before: u64,
    how: FlowKind,
}

#[derive(Default)]
struct Search {
    steps: Vec<Step>,
    leaves: HashMap<(usize, FlowKind), RangeSet>,
    sets: HashSet<(usize, u64, FlowKind)>,
    found: BTreeMap<EntityId, [RangeSet; 3]>,
    passed: BTreeSet<EntityId>,
    images: HashSet<usize>,
    latest: HashMap<usize, u64>,
    coarse: bool,
}

impl Search {
    fn pass(&mut self, entity: EntityId) {
        if entity.kind == EntityKind::File {
            self.passed.insert(entity);
        }
    }
}

/// The engine's files by the number of their part: `P-1.bytes`. 0 is the whole run: `1.bytes`.
fn grouped(directory: &Path) -> Result<BTreeMap<u64, Vec<PathBuf>>, Error> {
    let fail = |source| Error::Read {
        path: directory.to_owned(),
        source,
    };
    let mut groups: BTreeMap<u64, Vec<PathBuf>> = BTreeMap::new();
    for entry in fs::read_dir(directory).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        let name = path.file_stem().and_then(|name| name.to_str());
        if path.extension().is_some_and(|end| end == "bytes") {
            let part = name.and_then(|name| name.split_once('-'));
            let part = part.and_then(|(part, _)| part.parse().ok()).unwrap_or(0);
            groups.entry(part).or_default().push(path);
        }
    }
    for paths in groups.values_mut() {
        paths.sort();
    }
    Ok(groups)
}

impl ByteFlow {
    /// Reads the directory of a run: what was found out about the run as a whole. Files that are
    /// not the engine's are left out.
    pub fn read(directory: &Path) -> Result<ByteFlow, Error> {
        let mut groups = grouped(directory)?;
        ByteFlow::of(groups.remove(&0).unwrap_or_default())
    }

    /// Reads all that is known of a run. Parts of it that were followed by themselves come first,
    /// the newest before the others. Bytes of one part are no bytes of another.
    pub fn read_all(directory: &Path) -> Result<Vec<ByteFlow>, Error> {
        let mut groups = grouped(directory)?;
        let whole = groups.remove(&0);
        let parts = groups.into_values().rev().chain(whole);
        parts.map(ByteFlow::of).collect()
    }

    fn of(paths: Vec<PathBuf>) -> Result<ByteFlow, Error> {
        let mut flow = ByteFlow {
            images: Vec::new(),
            entities: BTreeMap::new(),
            names: BTreeMap::new(),
            writes: HashMap::new(),
        };
        for path in paths {
            let bytes = fs::read(&path).map_err(|source| {
                let path = path.clone();
                Error::Read { path, source }
            })?;
            flow.add(image::read(&path, &bytes)?);
        }
        let ByteFlow { images, writes, .. } = &mut flow;
        for list in writes.values_mut() {
            list.sort_by_key(|&(image, write)| images[image].writes[write].tick);
        }
        Ok(flow)
    }

    fn add(&mut self, image: Image) {
        let index = self.images.len();
        for (id, facts) in &image.entities {
            self.entities.entry(*id).or_insert_with(|| facts.clone());
        }
        for (id, name) in &image.names {
            self.names.entry(name.clone()).or_default().insert(*id);
        }
        for (number, write) in image.writes.iter().enumerate() {
            let list = self.writes.entry(write.entity).or_default();
            list.push((index, number));
        }
        self.images.push(image);
    }

    /// True if an image was killed, or is still running: its last writes can lack.
    pub fn is_cut(&self) -> bool {
        self.images.iter().any(|image| !image.ended)
    }

    /// The file at a path, also before or after a rename, or the connection to an address. Of
    /// several, the one that was written last.
    fn file_at(&self, path: &[u8]) -> Option<EntityId> {
        let last = |id: &EntityId| {
            let (image, write) = *self.writes[id].last()?;
            Some(self.images[image].writes[write].tick)
        };
        let named = self.names.get(path)?.iter();
        let named = named.filter(|id| self.writes.contains_key(id));
        let is = |kind| move |id: &&EntityId| id.kind == kind;
        let file = named
            .clone()
            .filter(is(EntityKind::File))
            .max_by_key(|id| last(id));
        let connection = || {
            named
                .clone()
                .filter(is(EntityKind::Socket))
                .max_by_key(|id| last(id))
        };
        file.or_else(connection).copied()
    }

    /// The length of a file that the run wrote, as far as its writes show.
    pub fn written_length(&self, path: &[u8]) -> Option<u64> {
        let writes = self.writes.get(&self.file_at(path)?)?;
        let ends = writes.iter().map(|&(image, write)| {
            let write = &self.images[image].writes[write];
            write.offset + write.length
        });
        ends.max()
    }

    /// Where the bytes of a range of a file came from. `None` if the run did not write the file.
    pub fn origins(&self, path: &[u8], range: Range<u64>) -> Option<Origins> {
        self.origins_of_all(path, &[range])
    }

    /// The same for several ranges together.
    pub fn origins_of_all(&self, path: &[u8], ranges: &[Range<u64>]) -> Option<Origins> {
        let file = self.file_at(path)?;
        let mut answer = Origins::default();
        let mut search = Search::default();
        for range in ranges {
            let steps = self.own_runs(file, range.clone(), &mut answer);
            search.steps.extend(steps);
        }
        while let Some(step) = search.steps.pop() {
            self.follow(step, &mut search);
        }
        answer.coarse = search.coarse;
        let names = self.names.iter();
        let passed = names.filter(|(_, ids)| !ids.is_disjoint(&search.passed));
        answer.passed = passed.map(|(name, _)| name.clone()).collect();
        for &image in &search.images {
            let until = search.latest.get(&image).copied().unwrap_or(0);
            let reasons = self.images[image].possible.iter();
            let reasons = reasons.filter(|(tick, _)| *tick <= until);
            answer.possible.extend(reasons.map(|(_, why)| why.clone()));
        }
        answer.possible.sort();
        answer.possible.dedup();
        for (id, [copied, computed, implicit]) in search.found {
            if let Some(entity) = self.entities.get(&id) {
                answer.sources.push(SourceBytes {
                    entity: entity.clone(),
                    implicit: implicit.without(&copied).without(&computed),
                    copied,
                    computed,
                });
            }
        }
        answer.sources.retain(|source| {
            !(source.copied.is_empty() && source.computed.is_empty() && source.implicit.is_empty())
        });
        answer
            .sources
            .sort_by(|a, b| (a.entity.kind, &a.entity.path).cmp(&(b.entity.kind, &b.entity.path)));
        Some(answer)
    }

    /// The first step, and what is known of the range's own bytes.
    fn own_runs(&self, file: EntityId, range: Range<u64>, answer: &mut Origins) -> Vec<Step> {
        let mut steps = Vec::new();
        for (part, writer) in self.writers(file, range, u64::MAX) {
            let Some((image, write)) = writer else {
                continue;
            };
            answer.written.insert(part.clone());
            let image = &self.images[image];
            let write = &image.writes[write];
            let functions = image.active_functions(write);
            if !functions.is_empty() {
                let bytes = answer.writers.entry(functions).or_default();
                bytes.insert(part.clone());
            }
            if let WriteOrigin::Runs(runs) = &write.origin {
                let mut at = write.offset;
                for run in runs {
                    let (start, end) = (
                        at.max(part.start),
                        at.saturating_add(run.length).min(part.end),
                    );
                    if start < end && run.label == RunLabel::Nothing {
                        answer.constant.insert(start..end);
                    }
                    at = at.saturating_add(run.length);
                }
            }
            steps.push(Step {
                entity: file,
                range: part,
                before: u64::MAX,
                how: FlowKind::Copied,
            });
        }
        steps
    }

    /// The parts of a range by the last write of each before a tick, if there is one.
    fn writers(&self, entity: EntityId, range: Range<u64>, before: u64) -> Vec<WrittenPart> {
        let mut parts = Vec::new();
        let mut left = RangeSet::default();
        let mut missing = range.end.saturating_sub(range.start);
        let none = Vec::new();
        let writes = self.writes.get(&entity).unwrap_or(&none);
        // Each byte of a stream is written once. Programs that run again from a deep log do not
        // wait for each other, so it may have been read before.
        let before = match entity.kind {
            EntityKind::Pipe | EntityKind::Socket => u64::MAX,
            _ => before,
        };
        let end = writes.partition_point(|&(i, w)| self.images[i].writes[w].tick < before);
        for &(image, number) in writes[..end].iter().rev() {
            if missing == 0 {
                break;
            }
            let write = &self.images[image].writes[number];
            let (start, end) = (
                write.offset.max(range.start),
                (write.offset + write.length).min(range.end),
            );
            for part in left.insert(start..end.max(start)) {
                missing -= part.end - part.start;
                parts.push((part, Some((image, number))));
            }
        }
        parts.extend(left.lacking(range).into_iter().map(|part| (part, None)));
        parts
    }

    fn follow(&self, step: Step, search: &mut Search) {
        for (part, writer) in self.writers(step.entity, step.range.clone(), step.before) {
            let Some((image, number)) = writer else {
                let found = search.found.entry(step.entity).or_default();
                found[step.how as usize].insert(part);
                continue;
            };
            let write = &self.images[image].writes[number];
            search.images.insert(image);
            let latest = search.latest.entry(image).or_default();
            *latest = write.tick.max(*latest);
            match &write.origin {
                WriteOrigin::Moved(source, from) => {
                    let start = from.saturating_add(part.start - write.offset);
                    search.steps.push(Step {
                        entity: *source,
                        range: start..start.saturating_add(part.end - part.start),
                        before: write.tick,
                        how: step.how,
                    });
                    search.pass(*source);
                }
                WriteOrigin::Runs(runs) => {
                    let mut at = write.offset;
                    for run in runs {
                        let end = at.saturating_add(run.length);
                        let (first, last) = (at.max(part.start), end.min(part.end));
                        let how = match run.computed {
                            true => step.how.max(FlowKind::Computed),
                            false => step.how,
                        };
                        match run.label {
                            _ if first >= last => {}
                            RunLabel::Nothing => {}
                            RunLabel::Copy(leaf) => {
                                let leaf = leaf.saturating_add(first - at);
                                let leaves = leaf..leaf.saturating_add(last - first);
                                self.leaves(image, leaves, how, search);
                            }
                            RunLabel::Set(set) => self.set(image, set, how, search),
                        }
                        at = end;
                    }
                }
            }
            let mut at = write.offset;
            for &(length, set) in &write.decided {
                let end = at.saturating_add(length);
                if set != 0 && at.max(part.start) < end.min(part.end) {
                    self.set(image, set, FlowKind::Implicit, search);
                }
                at = end;
            }
        }
    }

    fn set(&self, image: usize, set: u64, how: FlowKind, search: &mut Search) {
        let mut stack = vec![set];
        search.coarse |= self.images[image].coarse;
        while let Some(set) = stack.pop() {
            if set == 0 || !search.sets.insert((image, set, how)) {
                continue;
            }
            match self.images[image].nodes.get(&set) {
                None => self.leaves(image, set..set + 1, how, search),
                Some(Node::Pair(first, second)) => stack.extend([*first, *second]),
                Some(Node::List { low, high, rest }) => {
                    self.leaves(image, *low..high.saturating_add(1), how, search);
                    stack.push(*rest);
                }
            }
        }
    }

    fn leaves(&self, image: usize, leaves: Range<u64>, how: FlowKind, search: &mut Search) {
        let seen = search.leaves.entry((image, how)).or_default();
        let blocks = &self.images[image].blocks;
        for part in seen.insert(leaves) {
            let from = blocks.partition_point(|block| block.first + block.count <= part.start);
            for block in &blocks[from..] {
                if block.first >= part.end {
                    break;
                }
                let (start, end) = (
                    part.start.max(block.first),
                    part.end.min(block.first + block.count),
                );
                let byte = |leaf: u64| {
                    block
                        .offset
                        .saturating_add((leaf - block.first) << block.shift)
                };
                search.pass(block.entity);
                search.steps.push(Step {
                    entity: block.entity,
                    range: byte(start)..byte(end),
                    before: block.tick,
                    how,
                });
            }
        }
    }
}
