//! A log survives a crash: every whole part is read, the rest is reported, and no reader panics.

use crate::common;
use backstory_abi::{Chunk, Record, op};
use backstory_eventlog::frame::{self, FrameKind};
use backstory_eventlog::record::RecordBuilder;
use backstory_eventlog::run::{ClockPoint, RunEnd};
use backstory_eventlog::{Damage, Error, Log, Writer};
use common::{Scratch, ThreadStream};
use std::path::Path;

/// A log of several frames of every kind; each chunk holds one event.
fn sample() -> (Scratch, Vec<u8>) {
    let mut log = Scratch::new();
    log.clock(1);
    for pid in 1..=4 {
        log.add(&chunk(pid));
    }
    log.clock(100);
    log.writer
        .end(&RunEnd {
            exit: Some(0),
            ..RunEnd::default()
        })
        .expect("append");
    let mut builder = RecordBuilder::new();
    let identity = builder.identity(200, b"/file", false, Err(2)).to_vec();
    log.writer.idents(&identity).expect("append");
    log.writer.resolved(&[]).expect("append");
    let bytes = std::fs::read(log.path()).expect("read");
    (log, bytes)
}

fn chunk(pid: u32) -> ThreadStream {
    let mut stream = ThreadStream::new(pid.into(), pid, pid);
    stream.record(op::OPEN, (pid * 10).into(), |b| {
        b.result(3).string(format!("file of {pid}").as_bytes());
    });
    stream
}

fn open(path: &Path, bytes: &[u8]) -> Result<Log, Error> {
    std::fs::write(path, bytes).expect("write");
    Log::open(path)
}

fn pids(log: &Log) -> Vec<u32> {
    log.events().map(|e| e.pid).collect()
}

/// The position of each frame, and the end.
fn borders(bytes: &[u8]) -> Vec<usize> {
    let mut at = 0;
    let mut borders = vec![0];
    while let Some(frame) = frame::read(bytes, at) {
        at = frame.payload.end;
        borders.push(at);
    }
    borders
}

#[test]
fn a_log_cut_at_any_byte_opens_with_all_that_was_whole() {
    let (scratch, bytes) = sample();
    let borders = borders(&bytes);
    assert_eq!(borders.last(), Some(&bytes.len()));
    let path = scratch.dir.path().join("cut");
    for length in 0..=bytes.len() {
        let log = open(&path, &bytes[..length]).expect("opens");
        let whole = borders.iter().filter(|b| **b > 0 && **b <= length).count();
        // Frames: header, clock, four chunks, clock, end, identities, resolved.
        let expected: Vec<u32> = (1..=4).filter(|pid| whole >= 2 + *pid as usize).collect();
        assert_eq!(pids(&log), expected, "cut at {length}");
        assert_eq!(log.end().is_some(), whole >= 8, "cut at {length}");
        assert_eq!(log.resolved(), whole >= 10);
        let damage = log.damage();
        assert_eq!(damage.no_header, whole == 0);
        // Behind the end, identities are taken again.
        let lacks = !borders.contains(&length) && whole < 8;
        assert_eq!(damage.places > 0, lacks, "cut at {length}");
    }
}

#[test]
fn a_damaged_frame_costs_only_itself() {
    let (scratch, bytes) = sample();
    let borders = borders(&bytes);
    let path = scratch.dir.path().join("damaged");
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        let log = open(&path, &damaged).expect("opens");
        let hit = borders.iter().rposition(|b| *b <= at).expect("a frame");
        let expected: Vec<u32> = (1..=4).filter(|pid| hit != 1 + *pid as usize).collect();
        assert_eq!(pids(&log), expected, "byte {at}");
        // With a larger length, the last frame looks as one whose writer was killed.
        let is_last = borders[hit + 1] == bytes.len();
        if is_last && (8..12).contains(&(at - borders[hit])) && log.damage().is_none() {
            assert!(damaged[at] > bytes[at] && !log.resolved(), "byte {at}");
            continue;
        }
        assert_eq!(log.damage().places, 1);
        assert_eq!(log.damage().bytes, (borders[hit + 1] - borders[hit]) as u64);
        assert_eq!(log.damage().no_header, hit == 0);
    }
}

