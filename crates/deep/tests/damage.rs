//! A deep log that was cut or changed anywhere: what stands before is read, the rest is reported,
//! and no reader panics.
#![allow(clippy::unwrap_used)]

use backstory_abi::{Chunk, deep};
use backstory_deep::{Call, Compression, DeepEnd, DeepHeader, DeepLog, DeepWriter, ReadMeter};
use backstory_eventlog::Writer;
use backstory_eventlog::frame::{self, FrameKind, LogPiece};
use backstory_eventlog::run::{ClockPoint, RunHeader};
use backstory_testkit::deep_records::{WrittenSection, deep_chunk, short_call, thread_chunk};
use std::fs;
use std::path::{Path, PathBuf};

const READ: u16 = 0;
const WRITE: u16 = 1;
const CREAT: u16 = 85;
const ACCEPT: u16 = 288;

/// A server with two threads: each accepts a connection, reads twice and writes. One read goes on
/// in the next chunk. Thread, number and records of each chunk.
fn sample_chunks() -> Vec<(u32, u32, Vec<Vec<u8>>)> {
    let address: WrittenSection<'_> = (
        deep::ADDRESS,
        &[2, 0, 0x1f, 0x90, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0],
    );
    let of_thread = |tid: u32| {
        let fd = tid as i32;
        let time = u64::from(tid) * 100;
        let first = vec![
            short_call(ACCEPT, 0, (time, 3), i64::from(fd), address),
            short_call(READ, 0, (time + 1, fd), 5, (deep::ENTERED, b"hello")),
            short_call(
                READ,
                deep::MORE,
                (time + 2, fd),
                9,
                (deep::ENTERED, b"pass"),
            ),
        ];
        let second = vec![
            short_call(READ, 0, (time + 2, fd), 9, (deep::ENTERED, b"word!")),
            short_call(WRITE, 0, (time + 3, fd), 3, (deep::LEFT, b"yes")),
        ];
        [(tid, 0, first), (tid, 1, second)]
    };
    [10, 11].into_iter().flat_map(of_thread).collect()
}

/// A log with the chunks of the sample, half of them compressed less.
fn sample(path: &Path) -> Vec<u8> {
    let mut log = DeepWriter::open(path, &DeepHeader::default()).unwrap();
    for (tid, seq, records) in sample_chunks() {
        let compression = match seq {
            0 => Compression::Usual,
            _ => Compression::Hurried,
        };
        log.chunk(&thread_chunk(tid, seq, &records), compression)
            .unwrap();
    }
    log.end(&DeepEnd::default()).unwrap();
    fs::read(path).unwrap()
}

fn file(directory: &tempfile::TempDir) -> PathBuf {
    directory.path().join("log.deep")
}

fn calls(log: &DeepLog, tid: u32) -> Vec<Call> {
    log.thread_calls(1, tid).collect()
}

/// Asks everything that readers ask.
fn read_all(log: &DeepLog) {
    for process in log.processes() {
        let _ = log.process_calls(process.epoch).count();
    }
    let mut last = 0;
    for request in log.walk_requests(|_, _, _| {}) {
        assert!(request.began >= last && request.ended >= request.began);
        last = request.began;
    }
    let _ = (log.programs(), log.has_text(b"secret"), log.time_of(7));
    let _ = log.loop_turns();
    let volume = log.volume();
    assert!(volume.stored <= volume.records, "{volume:?}");
    assert_eq!(log.parts().all(), volume.records);
}

#[test]
fn the_sample_is_whole() {
    let directory = tempfile::tempdir().unwrap();
    sample(&file(&directory));
    let log = DeepLog::open(file(&directory)).unwrap();
    assert_eq!(log.damage(), backstory_deep::DeepDamage::default());
    let requests = log.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!((requests[0].bytes_in, requests[0].bytes_out), (14, 3));
    assert_eq!(
        (requests[0].connection, requests[1].connection),
        (Some(1), Some(2))
    );
    assert_eq!(requests[0].peer, "127.0.0.1:8080");
    assert_eq!(calls(&log, 10)[2].entered_at(1), Some(&b"password!"[..]));
}

