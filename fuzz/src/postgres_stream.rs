//! The messages of a server of PostgreSQL. The first byte of the input selects the rest:
//!
//! - even: messages of the output plug-in `pgoutput`, each behind its length in two bytes
//! - odd: the bytes of a connection

use backstory_postgres::fuzz_entry::{connection, row_changes};

/// Decodes the messages.
pub fn run(data: &[u8]) {
    let Some((choice, rest)) = data.split_first() else {
        return;
    };
    let decoded = match choice % 2 {
        0 => row_changes(messages(rest)),
        _ => connection(rest).unwrap_or_default(),
    };
    // A byte that is no text becomes a character of three bytes.
    assert!(decoded.bytes <= 3 * rest.len(), "a value has other bytes");
    let changes = decoded.changes + decoded.left_out;
    assert!(changes <= rest.len() as u64, "a change has no bytes");
}

/// The messages of an input.
fn messages(mut rest: &[u8]) -> Vec<&[u8]> {
    let mut all = Vec::new();
    while let Some(([low, high], after)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_le_bytes([*low, *high]));
        let (message, after) = after.split_at(length.min(after.len()));
        all.push(message);
        rest = after;
    }
    all
}
