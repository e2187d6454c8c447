//! Which programs a chunk says were executed.

use backstory_abi::{self as abi, op};
use backstory_eventlog::chunk::{Skipped, View};
use backstory_eventlog::slot::Raw;

/// Calls `program` with the path of each execution in a chunk that is not known to have failed, as the path was given.
pub(super) fn each_program(chunk: &[u8], mut program: impl FnMut(&[u8])) {
    let Some((_, view)) = View::new(chunk) else { return };
    let mut at = abi::Chunk::SIZE;
    while let Some((found, slot)) = view.next(at, &mut Skipped::default()) {
        at = found + usize::from(slot.size);
        // A success is never written down: the program that could have is gone.
        let failed = slot.state == abi::DONE && slot.result < 0;
        if slot.op == op::EXEC
            && !failed
            && let Some(raw) = Raw::parse(view.from(found))
        {
            program(raw.strings()[0]);
        }
    }
}
