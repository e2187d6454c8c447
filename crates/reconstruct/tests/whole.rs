//! A process whose deep log is not whole is marked, whether or not a record says so.
#![allow(clippy::unwrap_used)]

use backstory_abi::{CHUNK_DEEP, CHUNK_MAGIC, Chunk, DONE, DeepRecord, deep};
use backstory_deep::{Compression, DeepEnd, DeepHeader, DeepLog, DeepWriter};
use backstory_reconstruct::RecordedRun;

const EXIT_GROUP: u16 = libc::SYS_exit_group as u16;

fn record(call: u16, a: u64) -> Vec<u8> {
    let mut out = vec![DONE as u8, 0];
    out.extend(call.to_le_bytes());
    out.extend((DeepRecord::SIZE as u32).to_le_bytes());
    // The time, how long it took, the descriptor, and the result.
    out.extend([0; 24]);
    out.extend(a.to_le_bytes());
    out.resize(DeepRecord::SIZE, 0);
    out
}

/// True if the process counts as one that lacks calls. It has chunks with these numbers, and these
/// calls in the last one. The run lost so many records.
fn lacks_calls(numbers: &[u32], last: &[u16], lost: u64) -> bool {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.deep");
    let mut log = DeepWriter::open(&path, &DeepHeader::default()).unwrap();
    for (at, seq) in numbers.iter().enumerate() {
        let mut records = Vec::new();
        if at == 0 {
            records.extend(record(deep::BEGIN, deep::BY_EXEC));
        }
        if at + 1 == numbers.len() {
            records.extend(last.iter().flat_map(|call| record(*call, 0)));
        }
        let head = Chunk {
            magic: CHUNK_MAGIC,
            pid: 10,
            tid: 10,
            epoch: 1,
            seq: *seq,
            ppid: 1,
            next: (Chunk::SIZE + records.len()) as u64,
            flags: CHUNK_DEEP,
            ..Chunk::default()
        };
        let bytes = [&head.to_bytes()[..], &records].concat();
        log.chunk(&bytes, Compression::Usual).unwrap();
    }
    let end = DeepEnd {
        records_lost: lost,
        ..DeepEnd::default()
    };
    log.end(&end).unwrap();
    let run = RecordedRun::load(&DeepLog::open(&path).unwrap());
    assert_eq!(run.processes.len(), 1);
    run.processes[0].lacks_calls
}

#[test]
fn a_process_lacks_calls_if_its_log_is_not_whole() {
    assert!(!lacks_calls(&[0, 1], &[EXIT_GROUP], 0));
    // A program that was killed.
    assert!(!lacks_calls(&[0], &[], 0));
    assert!(!lacks_calls(&[0], &[EXIT_GROUP], 1));
    assert!(lacks_calls(&[0, 2], &[EXIT_GROUP], 0), "a missing chunk");
    assert!(lacks_calls(&[0], &[], 1), "lost at the end");
    assert!(lacks_calls(&[0], &[deep::GAP, EXIT_GROUP], 1), "a gap");
    assert!(lacks_calls(&[0], &[deep::SHALLOW], 0), "shallow");
}
