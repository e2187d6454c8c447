//! The notifications that were in the queue at one time.
//!
//! In: the queue. Out: notifications in their order, and what later ones say about earlier ones.

use backstory_sys as sys;
use backstory_sys::{FAN_MODIFY, FAN_OPEN_EXEC, FAN_RENAME, FileHandle, Notification};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Most notifications of a batch.
const MOST: usize = 4096;
/// Bytes that are read at once. Each notification in them has a descriptor for a moment.
const ROOM: usize = 1 << 15;
/// Longest wait for the second notification of an exchange of two names, in milliseconds.
const EXCHANGE: i32 = 1;

/// Notifications in their order.
#[derive(Debug, Default)]
pub(crate) struct EventBatch {
    /// The notifications.
    pub(crate) events: Vec<Notification>,
    execs: HashMap<u32, usize>,
    changes: HashMap<FileHandle, usize>,
}

impl EventBatch {
    /// Takes the notifications from a queue. `true` if the queue was empty after them.
    pub(crate) fn take(queue: &OwnedFd) -> io::Result<(EventBatch, bool)> {
        let mut batch = EventBatch::default();
        let mut buffer = vec![0; ROOM];
        let mut emptied = false;
        while batch.events.len() < MOST && !emptied {
            let read = sys::read_notifications(queue.as_fd(), &mut buffer)?;
            emptied = read.is_empty();
            batch.events.extend(read);
            let last = batch.events.last();
            if emptied && last.is_some_and(|event| event.mask & FAN_RENAME != 0) {
                emptied = sys::poll(queue.as_fd(), libc::POLLIN, EXCHANGE) == 0;
            }
        }
        for (at, event) in batch.events.iter().enumerate() {
            if event.mask & FAN_OPEN_EXEC != 0 {
                batch.execs.insert(event.pid, at);
            }
            if let Some(file) = event.file.as_ref().filter(|_| event.mask & FAN_MODIFY != 0) {
                batch.changes.insert(file.clone(), at);
            }
        }
        Ok((batch, emptied))
    }

    /// Whether a later notification is an exec of this process.
    pub(crate) fn executes_after(&self, at: usize, pid: u32) -> bool {
        self.execs.get(&pid).is_some_and(|last| *last > at)
    }

    /// Whether a later notification is a change of this file.
    pub(crate) fn changes_after(&self, at: usize, file: &FileHandle) -> bool {
        self.changes.get(file).is_some_and(|last| *last > at)
    }

    /// The other half of an exchange of two names: the kernel reports two renames at once.
    pub(crate) fn exchange_of(&self, at: usize) -> Option<usize> {
        let first = self.events.get(at)?;
        let is_other = |event: &&Notification| {
            event.pid == first.pid
                && event.mask & FAN_RENAME != 0
                && event.entry == first.new_entry
                && event.new_entry == first.entry
                && event.file != first.file
        };
        let mut later = self.events.iter().enumerate().skip(at + 1);
        let next = later.find(|(_, event)| event.pid == first.pid)?;
        is_other(&next.1).then_some(next.0)
    }
}
