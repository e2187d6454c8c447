//! The parts of a deep log that could not be read.
//!
//! In: the pieces of a file without an undamaged frame. Out: how many chunks are lost with them, at
//! most, and the damage in words. Invariant: a piece whose frames cannot be told apart may have
//! lost any number of chunks.

use backstory_abi::Chunk;
use backstory_eventlog::frame::{FrameKind, HEADER, MAGIC};
use serde::de::IgnoredAny;

/// A log without an end, in words.
const CUT: &str = "the deep log has no end, so calls can be missing: it was cut off, or the \
                   recording goes on";

/// The parts of a deep log that could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeepDamage {
    /// Bytes between undamaged frames, or after the last.
    pub bytes: u64,
    /// Undamaged frames that this program cannot read.
    pub unknown_frames: u64,
    /// True if the header is missing or damaged.
    pub no_header: bool,
    /// True if the file was cut off: it has no end.
    pub no_end: bool,
    /// True if chunks are lost that no gap in a stream tells of. They may be the last ones of any
    /// thread, or all of a process.
    pub lacks_chunks: bool,
}

impl DeepDamage {
    /// True if every byte was understood, and the file is whole.
    pub fn is_none(&self) -> bool {
        *self == DeepDamage::default()
    }

    /// True if the last records of a thread may be missing without a trace in its stream.
    pub fn lacks_ends(&self) -> bool {
        self.no_end || self.lacks_chunks
    }

    /// The damage as a part of a sentence. `None`: the log is whole.
    pub fn words(&self) -> Option<String> {
        if self.is_none() {
            return None;
        }
        let mut parts = Vec::new();
        if self.bytes > 0 {
            parts.push(format!("{} unreadable bytes", self.bytes));
        }
        if self.unknown_frames > 0 {
            parts.push(format!("{} frames of an unknown kind", self.unknown_frames));
        }
        if self.no_header {
            parts.push("no header, so its dates are less exact".to_owned());
        }
        let parts = parts.join(", ");
        Some(match (self.no_end, parts.is_empty()) {
            (true, true) => CUT.to_owned(),
            (true, false) => format!("{CUT}; it has {parts}"),
            (false, _) => {
                format!("the deep log is damaged, so calls can be missing: it has {parts}")
            }
        })
    }
}

/// How many chunks are lost at most with a piece of a file. It begins where a frame began, and has
/// no undamaged frame. `goes_on`: an undamaged frame follows it. The stated lengths tell the frames
/// in the piece apart, and the damage may have changed these. `u64::MAX`: the lengths do not lead
/// to the end of the piece.
pub(crate) fn lost_chunks(piece: &[u8], goes_on: bool) -> u64 {
    if goes_on && piece.len() < HEADER + Chunk::SIZE {
        return 0;
    }
    let (mut rest, mut lost) = (piece, 0);
    while !rest.is_empty() {
        let is_first = rest.len() == piece.len();
        let Some(payload) = stated_payload(rest, is_first) else {
            return u64::MAX;
        };
        let is_text = is_header_or_end(stated_kind(rest), payload);
        lost += u64::from(payload.len() >= Chunk::SIZE && !is_text);
        rest = &rest[HEADER + payload.len()..];
    }
    lost
}

/// True for the frame of a header or an end, which are JSON. The damage is in its kind or in its
/// payload, so the other one has to say the same.
fn is_header_or_end(kind: u16, payload: &[u8]) -> bool {
    let is_object = payload.starts_with(b"{") && payload.ends_with(b"}");
    let known = [FrameKind::DeepHeader, FrameKind::DeepEnd];
    let is_kind = known.iter().any(|one| *one as u16 == kind);
    is_object && (is_kind || serde_json::from_slice::<IgnoredAny>(payload).is_ok())
}

/// The kind in the header of a frame. 0 if it has none.
fn stated_kind(bytes: &[u8]) -> u16 {
    match bytes.get(4..6) {
        Some(&[low, high]) => u16::from_le_bytes([low, high]),
        _ => 0,
    }
}

/// The payload of the frame that begins here, by its stated length. `any_magic`: its first bytes
/// may be the damaged ones.
fn stated_payload(bytes: &[u8], any_magic: bool) -> Option<&[u8]> {
    let head = bytes.first_chunk::<HEADER>()?;
    if !any_magic && !head.starts_with(&MAGIC) {
        return None;
    }
    let length = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
    bytes.get(HEADER..HEADER.checked_add(length as usize)?)
}

#[cfg(test)]
mod tests {
    use super::{DeepDamage, HEADER, MAGIC, lost_chunks};

    /// A frame whose checksum is wrong.
    fn frame(payload: &[u8]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([9, 0, 2, 0]);
        bytes.extend((payload.len() as u32).to_le_bytes());
        bytes.extend([0; 4]);
        assert_eq!(bytes.len(), HEADER);
        bytes.extend(payload);
        bytes
    }

    #[test]
    fn damaged_frames_are_counted_by_their_stated_lengths() {
        let json = [&b"{"[..], &[b' '; 100], b"}"].concat();
        let (chunk, header) = (frame(&[7; 80]), frame(&json));
        let clock = frame(&[7; 16]);
        assert_eq!(lost_chunks(&chunk, true), 1);
        assert_eq!(lost_chunks(&[&chunk[..], &chunk].concat(), true), 2);
        assert_eq!(lost_chunks(&header, true), 0);
        assert_eq!(lost_chunks(&[&header[..], &chunk].concat(), false), 1);
        assert_eq!(lost_chunks(&clock, true), 0);
        // Nothing says where the frame ended.
        assert_eq!(lost_chunks(&clock[..20], false), u64::MAX);
        assert_eq!(lost_chunks(&chunk[..90], true), u64::MAX);
        let mut longer = chunk.clone();
        longer[8] += 1;
        assert_eq!(lost_chunks(&longer, true), u64::MAX);
        let mut other = chunk.clone();
        other[0] ^= 1;
        assert_eq!(lost_chunks(&other, true), 1);
    }

    #[test]
    fn a_damaged_chunk_that_begins_and_ends_as_json_does_is_lost() {
        let payload = [&b"{"[..], &[7; 100], b"}"].concat();
        let chunk = frame(&payload);
        assert_eq!(lost_chunks(&chunk, true), 1);
        // By its kind, this is a damaged header.
        let mut header = chunk;
        header[4] = 8;
        assert_eq!(lost_chunks(&header, true), 0);
    }

    #[test]
    fn the_words_name_each_kind_of_damage() {
        let none = DeepDamage::default();
        assert_eq!(none.words(), None);
        let cut = DeepDamage {
            no_end: true,
            ..none
        };
        let words = cut.words().unwrap();
        assert!(words.starts_with("the deep log has no end"), "{words}");
        let damaged = DeepDamage {
            bytes: 40,
            no_header: true,
            ..none
        };
        for (damage, begin) in [
            (
                damaged,
                "the deep log is damaged, so calls can be missing: it has ",
            ),
            (
                DeepDamage {
                    no_end: true,
                    ..damaged
                },
                "the deep log has no end",
            ),
        ] {
            let words = damage.words().unwrap();
            assert!(words.starts_with(begin), "{words}");
            for part in ["40 unreadable bytes", "no header"] {
                assert!(words.contains(part), "{part}: {words}");
            }
        }
    }
}