#[test]
fn bytes_of_io_are_counted_whether_the_log_has_them_or_not() {
    let directory = tempfile::tempdir().unwrap();
    let words = |words: &[u64]| {
        let bytes: Vec<_> = words.iter().map(|word| word.to_le_bytes()).collect();
        bytes.concat()
    };
    const STAT: u16 = 5;
    const SENDFILE: u16 = 40;
    let records = [
        short_call(READ, 0, (1, 3), 5, (deep::ENTERED, b"hello")),
        short_call(READ, 0, (2, 3), 700, (deep::FILE, &words(&[1, 0, 700, 9]))),
        short_call(WRITE, 0, (3, 4), 40, (deep::LEFT_DIGEST, &words(&[40, 9]))),
        short_call(STAT, 0, (4, 4), 0, (deep::ENTERED, &[0; 144])),
        short_call(SENDFILE, 0, (5, 4), 6000, (deep::CONTROL, b"")),
        short_call(SENDFILE, 0, (6, 4), -32, (deep::CONTROL, b"")),
    ];
    let mut log = DeepWriter::open(&file(&directory), &DeepHeader::default()).unwrap();
    log.chunk(&thread_chunk(10, 0, &records), Compression::Usual)
        .unwrap();
    let volume = DeepLog::open(file(&directory)).unwrap().volume();
    let in_the_arena = records.concat().len() as u64;
    assert!(volume.records < in_the_arena / 2 + 144, "{volume:?}");
    assert_eq!((volume.stored, volume.moved), (5, 5 + 700 + 40 + 6000));
}

#[test]
fn a_log_of_version_1_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(&directory);
    sample(&path);
    let new = DeepLog::open(&path).unwrap();
    let wanted = [calls(&new, 10), calls(&new, 11)];
    let compact = new.volume().records;
    drop(new);
    // The same chunks, as version 1 compressed them.
    let mut frames = fs::read(&path).unwrap();
    frames.truncate(frame_length(&frames));
    for (tid, seq, records) in sample_chunks() {
        let chunk = thread_chunk(tid, seq, &records);
        let mut head = Chunk::read(&chunk).unwrap();
        head.pad = 1;
        let packed = zstd::bulk::compress(&chunk[Chunk::SIZE..], 1).unwrap();
        let payload = [&head.to_bytes()[..], &packed].concat();
        let length = payload.len() as u32;
        frames.extend(frame::header(FrameKind::DeepChunk, 1, length, &[&payload]));
        frames.extend(payload);
    }
    fs::write(&path, frames).unwrap();
    let old = DeepLog::open(&path).unwrap();
    assert_eq!([calls(&old, 10), calls(&old, 11)], wanted);
    assert!(old.volume().records > compact);
}

/// Bytes of the first frame.
fn frame_length(frames: &[u8]) -> usize {
    frame::HEADER + u32::from_le_bytes(*frames[8..].first_chunk().unwrap()) as usize
}

#[test]
fn a_deep_log_cut_at_any_byte_has_all_calls_of_the_chunks_before() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(&directory);
    let bytes = sample(&path);
    let whole = DeepLog::open(&path).unwrap();
    let all = [calls(&whole, 10), calls(&whole, 11)];
    drop(whole);
    let mut before = 0;
    for length in 0..bytes.len() {
        fs::write(&path, &bytes[..length]).unwrap();
        let log = DeepLog::open(&path).unwrap_or_else(|error| panic!("{length}: {error}"));
        assert!(log.damage().no_end, "{length}");
        let mut number = 0;
        for (tid, all) in [10, 11].into_iter().zip(&all) {
            let found = calls(&log, tid);
            let whole = found.iter().filter(|call| !call.is_cut);
            assert!(whole.zip(all).all(|(a, b)| a == b), "{length}: {found:?}");
            number += found.len();
        }
        assert!(number >= before, "{length}");
        before = number;
        read_all(&log);
    }
    assert_eq!(before, all[0].len() + all[1].len());
}

#[test]
fn a_changed_byte_costs_at_most_the_chunk_that_has_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(&directory);
    let bytes = sample(&path);
    for at in 0..bytes.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= change;
            fs::write(&path, &damaged).unwrap();
            let log = match DeepLog::open(&path) {
                Ok(log) => log,
                Err(error) => panic!("{at} {change:#x}: {error}"),
            };
            assert_ne!(log.damage(), backstory_deep::DeepDamage::default(), "{at}");
            // Three chunks are whole.
            let whole = [10, 11].map(|tid| calls(&log, tid));
            let whole = whole
                .iter()
                .flatten()
                .filter(|call| !call.is_cut && !call.is_fact());
            assert!(whole.count() >= 5, "{at} {change:#x}");
            read_all(&log);
        }
    }
}

