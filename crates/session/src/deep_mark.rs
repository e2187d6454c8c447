//! The mark of a deep log that only has to be finished. All processes of its run have ended, the
//! log has its end, and the launcher has answered.
//!
//! The mark is a lock of the file (`flock(2)`). It ends with the process that finishes the file,
//! however that ends. A question about the run waits for it.

use backstory_deep::leaves_room;
use backstory_files::regular;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::{Errno, retry_on_intr};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The mark, as long as it lives.
pub(crate) struct DeepMark(File);

impl DeepMark {
    /// Marks a deep log, which is made if it does not exist. `None` if that fails.
    pub(crate) fn set(path: &Path) -> Option<DeepMark> {
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(flags.bits().cast_signed())
            .open(path)
            .ok()?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(DeepMark(file))
    }

    /// True if the disk has room for so many more bytes of the deep log.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        leaves_room(&self.0, bytes).is_ok()
    }
}

/// True if a deep log only has to be finished by now. [`let_deep_log_end`] then waits for its end.
pub fn deep_log_ends(path: &Path) -> bool {
    let marked = |file: File| flock(&file, FlockOperation::NonBlockingLockShared);
    regular::open(path).is_ok_and(|file| marked(file) == Err(Errno::WOULDBLOCK))
}

/// Waits until a deep log that only has to be finished is whole, and its run finalized.
pub fn let_deep_log_end(path: &Path) {
    if let Ok(file) = regular::open(path) {
        // Without locks of files there is no mark to wait for.
        let _ = retry_on_intr(|| flock(&file, FlockOperation::LockShared));
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn a_deep_log_is_marked_as_long_as_its_mark_lives() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.deep");
        assert!(!deep_log_ends(&path), "there is none");
        let mark = DeepMark::set(&path).unwrap();
        assert!(deep_log_ends(&path));
        assert!(DeepMark::set(&path).is_none(), "one process finishes it");
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| let_deep_log_end(&path));
            drop(mark);
            waits.join().unwrap();
        });
        assert!(!deep_log_ends(&path));
    }
}
