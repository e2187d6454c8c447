//! The lock of a log that is being recorded, and logs that have it from their beginning.
//!
//! Invariant: a log is visible under its name only with its lock, or finalized.

use crate::{Error, clock};
use backstory_eventlog::Writer;
use backstory_eventlog::run::RunHeader;
use backstory_files::regular;
use rustix::fs::FlockOperation;
use rustix::io::{Errno, retry_on_intr};
use std::fs::File;
use std::path::Path;

/// The lock of an unfinished log (`flock(2)`), as a process that wants to finish the log finds it.
/// Recording processes share it; a process that finishes the log holds it alone.
pub(crate) enum PartLock {
    /// The caller holds it alone.
    Taken(File),
    /// Another process is finishing the log.
    Finishing,
    /// A process records into the log.
    Recording,
}

impl PartLock {
    /// Takes the lock if it is free.
    pub(crate) fn take(part: &Path) -> Result<PartLock, Error> {
        if let Some(file) = locked(part, FlockOperation::NonBlockingLockExclusive)? {
            return Ok(PartLock::Taken(file));
        }
        Ok(match locked(part, FlockOperation::NonBlockingLockShared)? {
            Some(_) => PartLock::Recording,
            None => PartLock::Finishing,
        })
    }
}

/// The log, with this lock. `None` if another process holds a lock that excludes it.
pub(crate) fn locked(part: &Path, lock: FlockOperation) -> Result<Option<File>, Error> {
    let file = regular::open(part).map_err(Error::file("open", part))?;
    match retry_on_intr(|| rustix::fs::flock(&file, lock)) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        // The file system has no locks. Recording goes on without the mark.
        Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(Some(file)),
        Err(error) => Err(Error::file("lock", part)(error.into())),
    }
}

pub(crate) fn still_recording(part: &Path) -> Error {
    Error::StillRecording {
        path: part.to_owned(),
    }
}

/// Marks a log as being recorded, as long as the descriptor or a forked copy of it lives.
pub(crate) fn claim(part: &Path) -> Result<File, Error> {
    locked(part, FlockOperation::NonBlockingLockShared)?.ok_or_else(|| still_recording(part))
}

/// True if a process records into this log. A process that only finishes the log does not count.
pub fn is_recording(part: &Path) -> bool {
    matches!(PartLock::take(part), Ok(PartLock::Recording))
}

/// A log that is locked before it is visible under its name. Otherwise a process that looks for
/// killed recordings might finish it.
pub(crate) fn claimed_log(part: &Path, head: &RunHeader) -> Result<(Writer, std::fs::File), Error> {
    let unclaimed = part.with_extension("new");
    let make = || {
        let mut log = Writer::create(&unclaimed, head).map_err(Error::log("create", &unclaimed))?;
        log.clock(clock::point())
            .map_err(Error::log("write", &unclaimed))?;
        let claim = claim(&unclaimed)?;
        std::fs::rename(&unclaimed, part).map_err(Error::file("create", part))?;
        Ok((log, claim))
    };
    make().inspect_err(|_| {
        let _ = std::fs::remove_file(&unclaimed);
    })
}