#[test]
fn a_text_is_found_in_a_call_across_records_and_across_calls() {
    let directory = tempfile::tempdir().unwrap();
    sample(&file(&directory));
    let log = DeepLog::open(file(&directory)).unwrap();
    for text in ["hello", "password!", "hellopass", "ello", "yes"] {
        assert!(log.has_text(text.as_bytes()), "{text}");
    }
    for text in ["helloyes", "password!!", "hellohello", "secret"] {
        assert!(!log.has_text(text.as_bytes()), "{text}");
    }
}

#[test]
#[ignore = "it takes 300 MB of memory, and some seconds"]
fn a_call_that_never_ends_is_cut_before_it_fills_the_memory() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(&directory);
    let mut log = DeepWriter::open(&path, &DeepHeader::default()).unwrap();
    let zeros = vec![0; 60_000];
    for seq in 0..6_000 {
        let more = short_call(READ, deep::MORE, (1, 3), 60_000, (deep::ENTERED, &zeros));
        log.chunk(&thread_chunk(10, seq, &[more]), Compression::Usual)
            .unwrap();
    }
    let log = DeepLog::open(&path).unwrap();
    let all = calls(&log, 10);
    let most = all
        .iter()
        .map(|call| call.sections[0].bytes.len())
        .max()
        .unwrap();
    assert!(all[0].is_cut && most <= 256 << 20, "{most}");
}

#[test]
fn a_log_that_claims_many_requests_has_those_up_to_the_bound() {
    let directory = tempfile::tempdir().unwrap();
    let mut log = DeepWriter::open(&file(&directory), &DeepHeader::default()).unwrap();
    let mut records = vec![short_call(ACCEPT, 0, (1, 3), 4, (deep::ADDRESS, &[2, 0]))];
    for time in (2..200).step_by(2) {
        records.push(short_call(READ, 0, (time, 4), 1, (deep::ENTERED, b"q")));
        records.push(short_call(WRITE, 0, (time + 1, 4), 1, (deep::LEFT, b"a")));
    }
    log.chunk(&thread_chunk(10, 0, &records), Compression::Usual)
        .unwrap();
    log.end(&DeepEnd::default()).unwrap();
    let log = DeepLog::open(file(&directory)).unwrap();
    assert_eq!(log.requests().len(), 99);
    let mut outside = 0;
    let found = log.walk_requests_up_to(7, |_, call, belongs| {
        let moves = call.number == READ || call.number == WRITE;
        outside += u64::from(moves && belongs.is_none());
    });
    assert_eq!((found.len(), outside), (7, 2 * (99 - 7)));
    assert!(found.iter().all(|request| request.bytes_out == 1));
}

#[test]
fn a_request_that_wrote_more_files_than_are_named_says_so() {
    for (files, wrote_more) in [(999, false), (1000, false), (1001, true)] {
        let directory = tempfile::tempdir().unwrap();
        let mut log = DeepWriter::open(&file(&directory), &DeepHeader::default()).unwrap();
        let begins = [
            short_call(ACCEPT, 0, (1, 3), 4, (deep::ADDRESS, &[2, 0])),
            short_call(READ, 0, (2, 4), 1, (deep::ENTERED, b"q")),
        ];
        let makes = |number: u64| {
            let path = format!("/{number}");
            let section: WrittenSection<'_> = (deep::PATH, path.as_bytes());
            short_call(CREAT, 0, (3 + number, -1), 9, section)
        };
        // The last file is opened twice.
        let makes: Vec<Vec<u8>> = (0..files).chain([files - 1]).map(makes).collect();
        let chunks = std::iter::once(&begins[..]).chain(makes.chunks(200));
        for (seq, records) in (0..).zip(chunks) {
            log.chunk(&thread_chunk(10, seq, records), Compression::Usual)
                .unwrap();
        }
        log.end(&DeepEnd::default()).unwrap();
        let found = DeepLog::open(file(&directory)).unwrap().requests();
        assert_eq!(found.len(), 1, "{files}");
        assert_eq!(found[0].written.len() as u64, files.min(1000), "{files}");
        assert_eq!(found[0].wrote_more, wrote_more, "{files}");
    }
}

