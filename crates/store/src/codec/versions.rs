//! The known versions of a directory's files: name, kind, identity. Shared by all runs.
//!
//! ```text
//! block   := record*  |  COLUMNS how many  columns (`columns.rs`)
//! record  := kind | SAME_NAME | IDENT   name, or index in the directory of the first record that has it   [ident]
//! ident   := flags  [dev]  ino, zigzag delta  size  mtime, delta  ctime, delta  [birth, delta]  [mode]  [nlink]
//! ```
//!
//! Deltas are to the record before in the block that has an identity. A block is kept in the smaller form.

mod columns;

use backstory_eventlog::event::Bytes;
use backstory_files::Ident;
use backstory_graph::model::EntityKind;

use super::{Put, Take};
use crate::Result;

/// Stands where the first record's tag would: no tag is so large.
const COLUMNS: u8 = 64;

const KIND: u8 = 15;
const SAME_NAME: u8 = 16;
const IDENT: u8 = 32;

const SAME_DEV: u8 = 1;
const WHOLE_SECONDS: u8 = 2;
const CTIME_BY_MTIME: u8 = 4;
const NO_BIRTH: u8 = 8;
const SAME_MODE: u8 = 16;
const ONE_LINK: u8 = 32;

const SECOND: i64 = 1_000_000_000;

/// Kinds in the order of their stored numbers. Only ever appended to.
const KINDS: [EntityKind; 8] = [
    EntityKind::File,
    EntityKind::Directory,
    EntityKind::Symlink,
    EntityKind::Pipe,
    EntityKind::Socket,
    EntityKind::Missing,
    EntityKind::Device,
    EntityKind::Memory,
];

fn kind_number(kind: EntityKind) -> u8 {
    use EntityKind::*;
    match kind {
        File => 0,
        Directory => 1,
        Symlink => 2,
        Pipe => 3,
        Socket => 4,
        Missing => 5,
        Device => 6,
        Memory => 7,
    }
}

/// What a block is called should it be damaged.
const WHAT: &str = "list of versions";

fn kind_of(tag: u8) -> Result<EntityKind> {
    KINDS
        .get(usize::from(tag & KIND))
        .copied()
        .ok_or_else(|| crate::Error::Damaged(WHAT))
}

/// A name, or the record that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name<'a> {
    /// The name itself.
    Here(&'a [u8]),
    /// The same as that of an earlier record of the directory.
    As(u32),
}

/// One record as decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its name.
    pub name: Name<'a>,
    /// Its kind.
    pub kind: EntityKind,
    /// Its identity.
    pub ident: Option<Ident>,
}

/// A record whose name is known.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Version {
    /// Last component of the path.
    pub name: Bytes,
    /// Its kind.
    pub kind: EntityKind,
    /// Its identity.
    pub ident: Option<Ident>,
}

const NOTHING: Ident = Ident {
    dev: 0,
    ino: 0,
    size: 0,
    mtime: 0,
    ctime: 0,
    birth: 0,
    mode: 0,
    nlink: 0,
};

/// Builds a block.
#[derive(Default)]
pub struct Builder {
    count: usize,
    /// The block as records, while it is so short that it may be smaller that way.
    records: Vec<u8>,
    last: Option<Ident>,
    columns: columns::Columns,
}

/// Longer blocks are kept in columns without a look at their records.
const MANY: usize = 24;

impl Builder {
    /// Adds a record.
    pub fn push(&mut self, name: Name<'_>, kind: EntityKind, ident: Option<&Ident>) {
        let mut tag = kind_number(kind);
        if matches!(name, Name::As(_)) {
            tag |= SAME_NAME;
        }
        if ident.is_some() {
            tag |= IDENT;
        }
        self.columns.push(tag, name, ident);
        self.count += 1;
        if self.count > MANY {
            return;
        }
        self.records.push(tag);
        match name {
            Name::Here(name) => self.records.bytes(name),
            Name::As(index) => self.records.number(u64::from(index)),
        }
        if let Some(ident) = ident {
            put_ident(&mut self.records, ident, &self.last.unwrap_or(NOTHING));
            self.last = Some(*ident);
        }
    }

    /// The block.
    pub fn finish(self) -> Vec<u8> {
        let columns = self.columns.finish();
        if self.count > MANY || columns.len() < self.records.len() {
            columns
        } else {
            self.records
        }
    }
}

fn put_ident(out: &mut Vec<u8>, ident: &Ident, last: &Ident) {
    let by_mtime = ident.ctime.wrapping_sub(ident.mtime);
    let by_last = ident.ctime.wrapping_sub(last.ctime);
    let whole = ident.mtime % SECOND == 0;
    let ctime_by_mtime = by_mtime.unsigned_abs() <= by_last.unsigned_abs();
    let flags = [
        (SAME_DEV, ident.dev == last.dev),
        (WHOLE_SECONDS, whole),
        (CTIME_BY_MTIME, ctime_by_mtime),
        (NO_BIRTH, ident.birth == 0),
        (SAME_MODE, ident.mode == last.mode),
        (ONE_LINK, ident.nlink == 1),
    ];
    let flags = flags
        .iter()
        .filter(|(_, on)| *on)
        .fold(0, |all, (flag, _)| all | flag);
    out.push(flags);
    if ident.dev != last.dev {
        out.number(ident.dev);
    }
    out.signed(ident.ino.wrapping_sub(last.ino) as i64);
    out.signed(ident.size);
    if whole {
        out.signed(ident.mtime / SECOND - last.mtime / SECOND);
    } else {
        out.signed(ident.mtime.wrapping_sub(last.mtime));
    }
    out.signed(if ctime_by_mtime { by_mtime } else { by_last });
    if ident.birth != 0 {
        out.signed(ident.birth.wrapping_sub(ident.ctime));
    }
    if ident.mode != last.mode {
        out.number(u64::from(ident.mode));
    }
    if ident.nlink != 1 {
        out.number(u64::from(ident.nlink));
    }
}

