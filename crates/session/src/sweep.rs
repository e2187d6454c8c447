//! Arenas that killed recordings left in shared memory.
//!
//! Invariant: an arena is touched only if it is ours, names its log, and nobody holds the lock that all who record into it hold.
//! Absent: arenas that do not name a log; whoever made them may not lock them either.

use crate::recover::recover;
use backstory_arena::Arena;
use rustix::fs::FlockOperation;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// So long an arena is kept whose log is nowhere to be found: its store may be on a disk that is not mounted just now.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// Looks after the arenas of this user that nobody records into any more: what they hold goes into their log, if that is there. If it
/// is not, or they hold nothing that is not in the log, they are removed, the former after a day. Failures are left for the next one.
pub fn sweep() {
    for entry in fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.as_bytes();
        if name.starts_with(b"backstory-") && name.ends_with(b".arena") {
            look_after(&entry.path());
        }
    }
}

/// What [`sweep`] does with one arena.
fn look_after(path: &Path) {
    let Some((log, age)) = left_behind(path) else {
        return;
    };
    let finalized = log.with_extension("");
    if log.exists() {
        // Who else finishes it just now is told apart by the lock on the log.
        let _ = recover(Some(path), &log, &finalized);
    } else if finalized.exists() || age >= KEPT {
        // It may have gone already.
        let _ = fs::remove_file(path);
    }
}

/// The log that an arena was for, and how old it is; none if it is somebody else's or in use.
fn left_behind(path: &Path) -> Option<(PathBuf, Duration)> {
    let file = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
        .ok()?;
    let meta = file.metadata().ok()?;
    if !meta.is_file() || meta.uid() != rustix::process::geteuid().as_raw() {
        return None;
    }
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    let age = SystemTime::now().duration_since(meta.modified().ok()?);
    Some((Arena::open(path).ok()?.fed()?, age.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An arena that feeds a log, as old as that.
    fn arena(name: &str, part: &Path, age: Duration) -> Arena {
        let arena = Arena::create(&format!("sweep-{}-{name}", std::process::id()), 0).unwrap();
        arena.feeds(part);
        let path = arena.path().unwrap();
        let times = fs::FileTimes::new().set_modified(SystemTime::now() - age);
        fs::File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_times(times)
            .unwrap();
        arena
    }

    #[test]
    fn an_arena_goes_only_when_nobody_records_and_nothing_can_come_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let gone = dir.path().join("gone/r.log.part");
        let day = KEPT + Duration::from_secs(60);
        let old = arena("old", &gone, day);
        let path = old.path().unwrap().to_owned();
        look_after(&path);
        assert!(path.exists(), "somebody records");
        drop(old);
        look_after(&path);
        assert!(!path.exists(), "nobody, and its store is gone");

        let young = arena("young", &gone, Duration::ZERO);
        let path = young.path().unwrap().to_owned();
        drop(young);
        look_after(&path);
        assert!(path.exists(), "its store may come back");
        fs::remove_file(&path).unwrap();

        let finalized = arena("finalized", &dir.path().join("s.log.part"), Duration::ZERO);
        fs::write(dir.path().join("s.log"), "").unwrap();
        let path = finalized.path().unwrap().to_owned();
        drop(finalized);
        look_after(&path);
        assert!(!path.exists(), "its log is finalized");
    }
}
