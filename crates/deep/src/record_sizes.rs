//! The bytes that the parts of a record take, in the form in which the log has its chunk.
//!
//! In: the records of a chunk before compression, in either form, with any damage. Out: sizes.
//! Invariant: a record and the records before it take no more bytes than the chunk has.

use crate::compact::{BYTES, Input, ZEROS};
use backstory_abi::{DONE, DeepRecord, DeepSection};

/// A record, with the bytes that its parts take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordSizes {
    /// The number of the call or fact.
    pub call: u16,
    /// False if readers skip it: its thread was killed while it wrote, or a section is damaged.
    pub is_whole: bool,
    /// Bytes of all of it.
    pub all: u64,
    /// Those of its time and duration.
    pub times: u64,
    /// Those of its descriptor, its result and its two other arguments.
    pub arguments: u64,
    /// Kind, argument and bytes of each section, without its head and padding.
    pub sections: Vec<(u16, u16, u64)>,
}

/// The records of a chunk in its compact form, up to the first one that is no record.
pub(crate) fn compact_sizes(records: &[u8]) -> Vec<RecordSizes> {
    let mut from = Input { bytes: records };
    std::iter::from_fn(|| compact_record(&mut from)).collect()
}

/// The records of a chunk as they lay in the arena, up to the first one that is no record.
pub(crate) fn arena_sizes(records: &[u8]) -> Vec<RecordSizes> {
    let mut rest = records;
    std::iter::from_fn(|| arena_record(&mut rest)).collect()
}

/// Reads a record. `docs/formats/deep.md` has the order of its numbers.
fn compact_record(from: &mut Input<'_>) -> Option<RecordSizes> {
    let length = from.bytes.len();
    let state = from.number()?.checked_sub(1)? & 0xff;
    let call = u16::try_from(from.number()?).ok()?;
    let times = skip(from, 2)?;
    let arguments = skip(from, 4)?;
    let parts = from.number()?;
    let mut sections = Vec::new();
    for _ in 0..parts / 4 {
        let kind = u16::try_from(from.number()?).ok()?;
        let arg = u16::try_from(from.number()?).ok()?;
        let length = from.number()?;
        from.take(usize::try_from(length).ok()?)?;
        sections.push((kind, arg, length));
    }
    match parts % 4 {
        ZEROS => {
            from.number()?;
        }
        BYTES => {
            let length = from.number()?;
            from.take(usize::try_from(length).ok()?)?;
        }
        _ => {}
    }
    Some(RecordSizes {
        call,
        is_whole: state == u64::from(DONE),
        all: (length - from.bytes.len()) as u64,
        times,
        arguments,
        sections,
    })
}

/// Skips numbers. Returns the bytes that they take.
fn skip(from: &mut Input<'_>, numbers: usize) -> Option<u64> {
    let length = from.bytes.len();
    for _ in 0..numbers {
        from.number()?;
    }
    Some((length - from.bytes.len()) as u64)
}

fn arena_record(rest: &mut &[u8]) -> Option<RecordSizes> {
    /// Bytes of `time` and `took`, and of `fd`, `result`, `a` and `b`.
    const TIMES: u64 = 8 + 4;
    const ARGUMENTS: u64 = 4 + 8 + 8 + 8;
    let head = DeepRecord::read(rest)?;
    let size = head.size as usize;
    if size < DeepRecord::SIZE || !size.is_multiple_of(8) {
        return None;
    }
    let (record, behind) = rest.split_at_checked(size)?;
    *rest = behind;
    let sections = arena_sections(&record[DeepRecord::SIZE..]);
    Some(RecordSizes {
        call: head.call,
        is_whole: u16::from(head.state) == DONE && sections.is_some(),
        all: size as u64,
        times: TIMES,
        arguments: ARGUMENTS,
        sections: sections.unwrap_or_default(),
    })
}

/// The sections of a record. `None` if one of them ends behind it.
fn arena_sections(bytes: &[u8]) -> Option<Vec<(u16, u16, u64)>> {
    let (mut rest, mut found) = (bytes, Vec::new());
    while let Some(head) = DeepSection::read(rest).filter(|head| head.kind != 0) {
        let end = DeepSection::SIZE.checked_add(head.length as usize)?;
        rest.get(..end)?;
        found.push((head.kind, head.arg, u64::from(head.length)));
        rest = rest.get(end.next_multiple_of(8)..).unwrap_or_default();
    }
    Some(found)
}
