//! Frames: the pieces of a log. Each can be checked and, after damage, found again.
//!
//! A frame is a 16-byte header and a payload. The checksum covers the header's kind, version and
//! length, and the payload. So a frame is taken whole or not at all. `docs/formats/log.md` draws
//! it.

use std::ops::Range;

/// First bytes of every frame.
pub const MAGIC: [u8; 4] = *b"\xb5log";
/// Version of the frames that this crate writes. Records inside chunks follow
/// `backstory_abi::ABI_VERSION`.
pub const VERSION: u16 = 1;
/// Bytes before the payload.
pub const HEADER: usize = 16;
/// Longest payload with identities, in bytes. More of them are spread over several frames.
pub const IDENTS: usize = 1 << 20;
/// Bytes checksummed in search of frames after damage, as a multiple of the file's length. A crash
/// leaves one damaged place, which takes one checksum.
const EFFORT: usize = 32;

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// JSON of a [`crate::run::RunHeader`].
    Header = 1,
    /// A chunk: its header, then records.
    Chunk = 2,
    /// A [`crate::run::ClockPoint`]: counter, real time.
    Clock = 3,
    /// `IDENT` records taken after the end, with more to come.
    Idents = 4,
    /// The last `IDENT` records taken after the end: the log's identities are resolved.
    Resolved = 5,
    /// JSON of a [`crate::run::RunEnd`].
    End = 6,
    /// More of a chunk whose beginning was appended before: its header, then the records from the
    /// offset in the header's `pad` on.
    More = 7,
    /// First frame of a deep log: JSON.
    DeepHeader = 8,
    /// A chunk of deep records, compressed or not. Deep logs only.
    DeepChunk = 9,
    /// Last frame of a deep log: JSON.
    DeepEnd = 10,
}

impl FrameKind {
    fn from_number(number: u16) -> Option<FrameKind> {
        use FrameKind::*;
        [
            Header, Chunk, Clock, Idents, Resolved, End, More, DeepHeader, DeepChunk, DeepEnd,
        ]
        .into_iter()
        .find(|k| *k as u16 == number)
    }
}

/// One undamaged frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// `None` if a later version defined it.
    pub kind: Option<FrameKind>,
    /// Version of its content.
    pub version: u16,
    /// Position of the payload in the file.
    pub payload: Range<usize>,
}

/// The header of a frame with this content, given in pieces.
pub fn header(kind: FrameKind, version: u16, length: u32, payload: &[&[u8]]) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[0..4].copy_from_slice(&MAGIC);
    bytes[4..6].copy_from_slice(&(kind as u16).to_le_bytes());
    bytes[6..8].copy_from_slice(&version.to_le_bytes());
    bytes[8..12].copy_from_slice(&length.to_le_bytes());
    let sum = checksum(&bytes[4..12], payload);
    bytes[12..16].copy_from_slice(&sum.to_le_bytes());
    bytes
}

fn checksum(head: &[u8], payload: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(head);
    payload.iter().for_each(|piece| hasher.update(piece));
    hasher.finalize()
}

/// The whole frame that begins at `at`. `None` if no frame begins there.
pub fn read(file: &[u8], at: usize) -> Option<Frame> {
    read_within(file, at, &mut { usize::MAX })
}

/// The same, if its payload is no longer than `effort`. The length of a broken frame's payload is
/// subtracted from `effort`.
fn read_within(file: &[u8], at: usize, effort: &mut usize) -> Option<Frame> {
    let head = file.get(at..)?.first_chunk::<HEADER>()?;
    if head[0..4] != MAGIC {
        return None;
    }
    let kind = u16::from_le_bytes([head[4], head[5]]);
    let version = u16::from_le_bytes([head[6], head[7]]);
    let length = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
    let sum = u32::from_le_bytes([head[12], head[13], head[14], head[15]]);
    let start = at + HEADER;
    let payload = start..start.checked_add(length as usize)?;
    let content = file.get(payload.clone())?;
    let left = effort.checked_sub(content.len())?;
    if checksum(&head[4..12], &[content]) != sum {
        *effort = left;
        return None;
    }
    Some(Frame {
        kind: FrameKind::from_number(kind),
        version,
        payload,
    })
}

/// True if these bytes are the beginning of a frame with identities, whose writer was killed.
///
/// Such frames are appended behind the end of a run, and an interrupted append is made again. The
/// kernel stops a write of a killed process between two pages (`write(2)`).
pub fn is_cut_identities(bytes: &[u8]) -> bool {
    let Some(head) = bytes.first_chunk::<HEADER>() else {
        return MAGIC.starts_with(&bytes[..bytes.len().min(MAGIC.len())]);
    };
    let kind = FrameKind::from_number(u16::from_le_bytes([head[4], head[5]]));
    let length = u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize;
    let there = bytes.len() - HEADER;
    head[0..4] == MAGIC
        && matches!(kind, Some(FrameKind::Idents | FrameKind::Resolved))
        && there < length
        && length <= IDENTS
        && next_magic(&bytes[MAGIC.len()..]).is_none()
}

/// A piece of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogPiece {
    /// An undamaged frame.
    Frame(Frame),
    /// Bytes without a frame, up to the next one or the end.
    Garbage(Range<usize>),
}

/// Walks a file: every undamaged frame, and the bytes in between. The time is linear in the file's
/// length. Therefore, in a hostile file full of headers with wrong checksums, frames after the
/// first broken ones may count as damage.
pub fn walk(file: &[u8]) -> impl Iterator<Item = LogPiece> {
    walk_from(file, 0)
}

/// The same from a place on at which a frame may begin.
pub fn walk_from(file: &[u8], mut at: usize) -> impl Iterator<Item = LogPiece> {
    let mut effort = file.len().saturating_mul(EFFORT);
    let mut found = None;
    std::iter::from_fn(move || {
        if let Some(frame) = found.take().or_else(|| read_within(file, at, &mut effort)) {
            at = frame.payload.end;
            return Some(LogPiece::Frame(frame));
        }
        if at >= file.len() {
            return None;
        }
        let start = at;
        at += 1;
        while let Some(step) = next_magic(&file[at..]) {
            at += step;
            found = read_within(file, at, &mut effort);
            if found.is_some() {
                return Some(LogPiece::Garbage(start..at));
            }
            at += 1;
        }
        at = file.len();
        Some(LogPiece::Garbage(start..at))
    })
}

fn next_magic(bytes: &[u8]) -> Option<usize> {
    bytes.windows(MAGIC.len()).position(|w| w == MAGIC)
}
