//! The extended record of the processor time that a process used.
//!
//! In and out: the kind `processor-time`, and as payload nanoseconds (i64, little-endian). The last
//! activity of a process has the record. The time is that of the whole process until it exits:
//! programs that it executed one after the other are included, its children are not. A process that
//! a signal kills, or that has no recorder, has no such record.

/// The kind of the record.
pub const KIND: &[u8] = b"processor-time";

/// The payload for a time in nanoseconds.
pub fn encode(time: i64) -> [u8; 8] {
    time.to_le_bytes()
}

/// The time in a record. `None` for a record of another kind.
pub fn decode(kind: &[u8], payload: &[u8]) -> Option<i64> {
    let time = payload.first_chunk::<8>()?;
    (kind == KIND).then_some(i64::from_le_bytes(*time))
}
