//! `replay --deep`: attempts at another moment, of a request and of a whole run. Also the order of
//! what they feed, and a bound for those that hang.

use backstory_testkit::need::{needs, skipped};
use serde_json::Value;

use super::Place;
use super::deep_replay::{compiled, recorded_server, recorded_server_with};
use super::search::at_a_terminal;

/// Gets a moment, waits for longer than that, and says whether the moment is over. The wait and the
/// question for the time are no recorded calls. A connection without a moment is the last one.
const WAITER: &str = r#"
import os, socket, threading, time
LISTEN
lock = threading.Lock(); lock.acquire()
while True:
    c, _ = s.accept()
    moment = c.recv(100)
    if not moment: break
    lock.acquire(timeout=0.2)
    c.sendall(b"over" if time.time() > float(moment) else b"soon"); c.close()
"#;

/// Asks until the server had a moment early enough. On a busy machine, the moment can be nearly
/// over before the server has it. The server waits for 0.2 s, so the time of the answer tells that.
/// No second begins meanwhile: that would be tried first. The number of the last request is in a
/// file.
const WAITED: &str = r#"
CONNECT
number, took = 0, 1
while took > 0.23:
    while time.time() % 1 > 0.5: time.sleep(0.01)
    number += 1
    began, moment = time.monotonic(), time.time() + 0.04
    with connect() as c:
        c.sendall(b"%.6f" % moment); assert c.recv(100) == b"over"
    took = time.monotonic() - began
with open("number", "w") as f: f.write(str(number))
connect().close()
"#;

#[test]
fn a_request_that_depends_on_its_moment_is_equal_at_another_one() {
    let what = "a request at another moment";
    // The record has digests of what left, which do not say where the answers differ.
    let Some(place) = recorded_server_with("", what, WAITER, WAITED) else {
        return;
    };
    let number = std::fs::read_to_string(place.path("number")).unwrap();
    let Some(answer) = place.again(&["--request", &number, "--json"]) else {
        return;
    };
    let json: Value = serde_json::from_str(&answer.out).unwrap();
    let of = &json["reconstruction"];
    assert_eq!(of["verdict"], "equal", "{answer:?}");
    let request = &of["request"];
    // The recorded time, 2 ms later, 2 ms earlier, 50 ms later.
    assert_eq!(request["clock_shift_ns"], 50_000_000, "{request}");
    assert_eq!(request["tries"], 4, "{request}");
    assert_eq!(request["fed"], serde_json::json!([]), "{request}");
    let answer = place.again(&["--request", &number]).unwrap();
    for part in ["4 attempts", "the clock was shifted by 50 ms"] {
        assert!(answer.err.contains(part), "{part}: {answer:?}");
    }
    // With a smaller bound, the moment is not found.
    let few = place.again(&["--request", &number, "--tries", "3"]);
    let few = few.unwrap();
    assert_eq!(few.status, 1, "{few:?}");
}

/// Answers with a date, which it keeps for five seconds.
const DATE_KEEPER: &str = r#"
import os, socket, time
LISTEN
kept, until = None, 0
while True:
    c, _ = s.accept()
    if not c.recv(100): break
    if time.monotonic() > until:
        kept = time.strftime("Date: %a, %d %b %Y %H:%M:%S GMT", time.gmtime())
        until = time.monotonic() + 5
    c.sendall(kept.encode()); c.close()
"#;

/// Asks in the middle of a second, and again in that of the next one. On a busy machine, a request
/// can be later, and both are made again. The number of the last request is in a file.
const DATE_KEEPER_CLIENT: &str = r#"
CONNECT
def ask():
    before = int(time.time())
    with connect() as c:
        c.sendall(b"date"); c.recv(100)
    return before if before == int(time.time()) else -1
number = 0
while True:
    time.sleep((1.4 - time.time() % 1) % 1)
    first = ask(); time.sleep(1)
    second = ask(); number += 2
    if first >= 0 and second == first + 1: break
    time.sleep(6)
with open("number", "w") as f: f.write(str(number))
connect().close()
"#;

