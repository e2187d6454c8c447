//! Records and chunks of a deep log, as the recorder writes them.
//!
//! In: the fields of a record or a chunk that matter to a test, by their names in the binary
//! interface. Out: the bytes, as `docs/formats/deep.md` describes them.
//!
//! Absent: the log around the chunks, which the crate under test writes.

use backstory_abi::{CHUNK_DEEP, CHUNK_MAGIC, Chunk, DONE, DeepRecord};

/// Bytes that argument 1 of a call points to, behind their kind, a constant of
/// [`backstory_abi::deep`].
pub type WrittenSection<'a> = (u16, &'a [u8]);

/// The bytes of a whole record with these sections. `state` and `size` are set here.
pub fn deep_record(head: DeepRecord, sections: &[WrittenSection<'_>]) -> Vec<u8> {
    let mut tail: Vec<u8> = Vec::new();
    for (kind, bytes) in sections {
        tail.extend(kind.to_le_bytes());
        tail.extend(1u16.to_le_bytes());
        tail.extend((bytes.len() as u32).to_le_bytes());
        tail.extend(*bytes);
        tail.resize(tail.len().next_multiple_of(8), 0);
    }
    let size = DeepRecord::SIZE + tail.len();
    let mut out = vec![DONE as u8, head.flags];
    out.extend(head.call.to_le_bytes());
    out.extend((size as u32).to_le_bytes());
    out.extend(head.time.to_le_bytes());
    out.extend(head.took.to_le_bytes());
    out.extend(head.fd.to_le_bytes());
    out.extend(head.result.to_le_bytes());
    out.extend(head.a.to_le_bytes());
    out.extend(head.b.to_le_bytes());
    out.extend(tail);
    out
}

/// The bytes of the record of a call that took 64 counts, with one section.
pub fn short_call(
    call: u16,
    flags: u8,
    (time, fd): (u64, i32),
    result: i64,
    section: WrittenSection<'_>,
) -> Vec<u8> {
    let head = DeepRecord {
        call,
        flags,
        time,
        took: 1,
        fd,
        result,
        ..DeepRecord::default()
    };
    deep_record(head, &[section])
}

/// The bytes of a chunk with these records. `magic`, `flags` and `next` are set here.
pub fn deep_chunk(head: Chunk, records: &[Vec<u8>]) -> Vec<u8> {
    let records = records.concat();
    let head = Chunk {
        magic: CHUNK_MAGIC,
        next: (Chunk::SIZE + records.len()) as u64,
        flags: CHUNK_DEEP,
        ..head
    };
    [&head.to_bytes()[..], &records].concat()
}

/// A chunk of a thread of process 10, in epoch 1. `seq` counts the chunks of the thread.
pub fn thread_chunk(tid: u32, seq: u32, records: &[Vec<u8>]) -> Vec<u8> {
    let head = Chunk {
        pid: 10,
        tid,
        epoch: 1,
        seq,
        ppid: 1,
        ..Chunk::default()
    };
    deep_chunk(head, records)
}
