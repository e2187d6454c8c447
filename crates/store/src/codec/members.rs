//! Blocks of up to [`BLOCK`] entities of one run, in the order of their ids: which version of which
//! file each of them is.
//!
//! ```text
//! record  := [last reverse segment + 1]  [id of the first entity]  [number of directories]
//!            directories  columns
//! columns := [number of entities]  flags  directories' positions  versions  version numbers
//!            previous entities  numbers of aliases  aliases' directories' positions
//!            aliases' versions  relations seen  relations possible
//! ```
//!
//! | column | a number for | the number is |
//! | --- | --- | --- |
//! | directories | each directory | its id, as a signed difference to the one before |
//! | flags | each entity | which of the other columns have a number for the entity, and `LAST` |
//! | directories' positions | each entity | position of the directory in the list of directories |
//! | versions | each entity | index of the version, as a signed difference to the last entity of that directory |
//! | version numbers | entities with `NUMBERED` | the version's number in the run |
//! | previous entities | entities with `PREVIOUS` | the id, as a signed difference to the entity's own |
//! | numbers of aliases | entities with `ALIASES` | how many aliases |
//! | aliases' … | each alias | position of its directory; index of its version |
//! | relations … | each name of entities with `BY_NAME` | a set of relations: the path's, then the aliases' |

use super::{RecordReader, RecordWriter, block, zigzag};
use crate::Result;
use backstory_graph::model::ByName;

const WHAT: &str = "list of entities";

/// Entities in a block.
pub const BLOCK: u32 = 128;

const LAST: u8 = 1;
const NUMBERED: u8 = 2;
const PREVIOUS: u8 = 4;
const ALIASES: u8 = 8;
const BY_NAME: u8 = 16;

/// A version of the store: a directory and an index in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct VersionRef {
    /// The directory's id.
    pub dir: u32,
    /// Index among the directory's versions.
    pub index: u32,
}

/// One entity of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its path, kind and identity.
    pub version: VersionRef,
    /// 0 for the state before the run.
    pub number: u32,
    /// The entity before it, of the same file.
    pub previous: Option<u32>,
    /// True if the file system had this version when the run ended.
    pub last: bool,
    /// Further names.
    pub aliases: Vec<VersionRef>,
    /// The relations by each name: the path's first, then the aliases'. Empty if there are no
    /// aliases or it is not known.
    pub by_name: Vec<ByName>,
}

/// A block of entities.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Block {
    /// The newest segment that lists the activities of these entities.
    pub reverse: Option<u32>,
    /// The entities.
    pub members: Vec<Member>,
}

impl Block {
    /// Encodes the block whose first entity has the id `first`.
    pub fn encode(&self, first: u32) -> Vec<u8> {
        let dirs = self.dirs();
        let mut record = Vec::with_capacity(self.members.len() * 4 + dirs.len() * 2);
        record.number(self.reverse.map_or(0, |r| u64::from(r) + 1));
        record.number(u64::from(first));
        record.number(dirs.len() as u64);
        let mut last = 0;
        for &dir in &dirs {
            record.signed(i64::from(dir) - last);
            last = i64::from(dir);
        }
        put_columns(&mut record, first, &self.members, &dirs);
        let mut out = Vec::with_capacity(record.len());
        block::put(&mut out, &record);
        out
    }

    /// The directories of the names, each once, ascending.
    pub fn dirs(&self) -> Vec<u32> {
        let all = self
            .members
            .iter()
            .flat_map(|m| std::iter::once(&m.version).chain(&m.aliases));
        let mut dirs: Vec<u32> = all.map(|v| v.dir).collect();
        dirs.sort_unstable();
        dirs.dedup();
        dirs
    }

    /// Decodes a block.
    pub fn decode(block: &[u8]) -> Result<Block> {
        let record = block::take(&mut RecordReader::new(block, WHAT))?;
        let mut reader = RecordReader::new(&record, WHAT);
        let reverse = reader.small()?.checked_sub(1);
        let first = reader.small()?;
        let mut columns = Columns::take(&mut reader)?;
        // A collected `Result` would not reserve room.
        let mut members = Vec::with_capacity(columns.count as usize);
        for id in first..first.saturating_add(columns.count) {
            members.push(columns.member(id)?);
        }
        Ok(Block { reverse, members })
    }
}

/// Passes the directories of the names of a block to `each`, ascending, and decodes nothing else.
pub fn directories(block: &[u8], each: impl FnMut(u32)) -> Result<()> {
    let record = block::take(&mut RecordReader::new(block, WHAT))?;
    let mut reader = RecordReader::new(&record, WHAT);
    reader.small()?;
    reader.small()?;
    take_directories(&mut reader, each)
}

/// Passes the position and the version of each entity of a block to `each`, and decodes nothing
/// else.
pub fn versions(block: &[u8], mut each: impl FnMut(usize, VersionRef)) -> Result<()> {
    let record = block::take(&mut RecordReader::new(block, WHAT))?;
    let mut reader = RecordReader::new(&record, WHAT);
    reader.small()?;
    reader.small()?;
    let mut columns = Columns::take(&mut reader)?;
    for position in 0..columns.count as usize {
        each(position, columns.version()?);
    }
    Ok(())
}

