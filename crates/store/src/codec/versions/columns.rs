//! A block of versions in columns: what all its records have in common takes no room.
//!
//! ```text
//! columns := tags  indexes  starts shared  ends shared  middles  times  devs  inos  sizes  whole mtimes  mtimes  ctimes by mtime  ctimes  births
//!            modes  links  the middles' bytes
//! times   := WHOLE_SECONDS | CTIME_BY_MTIME | NO_BIRTH   of each record with an identity
//! ```
//!
//! A column has a number for each record that needs one, in their order. `indexes`: how far before it the record lies that introduced the
//! name (zigzagged). A name of its own begins and ends as the own name before it in the block, for so many bytes; `middles` is the length of what is between. Numbers of
//! identities are zigzagged differences: `mtimes` to the last that was not of whole seconds, `whole mtimes` to the last that was, both `ctimes by
//! mtime` and `births` within the record (to the mtime, to the ctime), sizes and links as they are, the others to the last identity.

use backstory_files::Ident;

use super::{
    COLUMNS, CTIME_BY_MTIME, IDENT, NO_BIRTH, NOTHING, Name, Record, SAME_NAME, SECOND, WHAT,
    WHOLE_SECONDS, kind_of,
};
use crate::codec::column::{self, Reader};
use crate::codec::{Put, Take, unzigzag, zigzag};
use crate::{Error, Result};

/// The numbers of a block that is being built.
#[derive(Default)]
pub struct Columns {
    tags: Vec<u64>,
    indexes: Vec<u64>,
    names: Names,
    times: Vec<u64>,
    devs: Vec<u64>,
    inos: Vec<u64>,
    sizes: Vec<u64>,
    whole: Vec<u64>,
    mtimes: Vec<u64>,
    by_mtime: Vec<u64>,
    ctimes: Vec<u64>,
    births: Vec<u64>,
    modes: Vec<u64>,
    links: Vec<u64>,
    last: Last,
}

/// What differences are taken to.
struct Last {
    ident: Ident,
    /// Seconds.
    whole: i64,
    mtime: i64,
}

impl Default for Last {
    fn default() -> Last {
        Last {
            ident: NOTHING,
            whole: 0,
            mtime: 0,
        }
    }
}

impl Last {
    fn follow(&mut self, ident: Ident) {
        if is_whole(ident.mtime) {
            self.whole = ident.mtime / SECOND;
        } else {
            self.mtime = ident.mtime;
        }
        self.ident = ident;
    }
}

fn is_whole(mtime: i64) -> bool {
    mtime % SECOND == 0
}

#[derive(Default)]
struct Names {
    starts: Vec<u64>,
    ends: Vec<u64>,
    middles: Vec<u64>,
    bytes: Vec<u8>,
    last: Vec<u8>,
}

impl Names {
    fn push(&mut self, name: &[u8]) {
        let same = |(a, b): &(&u8, &u8)| a == b;
        let start = name.iter().zip(&self.last).take_while(same).count();
        let (rest, last) = (&name[start..], &self.last[start..]);
        let end = rest
            .iter()
            .rev()
            .zip(last.iter().rev())
            .take_while(same)
            .count();
        let middle = &rest[..rest.len() - end];
        self.starts.push(start as u64);
        self.ends.push(end as u64);
        self.middles.push(middle.len() as u64);
        self.bytes.extend_from_slice(middle);
        self.last.clear();
        self.last.extend_from_slice(name);
    }
}

impl Columns {
    /// Adds a record.
    pub fn push(&mut self, tag: u8, name: Name<'_>, ident: Option<&Ident>) {
        let place = self.tags.len() as i64;
        self.tags.push(u64::from(tag));
        match name {
            Name::Here(name) => self.names.push(name),
            Name::As(index) => self.indexes.push(zigzag(i64::from(index) - place)),
        }
        if let Some(ident) = ident {
            self.ident(*ident);
        }
    }

    fn ident(&mut self, ident: Ident) {
        let last = &self.last.ident;
        let by_mtime = ident.ctime.wrapping_sub(ident.mtime);
        let by_last = ident.ctime.wrapping_sub(last.ctime);
        let near_mtime = by_mtime.unsigned_abs() <= by_last.unsigned_abs();
        let mut times = 0;
        self.devs
            .push(zigzag(ident.dev.wrapping_sub(last.dev) as i64));
        self.inos
            .push(zigzag(ident.ino.wrapping_sub(last.ino) as i64));
        self.sizes.push(zigzag(ident.size));
        self.modes
            .push(zigzag(i64::from(ident.mode) - i64::from(last.mode)));
        self.links.push(u64::from(ident.nlink));
        if is_whole(ident.mtime) {
            times |= WHOLE_SECONDS;
            self.whole
                .push(zigzag(ident.mtime / SECOND - self.last.whole));
        } else {
            self.mtimes
                .push(zigzag(ident.mtime.wrapping_sub(self.last.mtime)));
        }
        if near_mtime {
            times |= CTIME_BY_MTIME;
            self.by_mtime.push(zigzag(by_mtime));
        } else {
            self.ctimes.push(zigzag(by_last));
        }
        if ident.birth == 0 {
            times |= NO_BIRTH;
        } else {
            self.births
                .push(zigzag(ident.birth.wrapping_sub(ident.ctime)));
        }
        self.times.push(u64::from(times));
        self.last.follow(ident);
    }

