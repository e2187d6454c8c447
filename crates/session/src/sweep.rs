//! Cleans up the arenas that killed recordings left in shared memory.
//!
//! Invariant: an arena is touched only if it belongs to this user, names its log, and no process
//! holds the lock of its recording processes. Absent: arenas that do not name a log, because the
//! process that made one may not lock it either.

use crate::part_lock::PartLock;
use crate::recover::finish;
use backstory_abi::{KEEPER_SUFFIX, SOCKET_SUFFIX};
use backstory_arena::Arena;
use rustix::fs::FlockOperation;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How long an arena without a log is kept. Its store may be on a disk that is not mounted at
/// present.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// Cleans up this user's abandoned arenas. The contents of an arena are appended to its log, if
/// that exists. An arena without a log is removed after a day, and one without new records at once.
/// Failures are left for the next sweep.
pub fn sweep() {
    for entry in fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.as_bytes();
        if name.starts_with(b"backstory-") && name.ends_with(b".arena") {
            look_after(&entry.path());
        }
        let is_socket = [SOCKET_SUFFIX, KEEPER_SUFFIX]
            .iter()
            .any(|suffix| name.ends_with(&[b".arena", suffix.as_bytes()].concat()));
        if name.starts_with(b"backstory-") && is_socket {
            remove_abandoned_socket(&entry.path());
        }
    }
}

/// Removes a socket whose arena is gone: both sockets are made after the arena.
fn remove_abandoned_socket(path: &Path) {
    let own = fs::symlink_metadata(path);
    let own = own.is_ok_and(|meta| meta.uid() == rustix::process::geteuid().as_raw());
    if own && !path.with_extension("").exists() {
        let _ = fs::remove_file(path);
    }
}

/// Cleans up one arena, see [`sweep`].
fn look_after(path: &Path) {
    let Some((log, age)) = left_behind(path) else {
        return;
    };
    let finalized = log.with_extension("");
    if log.exists() {
        // A log that another process is finishing now is left to it.
        if let Ok(PartLock::Taken(lock)) = PartLock::take(&log) {
            let _ = finish(Some(lock), Some(path), &log, &finalized);
        }
    } else if finalized.exists() || age >= KEPT {
        // It may be gone already.
        let _ = fs::remove_file(path);
    }
}

/// The log of an arena, and the arena's age. `None` if it belongs to another user or is in use.
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

    #[test]
    fn a_socket_is_removed_once_its_arena_is_gone() {
        let id = format!("sweep-{}-socket", std::process::id());
        let arena = Arena::create(&id, 0).unwrap();
        let arena_path = arena.path().unwrap().to_owned();
        let sockets = [
            backstory_arena::socket_path(&arena_path),
            backstory_arena::keeper_socket_path(&arena_path),
        ];
        for socket in &sockets {
            fs::write(socket, "").unwrap();
            remove_abandoned_socket(socket);
            assert!(socket.exists());
        }
        arena.remove();
        for socket in &sockets {
            remove_abandoned_socket(socket);
            assert!(!socket.exists());
        }
    }

    /// An arena that names a log and has this age.
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
    fn an_arena_is_removed_only_when_unused_and_useless() {
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