/// Passes the position of each entity of a block to `each` whose path or alias is one of the
/// `wanted` versions. Decodes nothing else.
pub fn named(
    block: &[u8],
    wanted: impl Fn(VersionRef) -> bool,
    mut each: impl FnMut(usize),
) -> Result<()> {
    let record = block::take(&mut RecordReader::new(block, WHAT))?;
    let mut reader = RecordReader::new(&record, WHAT);
    reader.small()?;
    reader.small()?;
    let mut columns = Columns::take(&mut reader)?;
    for position in 0..columns.count as usize {
        let flags = columns.flags.byte()?;
        let mut is_named = wanted(columns.version()?);
        if flags & ALIASES != 0 {
            for _ in 0..columns.counts.size()? {
                is_named |= wanted(columns.alias()?);
            }
        }
        if is_named {
            each(position);
        }
    }
    Ok(())
}

fn put_columns(out: &mut Vec<u8>, first: u32, members: &[Member], dirs: &[u32]) {
    let position = |dir: u32| dirs.partition_point(|d| *d < dir);
    let mut last = vec![0i64; dirs.len()];
    let mut columns = [const { Vec::new() }; 9];
    let [
        positions,
        versions,
        numbers,
        previous,
        counts,
        alias_positions,
        aliases,
        seen,
        possible,
    ] = &mut columns;
    out.number(members.len() as u64);
    for (id, member) in (first..).zip(members) {
        let flags = [
            (LAST, member.last),
            (NUMBERED, member.number != 0),
            (PREVIOUS, member.previous.is_some()),
            (ALIASES, !member.aliases.is_empty()),
            (BY_NAME, !member.by_name.is_empty()),
        ];
        let flags = flags.iter().filter(|(_, on)| *on);
        out.push(flags.fold(0, |all, (flag, _)| all | flag));
        let (at, index) = (
            position(member.version.dir),
            i64::from(member.version.index),
        );
        positions.number(at as u64);
        versions.signed(index - last[at]);
        last[at] = index;
        if member.number != 0 {
            numbers.number(u64::from(member.number));
        }
        if let Some(before) = member.previous {
            previous.number(zigzag(i64::from(before) - i64::from(id)));
        }
        if !member.aliases.is_empty() {
            counts.number(member.aliases.len() as u64);
        }
        for alias in &member.aliases {
            alias_positions.number(position(alias.dir) as u64);
            aliases.number(u64::from(alias.index));
        }
        for by in &member.by_name {
            seen.number(u64::from(by.seen));
            possible.number(u64::from(by.possible));
        }
    }
    columns
        .iter()
        .for_each(|column| out.extend_from_slice(column));
}

/// Passes the list of directories of a block to `each`, ascending.
fn take_directories(reader: &mut RecordReader<'_>, mut each: impl FnMut(u32)) -> Result<()> {
    let mut last = 0i64;
    for _ in 0..reader.number()? {
        let dir = last.checked_add(reader.signed()?);
        last = dir.ok_or_else(|| reader.damaged())?;
        each(u32::try_from(last).map_err(|_| reader.damaged())?);
    }
    Ok(())
}

/// The columns of a block, each at the number of the next entity.
struct Columns<'b> {
    /// How many entities the block has.
    count: u32,
    /// Each directory's id, and the index of its version that was decoded last.
    dirs: Vec<(u32, i64)>,
    flags: RecordReader<'b>,
    positions: RecordReader<'b>,
    versions: RecordReader<'b>,
    numbers: RecordReader<'b>,
    previous: RecordReader<'b>,
    counts: RecordReader<'b>,
    alias_positions: RecordReader<'b>,
    aliases: RecordReader<'b>,
    seen: RecordReader<'b>,
    possible: RecordReader<'b>,
}

