//! `replay --deep` of a deep log that was cut off or damaged: the part before is usable.

use std::fs;

use backstory_abi::Chunk;
use backstory_deep::DeepLog;
use backstory_eventlog::frame::{self, FrameKind, LogPiece};
use backstory_testkit::need::needs;
use backstory_testkit::procs;

use super::Place;
use super::deep_replay::{compiled, recorded_server};
use super::deep_time::deep_log;

/// Reads lines without a buffer, and writes each with its number. The record has many chunks.
pub(super) const NUMBERS: &str = r#"
import os
number = 0
while line := os.read(0, 32):
    number += 1
    os.write(1, b"%d %s" % (number, line))
with open("result", "w") as f: f.write(str(number))
"#;

/// A place with this script, and with [`NUMBERS`] and its input. `None`: it cannot run here.
pub(super) fn run_of(script: &str) -> Option<Place> {
    if !needs("a deep log of many chunks", &["python3"]) {
        return None;
    }
    let place = Place::new();
    place.write_aged("numbers.py", NUMBERS);
    place.write_aged("script.py", script);
    let line = |n: usize| format!("{:>31}\n", n * 7919 % 100_003);
    place.write_aged("in", &(0..4000).map(line).collect::<String>());
    Some(place)
}

/// A run of [`NUMBERS`], and its deep log.
fn recorded() -> Option<(Place, Vec<u8>)> {
    let place = run_of(NUMBERS)?;
    place.deep("cat in | RECORD python3 script.py > out");
    let log = fs::read(deep_log(&place)).unwrap();
    Some((place, log))
}

/// The recorded part is equal, and the report says that it is not all.
fn is_equal_as_far_as_it_is_there(place: &Place, log: &[u8]) {
    fs::write(deep_log(place), log).unwrap();
    let Some(answer) = place.again(&[]) else {
        return;
    };
    assert_eq!(answer.status, 0, "{answer:?}");
    for part in [
        "equal where it was recorded: 1 program",
        "records of it are missing",
        "1 can lack writes behind the end of a deep record",
    ] {
        assert!(answer.err.contains(part), "{part}: {answer:?}");
    }
    assert!(!answer.err.contains(" 0 bytes compared"), "{answer:?}");
}

#[test]
fn a_cut_log_is_compared_up_to_the_cut() {
    let Some((place, log)) = recorded() else {
        return;
    };
    for length in [log.len() * 9 / 10, log.len() * 2 / 3] {
        is_equal_as_far_as_it_is_there(&place, &log[..length]);
    }
}

#[test]
fn a_damaged_log_is_compared_up_to_the_damage() {
    let Some((place, mut log)) = recorded() else {
        return;
    };
    let middle = log.len() / 2;
    log[middle] ^= 0x55;
    is_equal_as_far_as_it_is_there(&place, &log);
}

/// Answers many requests. The record has many chunks, as random bytes cannot be compressed.
const SERVER: &str = r#"
import os, socket
LISTEN
for n in range(200):
    c, _ = s.accept()
    os.getrandom(9000)
    c.sendall(b"answer %d to " % n + c.recv(100) + b"." * 4000 + b"END")
    c.close()
"#;

const CLIENT: &str = r#"
CONNECT
for n in range(200):
    with connect() as c:
        c.sendall(b"request %d" % n)
        while c.recv(10000): pass
"#;

#[test]
fn more_output_than_a_whole_request_of_a_cut_log_has_is_a_difference() {
    let Some(place) = recorded_server("a request of a cut log", SERVER, CLIENT) else {
        return;
    };
    let log = fs::read(deep_log(&place)).unwrap();
    fs::write(deep_log(&place), &log[..log.len() * 2 / 3]).unwrap();
    let Some(answer) = place.again(&["--request", "3"]) else {
        return;
    };
    let equal = answer.err.contains("equal where it was recorded: ");
    assert!(answer.status == 0 && equal, "{answer:?}");
    let other = SERVER.replace("b\"END\"", "b\"END, and more\"");
    assert_ne!(other, SERVER);
    place.write_server_as("other.py", &other);
    let changed = ["--request", "3", "--input", "server.py=other.py"];
    let answer = place.again(&changed).unwrap();
    assert_eq!(answer.status, 1, "{answer:?}");
    for part in ["different: ", "came     \", and more\""] {
        assert!(answer.err.contains(part), "{part}: {answer:?}");
    }
}

/// Reads until a file is there.
const READER: &str = r#"
import os, time
while not os.path.exists("stop"):
    with open("/dev/urandom", "rb", buffering=0) as f: f.read(100000)
    time.sleep(0.01)