#[test]
fn a_request_that_differs_in_a_kept_date_is_equal_at_that_date_before_others_are_fed() {
    let what = "a request with a kept date";
    let Some(place) = recorded_server(what, DATE_KEEPER, DATE_KEEPER_CLIENT) else {
        return;
    };
    let number = std::fs::read_to_string(place.path("number")).unwrap();
    let Some(report) = place.report(&["--request", &number], 0) else {
        return;
    };
    let of = &report["reconstruction"];
    assert_eq!(of["verdict"], "equal", "{of:#}");
    let request = &of["request"];
    assert_eq!(request["clock_shift_ns"], -1_000_000_000, "{request}");
    assert_eq!(request["tries"], 2, "{request}");
    assert_eq!(request["fed"], serde_json::json!([]), "{request}");
}

/// A thread for each connection works for a while, and answers with a date. The first thread looks
/// for connections with a timeout. A connection without a question is the last one.
const LOOKER: &str = r#"
import os, select, socket, threading, time
LISTEN
def serve(c):
    if not c.recv(100):
        # The thread of the last answer may have yet to log it.
        time.sleep(1); os._exit(0)
    sum(range(3_000_000))
    c.sendall(time.strftime("%Y-%m-%d %H:%M:%S").encode()); c.close()
while True:
    if select.select([s], [], [], 0.5)[0]: threading.Thread(target=serve, args=s.accept()[:1]).start()
"#;

/// Asks until the answer is of the second of the question, as it is unless the machine is busy. The
/// number of the last request is in a file.
const LOOKER_CLIENT: &str = r#"
CONNECT
number, answer, asked = 0, None, ""
while answer != asked:
    time.sleep((1.2 - time.time() % 1) % 1)
    number, asked = number + 1, time.strftime("%Y-%m-%d %H:%M:%S")
    with connect() as c:
        c.sendall(b"date"); answer = c.recv(100).decode()
with open("number", "w") as f: f.write(str(number))
connect().close()
"#;

#[test]
fn waits_of_another_thread_do_not_set_the_clock_behind_the_answer_to_a_request() {
    let what = "a thread that waits while another one answers";
    let Some(place) = recorded_server(what, LOOKER, LOOKER_CLIENT) else {
        return;
    };
    let number = std::fs::read_to_string(place.path("number")).unwrap();
    // How often the first thread waits meanwhile is another number each time.
    for _ in 0..3 {
        let Some(report) = place.report(&["--request", &number], 0) else {
            return;
        };
        let of = &report["reconstruction"];
        assert_eq!(of["verdict"], "equal", "{of:#}");
        assert_eq!(of["request"]["tries"], 1, "{of:#}");
    }
}

/// Answers with random numbers of three kinds, which each request draws.
const DRAWER: &str = r#"
import os, socket
LISTEN
device = os.open("/dev/urandom", os.O_RDONLY)
os.urandom(4), os.read(device, 4)
for n in range(5):
    c, _ = s.accept()
    c.recv(100)
    numbers = [os.urandom(4), os.read(device, 4)]
    with open("/dev/urandom", "rb", buffering=0) as f: numbers.append(f.read(4))
    c.sendall(b"".join(numbers).hex().encode()); c.close()
"#;

const FIVE_ASKERS: &str = r#"
CONNECT
for n in range(5):
    with connect() as c:
        c.sendall(b"draw"); assert len(c.recv(100)) == 24
"#;

/// Draws for several requests at the same time. The first one draws last.
const THREADED_DRAWER: &str = r#"
import os, socket, threading, time
LISTEN
device = os.open("/dev/urandom", os.O_RDONLY)
def serve(c):
    wait = float(c.recv(100))
    time.sleep(wait)
    c.sendall((os.urandom(4) + os.read(device, 4)).hex().encode()); c.close()
threads = []
for n in range(3):
    threads.append(threading.Thread(target=serve, args=(s.accept()[0],)))
    threads[-1].start()
for one in threads: one.join()
"#;

const THREE_ASKERS: &str = r#"
CONNECT
waits = [b"0.9", b"0.6", b"0.3"]
all = [connect() for wait in waits]
for c, wait in zip(all, waits): c.sendall(wait)
for c in all: assert len(c.recv(100)) == 16
"#;

