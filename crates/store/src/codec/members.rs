//! Which versions a run's entities are: blocks of [`BLOCK`] entities in the order of their ids.
//!
//! ```text
//! block   := last-reverse-segment+1  first id  number of directories  directory, zigzag delta*  member*
//! member  := flags | directory's place in the list << 4  [place - 15]  version, zigzag delta to the last one of that directory
//!            [version number]  [previous, zigzag delta to the entity]  [number of aliases (directory's place, version)*]
//! ```

use super::{Put, Take};
use crate::Result;

/// Entities in a block.
pub const BLOCK: u32 = 128;

const LAST: u8 = 1;
const NUMBERED: u8 = 2;
const PREVIOUS: u8 = 4;
const ALIASES: u8 = 8;
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
        out.number(u64::from(first));
        out.number(dirs.len() as u64);
        let mut last = 0i64;
        for &dir in &dirs {
            out.signed(i64::from(dir) - last);
            last = i64::from(dir);
        }
        let mut indexes = vec![0i64; dirs.len()];
        for (id, member) in (first..).zip(&self.members) {
            put_member(&mut out, id, member, &dirs, &mut indexes);
        }
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
        let mut take = Take::new(block, "list of entities");
        let reverse = take.small()?.checked_sub(1);
        let first = take.small()?;
        let count = take.number()?;
        let (mut dirs, mut last) = (Vec::new(), 0i64);
        for _ in 0..count {
            last = last.checked_add(take.signed()?).ok_or_else(|| take.damaged())?;
            dirs.push((u32::try_from(last).map_err(|_| take.damaged())?, 0i64));
        }
        let mut members = Vec::new();
        while !take.is_empty() {
            let id = first
                .checked_add(members.len() as u32)
                .ok_or_else(|| take.damaged())?;
            members.push(take_member(&mut take, id, &mut dirs)?);
        }
        Ok(Block { reverse, members })
    }
}

fn put_member(out: &mut Vec<u8>, id: u32, member: &Member, dirs: &[u32], indexes: &mut [i64]) {
    let place = dirs.partition_point(|d| *d < member.version.dir);
    let flags = [
        (LAST, member.last),
        (NUMBERED, member.number != 0),
        (PREVIOUS, member.previous.is_some()),
        (ALIASES, !member.aliases.is_empty()),
    ];
    let flags = flags
        .iter()
        .filter(|(_, on)| *on)
        .fold(0, |all, (flag, _)| all | flag);
    out.push(flags | (place.min(NEAR) << 4) as u8);
    if place >= NEAR {
        out.number((place - NEAR) as u64);
    }
    out.signed(i64::from(member.version.index) - indexes[place]);
    indexes[place] = i64::from(member.version.index);
    if member.number != 0 {
        out.number(u64::from(member.number));
    }
    if let Some(previous) = member.previous {
        out.signed(i64::from(previous) - i64::from(id));
    }
    if !member.aliases.is_empty() {
        out.number(member.aliases.len() as u64);
        for alias in &member.aliases {
            out.number(dirs.partition_point(|d| *d < alias.dir) as u64);
            out.number(u64::from(alias.index));
        }
    }
}

fn take_member(take: &mut Take<'_>, id: u32, dirs: &mut [(u32, i64)]) -> Result<Member> {
    let flags = take.byte()?;
    let mut place = usize::from(flags >> 4);
    if place == NEAR {
        place = place.saturating_add(usize::try_from(take.number()?).map_err(|_| take.damaged())?);
    }
    let step = take.signed()?;
    let (dir, index) = dirs.get_mut(place).ok_or_else(|| take.damaged())?;
    *index = index.checked_add(step).ok_or_else(|| take.damaged())?;
    let version = VersionRef {
        dir: *dir,
        index: u32::try_from(*index).map_err(|_| take.damaged())?,
    };
    let number = if flags & NUMBERED != 0 { take.small()? } else { 0 };
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

    proptest! {
        #[test]
        fn blocks_come_back_as_they_were(
            reverse in proptest::option::of(0u32..u32::MAX - 1),
            first in 0u32..1 << 30,
            members in proptest::collection::vec(
                (reference(), 0u32..3, proptest::option::of(any::<u32>()), any::<bool>(), proptest::collection::vec(reference(), 0..3)),
                0..128,
            ),
        ) {
            let members = members
                .into_iter()
                .map(|(version, number, previous, last, aliases)| Member { version, number, previous, last, aliases })
                .collect();
            let block = Block { reverse, members };
            prop_assert_eq!(Block::decode(&block.encode(first)).unwrap(), block);
        }
    }
}
