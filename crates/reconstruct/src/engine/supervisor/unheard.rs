//! Output on a standard descriptor that the recorded program did not use.
//!
//! The program has a placeholder there, `/dev/null` (`placeholder.rs`). Another build of it may
//! write there: a sanitizer writes its report to descriptor 2. The record has nothing to compare it
//! with, so it is no divergence. It goes into the report.

use super::Supervisor;
use crate::engine::caller::{Buffer, NotifiedCall};
use crate::engine::placeholder::is_placeholder;
use libc::{STDERR_FILENO, STDOUT_FILENO, SYS_write, SYS_writev};
use std::os::fd::AsFd;

/// Most bytes of a buffer that are looked at: its last ones. Another build may write any number.
const MOST_BYTES: usize = 1 << 18;

impl Supervisor {
    /// Notes the bytes of a call that the kernel makes, if they go to a placeholder.
    pub(super) fn note_unheard(&mut self, call: &NotifiedCall, index: usize) {
        let fd = call.int(0);
        let is_output = matches!(call.number, SYS_write | SYS_writev)
            && matches!(fd, STDOUT_FILENO | STDERR_FILENO);
        if !is_output {
            return;
        }
        let copy = self.copy_of(call, fd);
        if !copy.is_ok_and(|own| is_placeholder(own.as_fd())) {
            return;
        }
        let bytes = self.buffers(call).and_then(|(buffers, _)| {
            let ends: Vec<Buffer> = buffers.into_iter().map(end_of).collect();
            call.gather(&ends)
        });
        // The device takes any address, also one that cannot be read.
        if let Ok(bytes) = bytes {
            self.matchers[index].keep_complaint(&bytes);
        }
    }
}

/// The part of a buffer that is looked at.
fn end_of((at, length): Buffer) -> Buffer {
    let kept = length.min(MOST_BYTES);
    (at.wrapping_add((length - kept) as u64), kept)
}

#[cfg(test)]
mod tests {
    use super::{MOST_BYTES, end_of};

    #[test]
    fn of_a_large_output_only_the_end_is_looked_at() {
        assert_eq!(end_of((1000, 20)), (1000, 20));
        assert_eq!(end_of((1000, MOST_BYTES + 7)), (1007, MOST_BYTES));
    }
}