/// Each request of a recorded server is equal, alone and at the first attempt.
fn each_is_equal_alone(server: &str, client: &str, count: usize) {
    let Some(place) = recorded_server("random numbers of a request", server, client) else {
        return;
    };
    for number in 1..=count {
        let Some(answer) = place.again(&["--request", &number.to_string(), "--json"]) else {
            return;
        };
        let json: Value = serde_json::from_str(&answer.out).unwrap();
        let of = &json["reconstruction"];
        assert_eq!(of["verdict"], "equal", "{number}: {answer:?}");
        let request = &of["request"];
        assert_eq!(request["tries"], 1, "{number}: {request}");
        assert_eq!(request["fed"], serde_json::json!([]), "{number}: {request}");
    }
}

#[test]
fn a_request_alone_gets_the_random_bytes_that_it_had() {
    each_is_equal_alone(DRAWER, FIVE_ASKERS, 5);
}

#[test]
fn requests_that_overlap_in_time_do_not_get_the_random_bytes_of_each_other() {
    each_is_equal_alone(THREADED_DRAWER, THREE_ASKERS, 3);
}

/// A process beside the server counts minutes, and each answer has their number. The server waits
/// for that process without a call.
const MINUTES: &str = r#"
import mmap, os, select, socket
LISTEN
minutes, (r, w) = mmap.mmap(-1, 8), os.pipe()
if os.fork() == 0:
    os.close(w); os.getpid(); minutes[1] = 1
    while not select.select([r], [], [], 60)[0]: minutes[0] += 1
    os._exit(0)
os.close(r)
while not minutes[1]: pass
for n in range(2):
    select.select([s], [], [])
    c, _ = s.accept()
    c.recv(100); c.sendall(b"minute %02d" % minutes[0]); c.close()
"#;

const MINUTES_CLIENT: &str = r#"
CONNECT
for n in range(2):
    with connect() as c:
        c.sendall(b"now"); assert c.recv(100) == b"minute 00"
"#;

#[test]
fn a_minute_of_a_process_beside_the_server_is_not_up_within_a_request() {
    each_is_equal_alone(MINUTES, MINUTES_CLIENT, 2);
}

/// Reads a line, works for a while without a call, and prints a number that is made of the second.
/// The counter is no clock that the replay answers for.
const SEEDED: &str = r#"
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>
int main(void)
{
    char line[16];
    if (read(0, line, sizeof line) < 1)
        return 1;
    unsigned long long began = __rdtsc();
    while (__rdtsc() - began < (1ULL << 30))
        ;
    unsigned long long seed = (unsigned long long)time(0) * 0x9e3779b97f4a7c15ULL;
    printf("%016llx\n", seed ^ seed >> 31);
    return 0;
}
"#;

/// A line shortly before the next second.
const LATE: &str = "import time; time.sleep((1.85 - time.time() % 1) % 1); print('go')";

/// Records the program until a second begins in its work: on a busy machine the line can be late.
/// The report on the execution of all of the run. `None`: something is missing here.
fn seeded(more: &[&str]) -> Option<(Place, Value)> {
    for _ in 0..5 {
        let place = Place::new();
        if !needs("a line at a moment", &["python3"]) || !compiled(&place, "", "seeded", SEEDED) {
            return None;
        }
        place.write_aged("late.py", LATE);
        place.deep("python3 late.py | RECORD ./seeded > out");
        let answer = place.again(&[&["--json"], more].concat())?;
        let json: Value = serde_json::from_str(&answer.out).unwrap();
        let of = &json["reconstruction"];
        if of["tries"] != 1 || of["verdict"] != "equal" {
            return Some((place, json));
        }
    }
    panic!("no second began while the program worked");
}

#[test]
fn a_run_whose_bytes_depend_on_a_second_that_began_in_its_work_is_equal_at_another_moment() {
    let Some((place, json)) = seeded(&[]) else {
        return;
    };
    let of = &json["reconstruction"];
    assert_eq!(of["verdict"], "equal", "{json:#}");
    assert_eq!(of["tries"], 2, "{json:#}");
    let shift = of["clock_shift_ns"].as_i64().unwrap();
    assert!((1..1_000_000_000).contains(&shift), "{json:#}");
    let answer = place.again(&[]).unwrap();
    assert_eq!(answer.status, 0, "{answer:?}");
    for part in ["equal: ", "2 attempts", "the clock was shifted by "] {
        assert!(answer.err.contains(part), "{part}: {answer:?}");
    }
}