#[test]
fn the_bound_of_requests_grows_with_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(&directory);
    sample(&path);
    assert_eq!(DeepLog::open(&path).unwrap().most_requests(), 1 << 20);
    // Zeros behind the end are damage, and bytes of the file all the same.
    let log = fs::OpenOptions::new().write(true).open(&path).unwrap();
    log.set_len(5 << 20).unwrap();
    let most = DeepLog::open(&path).unwrap().most_requests();
    assert!(most > 1 << 20, "{most}");
}

#[test]
fn a_pass_over_the_log_announces_its_bytes_and_counts_them() {
    let directory = tempfile::tempdir().unwrap();
    sample(&file(&directory));
    let meter = ReadMeter::default();
    let log = DeepLog::open(file(&directory)).unwrap().metered(&meter);
    assert_eq!((meter.expected(), meter.done()), (0, 0));
    for passes in 1..=3 {
        let mut announced = 0;
        log.walk_requests(|_, _, _| announced = meter.expected());
        assert!(announced > 0 && announced < passes * log.len() as u64);
        assert_eq!((meter.expected(), meter.done()), (announced, announced));
    }
}

#[test]
fn a_cut_log_has_dates_by_its_last_reading_of_the_clocks() {
    let directory = tempfile::tempdir().unwrap();
    let header = DeepHeader {
        counter: 1000,
        real: 50,
        ..DeepHeader::default()
    };
    let mut log = DeepWriter::open(&file(&directory), &header).unwrap();
    for (counter, real) in [(2000, 551), (3000, 1050)] {
        log.clock(ClockPoint { counter, real }).unwrap();
    }
    let log = DeepLog::open(file(&directory)).unwrap();
    assert_eq!(
        (log.damage().unknown_frames, log.damage().no_end),
        (0, true)
    );
    assert_eq!(
        (log.last_reading(), log.time_of(4000)),
        (Some((3000, 1050)), 1550)
    );
}

#[test]
fn a_program_that_a_full_disk_made_shallow_is_not_whole() {
    let directory = tempfile::tempdir().unwrap();
    let mut log = DeepWriter::open(&file(&directory), &DeepHeader::default()).unwrap();
    let begin = short_call(deep::BEGIN, 0, (1, -1), 0, (deep::PATH, b"/bin/sh"));
    let chunk = thread_chunk(10, 0, &[begin]);
    log.chunk(&chunk, Compression::Usual).unwrap();
    let end = |why: Option<&str>| DeepEnd {
        shallow_because: why.map(str::to_owned),
        ..DeepEnd::default()
    };
    for (why, is_whole) in [(None, true), (Some("the disk was full"), false)] {
        log.end(&end(why)).unwrap();
        let log = DeepLog::open(file(&directory)).unwrap();
        assert_eq!(log.programs()[0].is_whole, is_whole);
    }
}

#[test]
fn a_gap_of_a_full_disk_does_not_explain_a_damaged_last_chunk() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(&directory);
    let mut log = DeepWriter::open(&path, &DeepHeader::default()).unwrap();
    // The second chunk of the first thread did not fit on the disk.
    for (tid, seq) in [(10, 0), (11, 0), (10, 2), (11, 1)] {
        let record = short_call(WRITE, 0, (1, 4), 3, (deep::LEFT, b"yes"));
        log.chunk(&thread_chunk(tid, seq, &[record]), Compression::Usual)
            .unwrap();
    }
    let end = DeepEnd {
        shallow_because: Some("the disk was full".to_owned()),
        ..DeepEnd::default()
    };
    log.end(&end).unwrap();
    assert!(!DeepLog::open(&path).unwrap().damage().lacks_ends());
    let mut bytes = fs::read(&path).unwrap();
    let pieces: Vec<LogPiece> = frame::walk(&bytes).collect();
    let LogPiece::Frame(last) = &pieces[pieces.len() - 2] else {
        panic!("{pieces:?}");
    };
    bytes[last.payload.end - 1] ^= 0x55;
    fs::write(&path, &bytes).unwrap();
    assert!(DeepLog::open(&path).unwrap().damage().lacks_ends());
}

