//! The bytes of a deep log by part: each byte counts once, as what it is.
#![allow(clippy::unwrap_used)]

use backstory_abi::{Chunk, DeepRecord, deep};
use backstory_deep::{Compression, DeepHeader, DeepLog, DeepWriter, LogPart, LogParts};
use backstory_eventlog::frame::{self, FrameKind};
use backstory_testkit::deep_records::{deep_record, short_call, thread_chunk};
use std::fs;

const READ: u16 = 0;
const WRITE: u16 = 1;
const POLL: u16 = 7;
const UNAME: u16 = 63;
const READLINK: u16 = 89;
const SIGNAL_WAIT: u16 = 128;
const GETDENTS: u16 = 217;
const CLOCK_GETTIME: u16 = 228;
const EPOLL_CTL: u16 = 233;
const OPEN: u16 = 257;
const STAT: u16 = 262;
const ACCEPT: u16 = 288;
const GETRANDOM: u16 = 318;

/// Bytes of a section, by the part that they are.
const SECTIONS: [(LogPart, u16, u16, usize); 20] = [
    (LogPart::Variables, deep::BEGIN, deep::WORDS, 900),
    (LogPart::Paths, deep::DESCRIPTOR, deep::PATH, 21),
    (LogPart::Identities, deep::DESCRIPTOR, deep::IDENT, 56),
    (LogPart::Input, READ, deep::ENTERED, 300),
    (LogPart::Input, GETRANDOM, deep::ENTERED, 16),
    (LogPart::References, READ, deep::FILE, 32),
    (LogPart::Output, WRITE, deep::LEFT, 77),
    (LogPart::Digests, WRITE, deep::LEFT_DIGEST, 16),
    (LogPart::Others, EPOLL_CTL, deep::LEFT, 12),
    (LogPart::Identities, STAT, deep::ENTERED, 144),
    (LogPart::Paths, STAT, deep::PATH, 9),
    (LogPart::Paths, OPEN, deep::PATH, 11),
    (LogPart::Paths, READLINK, deep::ENTERED, 13),
    (LogPart::Listings, GETDENTS, deep::ENTERED, 480),
    (LogPart::Waits, POLL, deep::ENTERED, 8),
    (LogPart::Messages, ACCEPT, deep::ADDRESS, 15),
    (LogPart::Others, UNAME, deep::ENTERED, 390),
    (LogPart::Time, CLOCK_GETTIME, deep::ENTERED, 18),
    (LogPart::Signals, SIGNAL_WAIT, deep::ENTERED, 128),
    (LogPart::Signals, deep::SIGNAL, deep::ENTERED, 128),
];

/// The parts of which the numbers of records are a part, too.
const WITH_NUMBERS: [LogPart; 3] = [LogPart::Time, LogPart::Signals, LogPart::Beginnings];

/// A record for each section.
fn records() -> Vec<Vec<u8>> {
    let of = |(time, &(_, call, kind, length)): (u64, &(LogPart, u16, u16, usize))| {
        let bytes: Vec<u8> = (0..length).map(|at| at as u8).collect();
        short_call(call, 0, (time, 3), 0, (kind, &bytes))
    };
    (100..).zip(&SECTIONS).map(of).collect()
}

/// The bytes that sections of a part have.
fn expected(wanted: LogPart) -> u64 {
    let own = SECTIONS.iter().filter(|(part, ..)| *part == wanted);
    own.map(|(_, _, _, length)| *length as u64).sum()
}

/// The log of one chunk, in a form (`pad` of its header) of its own.
fn log_of(records: &[Vec<u8>], form: u64) -> (LogParts, backstory_deep::Volume) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.deep");
    let chunk = thread_chunk(10, 0, records);
    let mut log = DeepWriter::open(&path, &DeepHeader::default()).unwrap();
    if form == 2 {
        log.chunk(&chunk, Compression::Usual).unwrap();
    } else {
        let mut head = Chunk::read(&chunk).unwrap();
        head.pad = form;
        let records = &chunk[Chunk::SIZE..];
        let stored = match form {
            0 => records.to_vec(),
            _ => zstd::bulk::compress(records, 1).unwrap(),
        };
        let payload = [&head.to_bytes()[..], &stored].concat();
        let length = payload.len() as u32;
        let mut bytes = fs::read(&path).unwrap();
        bytes.extend(frame::header(FrameKind::DeepChunk, 1, length, &[&payload]));
        bytes.extend(payload);
        fs::write(&path, bytes).unwrap();
    }
    let log = DeepLog::open(&path).unwrap();
    (log.parts(), log.volume())
}

