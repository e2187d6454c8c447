//! One file of the byte engine: what one program image read and wrote.
//!
//! In: unchecked bytes. Out: an [`Image`]. A file that was cut off has what is before the cut.

use std::collections::HashMap;
use std::path::Path;

use crate::error::Error;
use crate::numbers::Numbers;

const MAGIC: &[u8] = b"BSBYTES1";
/// The most active functions of a write that are known.
const DEEPEST: usize = 64;

/// The kinds of entities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EntityKind {
    /// A regular file.
    File,
    /// A pipe or FIFO.
    Pipe,
    /// A socket.
    Socket,
    /// A device, such as a terminal.
    Device,
    /// The arguments that one program gave another.
    Arguments,
}

/// The identity of an entity within a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntityId {
    pub kind: EntityKind,
    pub device: u64,
    pub inode: u64,
    pub generation: u64,
}

/// The known facts of an entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityFacts {
    /// Its kind.
    pub kind: EntityKind,
    /// Its path, or what `/proc` shows for it.
    pub path: Vec<u8>,
    /// Its size in bytes when the run first met it.
    pub size: u64,
    /// Its last modification then, in seconds and nanoseconds since 1970.
    pub modified: (u64, u64),
}

/// Leaves that are consecutive parts of an entity.
#[derive(Debug, Clone)]
pub struct Block {
    pub first: u64,
    pub count: u64,
    pub shift: u32,
    pub entity: EntityId,
    pub offset: u64,
    pub tick: u64,
}

/// A set of leaves.
#[derive(Debug, Clone, Copy)]
pub enum Node {
    /// A range, and the rest.
    List { low: u64, high: u64, rest: u64 },
    /// Two sets.
    Pair(u64, u64),
}

/// The label of the bytes of a run of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunLabel {
    Nothing,
    /// The first byte is a copy of this leaf.
    Copy(u64),
    /// Each byte depends on this set.
    Set(u64),
}

/// Consecutive bytes of a write.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    pub length: u64,
    pub label: RunLabel,
    pub computed: bool,
}

/// A function that was active at a write, and the place in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ActiveFunction {
    /// Its name, with the types of its parameters in C++.
    pub name: Vec<u8>,
    /// The name of its source file. Empty without debugging information.
    pub file: Vec<u8>,
    /// The line of the call, or of the write. 0 if it is unknown.
    pub line: u64,
}

/// Where written bytes come from.
#[derive(Debug, Clone)]
pub enum WriteOrigin {
    Runs(Vec<Run>),
    /// The kernel moved them from another entity.
    Moved(EntityId, u64),
}

/// Bytes that went to an entity.
#[derive(Debug, Clone)]
pub struct Write {
    pub entity: EntityId,
    pub offset: u64,
    pub length: u64,
    pub tick: u64,
    pub origin: WriteOrigin,
    /// Sets that decided about consecutive bytes, by branches (0: none). Empty if nothing did.
    pub decided: Vec<(u64, u64)>,
    /// The index of the active functions in the image's lists. `None`: none is known.
    pub callers: Option<usize>,
}

/// A program image.
#[derive(Debug, Default)]
pub struct Image {
    pub program: Vec<u8>,
    pub entities: HashMap<EntityId, EntityFacts>,
    /// All paths that entities had.
    pub names: Vec<(EntityId, Vec<u8>)>,
    /// By first leaf.
    pub blocks: Vec<Block>,
    pub nodes: HashMap<u64, Node>,
    pub writes: Vec<Write>,
    /// The functions by their numbers, and lists of them, the innermost first.
    pub functions: HashMap<u64, ActiveFunction>,
    pub callers: Vec<Vec<u64>>,
    /// From these ticks on, and why, bytes can depend on everything that was read.
    pub possible: Vec<(u64, Vec<u8>)>,
    /// True if sets became coarser than bytes.
    pub coarse: bool,
    /// True if the file ends as the engine ends files.
    pub ended: bool,
}

impl Image {
    /// The functions of the next write.
    fn present_callers(&self) -> Option<usize> {
        let last = self.callers.last().filter(|list| !list.is_empty());
        last.map(|_| self.callers.len() - 1)
    }

    /// The functions that were active at a write, the innermost first.
    pub fn active_functions(&self, write: &Write) -> Vec<ActiveFunction> {
        let ids = write.callers.map(|list| &self.callers[list]);
        let known = ids.into_iter().flatten();
        known
            .filter_map(|id| self.functions.get(id).cloned())
            .collect()
    }
}

/// Reads a file, up to a record that is cut off.
pub fn read(path: &Path, bytes: &[u8]) -> Result<Image, Error> {
    let damaged = |at, what| Error::Damaged {
        path: path.to_owned(),
        at,
        what,
    };
    if !bytes.starts_with(MAGIC) {
        // A process that was killed at once has written nothing.
        return match MAGIC.starts_with(bytes) {
            true => Ok(Image::default()),
            false => Err(damaged(0, "no file of the byte engine")),
        };
    }
    let mut image = Image::default();
    let mut ids = HashMap::new();
    let mut numbers = Numbers::new(bytes, MAGIC.len());
    while !numbers.is_at_end() {
        let at = numbers.at;
        match record(&mut numbers, &mut image, &mut ids) {
            Some(Ok(())) => {}
            Some(Err(what)) => return Err(damaged(at, what)),
            None => {
                image.ended = false;
                break;
            }
        }
    }
    image.blocks.sort_by_key(|block| block.first);
    Ok(image)
}

