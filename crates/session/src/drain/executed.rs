//! Finds the executed programs in a chunk, and their directories.

use backstory_abi::{self as abi, op};
use backstory_eventlog::chunk::{ChunkView, SkippedRecords};
use backstory_eventlog::record::RawRecord;

/// An event of a chunk that concerns programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgramEvent<'a> {
    /// An execution that is not known to have failed, by its path as given.
    Program(&'a [u8]),
    /// The same for a child on its owner's memory, with the child's process id, or 0 if that is
    /// unknown.
    Spawned(u32, &'a [u8]),
    /// A change of the owner's current directory. Empty if the new one is unknown.
    Directory(&'a [u8]),
    /// A change of the owner's root.
    Root,
    /// The broker executes the next program, with this path, outside of the recording.
    Outside(&'a [u8]),
}

/// Calls `told` with each event of that kind, in order.
pub(super) fn each(chunk: &[u8], mut told: impl FnMut(ProgramEvent<'_>)) {
    let Some((_, view)) = ChunkView::new(chunk) else {
        return;
    };
    let mut at = abi::Chunk::SIZE;
    while let Some((found, record)) = view.next(at, &mut SkippedRecords::default()) {
        at = found + usize::from(record.size);
        // A successful `execve` never completes its record, because its program is gone.
        let failed = record.state == abi::DONE && record.result < 0;
        let wanted = matches!(
            record.op,
            op::EXEC | op::CHDIR | op::CHROOT | op::PIVOT | op::OPAQUE
        ) && !failed;
        let Some(raw) = wanted.then(|| RawRecord::parse(view.from(found))).flatten() else {
            continue;
        };
        let child = record.flags & abi::F_CHILD != 0;
        told(match record.op {
            // The child stores its process id before it executes.
            op::EXEC if child => {
                ProgramEvent::Spawned(record.result.max(0) as u32, raw.strings()[0])
            }
            op::EXEC => ProgramEvent::Program(raw.strings()[0]),
            op::OPAQUE => match raw.strings()[0].strip_prefix(abi::OPAQUE_OUTSIDE.as_bytes()) {
                Some(path) => ProgramEvent::Outside(path),
                None => continue,
            },
            op::CHDIR => ProgramEvent::Directory(raw.strings()[1]),
            _ => ProgramEvent::Root,
        });
    }
}
