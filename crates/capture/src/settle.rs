//! Says, after a run, what the file system knows of every path that the run mentioned.

use crate::{Error, clock};
use backstory_eventlog::Writer;
use backstory_eventlog::event::Ident;
use backstory_eventlog::slot::Builder;
use rustix::fs::{AtFlags, CWD, Statx, StatxFlags, StatxTimestamp};
use std::path::Path;

/// Slots are appended in pieces of about this many bytes, so that memory stays bounded.
const PIECE: usize = 256 * 1024;

/// Looks at each path (following a last symbolic link or not), appends what was found to a sealed log and marks it settled.
pub fn settle(log: &Path, paths: impl Iterator<Item = (Vec<u8>, bool)>) -> Result<(), Error> {
    let mut writer = Writer::reopen(log).map_err(Error::log("open", log))?;
    let mut builder = Builder::new();
    let mut slots = Vec::new();
    for (path, follow) in paths {
        let time = clock::counter();
        let found = identity(&path, follow);
        slots.extend_from_slice(builder.identity(time, &path, follow, found.as_ref().map_err(|e| *e)));
        if slots.len() >= PIECE {
            writer.idents(&slots).map_err(Error::log("append to", log))?;
            slots.clear();
        }
    }
    writer.settled(&slots).map_err(Error::log("append to", log))
}

/// A file and its content state, or the errno with which it is not there.
fn identity(path: &[u8], follow: bool) -> Result<Ident, i32> {
    let flags = if follow {
        AtFlags::empty()
    } else {
        AtFlags::SYMLINK_NOFOLLOW
    };
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    // An automount point is looked at as it is: asking must not mount anything.
    let stat = rustix::fs::statx(CWD, path, flags | AtFlags::NO_AUTOMOUNT, wanted);
    stat.map(|s| ident(&s)).map_err(rustix::io::Errno::raw_os_error)
}

fn ident(s: &Statx) -> Ident {
    let born = StatxFlags::from_bits_retain(s.stx_mask).contains(StatxFlags::BTIME);
    Ident {
        dev: rustix::fs::makedev(s.stx_dev_major, s.stx_dev_minor),
        ino: s.stx_ino,
        size: s.stx_size as i64,
        mtime: nanoseconds(&s.stx_mtime),
        ctime: nanoseconds(&s.stx_ctime),
        birth: if born { nanoseconds(&s.stx_btime) } else { 0 },
        mode: u32::from(s.stx_mode),
        nlink: s.stx_nlink,
    }
}

fn nanoseconds(t: &StatxTimestamp) -> i64 {
    t.tv_sec
        .wrapping_mul(1_000_000_000)
        .wrapping_add(i64::from(t.tv_nsec))
}
