//! The present state of the file system.

use std::fs::File;
use std::path::Path;

use backstory_files::{Ident, regular};
use backstory_store::same_version;
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

/// The file at `path`, opened for reading, if it is a regular file and still this version. The
/// identity is that of the opened file, so that a file that takes its place meanwhile is not read.
pub fn open_version(path: &Path, version: &Ident) -> Option<File> {
    let file = regular::open(path).ok()?;
    let mask = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let now = statx(&file, "", AtFlags::EMPTY_PATH, mask).ok()?;
    same_version(&Ident::from(&now), version).then_some(file)
}
