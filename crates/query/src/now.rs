//! What the file system says now.

use std::path::Path;

use backstory_files::Ident;
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
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
    statx(
        CWD,
        path,
        flags,
        StatxFlags::BASIC_STATS | StatxFlags::BTIME,
    )
    .map(|found| Ident::from(&found))
}
