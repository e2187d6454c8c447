//! The supervisor drains the arena and the log opens, whichever bytes a recorded program writes
//! into it.
//!
//! Input: a length and that many bytes over the arena's first page, then chunks. A chunk is a
//! length (two bytes) and its bytes.

use super::place;
use backstory_eventlog::Log;
use backstory_session::fuzz_entry;

/// Drains the arena.
pub fn run(data: &[u8]) {
    let Some((&length, rest)) = data.split_first() else {
        return;
    };
    let (header, mut rest) = rest.split_at(usize::from(length).min(rest.len()));
    let mut chunks = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_le_bytes(*length)).min(after.len());
        let (chunk, after) = after.split_at(length);
        chunks.push(chunk);
        rest = after;
    }
    let path = place::file("drained");
    let _ = std::fs::remove_file(&path);
    let id = format!("fuzz-{}", std::process::id());
    fuzz_entry::drain(&id, header, &chunks, &path).expect("drained");
    let log = Log::open(&path).expect("the log opens");
    assert!(log.end().is_some(), "the log has its end");
    assert_eq!(log.damage().bytes, 0, "every frame is whole");
    log.events().for_each(drop);
}