#[test]
fn the_parts_sum_to_the_log_before_compression_in_each_form() {
    let all = records();
    for form in [0, 1, 2] {
        let (parts, volume) = log_of(&all, form);
        assert_eq!(parts.all(), volume.records, "{form}");
        let of_io = parts.bytes(LogPart::Input) + parts.bytes(LogPart::Output);
        assert_eq!(of_io, volume.stored, "{form}");
    }
    let in_the_arena = all.concat().len() as u64;
    assert_eq!(log_of(&all, 0).0.all(), in_the_arena);
    assert_eq!(log_of(&all, 1).0, log_of(&all, 0).0);
    assert!(log_of(&all, 2).0.all() < in_the_arena);
}

#[test]
fn each_byte_counts_as_what_it_is() {
    for form in [0, 2] {
        let (parts, _) = log_of(&records(), form);
        for (part, name) in LogPart::ALL {
            let found = parts.bytes(part);
            match part {
                LogPart::Heads | LogPart::Arguments => assert!(found > 0, "{form} {name}"),
                LogPart::Rest => assert!(found <= 1, "{form} {name} {found}"),
                _ if WITH_NUMBERS.contains(&part) => {
                    assert!(found > expected(part), "{form} {name} {found}");
                }
                _ => assert_eq!(found, expected(part), "{form} {name}"),
            }
        }
    }
}

#[test]
fn numbers_of_a_record_in_the_arena_have_their_fixed_sizes() {
    let stat = short_call(STAT, 0, (1, 3), 0, (deep::ENTERED, &[7; 141]));
    let (parts, _) = log_of(&[stat], 0);
    let found = [LogPart::Heads, LogPart::Arguments, LogPart::Time].map(|part| parts.bytes(part));
    // State, flags, call and size; the head of the section; its padding.
    assert_eq!(found, [8 + 8 + 3, 28, 12]);
}

#[test]
fn arguments_and_variables_of_a_program_are_counted_apart() {
    let words = |arg: u16| {
        let head = DeepRecord {
            call: deep::BEGIN,
            ..DeepRecord::default()
        };
        let mut record = deep_record(head, &[(deep::WORDS, b"ls\0-l\0")]);
        let at = DeepRecord::SIZE + 2;
        record[at..at + 2].copy_from_slice(&arg.to_le_bytes());
        record
    };
    for form in [0, 2] {
        let (parts, _) = log_of(&[words(0), words(1), words(1)], form);
        let of = |part| parts.bytes(part);
        assert_eq!((of(LogPart::Words), of(LogPart::Variables)), (6, 12));
        assert!(of(LogPart::Beginnings) > 0 && of(LogPart::Heads) == 0);
    }
}

#[test]
fn bytes_that_no_reader_can_use_are_counted_apart() {
    let whole = short_call(READ, 0, (1, 3), 5, (deep::ENTERED, b"hello"));
    let mut unfinished = short_call(READ, 0, (2, 3), 5, (deep::ENTERED, b"other"));
    unfinished[0] = 1;
    let torn = vec![0xff; 100];
    for form in [0, 2] {
        let records = [whole.clone(), unfinished.clone(), torn.clone()];
        let (parts, volume) = log_of(&records, form);
        assert_eq!((parts.all(), volume.stored), (volume.records, 5), "{form}");
        assert_eq!(parts.bytes(LogPart::Input), 5, "{form}");
        assert!(parts.bytes(LogPart::Rest) > 100, "{form}");
    }
}
