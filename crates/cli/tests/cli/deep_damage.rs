//! Deep logs with a damaged frame, or cut before one: each command that reads them says so, and
//! what is missing is no difference.

use std::fs;
use std::ops::Range;

use backstory_abi::Chunk;
use backstory_eventlog::frame::{self, FrameKind, LogPiece};

use super::Place;
use super::deep_replay::recorded_server;
use super::deep_time::deep_log;

/// Fills chunks before its first wait, and then answers requests.
const SERVER: &str = r#"
import os, socket
for n in range(60):
    with open("/dev/urandom", "rb", buffering=0) as f: f.read(1500)
LISTEN
for n in range(100):
    c, _ = s.accept()
    c.sendall(b"answer %d to " % n + c.recv(100) + b"." * 2000)
    c.close()
"#;

const CLIENT: &str = r#"
CONNECT
for n in range(100):
    with connect() as c:
        c.sendall(b"request %d" % n)
        while c.recv(10000): pass
"#;

/// A frame: its kind, and the places of all of it and of its payload.
type FramePlace = (FrameKind, Range<usize>, Range<usize>);

fn frames(log: &[u8]) -> Vec<FramePlace> {
    let mut found = Vec::new();
    for piece in frame::walk(log) {
        let LogPiece::Frame(frame) = piece else {
            panic!("{piece:?}");
        };
        let payload = frame.payload;
        let whole = payload.start - frame::HEADER..payload.end;
        found.push((frame.kind.unwrap(), whole, payload));
    }
    found
}

/// A server with requests in a log of several chunks, and the log.
fn recorded() -> Option<(Place, Vec<u8>)> {
    let place = recorded_server("a damaged deep log", SERVER, CLIENT)?;
    let log = fs::read(deep_log(&place)).unwrap();
    let chunks = frames(&log);
    let chunks = chunks
        .iter()
        .filter(|(kind, ..)| *kind == FrameKind::DeepChunk);
    assert!(chunks.count() > 3);
    Some((place, log))
}

/// The log with a byte changed in the middle of a payload.
fn damaged(log: &[u8], payload: &Range<usize>) -> Vec<u8> {
    let mut bytes = log.to_vec();
    bytes[payload.start.midpoint(payload.end)] ^= 0x55;
    bytes
}

/// True if the text says that the deep log cannot be read in part.
fn is_said(text: &str) -> bool {
    let says = ["the deep log is damaged", "the deep log has no end"];
    says.iter().any(|says| text.contains(says))
}

#[test]
fn a_byte_changed_in_any_frame_is_said_by_each_command_that_reads_the_log() {
    let Some((place, log)) = recorded() else {
        return;
    };
    assert_eq!(place.run(&["store", "verify"]).status, 0);
    for (kind, _, payload) in frames(&log) {
        let path = deep_log(&place);
        fs::write(&path, damaged(&log, &payload)).unwrap();
        let requests = place.run(&["requests", "deep", "--all"]);
        assert!(is_said(&requests.err), "{kind:?}: {requests:?}");
        let scene = place.run(&["scene", "127.0.0.1"]);
        let said = [scene.out.as_str(), &scene.err].concat();
        assert!(is_said(&said), "{kind:?}: {scene:?}");
        let shown = place.run(&["show", "deep"]);
        assert!(is_said(&shown.out), "{kind:?}: {shown:?}");
        let verified = place.run(&["store", "verify"]);
        assert_eq!(verified.status, 1, "{kind:?}: {verified:?}");
        let name = path.file_name().unwrap().to_str().unwrap();
        let is_named = verified.out.lines().any(|line| line.contains(name));
        assert!(is_named && is_said(&verified.out), "{kind:?}: {verified:?}");
    }
}

