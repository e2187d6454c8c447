//! The run of a deep log that a test writes.

use backstory_deep::{Compression, DeepEnd, DeepHeader, DeepLog, DeepWriter};
use backstory_reconstruct::RecordedRun;
use std::fs;

/// Loads the run of a log with these chunks and this end.
pub fn loaded(chunks: &[Vec<u8>], end: &DeepEnd) -> RecordedRun {
    loaded_without(chunks, end, None)
}

/// The same. A byte of the chunk with this index is changed, so that it is lost.
pub fn loaded_without(chunks: &[Vec<u8>], end: &DeepEnd, lost: Option<usize>) -> RecordedRun {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.deep");
    let mut log = DeepWriter::open(&path, &DeepHeader::default()).unwrap();
    let mut lengths = Vec::new();
    for chunk in chunks {
        log.chunk(chunk, Compression::Usual).unwrap();
        lengths.push(fs::metadata(&path).unwrap().len() as usize);
    }
    log.end(end).unwrap();
    if let Some(lost) = lost {
        let mut bytes = fs::read(&path).unwrap();
        bytes[lengths[lost] - 1] ^= 0x55;
        fs::write(&path, bytes).unwrap();
    }
    RecordedRun::load(&DeepLog::open(&path).unwrap())
}