impl<'b> Columns<'b> {
    fn take(reader: &mut RecordReader<'b>) -> Result<Columns<'b>> {
        let mut dirs = Vec::new();
        take_directories(reader, |dir| dirs.push((dir, 0i64)))?;
        let count = reader.small()?;
        if count > BLOCK {
            return Err(reader.damaged());
        }
        let all = count as usize;
        let flags = reader.exactly(all)?;
        let with = |flag: u8| flags.iter().filter(|set| **set & flag != 0).count();
        let positions = reader.column(all)?;
        let versions = reader.column(all)?;
        let numbers = reader.column(with(NUMBERED))?;
        let previous = reader.column(with(PREVIOUS))?;
        let counts = reader.column(with(ALIASES))?;
        let (mut aliases, mut names, mut each) = (0usize, 0usize, counts);
        for set in flags.iter().filter(|set| **set & ALIASES != 0) {
            let count = each.size()?;
            aliases = aliases.saturating_add(count);
            if set & BY_NAME != 0 {
                names = names.saturating_add(count).saturating_add(1);
            }
        }
        Ok(Columns {
            count,
            dirs,
            flags: RecordReader::new(flags, WHAT),
            positions,
            versions,
            numbers,
            previous,
            counts,
            alias_positions: reader.column(aliases)?,
            aliases: reader.column(aliases)?,
            seen: reader.column(names)?,
            possible: reader.column(names)?,
        })
    }

    /// The version of the next entity.
    fn version(&mut self) -> Result<VersionRef> {
        let (position, step) = (self.positions.size()?, self.versions.signed()?);
        let damaged = || self.versions.damaged();
        let (dir, last) = self.dirs.get_mut(position).ok_or_else(damaged)?;
        *last = last.checked_add(step).ok_or_else(damaged)?;
        Ok(VersionRef {
            dir: *dir,
            index: u32::try_from(*last).map_err(|_| damaged())?,
        })
    }

    /// The next entity, whose id is `id`.
    fn member(&mut self, id: u32) -> Result<Member> {
        let flags = self.flags.byte()?;
        let has = |flag: u8| flags & flag != 0;
        let version = self.version()?;
        let number = if has(NUMBERED) {
            self.numbers.small()?
        } else {
            0
        };
        let previous = match has(PREVIOUS) {
            true => Some(self.previous_of(id)?),
            false => None,
        };
        let (mut aliases, mut by_name) = (Vec::new(), Vec::new());
        if has(ALIASES) {
            for _ in 0..self.counts.size()? {
                aliases.push(self.alias()?);
            }
            // The relations by each name: the path's and the aliases'.
            for _ in 0..if has(BY_NAME) { aliases.len() + 1 } else { 0 } {
                by_name.push(self.relations()?);
            }
        }
        Ok(Member {
            version,
            number,
            previous,
            last: has(LAST),
            aliases,
            by_name,
        })
    }

    fn previous_of(&mut self, id: u32) -> Result<u32> {
        let previous = i64::from(id).checked_add(self.previous.signed()?);
        let previous = previous.and_then(|previous| u32::try_from(previous).ok());
        previous.ok_or_else(|| self.previous.damaged())
    }

    fn alias(&mut self) -> Result<VersionRef> {
        let dir = self.dirs.get(self.alias_positions.size()?);
        let (dir, _) = *dir.ok_or_else(|| self.aliases.damaged())?;
        let index = self.aliases.small()?;
        Ok(VersionRef { dir, index })
    }

    /// The relations by the next name.
    fn relations(&mut self) -> Result<ByName> {
        let set = |column: &mut RecordReader<'_>| {
            u16::try_from(column.number()?).map_err(|_| column.damaged())
        };
        Ok(ByName {
            seen: set(&mut self.seen)?,
            possible: set(&mut self.possible)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reference() -> impl Strategy<Value = VersionRef> {
        (0u32..40, any::<u32>()).prop_map(|(dir, index)| VersionRef {
            dir: dir * 1_000_003,
            index,
        })
    }

    fn member() -> impl Strategy<Value = Member> {
        let aliases = proptest::collection::vec(reference(), 0..3);
        let previous = proptest::option::of(any::<u32>());
        let parts = (
            reference(),
            0u32..3,
            previous,
            any::<bool>(),
            aliases,
            any::<bool>(),
        );
        parts.prop_map(|(version, number, previous, last, aliases, known)| {
            let by = |name: &VersionRef| ByName {
                seen: name.index as u16,
                possible: name.dir as u16,
            };
            let by_name = std::iter::once(&version).chain(&aliases).map(by);
            let by_name = by_name.filter(|_| known && !aliases.is_empty()).collect();
            Member {
                version,
                number,
                previous,
                last,
                aliases,
                by_name,
            }
        })
    }

    proptest! {
        #[test]
        fn a_block_of_entities_comes_back_as_it_was(
            reverse in proptest::option::of(0u32..u32::MAX - 1),
            first in 0u32..1 << 23,
            members in proptest::collection::vec(member(), 0..128),
        ) {
            let block = Block { reverse, members };
            let encoded = block.encode(first * BLOCK);
            prop_assert_eq!(Block::decode(&encoded).unwrap(), block.clone());
            let mut found = Vec::new();
            versions(&encoded, |position, version| found.push((position, version))).unwrap();
            prop_assert_eq!(found, block.members.iter().map(|m| m.version).enumerate().collect::<Vec<_>>());
            let mut found = Vec::new();
            directories(&encoded, |dir| found.push(dir)).unwrap();
            prop_assert_eq!(found, block.dirs());
            let wanted = |version: VersionRef| version.index.is_multiple_of(2);
            let mut found = Vec::new();
            named(&encoded, wanted, |position| found.push(position)).unwrap();
            let mut names = block.members.iter().map(|m| m.aliases.iter().chain([&m.version]));
            let is_named = (0..block.members.len()).filter(|_| {
                names.next().is_some_and(|mut all| all.any(|version| wanted(*version)))
            });
            prop_assert_eq!(found, is_named.collect::<Vec<_>>());
        }
    }
}