#[test]
fn a_run_that_is_equal_at_another_moment_is_different_without_further_attempts() {
    let Some((place, json)) = seeded(&["--tries", "1"]) else {
        return;
    };
    let of = &json["reconstruction"];
    assert_eq!(of["verdict"], "different", "{json:#}");
    assert_eq!(of["tries"], 1, "{json:#}");
    assert_eq!(of["clock_shift_ns"], 0, "{json:#}");
    // Another program says nothing about the moments of the recorded one.
    let other = SEEDED.replace("0x9e37", "0x9e36");
    assert!(compiled(&place, "", "other", &other));
    let other = place.path("other");
    let answer = place.again(&["--binary", &other, "--json"]).unwrap();
    let json: Value = serde_json::from_str(&answer.out).unwrap();
    let of = &json["reconstruction"];
    assert_eq!(of["verdict"], "different", "{json:#}");
    assert_eq!(of["tries"], 1, "{json:#}");
}

#[test]
fn a_run_that_is_equal_at_no_moment_is_different_and_has_the_recorded_time() {
    let place = Place::new();
    let counted = SEEDED.replace("time(0) *", "(time(0) + began) *");
    assert_ne!(counted, SEEDED);
    if !needs("a line at a moment", &["python3"]) || !compiled(&place, "", "seeded", &counted) {
        return;
    }
    place.write_aged("late.py", LATE);
    place.deep("python3 late.py | RECORD ./seeded > out");
    let Some(json) = place.report(&["--tries", "3"], 1) else {
        return;
    };
    let of = &json["reconstruction"];
    assert_eq!(of["verdict"], "different", "{json:#}");
    assert_eq!(of["clock_shift_ns"], 0, "{json:#}");
    assert!(of["tries"].as_u64().unwrap() <= 3, "{json:#}");
}

/// Records a program, and writes a changed one that waits for itself without an end. False: Python
/// is missing.
fn has_hanging(place: &Place) -> bool {
    if !needs("a reconstruction that hangs", &["python3"]) {
        return false;
    }
    place.write_aged("line.py", "print(input())\n");
    place.deep("echo one | RECORD python3 line.py > out");
    // A module that the recorded program has, too.
    let other = "import _thread; lock = _thread.allocate_lock(); lock.acquire(); lock.acquire()\n";
    place.write("other.py", other);
    true
}

#[test]
fn programs_that_hang_are_ended_after_the_patience_and_the_report_says_so() {
    let place = Place::new();
    if !has_hanging(&place) {
        return;
    }
    let changed = ["--input", "line.py=other.py", "--patience", "2"];
    let Some(answer) = place.again(&changed) else {
        return;
    };
    assert_eq!(answer.status, 1, "{answer:?}");
    // Not the 30 s that are usual.
    let said = "no process made a call or used the processor for 2 s, so all were ended";
    assert!(answer.err.contains(said), "{answer:?}");
    assert!(answer.err.contains("different: "), "{answer:?}");
    let answer = place.again(&[&changed[..], &["--json"]].concat()).unwrap();
    let json: Value = serde_json::from_str(&answer.out).unwrap();
    let stopped = json["reconstruction"]["stopped"].as_str();
    assert_eq!(stopped, Some(said), "{json}");
}

#[test]
fn at_a_terminal_a_wait_for_programs_is_shown() {
    let place = Place::new();
    if !needs("a terminal", &["script", "stty"]) || !has_hanging(&place) {
        return;
    }
    let line = "stty cols 100 rows 30; \
                $B replay deep --deep --output-dir again --input line.py=other.py --patience 3";
    let shown = at_a_terminal(&place, line, &[]);
    if shown.contains("namespace") {
        return skipped("a terminal", &shown);
    }
    assert!(shown.contains("running the programs again"), "{shown}");
    assert!(shown.contains("so all were ended"), "{shown}");
}

/// Works for a while before it answers.
const WORKER: &str = r#"
import socket, os
LISTEN
c, _ = s.accept()
c.recv(100); sum(range(100_000_000))
c.sendall(b"answer"); c.close()
"#;

