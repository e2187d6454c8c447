//! Which programs a chunk says were executed, and where.

use backstory_abi::{self as abi, op};
use backstory_eventlog::chunk::{Skipped, View};
use backstory_eventlog::record::Raw;

/// What a chunk tells of programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgramEvent<'a> {
    /// An execution that is not known to have failed, by the path as it was given.
    Program(&'a [u8]),
    /// The same of a child on its owner's memory, whose number comes first; 0 if that is not known.
    Spawned(u32, &'a [u8]),
    /// The directory in which its owner has been since then; empty if that is not known.
    Directory(&'a [u8]),
    /// Its owner has had another root since then.
    Root,
}

/// Calls `program` with the path of each execution in a chunk that is not known to have failed, as the path was given.
pub(super) fn each_program(chunk: &[u8], mut program: impl FnMut(&[u8])) {
    each(chunk, |told| {
        if let ProgramEvent::Program(path) | ProgramEvent::Spawned(_, path) = told {
            program(path);
        }
    });
}

/// Calls `told` with everything of that kind, in its order.
pub(super) fn each(chunk: &[u8], mut told: impl FnMut(ProgramEvent<'_>)) {
    let Some((_, view)) = View::new(chunk) else {
        return;
    };
    let mut at = abi::Chunk::SIZE;
    while let Some((found, record)) = view.next(at, &mut Skipped::default()) {
        at = found + usize::from(record.size);
        // A success is never written down: the program that could have is gone.
        let failed = record.state == abi::DONE && record.result < 0;
        let wanted = matches!(record.op, op::EXEC | op::CHDIR | op::CHROOT | op::PIVOT) && !failed;
        let Some(raw) = wanted.then(|| Raw::parse(view.from(found))).flatten() else {
            continue;
        };
        let child = record.flags & abi::F_CHILD != 0;
        told(match record.op {
            // Before it executes, it says who it is.
            op::EXEC if child => {
                ProgramEvent::Spawned(record.result.max(0) as u32, raw.strings()[0])
            }
            op::EXEC => ProgramEvent::Program(raw.strings()[0]),
            op::CHDIR => ProgramEvent::Directory(raw.strings()[1]),
            _ => ProgramEvent::Root,
        });
    }
}
