//! Chunks: the records of one thread or of the guard, possibly cut off by a death at any
//! instruction.
//!
//! Invariant: a walk over any bytes ends, stays within them, and finds every whole record before
//! the first damage.

use backstory_abi::{
    self as abi, CallerIds, Chunk, DONE, F_ALL, F_CALLER, F_IDENT, LIST, RESERVED, Record, op_info,
};
use backstory_files::Ident;

/// The bytes of a chunk.
#[derive(Debug, Clone, Copy)]
pub struct ChunkView<'a> {
    bytes: &'a [u8],
    limit: usize,
    /// The last reservation did not fit, so zeros at the end are no lost record.
    overrun: bool,
}

/// Records that were skipped before the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SkippedRecords {
    /// Records whose thread was killed before they were valid, or that were overwritten.
    pub torn: u64,
    /// Whole records of operations that this version does not know.
    pub unknown: u64,
}

impl<'a> ChunkView<'a> {
    /// The chunk in these bytes, and its header. `None` if they do not begin with a chunk.
    pub fn new(bytes: &'a [u8]) -> Option<(Chunk, ChunkView<'a>)> {
        let head = Chunk::read(bytes).filter(|c| c.magic == abi::CHUNK_MAGIC)?;
        // `next` is the offset at which the owner would have continued. Past the end, it belongs to
        // a record that did not fit.
        let next = usize::try_from(head.next).unwrap_or(usize::MAX);
        let limit = if next < Chunk::SIZE {
            bytes.len()
        } else {
            next.min(bytes.len())
        };
        Some((
            head,
            ChunkView {
                bytes,
                limit,
                overrun: next > bytes.len(),
            },
        ))
    }

    /// Records without a chunk's header.
    pub fn bare(bytes: &'a [u8]) -> ChunkView<'a> {
        ChunkView {
            bytes,
            limit: bytes.len(),
            overrun: false,
        }
    }

    /// The bytes from a record's offset on, up to the end of the records.
    pub fn from(&self, offset: usize) -> &'a [u8] {
        self.bytes.get(offset..self.limit).unwrap_or(&[])
    }

    /// The first record at or after `offset`: its offset, and its fixed part.
    pub fn next(&self, mut offset: usize, skipped: &mut SkippedRecords) -> Option<(usize, Record)> {
        while let Some(record) = Record::read(self.from(offset)) {
            let room = self.limit - offset;
            match judge(&record, room) {
                Judged::Good => return Some((offset, record)),
                Judged::Unknown => {
                    skipped.unknown += 1;
                    offset += usize::from(record.size);
                }
                // The owner died after it had written the size and before it had written the rest.
                Judged::Begun => {
                    skipped.torn += 1;
                    offset += usize::from(record.size);
                }
                Judged::Torn => {
                    let Some(next) = self.resync(offset + 8) else {
                        let nothing = self.overrun && self.from(offset).iter().all(|b| *b == 0);
                        skipped.torn += u64::from(!nothing);
                        return None;
                    };
                    skipped.torn += 1;
                    offset = next;
                }
            }
        }
        None
    }

    /// The next offset at which a record begins whose strings are in their positions. The bytes of
    /// a torn record may look like one.
    fn resync(&self, mut offset: usize) -> Option<usize> {
        while let Some(record) = Record::read(self.from(offset)) {
            if judge(&record, self.limit - offset) == Judged::Good
                && self.strings_fit(offset, &record)
            {
                return Some(offset);
            }
            offset += 8;
        }
        None
    }

    fn strings_fit(&self, offset: usize, record: &Record) -> bool {
        let body = &self.from(offset)[fixed(record)..usize::from(record.size)];
        let wanted = op_info(record.op).map_or(0, |info| info.strings);
        wanted == LIST || body.iter().filter(|b| **b == 0).count() >= usize::from(wanted)
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Judged {
    Good,
    Begun,
    Unknown,
    Torn,
}

fn fixed(record: &Record) -> usize {
    let caller = if record.flags & F_CALLER != 0 {
        CallerIds::SIZE
    } else {
        0
    };
    let ident = if record.flags & F_IDENT != 0 {
        Ident::SIZE
    } else {
        0
    };
    Record::SIZE + caller + ident
}

fn judge(record: &Record, room: usize) -> Judged {
    let size = usize::from(record.size);
    if size % 8 != 0 || size < Record::SIZE || size > room {
        return Judged::Torn;
    }
    let state_valid = record.state == RESERVED || record.state == DONE;
    if record.state == 0 {
        Judged::Begun
    } else if !state_valid {
        Judged::Torn
    } else if op_info(record.op).is_none() || record.flags & !F_ALL != 0 {
        Judged::Unknown
    } else if fixed(record) > size {
        Judged::Torn
    } else {
        Judged::Good
    }
}

/// Builds a chunk, for the supervisor's own records and for tests.
#[derive(Debug)]
pub struct ChunkBuilder {
    bytes: Vec<u8>,
    head: Chunk,
}

impl ChunkBuilder {
    /// An empty chunk with this header. `new` sets the magic number and `next`.
    pub fn new(head: Chunk) -> ChunkBuilder {
        let head = Chunk {
            magic: abi::CHUNK_MAGIC,
            next: Chunk::SIZE as u64,
            ..head
        };
        ChunkBuilder {
            bytes: head.to_bytes().to_vec(),
            head,
        }
    }

    /// Appends a record. Returns false, and appends nothing, if it does not fit.
    pub fn push(&mut self, record: &[u8]) -> bool {
        if self.bytes.len() + record.len() > abi::CHUNK_SIZE as usize {
            return false;
        }
        self.bytes.extend_from_slice(record);
        self.head.next = self.bytes.len() as u64;
        self.bytes[..Chunk::SIZE].copy_from_slice(&self.head.to_bytes());
        true
    }

    /// True without records.
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == Chunk::SIZE
    }

    /// The chunk, as [`crate::writer::Writer::chunk`] takes it.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Empties it and gives it the next number of its thread.
    pub fn restart(&mut self) {
        self.head.seq = self.head.seq.wrapping_add(1);
        self.head.next = Chunk::SIZE as u64;
        self.bytes.truncate(Chunk::SIZE);
        self.bytes[..Chunk::SIZE].copy_from_slice(&self.head.to_bytes());
    }
}