const ASKER: &str = r#"
CONNECT
with connect() as c:
    c.sendall(b"question"); assert c.recv(100)
"#;

#[test]
fn at_a_terminal_an_attempt_has_its_number_and_a_bar_up_to_the_bound() {
    let place = Place::new();
    if !needs("a terminal", &["script", "stty", "python3"]) {
        return;
    }
    place.deep_server(WORKER, ASKER);
    let line = "stty cols 100 rows 30; \
                $B replay deep --deep --output-dir again --request 1 --tries 9";
    let shown = at_a_terminal(&place, line, &[]);
    if shown.contains("namespace") {
        return skipped("a terminal", &shown);
    }
    // No attempt ended so far, so the bar is empty.
    let attempt = "attempt 1 of at most 9: the request alone [  ";
    assert!(shown.contains(attempt), "{shown}");
    assert!(shown.contains("equal"), "{shown}");
}

/// Answers each word with all words so far, and marks of connections. It has one process and
/// `epoll`.
const NOTER: &str = r#"
import os, select, socket
LISTEN
e = select.epoll(); e.register(s, select.EPOLLIN)
noted, open_ones, ended = b"", {}, 0
while ended < 4:
    for fd, _ in e.poll():
        if fd == s.fileno():
            ACCEPT
            continue
        word = open_ones[fd].recv(100)
        if not word:
            e.unregister(fd); open_ones.pop(fd).close(); ended += 1
        else:
            noted += word; open_ones[fd].sendall(noted)
"#;

/// The lines of a server that accepts one connection.
const ACCEPT_ONE: &str = r#"c, _ = s.accept(); noted += b"+"
            open_ones[c.fileno()] = c; e.register(c, select.EPOLLIN)
"#;

/// Those of one that accepts until there is no connection.
const ACCEPT_ALL: &str = r#"s.setblocking(False)
            while True:
                try: c, _ = s.accept(); noted += b"+"
                except BlockingIOError: break
                open_ones[c.fileno()] = c; e.register(c, select.EPOLLIN)
"#;

/// Asks on one connection that it keeps, and on others in between.
const NOTER_CLIENT: &str = r#"
CONNECT
def ask(c, word): c.sendall(word); assert c.recv(100)
kept = connect()
for word in [b"a", b"b", b"c", b"d", b"e", b"f"]:
    if word in b"adf": ask(kept, word); continue
    with connect() as c: ask(c, word)
kept.close()
"#;

#[test]
fn requests_of_a_kept_connection_come_behind_earlier_ones_of_other_connections() {
    let what = "requests of several connections in their order";
    for accept in [ACCEPT_ONE, ACCEPT_ALL] {
        let server = NOTER.replace("ACCEPT\n", accept);
        let Some(place) = recorded_server(what, &server, NOTER_CLIENT) else {
            return;
        };
        let Some(report) = place.report(&["--request", "6"], 0) else {
            return;
        };
        let of = &report["reconstruction"];
        assert_eq!(of["verdict"], "equal", "{accept}: {of:#}");
        let fed = serde_json::json!([1, 2, 3, 4, 5]);
        assert_eq!(of["request"]["fed"], fed, "{accept}: {of:#}");
    }
}

/// Answers each word with all words so far, and marks of connections that came and ended. It takes
/// a new connection before all else that has come, and the rest in the order of the kernel.
const ORDERLY: &str = r#"
import os, select, socket, time
LISTEN
e = select.epoll(); e.register(s, select.EPOLLIN)
noted, open_ones, ended = b"", {}, 0
while ended < 3:
    for fd, _ in sorted(e.poll(), key=lambda one: one[0] != s.fileno()):
        if fd == s.fileno():
            c, _ = s.accept(); noted += b"+"
            open_ones[c.fileno()] = c; e.register(c, select.EPOLLIN)
            continue
        word = open_ones[fd].recv(100)
        if not word:
            e.unregister(fd); open_ones.pop(fd).close(); ended += 1; noted += b"-"
        else:
            noted += word; open_ones[fd].sendall(noted)
        if word == b"wait": time.sleep(0.3)
"#;

