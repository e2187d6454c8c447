//! io_uring: what a program submits through a ring is logged as the system calls that do the same.
//!
//! A ring's entries are read while the `io_uring_enter` call that submits them waits, before the
//! kernel takes them. An outcome is concluded only for an entry that waits for no other entry, and
//! whose paths no entry before it changes. Other entries are logged as attempts. An entry that
//! moves data through a descriptor adds nothing to how the descriptor was opened; it is logged to
//! make that precise.
//!
//! Completions are not read. An entry that cannot be read, or that the kernel polls for, marks the
//! run, once for each process.

mod entry;
mod ring_call;
mod ring_memory;
mod rings;
mod submission;

pub(crate) use ring_call::RingCall;
pub(crate) use rings::Rings;

/// The 32-bit word at an offset; bytes beyond the end are zero.
fn word(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes.iter().skip(at).take(4);
    bytes.rev().fold(0, |n, b| n << 8 | u32::from(*b))
}

/// The 64-bit word at an offset.
fn double_word(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}
