//! Which versions a run's entities are: blocks of [`BLOCK`] entities in the order of their ids.
//!
//! ```text
//! block   := last-reverse-segment+1  first id [+ 1]  number of directories  directory, zigzag delta*  (member* | columns)
//! member  := flags | directory's place in the list << 4  [place - 15]  version, zigzag delta to the last one of that directory
//!            [version number]  [previous, zigzag delta to the entity]  [number of aliases (directory's place, version)*]
//! columns := how many  flags  directories' places  versions  version numbers  previous  numbers of aliases  aliases' places  aliases' versions
//!            [names' seen  names' possible, of each member with BY_NAME: of its path, then of its aliases]
//! ```
//!
//! The first id is divisible by [`BLOCK`]: where it is not, one was added, and the members stand in columns.

use super::column::{self, Reader};
use super::{Put, Take, unzigzag, zigzag};
use crate::{Error, Result};
use backstory_graph::model::ByName;

const WHAT: &str = "list of entities";

/// Entities in a block.
pub const BLOCK: u32 = 128;

const LAST: u8 = 1;
const NUMBERED: u8 = 2;
const PREVIOUS: u8 = 4;
const ALIASES: u8 = 8;
/// What was done by each name is known. In columns only, from schema 4 on.
const BY_NAME: u8 = 16;
/// Directory places below this are told in the flags byte itself.
const NEAR: usize = 15;

/// A version of the store: directory and index in it.
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
    /// What it is.
    pub version: VersionRef,
    /// 0 for the state before the run.
    pub number: u32,
    /// The entity before it, of the same file.
    pub previous: Option<u32>,
    /// What the file system held when the run ended.
    pub last: bool,
    /// Further names.
    pub aliases: Vec<VersionRef>,
    /// What was done by each name, the path's first; none if that is not known or there is but one name.
    pub by_name: Vec<ByName>,
}

/// A block of entities.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Block {
    /// Where the newest list of activities of these entities is.
    pub reverse: Option<u32>,
    /// The entities.
    pub members: Vec<Member>,
}

impl Block {
    /// Encodes the block whose first entity has the id `first`.
    pub fn encode(&self, first: u32) -> Vec<u8> {
        let dirs = self.dirs();
        let mut out = Vec::with_capacity(self.members.len() * 4 + dirs.len() * 2);
        out.number(self.reverse.map_or(0, |r| u64::from(r) + 1));
        out.number(u64::from(first) + 1);
        out.number(dirs.len() as u64);
        let mut last = 0i64;
        for &dir in &dirs {
            out.signed(i64::from(dir) - last);
            last = i64::from(dir);
        }
        put_members(&mut out, first, &self.members, &dirs);
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
        let mut head = Head::take(block)?;
        let (reverse, first) = (head.reverse, head.first);
        if head.columns {
            let members = take_members(&mut head.rest, first, &mut head.dirs)?;
            return Ok(Block { reverse, members });
        }
        let Head {
            mut rest, mut dirs, ..
        } = head;
        let mut members = Vec::new();
        while !rest.is_empty() {
            let id = first
                .checked_add(members.len() as u32)
                .ok_or_else(|| rest.damaged())?;
            members.push(take_member(&mut rest, id, &mut dirs)?);
        }
        Ok(Block { reverse, members })
    }
}

/// What a block begins with.
struct Head<'b> {
    reverse: Option<u32>,
    first: u32,
    columns: bool,
    /// Directories, and the version in each that was told of last.
    dirs: Vec<(u32, i64)>,
    rest: Take<'b>,
}

