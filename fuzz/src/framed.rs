//! Makes logs of bytes that are nearly logs: no mutation would get past the checksums before all
//! interesting parts.

use backstory_eventlog::frame::{FrameKind, HEADER, MAGIC, header};

/// The same bytes, with every frame's length cut to the existing bytes, and its checksum repaired.
pub fn repaired(bytes: &[u8]) -> Vec<u8> {
    let mut log = bytes.to_vec();
    let mut at = 0;
    while at + HEADER <= log.len() {
        if log[at..at + 4] != MAGIC {
            at += 1;
            continue;
        }
        let number = |from: usize| u16::from_le_bytes([log[at + from], log[at + from + 1]]);
        let (kind, version) = (number(4), number(6));
        let length = u32::from_le_bytes([log[at + 8], log[at + 9], log[at + 10], log[at + 11]]);
        let length = (length as usize).min(log.len() - at - HEADER);
        let payload = at + HEADER..at + HEADER + length;
        if let Some(kind) = kind_of(kind) {
            let head = header(kind, version, length as u32, &[&log[payload.clone()]]);
            log[at..at + HEADER].copy_from_slice(&head);
        }
        at = payload.end;
    }
    log
}

fn kind_of(number: u16) -> Option<FrameKind> {
    use FrameKind::{
        Chunk, Clock, DeepChunk, DeepEnd, DeepHeader, End, Header, Idents, More, Resolved,
    };
    let all = [
        Header, Chunk, Clock, Idents, Resolved, End, More, DeepHeader, DeepChunk, DeepEnd,
    ];
    all.into_iter().find(|kind| *kind as u16 == number)
}
