//! The identities in a block of versions.
//!
//! | column | a number for | the number is |
//! | --- | --- | --- |
//! | times | each identity | `WHOLE_SECONDS`, `CTIME_BY_MTIME`, `NO_BIRTH` (one byte each) |
//! | devices, inodes, modes | each identity | a signed difference to the identity before |
//! | sizes, links | each identity | the size (signed), the number of links |
//! | whole mtimes | those with `WHOLE_SECONDS` | seconds, as a signed difference to the last whole one |
//! | mtimes | the others | ns, as a signed difference to the last one that was not whole |
//! | ctimes by mtime | those with `CTIME_BY_MTIME` | ns, as a signed difference to the mtime |
//! | ctimes | the others | ns, as a signed difference to the ctime before |
//! | births | those without `NO_BIRTH` | ns, as a signed difference to the ctime |
//!
//! Files from packages and archives have whole seconds; files written in one go have near ctimes
//! and mtimes.

use backstory_files::Ident;

use super::WHAT;
use crate::codec::{RecordReader, RecordWriter};
use crate::{Error, Result};

const WHOLE_SECONDS: u8 = 1;
const CTIME_BY_MTIME: u8 = 2;
const NO_BIRTH: u8 = 4;

const SECOND: i64 = 1_000_000_000;

/// The values that the next differences refer to.
struct Last {
    ident: Ident,
    /// Seconds.
    whole: i64,
    mtime: i64,
}

impl Default for Last {
    fn default() -> Last {
        let nothing = Ident {
            dev: 0,
            ino: 0,
            size: 0,
            mtime: 0,
            ctime: 0,
            birth: 0,
            mode: 0,
            nlink: 0,
        };
        Last {
            ident: nothing,
            whole: 0,
            mtime: 0,
        }
    }
}

impl Last {
    fn follow(&mut self, ident: Ident) {
        if ident.mtime % SECOND == 0 {
            self.whole = ident.mtime / SECOND;
        } else {
            self.mtime = ident.mtime;
        }
        self.ident = ident;
    }
}

/// Collects identities.
#[derive(Default)]
pub struct IdentityWriter {
    times: Vec<u8>,
    devs: Vec<u8>,
    inos: Vec<u8>,
    sizes: Vec<u8>,
    whole: Vec<u8>,
    mtimes: Vec<u8>,
    by_mtime: Vec<u8>,
    ctimes: Vec<u8>,
    births: Vec<u8>,
    modes: Vec<u8>,
    links: Vec<u8>,
    last: Last,
}

impl IdentityWriter {
    /// Adds an identity.
    pub fn push(&mut self, ident: Ident) {
        let last = &self.last.ident;
        self.devs.signed(ident.dev.wrapping_sub(last.dev) as i64);
        self.inos.signed(ident.ino.wrapping_sub(last.ino) as i64);
        self.sizes.signed(ident.size);
        self.modes
            .signed(i64::from(ident.mode) - i64::from(last.mode));
        self.links.number(u64::from(ident.nlink));
        self.push_times(&ident);
        self.last.follow(ident);
    }

    fn push_times(&mut self, ident: &Ident) {
        let mut times = 0;
        if ident.mtime % SECOND == 0 {
            times |= WHOLE_SECONDS;
            self.whole.signed(ident.mtime / SECOND - self.last.whole);
        } else {
            self.mtimes
                .signed(ident.mtime.wrapping_sub(self.last.mtime));
        }
        let by_mtime = ident.ctime.wrapping_sub(ident.mtime);
        let by_last = ident.ctime.wrapping_sub(self.last.ident.ctime);
        if by_mtime.unsigned_abs() <= by_last.unsigned_abs() {
            times |= CTIME_BY_MTIME;
            self.by_mtime.signed(by_mtime);
        } else {
            self.ctimes.signed(by_last);
        }
        if ident.birth == 0 {
            times |= NO_BIRTH;
        } else {
            self.births.signed(ident.birth.wrapping_sub(ident.ctime));
        }
        self.times.push(times);
    }

    /// Appends the columns.
    pub fn put_columns(&self, out: &mut Vec<u8>) {
        for column in [
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
            out.extend_from_slice(column);
        }
    }
}

/// Reads identities.
pub struct IdentityReader<'b> {
    times: RecordReader<'b>,
    devs: RecordReader<'b>,
    inos: RecordReader<'b>,
    sizes: RecordReader<'b>,
    whole: RecordReader<'b>,
    mtimes: RecordReader<'b>,
    by_mtime: RecordReader<'b>,
    ctimes: RecordReader<'b>,
    births: RecordReader<'b>,
    modes: RecordReader<'b>,
    links: RecordReader<'b>,
    last: Last,
}

impl<'b> IdentityReader<'b> {
    /// Takes off the columns of `count` identities.
    pub fn take(reader: &mut RecordReader<'b>, count: usize) -> Result<IdentityReader<'b>> {
        let times = reader.exactly(count)?;
        let of = |flag: u8| times.iter().filter(|times| **times & flag != 0).count();
        let (whole, by_mtime, unborn) = (of(WHOLE_SECONDS), of(CTIME_BY_MTIME), of(NO_BIRTH));
        let mut column = |count| reader.column(count);
        Ok(IdentityReader {
            times: RecordReader::new(times, WHAT),
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
            last: Last::default(),
        })
    }

    /// The next identity.
    pub fn next(&mut self) -> Result<Ident> {
        let times = self.times.byte()?;
        let has = |flag: u8| times & flag != 0;
        let mtime = match has(WHOLE_SECONDS) {
            true => {
                let seconds = self.last.whole.wrapping_add(self.whole.signed()?);
                seconds.wrapping_mul(SECOND)
            }
            false => self.last.mtime.wrapping_add(self.mtimes.signed()?),
        };
        let ctime = match has(CTIME_BY_MTIME) {
            true => mtime.wrapping_add(self.by_mtime.signed()?),
            false => self.last.ident.ctime.wrapping_add(self.ctimes.signed()?),
        };
        let birth = match has(NO_BIRTH) {
            true => 0,
            false => ctime.wrapping_add(self.births.signed()?),
        };
        let last = &self.last.ident;
        let mode = i64::from(last.mode).wrapping_add(self.modes.signed()?);
        let ident = Ident {
            dev: last.dev.wrapping_add(self.devs.signed()? as u64),
            ino: last.ino.wrapping_add(self.inos.signed()? as u64),
            size: self.sizes.signed()?,
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
