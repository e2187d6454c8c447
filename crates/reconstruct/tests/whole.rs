//! A process whose deep log is not whole is marked, whether or not a record says so.
#![allow(clippy::unwrap_used)]

use crate::written_log;
use backstory_abi::{DeepRecord, deep};
use backstory_deep::DeepEnd;
use backstory_reconstruct::RecordedRun;
use backstory_reconstruct::window::end_at_gaps;
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

/// The run of a program with these chunks: the thread, and its calls. It is process 10. The chunk
/// with the index `lost` is damaged.
fn without_chunk(parts: &[(u32, &[u16])], lost: Option<usize>) -> RecordedRun {
    let mut next = [0, 0];
    let chunks = parts.iter().map(|(tid, calls)| {
        let records: Vec<Vec<u8>> = calls.iter().map(|call| record(*call, 0)).collect();
        let next = &mut next[*tid as usize - 10];
        *next += 1;
        thread_chunk(*tid, *next - 1, &records)
    });
    let chunks: Vec<Vec<u8>> = chunks.collect();
    written_log::loaded_without(&chunks, &DeepEnd::default(), lost)
}

#[test]
fn a_damaged_log_may_lack_the_last_calls_of_a_process_without_a_recorded_end() {
    const READ: u16 = libc::SYS_read as u16;
    let one: &[(u32, &[u16])] = &[(10, &[deep::BEGIN]), (10, &[READ]), (10, &[EXIT_GROUP])];
    let two: &[(u32, &[u16])] = &[
        (10, &[deep::BEGIN, EXIT_GROUP]),
        (11, &[READ]),
        (11, &[READ]),
    ];
    for (parts, lost, lacks_calls, lacks_end) in [
        (one, None, false, false),
        // A gap tells of it.
        (one, Some(1), true, false),
        (one, Some(2), true, true),
        (two, None, false, false),
        (two, Some(1), true, false),
        (two, Some(2), true, true),
    ] {
        let mut run = without_chunk(parts, lost);
        let case = format!("{parts:?} {lost:?}");
        let process = &run.processes[0];
        let found = (process.lacks_calls, process.lacks_end);
        assert_eq!(found, (lacks_calls, lacks_end), "{case}");
        let why = run.lacks_because.clone();
        assert_eq!(why.is_some(), lacks_end, "{case}: {why:?}");
        assert!(why.is_none_or(|why| why.contains("is damaged")), "{case}");
        end_at_gaps(&mut run);
        assert_eq!(run.processes[0].ends_early, lacks_calls, "{case}");
    }
}

#[test]
fn a_killed_process_of_a_damaged_log_may_have_done_more() {
    let parts: &[(u32, &[u16])] = &[(10, &[deep::BEGIN]), (10, &[])];
    for (lost, ends_early) in [(None, false), (Some(1), true)] {
        let mut run = without_chunk(parts, lost);
        run.processes[0].killed_by = Some(libc::SIGTERM);
        end_at_gaps(&mut run);
        assert_eq!(run.processes[0].ends_early, ends_early, "{lost:?}");
    }
}