#[test]
fn garbage_between_frames_is_skipped_and_counted() {
    let (scratch, bytes) = sample();
    let borders = borders(&bytes);
    // This contains the beginning of an incomplete frame.
    let garbage = [
        b"xyz".as_slice(),
        &frame::MAGIC,
        &[2, 0, 1, 0, 255, 255, 0, 0],
    ]
    .concat();
    let with = [&bytes[..borders[3]], &garbage, &bytes[borders[3]..]].concat();
    let log = open(&scratch.dir.path().join("garbage"), &with).expect("opens");
    assert_eq!(pids(&log), [1, 2, 3, 4]);
    assert_eq!(
        log.damage(),
        Damage {
            bytes: garbage.len() as u64,
            places: 1,
            ..Damage::default()
        }
    );
}

#[test]
fn appending_after_a_crash_keeps_what_comes_before_and_after() {
    let (scratch, bytes) = sample();
    let borders = borders(&bytes);
    let path = scratch.dir.path().join("torn");
    std::fs::write(&path, &bytes[..borders[4] + 20]).expect("write");
    let mut writer = Writer::reopen(&path).expect("reopen");
    writer.chunk(chunk(7).chunk.bytes()).expect("append");
    writer
        .end(&RunEnd {
            lost: 3,
            ..RunEnd::default()
        })
        .expect("append");
    writer.sync().expect("sync");
    let log = Log::open(&path).expect("opens");
    assert_eq!(pids(&log), [1, 2, 7]);
    assert_eq!(log.end().map(|e| e.lost), Some(3));
    assert_eq!(log.damage().bytes, 20);
}

#[test]
fn the_last_chunks_can_be_taken_back_for_what_matters_more() {
    let (scratch, bytes) = sample();
    let borders = borders(&bytes);
    let path = scratch.dir.path().join("full");
    std::fs::write(&path, &bytes[..borders[4]]).expect("write");
    let mut writer = Writer::reopen(&path).expect("reopen");
    assert_eq!(
        writer.take_back().expect("nothing"),
        None,
        "of another writer"
    );
    for pid in [7, 8, 9] {
        writer.chunk(chunk(pid).chunk.bytes()).expect("append");
    }
    writer
        .clock(ClockPoint {
            counter: 9,
            real: 9,
        })
        .expect("append");
    for kind in [FrameKind::Clock, FrameKind::Chunk, FrameKind::Chunk] {
        assert_eq!(writer.take_back().expect("taken back"), Some(kind));
    }
    writer.end(&RunEnd::default()).expect("append");
    assert_eq!(writer.take_back().expect("nothing"), None, "an end stays");
    let log = Log::open(&path).expect("opens");
    assert_eq!(pids(&log), [1, 2, 7]);
    assert!(log.end().is_some() && log.damage().is_none());
}

#[test]
fn an_empty_log_opens_and_another_file_is_refused() {
    let (scratch, _) = sample();
    let path = scratch.dir.path().join("other");
    let log = open(&path, b"").expect("opens");
    assert!(log.is_empty() && log.damage().no_header && pids(&log).is_empty());
    assert!(matches!(
        open(&path, b"#!/bin/sh\necho hello\n"),
        Err(Error::NotALog { .. })
    ));
    assert!(matches!(
        Log::open(scratch.dir.path().join("none")),
        Err(Error::Io { .. })
    ));
}

#[test]
fn a_log_of_a_later_format_is_refused_with_its_number() {
    let (scratch, _) = sample();
    let json = b"{}";
    let head = frame::header(
        FrameKind::Header,
        frame::VERSION + 1,
        json.len() as u32,
        &[json],
    );
    let error = open(
        &scratch.dir.path().join("later"),
        &[&head[..], json].concat(),
    )
    .expect_err("refused");
    assert!(matches!(error, Error::Newer { found, known, .. } if found == known + 1));
    assert!(error.to_string().contains("use a newer one"));
}