fn take_ident(take: &mut Take<'_>, last: &Ident) -> Result<Ident> {
    let flags = take.byte()?;
    let has = |flag| flags & flag != 0;
    let dev = if has(SAME_DEV) {
        last.dev
    } else {
        take.number()?
    };
    let ino = last.ino.wrapping_add(take.signed()? as u64);
    let size = take.signed()?;
    let step = take.signed()?;
    let mtime = if has(WHOLE_SECONDS) {
        (last.mtime / SECOND)
            .wrapping_add(step)
            .wrapping_mul(SECOND)
    } else {
        last.mtime.wrapping_add(step)
    };
    let ctime = take.signed()?.wrapping_add(if has(CTIME_BY_MTIME) {
        mtime
    } else {
        last.ctime
    });
    let birth = if has(NO_BIRTH) {
        0
    } else {
        ctime.wrapping_add(take.signed()?)
    };
    let mode = if has(SAME_MODE) {
        last.mode
    } else {
        take.small()?
    };
    let nlink = if has(ONE_LINK) { 1 } else { take.small()? };
    Ok(Ident {
        dev,
        ino,
        size,
        mtime,
        ctime,
        birth,
        mode,
        nlink,
    })
}

/// Decodes a block, handing each record and its place in the block to `each`.
pub fn decode(block: &[u8], mut each: impl FnMut(u32, Record<'_>) -> Result<()>) -> Result<()> {
    let mut take = Take::new(block, WHAT);
    if take.peek() == Some(COLUMNS) {
        take.byte()?;
        return columns::decode(take, each);
    }
    let mut last = NOTHING;
    let mut place = 0u32;
    while !take.is_empty() {
        let tag = take.byte()?;
        let kind = kind_of(tag)?;
        let name = if tag & SAME_NAME != 0 {
            Name::As(take.small()?)
        } else {
            Name::Here(take.bytes()?)
        };
        let ident = if tag & IDENT != 0 {
            last = take_ident(&mut take, &last)?;
            Some(last)
        } else {
            None
        };
        each(place, Record { name, kind, ident })?;
        place += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn idents() -> impl Strategy<Value = Option<Ident>> {
        let time = || prop_oneof![any::<i64>(), (0i64..4).prop_map(|s| s * SECOND), Just(0)];
        let ident = (
            any::<u64>(),
            any::<u64>(),
            any::<i64>(),
            time(),
            time(),
            time(),
            any::<u32>(),
            0u32..3,
        );
        proptest::option::of(ident.prop_map(
            |(dev, ino, size, mtime, ctime, birth, mode, nlink)| Ident {
                dev,
                ino,
                size,
                mtime,
                ctime,
                birth,
                mode,
                nlink,
            },
        ))
    }

    type Told = (Vec<u8>, usize, Option<Ident>);

    fn name(list: &[Told], place: usize) -> Name<'_> {
        match place % 3 {
            2 => Name::As(place as u32 - 1),
            _ => Name::Here(&list[place].0),
        }
    }

    fn assert_same(block: &[u8], list: &[Told]) {
        let mut got = 0;
        decode(block, |place, record| {
            let (_, kind, ident) = &list[place as usize];
            let (kind, ident) = (KINDS[*kind], *ident);
            let name = name(list, place as usize);
            assert_eq!(record, Record { name, kind, ident });
            got += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!(got, list.len());
    }

    proptest! {
        #[test]
        fn versions_come_back_as_they_were(
            list in proptest::collection::vec((proptest::collection::vec(b'a'..b'e', 0..9), 0usize..8, idents()), 0..80)
        ) {
            let mut builder = Builder::default();
            for (place, (_, kind, ident)) in list.iter().enumerate() {
                builder.push(name(&list, place), KINDS[*kind], ident.as_ref());
            }
            let (records, columns) = (builder.records.clone(), std::mem::take(&mut builder.columns).finish());
            if list.len() <= MANY {
                assert_same(&records, &list);
            }
            assert_same(&columns, &list);
        }
    }

    #[test]
    fn files_made_one_after_another_take_a_few_bytes_each() {
        let mut builder = Builder::default();
        for i in 0..64u32 {
            let now = 1_700_000_000 * SECOND + i64::from(i) * 40_000;
            let ident = Ident {
                dev: 26,
                ino: u64::from(900 + i),
                size: 64,
                mtime: now,
                ctime: now,
                birth: now,
                mode: 0o100_644,
                nlink: 1,
            };
            builder.push(
                Name::Here(format!("f{:05}.txt", 300 - i).as_bytes()),
                EntityKind::File,
                Some(&ident),
            );
        }
        let block = builder.finish();
        assert!(block.len() < 64 * 4, "{} bytes", block.len());
    }

    #[test]
    fn kinds_keep_their_numbers() {
        for (number, kind) in KINDS.iter().enumerate() {
            assert_eq!(usize::from(kind_number(*kind)), number);
        }
    }
}
