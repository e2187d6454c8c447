//! Whether a program makes its system calls through the C library alone.
//!
//! In: the path of an executable file, and the loader's cache. Out: a [`Verdict`]. For a *plain*
//! program, the recorder sees every call that the guard would be notified of, so it needs no filter
//! (`docs/design/guard-auto.md`).
//!
//! A program is plain if all of this holds:
//!
//! - Its loader is glibc's, of a release whose inner calls are known ([`KNOWN_RELEASES`]).
//! - It and its libraries contain no instruction that enters the kernel.
//! - The loader finds every library in its cache, so it looks for none in vain.
//! - No code of it runs before the recorder's constructor.
//! - None of its memory is writable and executable at once.
//! - It imports no function that makes a watched call inside libc ([`symbols`]).
//!
//! Invariants:
//!
//! - Anything unclear is not plain. A damaged file is unclear.
//! - The time is bounded: by the size of a file, and by the number of libraries.
//!
//! A library that a process loads while it runs is plain under the same conditions, with all
//! libraries that it needs ([`Classifier::load`]).
//!
//! Verdicts about single files can be kept for later runs ([`Classifier::keep`]).
//!
//! Beside these verdicts, [`is_go`] says whether Go's linker made a file.
//!
//! Absent on purpose: what follows from a verdict.

pub mod cache;
mod classify;
mod elf;
mod go;
mod instructions;
mod known;
mod known_file;
mod loads;
mod part;
mod rules;
pub mod symbols;
mod verdicts;

pub use classify::{Classifier, Examined, KNOWN_RELEASES, Verdict};
pub use elf::{Damaged, Object, Segment};
pub use go::is_go;
pub use instructions::{Entry, find_certain_entry, find_entry};
pub use known_file::Ignored;
pub use loads::ExaminedLoad;
pub use part::NotPlain;
pub use verdicts::{LoadVerdict, VerdictKind, VerdictTable};