#[test]
fn a_log_can_not_be_made_twice_and_a_full_disk_is_an_error() {
    let (scratch, _) = sample();
    assert!(matches!(
        Writer::create(scratch.path(), &common::header()),
        Err(Error::Io { .. })
    ));
    let mut full = Writer::reopen("/dev/full").expect("opens");
    let error = full
        .clock(ClockPoint {
            counter: 1,
            real: 1,
        })
        .expect_err("no space");
    assert!(
        error
            .to_string()
            .starts_with("cannot append to log /dev/full: "),
        "{error}"
    );
}

#[test]
fn a_growing_log_is_read_as_far_as_it_was_when_it_was_opened() {
    let mut scratch = Scratch::new();
    scratch.add(&chunk(1));
    let before = scratch.open();
    scratch.add(&chunk(2));
    assert_eq!(pids(&before), [1]);
    assert_eq!(pids(&scratch.open()), [1, 2]);
}

/// A chunk of three records of 48 bytes, with the bytes of the second changed.
fn torn(change: impl FnOnce(&mut [u8])) -> (Vec<String>, Damage) {
    let mut stream = ThreadStream::new(1, 1, 1);
    for time in 1..=3 {
        stream.record(op::OPEN, time, |b| {
            b.result(3).string(format!("file {time}").as_bytes());
        });
    }
    let mut bytes = stream.chunk.bytes().to_vec();
    let size = (bytes.len() - Chunk::SIZE) / 3;
    change(&mut bytes[Chunk::SIZE + size..Chunk::SIZE + 2 * size]);
    let mut log = Scratch::new();
    log.writer.chunk(&bytes).expect("append");
    let log = log.open();
    let name = |op| match op {
        backstory_eventlog::event::Op::Open { path, .. } => {
            String::from_utf8_lossy(&path).into_owned()
        }
        other => format!("{other:?}"),
    };
    (log.events().map(|e| name(e.op)).collect(), log.damage())
}

#[test]
fn a_record_that_its_thread_died_in_costs_only_itself() {
    let around = ["file 1", "file 3"];
    // Between the reservation and the first store.
    let (names, damage) = torn(|record| record.fill(0));
    assert_eq!(
        (names, damage.torn_records),
        (around.map(String::from).into(), 1)
    );
    // Before the state was stored.
    let (names, damage) = torn(|record| record[0] = 0);
    assert_eq!(
        (names, damage.torn_records),
        (around.map(String::from).into(), 1)
    );
    // Before the size was stored.
    let (names, damage) = torn(|record| record[4..6].fill(0));
    assert_eq!(
        (names, damage.torn_records),
        (around.map(String::from).into(), 1)
    );
    // A size that reaches beyond the chunk.
    let (names, damage) = torn(|record| record[4..6].copy_from_slice(&65_528u16.to_le_bytes()));
    assert_eq!(
        (names, damage.torn_records),
        (around.map(String::from).into(), 1)
    );
    // An operation of a later version.
    let (names, damage) = torn(|record| record[2..4].copy_from_slice(&120u16.to_le_bytes()));
    assert_eq!(
        (names, damage.torn_records, damage.unknown_records),
        (around.map(String::from).into(), 0, 1)
    );
}

#[test]
fn a_reservation_that_did_not_fit_is_no_record_and_no_loss() {
    let mut bytes = chunk(1).chunk.bytes().to_vec();
    bytes.resize(bytes.len() + 64, 0);
    let next = std::mem::offset_of!(Chunk, next);
    bytes[next..next + 8].copy_from_slice(&70_000u64.to_le_bytes());
    let mut log = Scratch::new();
    log.writer.chunk(&bytes).expect("append");
    let log = log.open();
    assert_eq!(pids(&log), [1]);
    assert!(log.damage().is_none());
}

#[test]
fn bytes_after_next_are_not_read() {
    let mut bytes = chunk(1).chunk.bytes().to_vec();
    let stale = bytes[Chunk::SIZE..].to_vec();
    bytes.extend_from_slice(&stale);
    let mut log = Scratch::new();
    log.writer.chunk(&bytes).expect("append");
    assert_eq!(pids(&log.open()), [1]);
    assert!(Record::read(&stale).is_some());
}
