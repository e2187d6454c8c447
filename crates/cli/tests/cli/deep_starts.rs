//! `replay --deep --request`: each attempt starts the program, and the verdict says how much of the
//! work that was.

use super::Place;
use super::deep_replay::{KEEPER, KEEPER_CLIENT, recorded_server};

/// The part of the answer about one request. `None`: this machine has no namespaces.
fn verdict(place: &Place, number: &str) -> Option<serde_json::Value> {
    let answer = place.again(&["--request", number, "--json"])?;
    let json: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
    let of = json["reconstruction"].clone();
    assert_eq!(of["verdict"], "equal", "{answer:?}");
    Some(of)
}

#[test]
fn the_verdict_counts_the_calls_and_the_time_of_all_attempts_and_of_their_starts() {
    let what = "requests that depend on others";
    let Some(place) = recorded_server(what, KEEPER, KEEPER_CLIENT) else {
        return;
    };
    let number = |value: &serde_json::Value| value.as_u64().unwrap();
    // It needs no other request: one attempt. All of its calls belong to the start or to it.
    let Some(of) = verdict(&place, "1") else {
        return;
    };
    let request = &of["request"];
    assert_eq!(request["executions"], 1, "{of}");
    assert_eq!(request["executed_calls"], of["calls"], "{of}");
    assert_eq!(
        request["executed_start_calls"], request["start_calls"],
        "{of}"
    );
    let start = number(&request["start_calls"]);
    assert!(start > 0, "{of}");
    assert_eq!(
        start + number(&request["calls"]),
        number(&of["calls"]),
        "{of}"
    );
    // It needs another one: three attempts, each with a start.
    let of = verdict(&place, "3").unwrap();
    let request = &of["request"];
    assert_eq!(request["executions"], request["tries"], "{of}");
    assert!(number(&request["executions"]) > 1, "{of}");
    let (all, in_starts) = (
        number(&request["executed_calls"]),
        number(&request["executed_start_calls"]),
    );
    assert!(all > number(&of["calls"]), "{of}");
    assert!(
        in_starts > number(&request["start_calls"]) && in_starts < all,
        "{of}"
    );
    let seconds = |name: &str| request[name].as_f64().unwrap();
    // A start is part of all starts, and these are part of all executions.
    assert!(seconds("start_s") > 0.0, "{of}");
    assert!(seconds("start_s") < seconds("executed_start_s"), "{of}");
    assert!(seconds("executed_start_s") < seconds("executed_s"), "{of}");
    let answer = place.again(&["--request", "3"]).unwrap();
    let said = " starts of the program";
    assert!(answer.err.contains(said), "{said}: {answer:?}");
}

/// Has all that a copy of the started server would share with the server, or would lack.
const SHARING: &str = r#"
import mmap, os, select, socket, threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
memory, log = mmap.mmap(-1, 4096), open("log", "w")
LISTEN
e = select.epoll(); e.register(s, select.EPOLLIN)
for n in range(2):
    e.poll(); c, _ = s.accept()
    c.sendall(c.recv(100)); c.close()
"#;

const TWO_CONNECTIONS: &str = r#"
CONNECT
for line in (b"one", b"two"):
    with connect() as c:
        c.sendall(line); assert c.recv(100)
"#;

#[test]
fn the_verdict_names_the_obstacles_to_a_copy_of_the_started_program() {
    let what = "a server with threads";
    let Some(place) = recorded_server(what, SHARING, TWO_CONNECTIONS) else {
        return;
    };
    let Some(of) = verdict(&place, "2") else {
        return;
    };
    let all = of["request"]["copy_obstacles"].to_string();
    for part in [
        "2 threads",
        "shared memory",
        "open for writing: ",
        "/log",
        "eventpoll",
    ] {
        assert!(all.contains(part), "{part}: {all}");
    }
}

/// Makes a child that computes, and looks until that has ended. Its handler then makes a helper.
/// Behind that, it makes a child for its connection.
const WITH_HELPER: &str = r#"
import os, select, signal, socket, time
helper = 0
def ended(*_):
    global helper
    if not helper:
        helper = os.fork()
        if not helper: os.getppid(); signal.pause()
def signals(how): signal.pthread_sigmask(how, [signal.SIGCHLD])
signal.signal(signal.SIGCHLD, ended); signals(signal.SIG_BLOCK)
child = os.fork()
if not child:
    os.getppid()
    for _ in range(15_000_000): pass
    os._exit(0)
def state(): return open(f"/proc/{child}/stat", "rb").read().split()[2]
while state() != b"Z": time.sleep(0.01)
signals(signal.SIG_UNBLOCK)
LISTEN
select.select([s], [], []); c, _ = s.accept()
if not os.fork():
    c.sendall(c.recv(100)); os._exit(0)
c.close(); time.sleep(1); os.kill(helper, signal.SIGKILL)
"#;

const ONE_CONNECTION: &str = r#"
CONNECT
with connect() as c:
    c.sendall(b"one"); assert c.recv(100) == b"one"
"#;

#[test]
fn a_connection_comes_behind_the_end_of_a_child_that_computes_for_longer_than_in_the_record() {
    let what = "a child that ended before a connection";
    let Some(place) = recorded_server(what, WITH_HELPER, ONE_CONNECTION) else {
        return;
    };
    // The replay has the recorded state of the child. So the server is ready before the child ends.
    let Some(answer) = place.again(&["--request", "1", "--tries", "1"]) else {
        return;
    };
    assert_eq!(answer.status, 0, "{answer:?}");
    assert!(answer.err.contains("equal: "), "{answer:?}");
}