type Ids = HashMap<u64, EntityId>;

/// Reads one record. `None`: the file ends within it.
fn record(
    numbers: &mut Numbers,
    image: &mut Image,
    ids: &mut Ids,
) -> Option<Result<(), &'static str>> {
    let tag = numbers.next()?;
    image.ended = tag == 10;
    match tag {
        1 => {
            let [_pid, _parent] = numbers.take()?;
            image.program = numbers.string()?.to_vec();
        }
        2 => return entity(numbers, image, ids),
        3 => {
            let [first, count, shift, entity, offset, tick] = numbers.take()?;
            let Some(&entity) = ids.get(&entity) else {
                return Some(Err("a block of an entity that was not introduced"));
            };
            if shift > 40 || first.checked_add(count).is_none() || count > 1 << 32 {
                return Some(Err("a block that is too large"));
            }
            image.blocks.push(Block {
                first,
                count,
                shift: shift as u32,
                entity,
                offset,
                tick,
            });
        }
        4 => {
            let [id, low, span, rest] = numbers.take()?;
            let Some(high) = low.checked_add(span) else {
                return Some(Err("a range that is too large"));
            };
            image.nodes.insert(id, Node::List { low, high, rest });
        }
        5 => {
            let [id, second, first] = numbers.take()?;
            image.nodes.insert(id, Node::Pair(first, second));
        }
        6 => return write(numbers, image, ids),
        7 => {
            let [source, from, target, offset, length, tick] = numbers.take()?;
            let (Some(&source), Some(&entity)) = (ids.get(&source), ids.get(&target)) else {
                return Some(Err("a move of an entity that was not introduced"));
            };
            image.writes.push(Write {
                entity,
                offset,
                length,
                tick,
                origin: WriteOrigin::Moved(source, from),
                decided: Vec::new(),
                callers: image.present_callers(),
            });
        }
        8 => {
            let tick = numbers.next()?;
            image.possible.push((tick, numbers.string()?.to_vec()));
        }
        9 => {
            numbers.next()?;
            image.coarse = true;
        }
        10 => {
            numbers.next()?;
        }
        11 => return decided(numbers, image),
        12 => {
            let [id, line] = numbers.take()?;
            let (name, file) = (numbers.string()?.to_vec(), numbers.string()?.to_vec());
            let function = ActiveFunction { name, file, line };
            image.functions.insert(id, function);
        }
        13 => {
            let count = numbers.next()?;
            let ids = (0..count).map(|_| numbers.next());
            let mut ids = ids.collect::<Option<Vec<u64>>>()?;
            ids.truncate(DEEPEST);
            image.callers.push(ids);
        }
        _ => return Some(Err("a record of an unknown kind")),
    }
    Some(Ok(()))
}

fn entity(
    numbers: &mut Numbers,
    image: &mut Image,
    ids: &mut Ids,
) -> Option<Result<(), &'static str>> {
    let [number, kind, device, inode, generation, size, seconds, ns] = numbers.take()?;
    let path = numbers.string()?.to_vec();
    let kind = match kind {
        0 => EntityKind::File,
        1 => EntityKind::Pipe,
        2 => EntityKind::Socket,
        3 => EntityKind::Device,
        4 => EntityKind::Arguments,
        _ => return Some(Err("an entity of an unknown kind")),
    };
    let id = EntityId {
        kind,
        device,
        inode,
        generation,
    };
    ids.insert(number, id);
    let modified = (seconds, ns);
    let facts = EntityFacts {
        kind,
        path,
        size,
        modified,
    };
    image.names.push((id, facts.path.clone()));
    image.entities.entry(id).or_insert(facts);
    Some(Ok(()))
}

fn write(numbers: &mut Numbers, image: &mut Image, ids: &Ids) -> Option<Result<(), &'static str>> {
    let [entity, offset, length, tick, count] = numbers.take()?;
    let Some(&entity) = ids.get(&entity) else {
        return Some(Err("a write to an entity that was not introduced"));
    };
    let mut runs = Vec::new();
    for _ in 0..count {
        let head = numbers.next()?;
        let label = match head & 3 {
            0 => RunLabel::Nothing,
            1 => RunLabel::Copy(numbers.next()?),
            2 => RunLabel::Set(numbers.next()?),
            _ => return Some(Err("a run of an unknown kind")),
        };
        runs.push(Run {
            length: head >> 3,
            label,
            computed: head & 4 != 0,
        });
    }
    if offset.checked_add(length).is_none() {
        return Some(Err("a write that is too large"));
    }
    image.writes.push(Write {
        entity,
        offset,
        length,
        tick,
        origin: WriteOrigin::Runs(runs),
        decided: Vec::new(),
        callers: image.present_callers(),
    });
    Some(Ok(()))
}

/// Takes in the sets that decided about the bytes of the write before.
fn decided(numbers: &mut Numbers, image: &mut Image) -> Option<Result<(), &'static str>> {
    let count = numbers.next()?;
    let mut runs = Vec::new();
    for _ in 0..count {
        let [length, set] = numbers.take()?;
        runs.push((length, set));
    }
    let Some(write) = image.writes.last_mut() else {
        return Some(Err("what decided about a write that is not there"));
    };
    write.decided = runs;
    Some(Ok(()))
}