impl<'b> Head<'b> {
    fn take(block: &'b [u8]) -> Result<Head<'b>> {
        let mut take = Take::new(block, WHAT);
        let reverse = take.small()?.checked_sub(1);
        let marked = take.small()?;
        let first = marked - marked % BLOCK;
        let count = take.number()?;
        let (mut dirs, mut last) = (Vec::new(), 0i64);
        for _ in 0..count {
            last = last
                .checked_add(take.signed()?)
                .ok_or_else(|| take.damaged())?;
            dirs.push((u32::try_from(last).map_err(|_| take.damaged())?, 0i64));
        }
        Ok(Head {
            reverse,
            first,
            columns: marked != first,
            dirs,
            rest: take,
        })
    }
}

/// Hands the place and the version of each entity of a block to `each`; of blocks in columns nothing else is decoded.
pub fn versions(block: &[u8], mut each: impl FnMut(usize, VersionRef)) -> Result<()> {
    let mut head = Head::take(block)?;
    if !head.columns {
        let whole = Block::decode(block)?;
        let versions = whole.members.iter().map(|member| member.version);
        versions
            .enumerate()
            .for_each(|(place, version)| each(place, version));
        return Ok(());
    }
    let take = &mut head.rest;
    let count = take.small()? as usize;
    column::skip(take, count)?;
    let places = column::take(take, count)?;
    let steps = column::take(take, count)?;
    for (at, (place, step)) in places.into_iter().zip(steps).enumerate() {
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        each(at, next_version(&mut head.dirs, place, unzigzag(step))?);
    }
    Ok(())
}

/// The version that lies `step` after the last one told of in the directory at `place`.
fn next_version(dirs: &mut [(u32, i64)], place: usize, step: i64) -> Result<VersionRef> {
    let (dir, last) = dirs.get_mut(place).ok_or_else(|| Error::Damaged(WHAT))?;
    let index = last.checked_add(step).ok_or_else(|| Error::Damaged(WHAT))?;
    *last = index;
    Ok(VersionRef {
        dir: *dir,
        index: u32::try_from(index).map_err(|_| Error::Damaged(WHAT))?,
    })
}

fn put_members(out: &mut Vec<u8>, first: u32, members: &[Member], dirs: &[u32]) {
    let place = |dir: u32| dirs.partition_point(|d| *d < dir);
    let mut indexes = vec![0i64; dirs.len()];
    let [mut flags, mut places, mut versions, mut numbers] = [const { Vec::new() }; 4];
    let [mut previous, mut counts, mut alias_places, mut aliases] = [const { Vec::new() }; 4];
    let [mut seen, mut possible] = [const { Vec::new() }; 2];
    for (id, member) in (first..).zip(members) {
        let set = [
            (LAST, member.last),
            (NUMBERED, member.number != 0),
            (PREVIOUS, member.previous.is_some()),
            (ALIASES, !member.aliases.is_empty()),
            (BY_NAME, !member.by_name.is_empty()),
        ];
        let set = set.iter().filter(|(_, on)| *on);
        flags.push(u64::from(set.fold(0, |all, (flag, _)| all | flag)));
        let (at, index) = (place(member.version.dir), i64::from(member.version.index));
        places.push(at as u64);
        versions.push(zigzag(index - indexes[at]));
        indexes[at] = index;
        if member.number != 0 {
            numbers.push(u64::from(member.number));
        }
        if let Some(before) = member.previous {
            previous.push(zigzag(i64::from(before) - i64::from(id)));
        }
        if !member.aliases.is_empty() {
            counts.push(member.aliases.len() as u64);
            alias_places.extend(member.aliases.iter().map(|alias| place(alias.dir) as u64));
            aliases.extend(member.aliases.iter().map(|alias| u64::from(alias.index)));
        }
        seen.extend(member.by_name.iter().map(|by| u64::from(by.seen)));
        possible.extend(member.by_name.iter().map(|by| u64::from(by.possible)));
    }
    out.number(members.len() as u64);
    for numbers in [&flags, &places, &versions, &numbers, &previous, &counts] {
        column::put(out, numbers);
    }
    for numbers in [&alias_places, &aliases, &seen, &possible] {
        // One entity may have very many names.
        for piece in numbers.chunks(column::MOST) {
            column::put(out, piece);
        }
    }
}

fn take_members(take: &mut Take<'_>, first: u32, dirs: &mut [(u32, i64)]) -> Result<Vec<Member>> {
    let count = take.small()? as usize;
    let flags = column::take(take, count)?;
    let with = |flag: u8| {
        flags
            .iter()
            .filter(|set| **set & u64::from(flag) != 0)
            .count()
    };
    let mut places = Reader::new(take, count, WHAT)?;
    let mut versions = Reader::new(take, count, WHAT)?;
    let mut numbers = Reader::new(take, with(NUMBERED), WHAT)?;
    let mut previous = Reader::new(take, with(PREVIOUS), WHAT)?;
    let counts = column::take(take, with(ALIASES))?;
    let total = counts
        .iter()
        .fold(0u64, |all, count| all.saturating_add(*count));
    let mut aliases = [
        take_pieces(take, total)?.into_iter(),
        take_pieces(take, total)?.into_iter(),
    ];
    let named = flags
        .iter()
        .filter(|set| **set & u64::from(ALIASES) != 0)
        .zip(&counts);
    let named = named.filter(|(set, _)| **set & u64::from(BY_NAME) != 0);
    let named = named.fold(0u64, |all, (_, count)| {
        all.saturating_add(*count).saturating_add(1)
    });
    let mut by_name = [
        take_pieces(take, named)?.into_iter(),
        take_pieces(take, named)?.into_iter(),
    ];
    let mut counts = counts.into_iter();
    let mut members = Vec::with_capacity(count);
    for (id, set) in (first..).zip(flags) {
        let has = |flag: u8| set & u64::from(flag) != 0;
        let version = next_version(dirs, places.size()?, versions.signed()?)?;
        let number = if has(NUMBERED) { numbers.small()? } else { 0 };
        let previous = if has(PREVIOUS) {
            let at = i64::from(id).checked_add(previous.signed()?);
            Some(
                at.and_then(|at| u32::try_from(at).ok())
                    .ok_or_else(|| take.damaged())?,
            )
        } else {
            None
        };
        let mut names = Vec::new();
        if has(ALIASES) {
            for _ in 0..counts.next().unwrap_or(0) {
                let [place, index] = [aliases[0].next(), aliases[1].next()]
                    .map(|n| n.and_then(|n| u32::try_from(n).ok()));
                let (Some(place), Some(index)) = (place, index) else {
                    return Err(take.damaged());
                };
                let dir = dirs.get(place as usize).ok_or_else(|| take.damaged())?.0;
                names.push(VersionRef { dir, index });
            }
        }
        let done = if has(BY_NAME) && has(ALIASES) {
            let done = (0..=names.len()).map(|_| take_by_name(&mut by_name));
            done.collect::<Option<_>>().ok_or_else(|| take.damaged())?
        } else {
            Vec::new()
        };
        members.push(Member {
            version,
            number,
            previous,
            last: has(LAST),
            aliases: names,
            by_name: done,
        });
    }
    Ok(members)
}

/// What was done by the next name.
fn take_by_name(columns: &mut [std::vec::IntoIter<u64>; 2]) -> Option<ByName> {
    let [seen, possible] = columns
        .each_mut()
        .map(|column| u16::try_from(column.next()?).ok());
    Some(ByName {
        seen: seen?,
        possible: possible?,
    })
}

/// Columns one after another, all full but the last.
fn take_pieces(take: &mut Take<'_>, mut count: u64) -> Result<Vec<u64>> {
    let mut all = Vec::new();
    while count > 0 {
        let piece = count.min(column::MOST as u64);
        all.append(&mut column::take(take, piece as usize)?);
        count -= piece;
    }
    Ok(all)
}

fn take_member(take: &mut Take<'_>, id: u32, dirs: &mut [(u32, i64)]) -> Result<Member> {
    let flags = take.byte()?;
    let mut place = usize::from(flags >> 4);
    if place == NEAR {
        place = place.saturating_add(usize::try_from(take.number()?).map_err(|_| take.damaged())?);
    }
    let version = next_version(dirs, place, take.signed()?)?;
    let number = if flags & NUMBERED != 0 {
        take.small()?
    } else {
        0
    };
    let previous = if flags & PREVIOUS != 0 {
        let at = i64::from(id)
            .checked_add(take.signed()?)
            .ok_or_else(|| take.damaged())?;
        Some(u32::try_from(at).map_err(|_| take.damaged())?)
    } else {
        None
    };
    let mut aliases = Vec::new();
    if flags & ALIASES != 0 {
        for _ in 0..take.number()? {
            let place = usize::try_from(take.number()?).map_err(|_| take.damaged())?;
            let dir = dirs.get(place).ok_or_else(|| take.damaged())?.0;
            aliases.push(VersionRef {
                dir,
                index: take.small()?,
            });
        }
    }
    Ok(Member {
        version,
        number,
        previous,
        last: flags & LAST != 0,
        aliases,
        by_name: Vec::new(),
    })
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

    #[test]
    fn blocks_of_the_first_schema_are_still_read() {
        // No reverse segment; the first id is 256; one directory, 5; versions 3 (the last) and 4 (number 1, after 256).
        let block = [0, 0x80, 2, 1, 10, LAST, 6, NUMBERED | PREVIOUS, 2, 1, 1];
        let Block { reverse, members } = Block::decode(&block).unwrap();
        let told: Vec<_> = members
            .iter()
            .map(|m| (m.version.dir, m.version.index, m.number, m.previous, m.last))
            .collect();
        let mut told_alone = Vec::new();
        versions(&block, |place, version| {
            told_alone.push((place, version.dir, version.index))
        })
        .unwrap();
        assert_eq!(told_alone, [(0, 5, 3), (1, 5, 4)]);
        assert_eq!(
            (reverse, told),
            (
                None,
                vec![(5, 3, 0, None, true), (5, 4, 1, Some(256), false)]
            )
        );
    }

    proptest! {
        #[test]
        fn blocks_come_back_as_they_were(
            reverse in proptest::option::of(0u32..u32::MAX - 1),
            first in 0u32..1 << 23,
            members in proptest::collection::vec(
                (reference(), 0u32..3, proptest::option::of(any::<u32>()), any::<bool>(), proptest::collection::vec(reference(), 0..3), any::<bool>()),
                0..128,
            ),
        ) {
            let members = members
                .into_iter()
                .map(|(version, number, previous, last, aliases, known)| {
                    let by = |name: &VersionRef| ByName { seen: name.index as u16, possible: name.dir as u16 };
                    let by_name = std::iter::once(&version).chain(&aliases).map(by);
                    let by_name = by_name.filter(|_| known && !aliases.is_empty()).collect();
                    Member { version, number, previous, last, aliases, by_name }
                })
                .collect();
            let block = Block { reverse, members };
            let encoded = block.encode(first * BLOCK);
            prop_assert_eq!(Block::decode(&encoded).unwrap(), block.clone());
            let mut told = Vec::new();
            versions(&encoded, |place, version| told.push((place, version))).unwrap();
            prop_assert_eq!(told, block.members.iter().map(|m| m.version).enumerate().collect::<Vec<_>>());
        }
    }
}
