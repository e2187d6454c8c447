//! Files as all crates of backstory name them. In: what the kernel reports about a file, and bytes
//! of it. Out: typed facts.
//!
//! - [`Ident`]: one file and one state of its content, as `statx` reports them.
//! - [`Digest`]: the BLAKE3 digest of a content.
//! - [`NearDirectories`]: by which a file is looked up without a walk of its whole path.
//! - [`regular`]: opens regular files without waiting on a pipe or reading a device, and replaces
//!   files as a whole.
//! - [`elf`]: the headers of an ELF program.
//! - [`executable`]: the interpreter or the dynamic loader that a program's first bytes name.
//! - [`binfmt`]: the interpreters that `binfmt_misc` assigns to programs.
//! - [`now`]: the present time in the unit of a file's times.
//!
//! Invariant: two crates that name the same file or content use the same type from here.
//!
//! Absent on purpose: events, the graph, and the computation of digests (`backstory-contents`).

pub mod binfmt;
mod digest;
pub mod elf;
pub mod executable;
mod ident;
mod moment;
mod near_directories;
pub mod regular;

pub use digest::{Digest, NotADigest};
pub use ident::{CLOCK_GRANULARITY, Ident, VersionId};
pub use moment::now;
pub use near_directories::NearDirectories;
