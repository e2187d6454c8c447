//! The resources that a process used, and how many bytes moved there.
//!
//! In: the record of a process. Out: the same answers, whether its bytes are here or were left out
//! while the log was read.

use crate::process::RecordedProcess;
use crate::resource::ResourceId;

impl RecordedProcess {
    /// The resources that it used. One can come twice.
    pub fn used(&self) -> impl Iterator<Item = ResourceId> {
        let own = self.streams.keys();
        own.chain(self.omitted.streams.keys()).copied()
    }

    /// Bytes that the process read from a resource, in all of its record.
    pub(crate) fn received(&self, id: ResourceId) -> u64 {
        let own = self.streams.get(&id);
        let own = own.map_or(0, |streams| streams.input.recorded_bytes());
        let omitted = self.omitted.streams.get(&id);
        own.saturating_add(omitted.map_or(0, |one| one.received))
    }

    /// Bytes that the process wrote to a resource, in all of its record.
    pub(crate) fn sent(&self, id: ResourceId) -> u64 {
        let own = self.streams.get(&id);
        let own = own.map_or(0, |streams| streams.output.recorded_bytes());
        let omitted = self.omitted.streams.get(&id);
        own.saturating_add(omitted.map_or(0, |one| one.sent))
    }

    /// True if a byte entered or left through a resource.
    pub(crate) fn has_moved(&self, id: ResourceId) -> bool {
        self.received(id) > 0 || self.sent(id) > 0
    }

    /// Time-stamp counter when the last read from a resource returned.
    pub(crate) fn last_read(&self, id: ResourceId) -> Option<u64> {
        let own = self.streams.get(&id);
        let own = own.and_then(|streams| streams.input.moves().map(|(time, _)| time).max());
        let omitted = self.omitted.streams.get(&id);
        let omitted = omitted.map(|one| one.last_read).filter(|time| *time > 0);
        own.max(omitted)
    }

    /// Time-stamp counter when the last write to a resource returned.
    pub fn last_write(&self, id: ResourceId) -> Option<u64> {
        let own = self.streams.get(&id);
        let own = own.and_then(|streams| streams.output.moves().map(|(time, _)| time).max());
        let omitted = self.omitted.streams.get(&id);
        let omitted = omitted.map(|one| one.last_write).filter(|time| *time > 0);
        own.max(omitted)
    }

    /// True if it wrote to a resource behind this time.
    pub fn wrote_behind(&self, id: ResourceId, time: u64) -> bool {
        self.last_write(id).is_some_and(|last| last > time)
    }
}
