//! A process whose deep log is not whole is marked, whether or not a record says so.
#![allow(clippy::unwrap_used)]

mod written_log;

use backstory_abi::{DeepRecord, deep};
use backstory_deep::DeepEnd;
use backstory_testkit::deep_records::{deep_record, thread_chunk};

const EXIT_GROUP: u16 = libc::SYS_exit_group as u16;

fn record(call: u16, a: u64) -> Vec<u8> {
    let head = DeepRecord {
        call,
        a,
        ..DeepRecord::default()
    };
    deep_record(head, &[])
}

/// True if the process counts as one that lacks calls. It has chunks with these numbers, and these
/// calls in the last one. The run lost so many records.
fn lacks_calls(numbers: &[u32], last: &[u16], lost: u64) -> bool {
    let all = numbers.iter().enumerate();
    let chunks = all.map(|(at, seq)| {
        let mut records = Vec::new();
        if at == 0 {
            records.push(record(deep::BEGIN, deep::BY_EXEC));
        }
        if at + 1 == numbers.len() {
            records.extend(last.iter().map(|call| record(*call, 0)));
        }
        thread_chunk(10, *seq, &records)
    });
    let end = DeepEnd {
        records_lost: lost,
        ..DeepEnd::default()
    };
    let run = written_log::loaded(&chunks.collect::<Vec<_>>(), &end);
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
