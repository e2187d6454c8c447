//! The processes of a trace, and their descriptors, as far as records need them.
//!
//! The graph follows descriptors, directories and names itself. This module knows which descriptors
//! exist, so that those from before the log are found. It also knows which of them were used,
//! because a record of each read would make a log as large as the trace.

use std::collections::HashMap;

/// The descriptor was read from.
pub(crate) const READ: u8 = 1;
/// The descriptor was written to.
pub(crate) const WRITTEN: u8 = 2;
/// Its directory was listed.
pub(crate) const LISTED: u8 = 4;
/// An exec closes it.
pub(crate) const CLOEXEC: u8 = 8;

/// A process of the trace.
#[derive(Debug, Clone, Default)]
pub(crate) struct TracedProcess {
    /// Its live threads.
    pub(crate) threads: u32,
    /// Its status as wait(2) reports it, once its first thread has ended.
    pub(crate) status: Option<i32>,
    /// Its descriptors.
    pub(crate) descriptors: HashMap<i32, u8>,
    /// It shares its descriptors with another process, so that another one may reopen them.
    pub(crate) shares_descriptors: bool,
    /// Neither it nor an ancestor has changed its directory, from the first process on.
    pub(crate) is_at_start: bool,
    /// Its fork is not in the log, so that its descriptors are not known.
    pub(crate) is_orphan: bool,
}

impl TracedProcess {
    /// A child's copy.
    pub(crate) fn forked(&self, shares_descriptors: bool) -> TracedProcess {
        let copied = self.descriptors.iter();
        TracedProcess {
            threads: 1,
            status: None,
            descriptors: copied.map(|(fd, marks)| (*fd, marks & CLOEXEC)).collect(),
            shares_descriptors,
            is_at_start: self.is_at_start,
            is_orphan: self.is_orphan,
        }
    }

    /// An exec closes descriptors. The next program uses the others anew.
    pub(crate) fn executed(&mut self) {
        self.descriptors.retain(|_, marks| *marks & CLOEXEC == 0);
        self.descriptors.values_mut().for_each(|marks| *marks = 0);
        self.shares_descriptors = false;
    }

    /// A descriptor leads to another file from now on.
    pub(crate) fn opened(&mut self, fd: i32, cloexec: bool) {
        self.descriptors
            .insert(fd, if cloexec { CLOEXEC } else { 0 });
    }

    /// Notes a use. True for the first of its kind since the descriptor was opened.
    pub(crate) fn is_first(&mut self, fd: i32, use_: u8) -> bool {
        let marks = self.descriptors.entry(fd).or_default();
        let first = *marks & use_ == 0 || self.shares_descriptors;
        *marks |= use_;
        first
    }
}
