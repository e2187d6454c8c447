//! Decides whether a child on its parent's memory (`vfork`, `posix_spawn`) may still write into the
//! parent's chunk.
//!
//! Invariant: a chunk that may be written to is not freed, even if its owner was killed. The child
//! still has the memory, and logs there until it executes a program or exits.

use backstory_abi::{self as abi, op};
use backstory_sys::{self as sys, Pid};
use std::collections::HashMap;

/// True if a process other than the chunk's dead owner may append to it. `newest` has the latest
/// recorder start of each process.
pub(super) fn has_other_writer(chunk: &[u8], newest: &HashMap<Pid, u64>) -> bool {
    let epoch = abi::Chunk::read(chunk).unwrap_or_default().epoch;
    let Some(last) = last(chunk) else {
        return false;
    };
    let child = last.flags & abi::F_CHILD != 0;
    match last.op {
        op::VFORK => true,
        op::EXIT if child => false,
        // The record names the child. It has executed its program once a recorder has started
        // there.
        op::EXEC if child && last.state == abi::RESERVED && last.result > 0 => {
            let began = newest.get(&last.result).is_some_and(|now| *now > epoch);
            !began && sys::thread_exists(last.result, last.result)
        }
        _ => child,
    }
}

/// The last record that was reserved.
fn last(chunk: &[u8]) -> Option<abi::Record> {
    let mut at = abi::Chunk::SIZE;
    let mut last = None;
    while let Some(record) = chunk.get(at..).and_then(abi::Record::read) {
        at += usize::from(record.size).max(8);
        if record.size != 0 {
            last = Some(record);
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstory_eventlog::record::RecordBuilder;

    fn chunk(records: impl FnOnce(&mut dyn FnMut(u16, u16, i32))) -> Vec<u8> {
        let head = abi::Chunk {
            epoch: 5,
            ..abi::Chunk::default()
        };
        let mut bytes = head.to_bytes().to_vec();
        let mut builder = RecordBuilder::new();
        records(&mut |op, flags, says| {
            bytes.extend_from_slice(builder.start(op, 1).flags(flags).says(says).finish());
        });
        bytes
    }

    #[test]
    fn a_dead_owners_chunk_with_a_writer_is_kept() {
        type Records = &'static [(u16, u16, i32)];
        let none = HashMap::new();
        let me = std::process::id() as Pid;
        let cases: [(&str, bool, Records); 6] = [
            ("nothing", false, &[]),
            (
                "its own",
                false,
                &[(op::VFORK, 0, 0), (op::VFORKED, 0, 7), (op::CLOSE, 0, 0)],
            ),
            (
                "a child began",
                true,
                &[(op::CLOSE, 0, 0), (op::VFORK, 0, 0)],
            ),
            (
                "a child goes on",
                true,
                &[(op::VFORK, 0, 0), (op::DUP, abi::F_CHILD, 0)],
            ),
            (
                "a child has ended",
                false,
                &[(op::VFORK, 0, 0), (op::EXIT, abi::F_CHILD, 0)],
            ),
            ("its own exec", false, &[(op::EXEC, 0, 0)]),
        ];
        for (what, lent, records) in cases {
            let bytes = chunk(|add| {
                records
                    .iter()
                    .for_each(|(op, flags, says)| add(*op, *flags, *says))
            });
            assert_eq!(has_other_writer(&bytes, &none), lent, "{what}");
        }
        let executed = chunk(|add| add(op::EXEC, abi::F_CHILD, me));
        assert!(has_other_writer(&executed, &none), "a child executes");
        assert!(
            !has_other_writer(&executed, &HashMap::from([(me, 6)])),
            "its program has started"
        );
    }
}
