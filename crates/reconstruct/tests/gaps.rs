//! Records in which calls are missing: where they end, and what behind that is no difference.
#![allow(clippy::unwrap_used)]

use crate::written_log;
use backstory_abi::{Chunk, DeepRecord, deep};
use backstory_deep::DeepEnd;
use backstory_reconstruct::RecordedRun;
use backstory_reconstruct::divergence::DivergenceKind;
use backstory_reconstruct::matcher::ProcessMatcher;
use backstory_reconstruct::output::OutputItem;
use backstory_reconstruct::process::{Made, RecordedProcess};
use backstory_reconstruct::resource::{Origin, Resource};
use backstory_reconstruct::volatile::VolatileRules;
use backstory_reconstruct::window::end_at_gaps;
use backstory_testkit::deep_records::{deep_chunk, deep_record};

const READ: u16 = libc::SYS_read as u16;
const EXIT_GROUP: u16 = libc::SYS_exit_group as u16;
const GETRANDOM: u16 = libc::SYS_getrandom as u16;

/// A call at a time, which took so long. Bytes entered through descriptor 3.
fn record(call: u16, (time, took): (u64, u64), a: u64, bytes: &[u8]) -> Vec<u8> {
    let head = DeepRecord {
        call,
        time,
        took: (took >> 6) as u32,
        fd: 3,
        result: bytes.len() as i64,
        a,
        ..DeepRecord::default()
    };
    deep_record(head, &[(deep::ENTERED, bytes)])
}

fn begin(time: u64) -> Vec<u8> {
    record(deep::BEGIN, (time, 0), deep::BY_EXEC, b"")
}

fn read(time: u64, took: u64, bytes: &[u8]) -> Vec<u8> {
    record(READ, (time, took), 100, bytes)
}

/// A chunk: process and thread, number, and the time at which it was taken.
type Part = ((u32, u32), u32, u64, Vec<Vec<u8>>);

/// The run of a log with these chunks. The epoch of a process is its number.
fn run(parts: Vec<Part>) -> RecordedRun {
    let chunks = parts.into_iter().map(|((pid, tid), seq, taken, records)| {
        let head = Chunk {
            pid,
            tid,
            epoch: u64::from(pid),
            seq,
            ppid: 1,
            taken,
            ..Chunk::default()
        };
        deep_chunk(head, &records)
    });
    written_log::loaded(&chunks.collect::<Vec<_>>(), &DeepEnd::default())
}

/// The bytes that enter a process.
fn entering(process: &RecordedProcess) -> Vec<u8> {
    let streams = process.streams.values();
    let pieces = streams.flat_map(|streams| streams.input.pieces());
    pieces.flat_map(|(_, bytes)| bytes.to_vec()).collect()
}

/// A process with two threads. The first one has a gap, while the other one is in a long call.
fn with_gap() -> Vec<Part> {
    let exit = record(EXIT_GROUP, (12_000, 0), 0, b"");
    vec![
        ((10, 10), 0, 40, vec![begin(50), read(100, 64, b"one")]),
        ((10, 10), 2, 10_000, vec![read(11_000, 64, b"late"), exit]),
        (
            (10, 11),
            0,
            60,
            vec![read(120, 6400, b"slow"), read(8000, 64, b"two")],
        ),
    ]
}

#[test]
fn a_process_is_whole_until_the_last_call_before_the_gap_of_a_thread_returned() {
    let mut run = run(with_gap());
    assert_eq!(run.processes[0].whole_until, Some(164));
    end_at_gaps(&mut run);
    let process = &run.processes[0];
    assert_eq!(entering(process), b"one");
    assert!(process.ends_early && !process.has_exited);
}

#[test]
fn a_gap_ends_the_record_of_no_other_process_and_of_no_request() {
    let exit = record(EXIT_GROUP, (20_000, 0), 0, b"");
    let other = vec![begin(500), read(15_000, 64, b"three"), exit];
    let mut parts = with_gap();
    parts.push(((20, 20), 0, 400, other));
    let mut run = run(parts);
    // Requests run again against this.
    assert!(!run.processes[0].ends_early && run.processes[0].has_exited);
    end_at_gaps(&mut run);
    let other = &run.processes[1];
    assert_eq!(entering(other), b"three");
    assert!(!other.ends_early && other.has_exited && !run.is_cut);
}

/// A request for 8 random bytes. `flags`: those of its record.
fn random(time: u64, flags: u8, bytes: &[u8]) -> Vec<u8> {
    let head = DeepRecord {
        call: GETRANDOM,
        flags,
        time,
        took: 1,
        fd: -1,
        result: 8,
        a: 8,
        ..DeepRecord::default()
    };
    let mut record = deep_record(head, &[(deep::ENTERED, bytes)]);
    // Argument 0 points to the bytes.
    record[DeepRecord::SIZE + 2] = 0;
    record
}

#[test]
fn a_request_for_random_bytes_never_gets_a_part_of_them_because_the_rest_is_lost() {
    let records = vec![
        begin(50),
        random(100, 0, b"all here"),
        random(300, deep::MORE, b"half"),
    ];
    let run = run(vec![((10, 10), 0, 40, records)]);
    let mut matcher = ProcessMatcher::new(run.processes[0].clone());
    assert_eq!(matcher.random(8, 0), Some(b"all here".to_vec()));
    // The kernel gives other ones.
    assert_eq!(matcher.random(8, 0), None);
}

/// A process that wrote `a` to a pipe, and then `b` to another one. Its record ends there.
fn with_two_outputs(resources: &[Resource]) -> ProcessMatcher {
    let mut process = RecordedProcess::default();
    for (id, byte) in [(0, b'a'), (1, b'b')] {
        let streams = process.streams.entry(id).or_default();
        streams.output.push(OutputItem::Bytes(vec![byte]));
    }
    process.end_early(resources);
    ProcessMatcher::new(process)
}

#[test]
fn more_output_is_no_difference_only_behind_all_of_the_record() {
    let pipe = |name: &[u8]| Resource::new(Origin::Inherited, name, libc::S_IFIFO);
    let resources = [pipe(b"pipe:[1]"), pipe(b"pipe:[2]")];
    let differs = |written: &[(usize, &str)]| {
        let mut matcher = with_two_outputs(&resources);
        for (id, bytes) in written {
            let to = (*id, &resources[*id]);
            matcher.write(to, bytes.as_bytes(), &VolatileRules::default());
        }
        matcher.divergence.map(|found| found.kind)
    };
    assert_eq!(differs(&[(0, "a"), (1, "b"), (0, "x"), (1, "x")]), None);
    let more = Some(DivergenceKind::MoreOutput);
    assert_eq!(differs(&[(0, "ax"), (1, "b")]), more);
    let other = Some(DivergenceKind::OtherOutput);
    assert_eq!(differs(&[(0, "a"), (1, "x")]), other);
}

#[test]
fn a_new_request_is_no_difference_only_behind_all_that_the_record_opened() {
    let mut process = RecordedProcess {
        whole_until: Some(20),
        ..RecordedProcess::default()
    };
    for (path, time) in [("before", 10), ("behind", 30)] {
        let queue = process.opens.entry(path.as_bytes().to_vec()).or_default();
        queue.push_back((Made::Failed(libc::ENOENT), time));
    }
    process.end_early(&[]);
    let mut matcher = ProcessMatcher::new(process);
    let request = matcher.blank(DivergenceKind::NewRequest, "connect".to_owned());
    let mut early = matcher.clone();
    early.diverge(request.clone());
    assert!(early.divergence.is_some());
    matcher.open(b"before");
    matcher.diverge(request);
    assert!(matcher.divergence.is_none());
}