#[test]
fn a_replay_of_a_damaged_log_says_so_and_finds_no_difference_by_it() {
    let Some((place, log)) = recorded() else {
        return;
    };
    for (kind, _, payload) in frames(&log) {
        fs::write(deep_log(&place), damaged(&log, &payload)).unwrap();
        let Some(answer) = place.again(&[]) else {
            return;
        };
        assert!(is_said(&answer.err), "{kind:?}: {answer:?}");
        let has_no_start = answer.err.contains("no program with its start");
        assert!(
            answer.status == 0 || has_no_start,
            "{kind:?} at {payload:?}: {answer:?}"
        );
    }
    // Without the last chunk, nothing in the stream tells that requests are missing.
    let mut chunks = frames(&log);
    chunks.retain(|(kind, ..)| *kind == FrameKind::DeepChunk);
    let (_, _, last) = chunks.last().unwrap();
    fs::write(deep_log(&place), damaged(&log, last)).unwrap();
    let answer = place.again(&[]).unwrap();
    let equal = "equal where it was recorded: 1 program";
    assert!(answer.err.contains(equal), "{answer:?}");
    let searched = place.run(&["when", "--run", "deep", "nowhere"]);
    assert!(is_said(&searched.err), "{searched:?}");
}

#[test]
fn a_log_cut_before_any_frame_is_compared_up_to_there() {
    let Some((place, log)) = recorded() else {
        return;
    };
    for (_, whole, _) in frames(&log).into_iter().skip(1) {
        fs::write(deep_log(&place), &log[..whole.start]).unwrap();
        let Some(answer) = place.again(&[]) else {
            return;
        };
        assert!(is_said(&answer.err), "{whole:?}: {answer:?}");
        if answer.err.contains("no program with its start") {
            continue;
        }
        assert_eq!(answer.status, 0, "{whole:?}: {answer:?}");
        let equal = answer
            .err
            .contains("equal where it was recorded: 1 program");
        assert!(equal, "{whole:?}: {answer:?}");
        assert!(!answer.err.contains("stopped"), "{whole:?}: {answer:?}");
    }
}

#[test]
fn a_process_of_a_log_without_its_header_is_either_deep_or_shallow() {
    let Some((place, log)) = recorded() else {
        return;
    };
    let (_, _, header) = frames(&log).swap_remove(0);
    fs::write(deep_log(&place), damaged(&log, &header)).unwrap();
    let shown = place.run(&["show", "deep"]);
    assert!(shown.out.contains("1 process is deep"), "{shown:?}");
    assert!(!shown.out.contains("shallow"), "{shown:?}");
    // The dates are those of the run's log.
    let listed = place.run(&["requests", "deep"]);
    assert!(!listed.out.contains(" min "), "{listed:?}");
}

#[test]
fn a_program_whose_starter_is_lost_need_not_start_again() {
    let place = Place::new();
    place.write_aged("in", "one\n");
    place.deep("RECORD sh -c 'cat in; cat in; true' > all");
    let mut log = fs::read(deep_log(&place)).unwrap();
    let mut chunks = frames(&log);
    chunks.retain(|(kind, ..)| *kind == FrameKind::DeepChunk);
    let head = |payload: &Range<usize>| Chunk::read(&log[payload.clone()]).unwrap();
    let heads: Vec<Chunk> = chunks.iter().map(|(_, _, payload)| head(payload)).collect();
    let first = heads.iter().min_by_key(|head| head.epoch).unwrap().pid;
    for ((_, _, payload), head) in chunks.iter().zip(&heads) {
        if head.pid == first {
            log[payload.end - 1] ^= 0x55;
        }
    }
    fs::write(deep_log(&place), &log).unwrap();
    let Some(answer) = place.again(&[]) else {
        return;
    };
    let behind = "was not started again: the record of the program that started it ends before";
    for part in ["equal where it was recorded: ", behind] {
        assert!(answer.err.contains(part), "{part}: {answer:?}");
    }
    let has_blank = answer.err.contains("   was not started again");
    assert!(!has_blank, "{answer:?}");
}