"#;

/// The dates are those of the run. `crates/deep/tests/damage.rs` has how exact they are.
#[test]
fn a_cut_log_has_dates() {
    if !needs("a log that grows", &["python3"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("reader.py", READER);
    let reading = || {
        let runs = fs::read_dir(place.stage.store().join("runs")).ok()?;
        let mut files = runs.map(|entry| entry.unwrap().path());
        let file = files.find(|path| path.extension().is_some_and(|e| e == "deep"))?;
        DeepLog::open(file).ok()?.last_reading()
    };
    let mut found = None;
    std::thread::scope(|scope| {
        scope.spawn(|| place.deep("RECORD python3 reader.py"));
        let long = std::time::Duration::from_secs(120);
        procs::eventually(long, || {
            found = reading();
            found.is_some()
        });
        place.write("stop", "");
    });
    let (counter, real) = found.expect("a reading of the clocks");
    let whole = DeepLog::open(deep_log(&place)).unwrap();
    let bytes = fs::read(deep_log(&place)).unwrap();
    // The last frame is gone.
    fs::write(deep_log(&place), &bytes[..bytes.len() - 1]).unwrap();
    let cut = DeepLog::open(deep_log(&place)).unwrap();
    assert!(cut.end().is_none());
    let run = whole.header().real..=whole.end().unwrap().real;
    assert!(run.contains(&real), "{run:?} {real}");
    let time = cut.time_of(counter);
    assert!(run.contains(&time), "{run:?} {time}");
    assert!(time > whole.header().real, "{time}");
}

#[test]
fn a_file_that_was_written_behind_the_part_that_runs_again_is_unknown() {
    let place = Place::new();
    place.deep(
        "printf 'one\\ntwo\\n' | RECORD sh -c 'read a; echo $a >first; read b; echo $b >second'",
    );
    let Some(answer) = place.again(&["--to", "1"]) else {
        return;
    };
    assert_eq!(answer.status, 0, "{answer:?}");
    for part in [
        "equal where it was recorded: 1 program",
        ", 2 files not compared; nothing could be compared but the ends of the programs\n",
        "0 of 2 outputs; 2 can lack writes behind the part that ran again",
    ] {
        assert!(answer.err.contains(part), "{part}: {answer:?}");
    }
}

/// A program that reads and writes nothing, and waits for its child. Its record has many chunks.
/// The child waits for a timer of the kernel. `CALLS`: it first makes a call that is recorded.
const SILENT: &str = r#"
#include <signal.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>
static void ring(int signal)
{
    (void)signal;
}
int main(void)
{
    static char bytes[9000];
    if (fork() == 0) {
#ifdef CALLS
        if (write(1, "soon\n", 5) != 5)
            _exit(1);
#endif
        signal(SIGALRM, ring);
        alarm(3);
        pause();
        _exit(write(1, "late\n", 5) != 5);
    }
    wait(0);
    for (int n = 0; n < 20; n++)
        if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
            return 1;
    return 0;
}
"#;

/// A run of [`SILENT`] without its last chunk runs again, and all that is there is equal.
fn is_not_ended_before_its_child(options: &str) {
    let place = Place::new();
    if !compiled(&place, options, "silent", SILENT) {
        return;
    }
    place.deep("RECORD sh -c './silent; echo $?' > out");
    let log = deep_log(&place);
    let mut bytes = fs::read(&log).unwrap();
    // The only program with several chunks loses the last one.
    let chunks = frame::walk(&bytes).filter_map(|piece| match piece {
        LogPiece::Frame(frame) if frame.kind == Some(FrameKind::DeepChunk) => {
            let head = Chunk::read(&bytes[frame.payload.clone()]).unwrap();
            Some((head.seq, frame.payload.start))
        }
        _ => None,
    });
    let (seq, start) = chunks.max().unwrap();
    assert!(seq > 1, "{seq}");
    bytes[start] ^= 0x55;
    fs::write(&log, bytes).unwrap();
    // Programs behind their records are ended after half of the patience.
    let Some(answer) = place.again(&["--patience", "5"]) else {
        return;
    };
    let equal = answer.err.contains("equal where it was recorded: ");
    assert!(answer.status == 0 && equal, "{answer:?}");
}

#[test]
fn a_silent_program_is_not_ended_while_its_child_has_a_record_to_do() {
    is_not_ended_before_its_child("-DCALLS");
}

#[test]
fn a_silent_program_is_not_ended_while_its_child_waits_before_its_first_call() {
    is_not_ended_before_its_child("");
}
