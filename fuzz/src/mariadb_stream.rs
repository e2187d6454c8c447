//! The packets of a server of MariaDB. The first byte of the input selects the rest:
//!
//! - bit 0: the bytes of a connection. Otherwise events of a binlog, each behind its length in two
//!   bytes
//! - bit 1: the events have no checksums
//! - bit 2: the lengths and checksums in the events stay as they are. Otherwise they are repaired.

use backstory_mariadb::fuzz_entry::{binlog, connection};

/// The place of an event's length in its head.
const LENGTH: std::ops::Range<usize> = 9..13;

/// The length of a checksum.
const CHECKSUM: usize = 4;

/// Decodes the events.
pub fn run(data: &[u8]) {
    let Some((choice, rest)) = data.split_first() else {
        return;
    };
    let has_checksums = choice & 2 == 0;
    let decoded = match choice & 1 {
        0 => {
            let mut events = events(rest);
            if choice & 4 == 0 {
                events.iter_mut().for_each(|event| repair(event));
            }
            binlog(events.iter().map(Vec::as_slice), has_checksums)
        }
        _ => connection(rest).unwrap_or_default(),
    };
    assert_eq!(decoded.unknown, 0, "a change leads to nothing");
}

/// The events of an input.
fn events(mut rest: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while let Some(([low, high], after)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_le_bytes([*low, *high]));
        let (event, after) = after.split_at(length.min(after.len()));
        all.push(event.to_vec());
        rest = after;
    }
    all
}

/// Repairs the length and the checksum of an event.
fn repair(event: &mut [u8]) {
    let length = event.len() as u32;
    let Some(field) = event.get_mut(LENGTH) else {
        return;
    };
    field.copy_from_slice(&length.to_le_bytes());
    let end = event.len() - CHECKSUM;
    let sum = crc32fast::hash(&event[..end]);
    event[end..].copy_from_slice(&sum.to_le_bytes());
}
