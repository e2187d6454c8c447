//! Reading a hostile log ends soon, takes memory in proportion to the file, and reports the damage.

use crate::common;
use backstory_abi::{CHUNK_MAGIC, Chunk, op};
use backstory_eventlog::frame::{self, FrameKind};
use backstory_eventlog::{Log, dump};
use common::{Scratch, ThreadStream};
use std::path::Path;

fn open(path: &Path, bytes: &[u8]) -> Log {
    std::fs::write(path, bytes).expect("write");
    Log::open(path).expect("opens")
}

/// A header that promises `length` bytes, with a checksum that is wrong.
fn promise(length: u32) -> [u8; frame::HEADER] {
    let mut head = frame::header(FrameKind::Chunk, 1, length, &[]);
    head[12] ^= 1;
    head
}

#[test]
fn lengths_beyond_the_end_ask_for_no_memory() {
    let scratch = Scratch::new();
    let good = std::fs::read(scratch.path()).expect("read");
    let log = open(
        &scratch.dir.path().join("huge"),
        &[&good[..], &promise(u32::MAX)].concat(),
    );
    assert_eq!((log.damage().places, log.damage().bytes), (1, 16));
}

#[test]
fn a_million_promises_are_not_each_summed_up() {
    let scratch = Scratch::new();
    let good = std::fs::read(scratch.path()).expect("read");
    let count = 1 << 20;
    let mut bytes = good.clone();
    for left in (0..count).rev() {
        bytes.extend(promise(left * frame::HEADER as u32));
    }
    // Computing each checksum would take some eight thousand gigabytes.
    let log = open(&scratch.dir.path().join("promises"), &bytes);
    assert_eq!(log.damage().bytes, (bytes.len() - good.len()) as u64);
    assert!(!log.damage().no_header);
}

#[test]
fn a_chunk_larger_than_any_is_not_read() {
    let mut stream = ThreadStream::new(1, 1, 1);
    stream.record(op::KILL, 1, |b| {
        b.result(0);
    });
    let mut bytes = stream.chunk.bytes().to_vec();
    bytes.resize(backstory_abi::CHUNK_SIZE as usize + 8, 0);
    let mut scratch = Scratch::new();
    scratch.writer.chunk(&bytes).expect("append");
    let log = scratch.open();
    assert_eq!((log.events().count(), log.damage().unknown_frames), (0, 1));
}

#[test]
fn a_chunk_of_records_that_all_look_torn_is_read_in_one_go() {
    // At every eighth byte begins a valid record that reaches to the end, but has no string.
    let size = backstory_abi::CHUNK_SIZE as usize;
    let mut bytes = vec![0xff; size];
    for at in (Chunk::SIZE..size).step_by(8) {
        let mut word = [0u8; 8];
        word[0..2].copy_from_slice(&2u16.to_le_bytes());
        word[2..4].copy_from_slice(&op::RENAME.to_le_bytes());
        word[4..6].copy_from_slice(&(((size - at).min(65_528)) as u16 | 1).to_le_bytes());
        bytes[at..at + 8].copy_from_slice(&word);
    }
    let head = Chunk {
        magic: CHUNK_MAGIC,
        pid: 1,
        tid: 1,
        epoch: 1,
        next: size as u64,
        ..Chunk::default()
    };
    bytes[..Chunk::SIZE].copy_from_slice(&head.to_bytes());
    let mut scratch = Scratch::new();
    for _ in 0..64 {
        scratch.writer.chunk(&bytes).expect("append");
    }
    let log = scratch.open();
    assert_eq!(log.events().count(), 0);
    assert!(log.damage().torn_records > 0);
}

#[test]
fn no_name_reaches_the_terminal_as_it_is() {
    let evil = b"\x1b]0;owned\x07\x1b[2J\r\x9b31m\xc2\x9b";
    let mut stream = ThreadStream::new(1, 1, 1);
    stream.record(op::OPEN, 1, |b| {
        b.result(3).string(evil);
    });
    stream.record(op::ARGS, 2, |b| {
        b.string(evil);
    });
    stream.record(op::CONNECT, 3, |b| {
        b.address(evil);
    });
    let mut scratch = Scratch::with(|header| {
        header.id = String::from_utf8_lossy(evil).into_owned();
        header.version = header.id.clone();
        header.boot_id = header.id.clone();
    });
    scratch.add(&stream);
    let mut text = Vec::new();
    dump(&scratch.open(), &mut text).expect("memory");
    let text = String::from_utf8(text).expect("UTF-8");
    assert_eq!(
        text.matches(|c: char| c.is_control() && c != '\n').next(),
        None
    );
}