/// While the server waits, a connection ends and another one begins. Later, words come on two
/// connections. The kernel has the one with the larger descriptor first.
const ORDERLY_CLIENT: &str = r#"
CONNECT
def ask(c, word): c.sendall(word); assert c.recv(100)
a = connect(); ask(a, b"wait"); a.close()
b = connect(); ask(b, b"b")
c = connect(); ask(c, b"c"); ask(b, b"wait"); c.sendall(b"d"); b.sendall(b"e")
for one in [b, c]: assert one.recv(100); one.close()
"#;

#[test]
fn events_of_one_wait_come_together_and_in_their_order() {
    let what = "events of one wait";
    let Some(place) = recorded_server(what, ORDERLY, ORDERLY_CLIENT) else {
        return;
    };
    for (number, fed) in [("2", vec![1]), ("6", vec![1, 2, 3, 4, 5])] {
        let Some(report) = place.report(&["--request", number], 0) else {
            return;
        };
        let of = &report["reconstruction"];
        assert_eq!(of["verdict"], "equal", "{number}: {of:#}");
        let fed = serde_json::json!(fed);
        assert_eq!(of["request"]["fed"], fed, "{number}: {of:#}");
    }
}

/// Makes a second worker when the first one has served a request.
const WORKERS: &str = r#"
import os, socket
LISTEN
r, w = os.pipe()
for n in range(2):
    if os.fork() == 0:
        c, _ = s.accept()
        c.recv(100); c.sendall(b"from a worker"); c.close()
        os.write(w, b"x"); os._exit(0)
    os.read(r, 1)
os.wait(); os.wait()
"#;

const WORKERS_CLIENT: &str = r#"
CONNECT
for n in range(2):
    with connect() as c:
        c.sendall(b"question"); assert c.recv(100)
"#;

#[test]
fn a_worker_that_was_made_while_the_server_served_is_made_for_its_request_alone() {
    each_is_equal_alone(WORKERS, WORKERS_CLIENT, 2);
}

/// Has another process write a file, and answers with it.
const ERRAND: &str = r#"
import os, socket
LISTEN
(asked, ask), (told, tell) = os.pipe(), os.pipe()
if os.fork() == 0:
    os.close(ask); os.read(asked, 1)
    sum(range(5_000_000))
    with open("errand", "w") as f: f.write("done")
    os.write(tell, b"x"); os._exit(0)
c, _ = s.accept()
c.recv(100); os.write(ask, b"x"); os.read(told, 1)
with open("errand") as f: c.sendall(f.read().encode())
c.close(); os.wait()
"#;

const ERRAND_CLIENT: &str = r#"
CONNECT
with connect() as c:
    c.sendall(b"question"); assert c.recv(100) == b"done"
"#;

#[test]
fn a_process_that_waits_for_another_one_gets_its_bytes_when_they_are_written() {
    each_is_equal_alone(ERRAND, ERRAND_CLIENT, 1);
}

/// Makes a token of an address, and ends a connection that comes with another one. Then it waits
/// for the next connection.
const TOKENS: &str = r#"
import os, socket
LISTEN
for n in range(2):
    c, _ = s.accept()
    token = None
    while word := c.recv(100):
        if token is None and word == b"login": token = b"%x" % id(object()); c.sendall(token)
        elif token is None: c.sendall(b"refused")
        elif word == token: c.sendall(b"welcome")
        else: break
    c.close()
"#;

const TOKENS_CLIENT: &str = r#"
CONNECT
with connect() as c:
    c.sendall(b"login"); c.sendall(c.recv(100)); assert c.recv(100) == b"welcome"
connect().close()
"#;

#[test]
fn of_attempts_that_differ_one_with_the_earlier_requests_of_the_connection_is_reported() {
    let what = "the report of a request behind another one";
    let Some(place) = recorded_server(what, TOKENS, TOKENS_CLIENT) else {
        return;
    };
    let Some(report) = place.report(&["--request", "2"], 1) else {
        return;
    };
    // Alone, the request is refused.
    let request = &report["reconstruction"]["request"];
    assert_eq!(request["fed"], serde_json::json!([1]), "{report:#}");
    assert!(request["differs_before"].is_u64(), "{report:#}");
}
