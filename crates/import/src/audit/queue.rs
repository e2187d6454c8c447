//! Events in the order of their serial numbers. Records of two processors may be interleaved.
//!
//! Invariant: at most [`MOST`] events wait.

use super::event::{AuditEvent, is_of_call};
use super::record::AuditRecord;
use std::collections::BTreeMap;

/// The most events that wait for further records.
const MOST: usize = 256;
/// A whole event waits until so many others are: the records of an earlier event may follow.
const REORDERED: usize = 8;
/// An event that is not whole does not wait for longer than this.
const MOST_WHOLE: usize = 64;
/// A serial number so much smaller than the last one is of a kernel that began anew.
const RESTART: u64 = 4_096;
/// All records of an event come within this time, in ns, as ausearch takes it.
const WAIT: i64 = 2_000_000_000;

/// Events that wait.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    waiting: BTreeMap<(u32, u64), AuditEvent>,
    /// Starts of the kernel that were met.
    starts: u32,
    last: u64,
    /// The time of the last record.
    now: i64,
    whole: usize,
}

impl EventQueue {
    /// Takes a record.
    pub(super) fn add(&mut self, record: &AuditRecord<'_>) {
        // auditd's own records have numbers of their own.
        if !is_of_call(record.kind) {
            return;
        }
        if record.serial.saturating_add(RESTART) < self.last {
            self.starts = self.starts.wrapping_add(1);
            self.last = 0;
        }
        self.last = self.last.max(record.serial);
        self.now = record.time;
        let event = self.waiting.entry((self.starts, record.serial));
        let event = event.or_default();
        let was_whole = event.is_whole;
        event.add(record);
        self.whole += usize::from(event.is_whole && !was_whole);
    }

    /// The next event whose turn it is. At the end of the log, it is that of any.
    pub(super) fn next(&mut self, is_end: bool) -> Option<AuditEvent> {
        let first = self.waiting.first_entry()?;
        let event = first.get();
        let is_due = is_end
            || event.is_whole && self.whole > REORDERED
            || self.now.saturating_sub(event.time) > WAIT
            || self.whole > MOST_WHOLE
            || first.key().0 != self.starts;
        let (is_whole, is_full) = (event.is_whole, self.waiting.len() > MOST);
        if !is_due && !is_full {
            return None;
        }
        self.whole -= usize::from(is_whole);
        self.waiting.pop_first().map(|(_, event)| event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(lines: &[&str]) -> Vec<i64> {
        let mut queue = EventQueue::default();
        let mut times = Vec::new();
        for line in lines {
            queue.add(&AuditRecord::parse(line.as_bytes()).unwrap());
            times.extend(std::iter::from_fn(|| queue.next(false)).map(|event| event.time));
        }
        times.extend(std::iter::from_fn(|| queue.next(true)).map(|event| event.time));
        times.iter().map(|time| time / 1_000_000).collect()
    }

    #[test]
    fn interleaved_events_come_in_the_order_of_their_numbers() {
        let lines = [
            "type=SYSCALL msg=audit(1.002:12): pid=1",
            "type=PROCTITLE msg=audit(1.002:12): proctitle=61",
            "type=SYSCALL msg=audit(1.001:11): pid=1",
            "type=SYSCALL msg=audit(1.000:10): pid=2",
            "type=PROCTITLE msg=audit(1.001:11): proctitle=61",
            "type=CWD msg=audit(1.000:10): cwd=\"/\"",
            "type=PROCTITLE msg=audit(1.000:10): proctitle=61",
        ];
        assert_eq!(times(&lines), [1000, 1001, 1002]);
    }

    #[test]
    fn an_event_without_its_end_and_a_restarted_kernel_do_not_stop_the_queue() {
        let lines = [
            "type=SYSCALL msg=audit(1.000:9000): pid=1",
            "type=SYSCALL msg=audit(4.000:9001): pid=1",
            "type=SYSCALL msg=audit(5.000:1): pid=1",
            "type=PROCTITLE msg=audit(5.000:1): proctitle=61",
        ];
        assert_eq!(times(&lines), [1000, 4000, 5000]);
    }
}
