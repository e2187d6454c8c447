//! The present state of the file system.

use std::path::Path;

use backstory_files::Ident;
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use rustix::io::Errno;

/// The present identity of the file at `path`. With `follow`, a final link is followed. `None` if
/// there is no file or if it cannot be examined.
pub fn ident(path: &Path, follow: bool) -> Option<Ident> {
    look(path, follow).ok()
}

/// Like [`ident`], but distinguishes a missing file from one that cannot be examined.
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
