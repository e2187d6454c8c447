//! Requests to preserve a content, of recorders without the filter (`--guard=auto`).
//!
//! In: a message by the socket, with the file as its process has opened it. Out: the content is
//! preserved, and the log has the record, or neither is needed. The process waits for the response.
//!
//! Invariant: the record is in the arena before the response is sent.

use crate::guard_filters::GuardFilters;
use backstory_abi::GuardRequest;
use backstory_arena::{ChunkSupply, ChunkWriter};
use backstory_guard::{AnnouncedChange, Hooks, RecordWriter};
use backstory_sys::clock;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Serves the requests of a run.
pub(crate) struct PreserveRequests {
    hooks: Arc<dyn Hooks>,
    filters: Arc<GuardFilters>,
    out: Mutex<RecordWriter<ChunkWriter>>,
    /// Requests that are being served.
    begun: AtomicUsize,
}

impl PreserveRequests {
    /// None yet.
    pub(crate) fn new(
        hooks: Arc<dyn Hooks>,
        filters: &Arc<GuardFilters>,
        stock: &Arc<ChunkSupply>,
    ) -> PreserveRequests {
        PreserveRequests {
            hooks,
            filters: Arc::clone(filters),
            out: Mutex::new(RecordWriter::new(ChunkWriter::new(Arc::clone(stock)))),
            begun: AtomicUsize::new(0),
        }
    }

    /// True while a request is being served.
    pub(crate) fn are_served(&self) -> bool {
        self.begun.load(Ordering::Acquire) > 0
    }

    /// Serves a request of a process. `path` is the file's name in it, and `file` its descriptor of
    /// the file. Returns 0, or a negative errno: the content could not be looked at.
    pub(crate) fn serve(
        &self,
        pid: u32,
        request: &GuardRequest,
        path: &[u8],
        file: Option<OwnedFd>,
    ) -> i32 {
        self.begun.fetch_add(1, Ordering::AcqRel);
        let change = AnnouncedChange {
            caller: (pid, request.tid),
            change: request.change,
            file: (request.dev as u32, request.ino),
            directory: request.dir,
            path,
            opened: file,
        };
        let result = self.preserve(change);
        self.begun.fetch_sub(1, Ordering::AcqRel);
        result.err().map_or(0, |errno| -errno)
    }

    fn preserve(&self, change: AnnouncedChange<'_>) -> Result<(), i32> {
        let Some(preserver) = self.hooks.preserver() else {
            return Ok(());
        };
        let received = clock::counter();
        let time = self.filters.time_of_change(received, &mut self.out());
        if let Some(kept) = change.preserve(preserver, self.filters.deferred())? {
            kept.write(time, &mut *self.out());
        }
        Ok(())
    }

    fn out(&self) -> MutexGuard<'_, RecordWriter<ChunkWriter>> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
