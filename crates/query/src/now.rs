//! The present state of the file system.

use std::path::Path;
use std::time::SystemTime;

use backstory_eventlog::event::Time;
use backstory_files::Ident;
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use rustix::io::Errno;

/// The present identity of the file at `path`. With `follow`, a final link is followed. `None` if
/// there is no file or if it cannot be examined.
pub fn ident(path: &Path, follow: bool) -> Option<Ident> {
    look(path, follow).ok()
}

/// The present moment, in ns since 1970.
pub fn time() -> Time {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        Time::try_from(since.as_nanos()).unwrap_or(Time::MAX)
    })
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
