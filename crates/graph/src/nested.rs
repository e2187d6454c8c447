//! Activities inside a process, which the program itself marks ([`crate::marks`]): a cell of a
//! notebook, a test, a request.
//!
//! The graph has an extended record of kind [`KIND`] for each activity that began by a mark, or by
//! a call of a function. Its payload is [`NESTED`] or [`FUNCTION`]. It is [`RESUMED`] if the
//! activity goes on as the one before the marks.

/// The kind of the record.
pub const KIND: &[u8] = b"nested";

/// The payload for an activity that a mark named.
pub const NESTED: &[u8] = b"nested";

/// The payload for a call of a function.
pub const FUNCTION: &[u8] = b"function";

/// The payload for an activity that goes on after a marked one.
pub const RESUMED: &[u8] = b"resumed";

/// The most activities inside each other.
pub const DEEPEST: usize = 64;
