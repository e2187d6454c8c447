//! Records and chunks of a deep log, as the recorder writes them.

use backstory_abi::{CHUNK_DEEP, CHUNK_MAGIC, Chunk, DONE, DeepRecord};

/// A call with one section.
pub fn record(
    call: u16,
    flags: u8,
    time: u64,
    fd: i32,
    result: i64,
    section: (u16, &[u8]),
) -> Vec<u8> {
    let (kind, bytes) = section;
    let size = DeepRecord::SIZE + 8 + bytes.len().next_multiple_of(8);
    let mut out = vec![DONE as u8, flags];
    out.extend(call.to_le_bytes());
    out.extend((size as u32).to_le_bytes());
    out.extend(time.to_le_bytes());
    out.extend(1u32.to_le_bytes());
    out.extend(fd.to_le_bytes());
    out.extend(result.to_le_bytes());
    out.extend([0; 16]);
    out.extend(kind.to_le_bytes());
    out.extend(1u16.to_le_bytes());
    out.extend((bytes.len() as u32).to_le_bytes());
    out.extend(bytes);
    out.resize(size, 0);
    out
}

/// A chunk of a thread with these records.
pub fn chunk(epoch: u64, tid: u32, seq: u32, records: &[Vec<u8>]) -> Vec<u8> {
    let records = records.concat();
    let head = Chunk {
        magic: CHUNK_MAGIC,
        pid: 10,
        tid,
        epoch,
        seq,
        ppid: 1,
        next: (Chunk::SIZE + records.len()) as u64,
        flags: CHUNK_DEEP,
        ..Chunk::default()
    };
    [&head.to_bytes()[..], &records].concat()
}