    /// The block.
    pub fn finish(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.tags.len() * 8);
        out.push(COLUMNS);
        out.number(self.tags.len() as u64);
        for numbers in [
            &self.tags,
            &self.indexes,
            &self.names.starts,
            &self.names.ends,
            &self.names.middles,
            &self.times,
            &self.devs,
            &self.inos,
            &self.sizes,
            &self.whole,
            &self.mtimes,
            &self.by_mtime,
            &self.ctimes,
            &self.births,
            &self.modes,
            &self.links,
        ] {
            column::put(&mut out, numbers);
        }
        out.extend_from_slice(&self.names.bytes);
        out
    }
}

/// Identities, being read.
struct Idents {
    times: std::vec::IntoIter<u64>,
    devs: Reader,
    inos: Reader,
    sizes: Reader,
    whole: Reader,
    mtimes: Reader,
    by_mtime: Reader,
    ctimes: Reader,
    births: Reader,
    modes: Reader,
    links: Reader,
    last: Last,
}

impl Idents {
    fn read(take: &mut Take<'_>, times: Vec<u64>) -> Result<Idents> {
        let count = times.len();
        let of = |flag: u8| {
            times
                .iter()
                .filter(|times| **times & u64::from(flag) != 0)
                .count()
        };
        let (whole, by_mtime, unborn) = (of(WHOLE_SECONDS), of(CTIME_BY_MTIME), of(NO_BIRTH));
        let mut column = |count| Reader::new(take, count, WHAT);
        Ok(Idents {
            devs: column(count)?,
            inos: column(count)?,
            sizes: column(count)?,
            whole: column(whole)?,
            mtimes: column(count - whole)?,
            by_mtime: column(by_mtime)?,
            ctimes: column(count - by_mtime)?,
            births: column(count - unborn)?,
            modes: column(count)?,
            links: column(count)?,
            times: times.into_iter(),
            last: Last::default(),
        })
    }

    fn next(&mut self) -> Result<Ident> {
        let times = self.times.next().ok_or_else(|| Error::Damaged(WHAT))?;
        let has = |flag: u8| times & u64::from(flag) != 0;
        let last = &self.last;
        let dev = last.ident.dev.wrapping_add(self.devs.signed()? as u64);
        let ino = last.ident.ino.wrapping_add(self.inos.signed()? as u64);
        let size = self.sizes.signed()?;
        let mtime = if has(WHOLE_SECONDS) {
            last.whole
                .wrapping_add(self.whole.signed()?)
                .wrapping_mul(SECOND)
        } else {
            last.mtime.wrapping_add(self.mtimes.signed()?)
        };
        let ctime = if has(CTIME_BY_MTIME) {
            mtime.wrapping_add(self.by_mtime.signed()?)
        } else {
            last.ident.ctime.wrapping_add(self.ctimes.signed()?)
        };
        let birth = if has(NO_BIRTH) {
            0
        } else {
            ctime.wrapping_add(self.births.signed()?)
        };
        let mode = i64::from(last.ident.mode).wrapping_add(self.modes.signed()?);
        let ident = Ident {
            dev,
            ino,
            size,
            mtime,
            ctime,
            birth,
            mode: u32::try_from(mode).map_err(|_| Error::Damaged(WHAT))?,
            nlink: self.links.small()?,
        };
        self.last.follow(ident);
        Ok(ident)
    }
}

/// Decodes a block, as [`super::decode`] does; `take` stands behind its mark.
pub fn decode(
    mut take: Take<'_>,
    mut each: impl FnMut(u32, Record<'_>) -> Result<()>,
) -> Result<()> {
    let count = take.small()? as usize;
    let tags = column::take(&mut take, count)?;
    let with = |flag: u8| {
        tags.iter()
            .filter(|tag| **tag & u64::from(flag) != 0)
            .count()
    };
    let (known, identified) = (with(SAME_NAME), with(IDENT));
    let own = count - known;
    let mut indexes = Reader::new(&mut take, known, WHAT)?;
    let mut starts = Reader::new(&mut take, own, WHAT)?;
    let mut ends = Reader::new(&mut take, own, WHAT)?;
    let mut middles = Reader::new(&mut take, own, WHAT)?;
    let times = column::take(&mut take, identified)?;
    let mut idents = Idents::read(&mut take, times)?;
    // The last name of its own, and the one before it.
    let (mut last, mut before) = (Vec::new(), Vec::new());
    for (place, tag) in (0u32..).zip(tags) {
        let tag = tag as u8;
        let name = if tag & SAME_NAME != 0 {
            let index = i64::from(place).wrapping_add(unzigzag(indexes.number()?));
            Name::As(u32::try_from(index).map_err(|_| take.damaged())?)
        } else {
            std::mem::swap(&mut last, &mut before);
            let (start, end) = (starts.size()?, ends.size()?);
            let kept = before.len().checked_sub(end).filter(|rest| start <= *rest);
            let kept = kept.ok_or_else(|| take.damaged())?;
            last.clear();
            last.extend_from_slice(&before[..start]);
            last.extend_from_slice(take.exactly(middles.size()?)?);
            last.extend_from_slice(&before[kept..]);
            Name::Here(&last)
        };
        let ident = if tag & IDENT != 0 {
            Some(idents.next()?)
        } else {
            None
        };
        let kind = kind_of(tag)?;
        each(place, Record { name, kind, ident })?;
    }
    Ok(())
}
