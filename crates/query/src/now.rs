//! What the file system says now.

use std::path::Path;

use backstory_eventlog::event::Ident;
use rustix::fs::{AtFlags, CWD, StatxFlags, makedev, statx};
use rustix::io::Errno;

/// The identity of what is at `path` now, its final link followed or not. `None`: nothing, or nothing we may look at.
pub fn ident(path: &Path, follow: bool) -> Option<Ident> {
    look(path, follow).ok()
}

/// As [`ident`], telling apart what is not there from what can't be looked at.
pub fn look(path: &Path, follow: bool) -> Result<Ident, Errno> {
    let flags = if follow {
        AtFlags::empty()
    } else {
        AtFlags::SYMLINK_NOFOLLOW
    };
    let found = statx(CWD, path, flags, StatxFlags::BASIC_STATS | StatxFlags::BTIME)?;
    let time = |t: rustix::fs::StatxTimestamp| t.tv_sec * 1_000_000_000 + i64::from(t.tv_nsec);
    let has_birth = found.stx_mask & StatxFlags::BTIME.bits() != 0;
    Ok(Ident {
        dev: makedev(found.stx_dev_major, found.stx_dev_minor),
        ino: found.stx_ino,
        size: found.stx_size as i64,
        mtime: time(found.stx_mtime),
        ctime: time(found.stx_ctime),
        birth: if has_birth { time(found.stx_btime) } else { 0 },
        mode: u32::from(found.stx_mode),
        nlink: found.stx_nlink,
    })
}
