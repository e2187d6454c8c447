//! The run of a deep log that a test writes.

use backstory_deep::{Compression, DeepEnd, DeepHeader, DeepLog, DeepWriter};
use backstory_reconstruct::RecordedRun;

/// Loads the run of a log with these chunks and this end.
pub fn loaded(chunks: &[Vec<u8>], end: &DeepEnd) -> RecordedRun {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.deep");
    let mut log = DeepWriter::open(&path, &DeepHeader::default()).unwrap();
    for chunk in chunks {
        log.chunk(chunk, Compression::Usual).unwrap();
    }
    log.end(end).unwrap();
    RecordedRun::load(&DeepLog::open(&path).unwrap())
}