/// A log with two processes, each with two chunks. The first one ends, the second one is killed.
fn two_processes(path: &Path) -> Vec<u8> {
    const EXIT_GROUP: u16 = 231;
    let one = |call| short_call(call, 0, (1, -1), 0, (deep::LEFT, b"x"));
    let chunk = |epoch: u64, seq, records: &[Vec<u8>]| {
        let number = 10 * epoch as u32;
        let head = Chunk {
            pid: number,
            tid: number,
            epoch,
            seq,
            ppid: 1,
            ..Chunk::default()
        };
        deep_chunk(head, records)
    };
    let mut log = DeepWriter::open(path, &DeepHeader::default()).unwrap();
    for chunk in [
        chunk(1, 0, &[one(deep::BEGIN), one(WRITE)]),
        chunk(2, 0, &[one(deep::BEGIN), one(WRITE)]),
        chunk(1, 1, &[one(WRITE), one(EXIT_GROUP)]),
        chunk(2, 1, &[one(WRITE)]),
    ] {
        log.chunk(&chunk, Compression::Usual).unwrap();
    }
    log.end(&DeepEnd::default()).unwrap();
    fs::read(path).unwrap()
}

#[test]
fn a_byte_changed_in_any_frame_is_reported_and_no_process_that_may_lack_calls_is_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(&directory);
    let bytes = two_processes(&path);
    let frames: Vec<_> = frame::walk(&bytes)
        .filter_map(|piece| match piece {
            LogPiece::Frame(frame) => Some(frame.payload),
            LogPiece::Garbage(_) => None,
        })
        .collect();
    // By frame: whether each process is whole, and whether it may lack its last calls.
    let expected = [
        [(true, false), (true, false)], // the header
        [(false, false), (true, false)],
        [(true, false), (false, false)],
        [(false, true), (false, true)],
        [(true, false), (false, true)],
        [(true, false), (false, true)], // the end
    ];
    assert_eq!(frames.len(), expected.len());
    let states = |log: &DeepLog| {
        let programs = log.programs();
        let all = programs.iter().map(|one| (one.is_whole, one.lacks_end));
        all.collect::<Vec<_>>()
    };
    let whole = DeepLog::open(&path).unwrap();
    assert!(whole.damage().is_none() && whole.lacks_because().is_none());
    assert_eq!(states(&whole), [(true, false), (true, false)]);
    drop(whole);
    for (number, (payload, expected)) in frames.into_iter().zip(expected).enumerate() {
        let mut damaged = bytes.clone();
        damaged[payload.start.midpoint(payload.end)] ^= 0x55;
        fs::write(&path, &damaged).unwrap();
        let log = DeepLog::open(&path).unwrap();
        let words = log.damage().words().unwrap();
        assert!(words.contains("unreadable bytes"), "{number}: {words}");
        assert_eq!(states(&log), expected, "{number}");
        let lacks_ends = expected.iter().any(|(_, lacks_end)| *lacks_end);
        assert_eq!(log.lacks_because().is_some(), lacks_ends, "{number}");
    }
}

#[test]
fn a_log_without_its_header_has_the_dates_of_the_log_beside_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(&directory);
    let end = DeepEnd {
        counter: 3000,
        real: 3500,
        ..DeepEnd::default()
    };
    let mut log = DeepWriter::open(&path, &DeepHeader::default()).unwrap();
    log.end(&end).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[frame::HEADER] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let log = DeepLog::open(&path).unwrap();
    assert!(log.damage().no_header && !log.has_dates());
    assert_eq!((log.time_of(7), log.time_of(2000)), (3500, 3500));
    let beside = path.with_extension("log");
    let mut run = Writer::create(&beside, &RunHeader::default()).unwrap();
    for (counter, real) in [(1000, 1500), (2500, 3000)] {
        run.clock(ClockPoint { counter, real }).unwrap();
    }
    let log = DeepLog::open(&path).unwrap();
    assert!(log.has_dates());
    assert_eq!(log.first_reading(), (1000, 1500));
    assert_eq!(log.time_of(2000), 2500);
}
