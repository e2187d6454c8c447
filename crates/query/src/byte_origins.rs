//! Bytes of files, over all runs that the byte engine followed.
//!
//! - [`RefinedRuns`] follows bytes from run to run, back to files that no followed run wrote.
//! - [`ByteSources`] says which files the bytes of a whole file came from.
//! - [`ByteMarks`] refines the links of a graph by that: inputs that gave its results no byte.
//!
//! Invariant: an input without a byte in a result stays in each answer. A branch may have depended
//! on it.

mod byte_marks;
mod byte_sources;
mod refined_runs;

pub use byte_marks::{ByteLink, ByteMarks, ByteNode, ByteUse, LinkKind};
pub use byte_sources::ByteSources;
pub use refined_runs::{FoundBytes, FoundSource, RefinedRuns};
