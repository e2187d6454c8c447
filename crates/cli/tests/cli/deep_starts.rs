//! `replay --deep --request`: attempts begin in copies of the started program, or start it. The
//! verdict says how much of the work the starts were.

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
    // It needs no other request: one attempt.
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
    // The wait that ends the start belongs to neither.
    let others = number(&of["calls"]) - start - number(&request["calls"]);
    assert_eq!(others, 1, "{of}");
    // It needs another one: three attempts, of which the first one has a start.
    let of = verdict(&place, "3").unwrap();
    let request = &of["request"];
    assert_eq!(request["executions"], request["tries"], "{of}");
    let executions = number(&request["executions"]);
    assert!(executions > 1, "{of}");
    assert_eq!(
        number(&request["executed_in_copies"]),
        executions - 1,
        "{of}"
    );
    assert_eq!(
        request["executed_start_calls"], request["start_calls"],
        "{of}"
    );
    let all = number(&request["executed_calls"]);
    assert!(all > number(&request["start_calls"]), "{of}");
    assert!(all < executions * number(&of["calls"]), "{of}");
    let seconds = |name: &str| request[name].as_f64().unwrap();
    assert!(seconds("start_s") > 0.0, "{of}");
    assert_eq!(seconds("start_s"), seconds("executed_start_s"), "{of}");
    assert!(seconds("executed_start_s") < seconds("executed_s"), "{of}");
    let answer = place.again(&["--request", "3"]).unwrap();
    for said in [
        " of them in 1 start of the program",
        "2 attempts began in a copy of the started program",
    ] {
        assert!(answer.err.contains(said), "{said}: {answer:?}");
    }
}

/// Keeps values that its clients set, and tells them with a part of its own state.
const STATEFUL: &str = r#"
import ctypes, os, signal, socket, sys
LISTEN
PREPARE
lines, hits, values = open("lines"), [], {}
lines.readline(); d = os.open("lines", os.O_RDONLY); os.read(d, 3)
seed = os.urandom(4).hex()
signal.signal(signal.SIGUSR1, lambda *_: hits.append(1))
for _ in range(5):
    c, _ = s.accept()
    words = c.recv(100).split()
    os.kill(os.getpid(), signal.SIGUSR1)
    told = f"{lines.readline()!r} {os.read(d, 3)} {os.getpid()} {len(hits)} {seed} {state()}"
    if words[0] == b"set": values[words[1]] = words[2]
    c.sendall(values.get(words[1], b"nothing") + told.encode()); c.close()
"#;

/// Two requests that set values, and three that ask for them.
const ASKING: &str = r#"
CONNECT
for line in (b"set a 1", b"set b 2", b"get c", b"get b", b"get a"):
    with connect() as c:
        c.sendall(line); assert c.recv(200)
"#;

/// The verdict on the last request of such a server, with this preparation. `None`: this machine
/// has no namespaces, or no Python.
fn of_stateful(prepare: &str) -> Option<(Place, serde_json::Value)> {
    let state = match prepare.contains("def state") {
        true => "",
        false => "\ndef state(): return 0",
    };
    let server = STATEFUL.replace("PREPARE", &format!("{prepare}{state}"));
    let server = server.replacen("import ctypes", LINES, 1);
    let place = recorded_server("a server with a state", &server, ASKING)?;
    let of = verdict(&place, "5")?;
    Some((place, of))
}

/// Makes the file that the server reads.
const LINES: &str = r#"
open("lines", "w").writelines(f"{n}\n" for n in range(100))
import ctypes"#;

/// The request without what the attempts cost.
fn without_costs(of: &serde_json::Value) -> serde_json::Value {
    let mut request = of["request"].clone();
    let fields = request.as_object_mut().unwrap();
    let costs = ["start_", "execut", "copy_obstacles", "calls"];
    fields.retain(|name, _| !costs.iter().any(|cost| name.starts_with(cost)));
    request
}

#[test]
fn a_copy_has_the_files_the_number_and_the_handlers_of_a_started_program() {
    let Some((_, copied)) = of_stateful("") else {
        return;
    };
    let request = &copied["request"];
    assert!(request["executed_in_copies"].as_u64() > Some(1), "{copied}");
    assert_eq!(
        request["executed_start_calls"], request["start_calls"],
        "{copied}"
    );
    // A timer forbids copies. The search and its result are the same.
    let timer = "signal.setitimer(signal.ITIMER_REAL, 3600)";
    let (_, started) = of_stateful(timer).unwrap();
    assert_eq!(started["request"]["executed_in_copies"], 0, "{started}");
    assert_eq!(without_costs(&copied), without_costs(&started));
}

#[test]
fn an_attempt_starts_the_program_if_a_copy_would_lack_or_share_something() {
    for prepare in [
        "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()",
        "import mmap; memory = mmap.mmap(-1, 4096)",
        "import mmap; memory = mmap.mmap(-1, 4096, flags=2|32); memory.madvise(10)",
        "log = open('log', 'w'); os.remove('log')",
        "import fcntl; lock = open('log', 'w'); fcntl.flock(lock, fcntl.LOCK_EX)",
        "signal.setitimer(signal.ITIMER_PROF, 3600)",
        "event = os.eventfd(0)",
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2]); os.kill(os.getpid(), 12)",
        // A child that has ended, and one that ends with the server.
        "child = os.fork() or os._exit(0); os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)",
        "r, w = os.pipe()\nif not os.fork(): os.close(w); os.read(r, 1); os._exit(0)",
    ] {
        let Some((_, of)) = of_stateful(prepare) else {
            return;
        };
        let request = &of["request"];
        assert_eq!(request["executed_in_copies"], 0, "{prepare}: {of}");
        assert!(request["tries"].as_u64() > Some(1), "{prepare}: {of}");
    }
}

#[test]
fn an_attempt_behind_one_that_wrote_into_the_root_starts_the_program() {
    let write =
        "log = open('log', 'a')\ndef state(): log.write('x'); log.flush(); return log.tell()";
    let Some((_, of)) = of_stateful(write) else {
        return;
    };
    let request = &of["request"];
    assert!(request["tries"].as_u64() > Some(2), "{of}");
    // Each start is followed by an attempt that writes, so no copy is used.
    assert_eq!(request["executed_in_copies"], 0, "{of}");
}

#[test]
fn an_attempt_behind_one_that_changed_a_mode_or_shared_memory_starts_the_program() {
    let shared = format!("/dev/shm/backstory-test-{}", std::process::id());
    for leave in [
        format!("def state(): open('{shared}', 'a').close(); return 0"),
        "def state(): os.chmod('lines', 0o600); return 0".to_owned(),
    ] {
        let found = of_stateful(&leave);
        let _ = std::fs::remove_file(&shared);
        let Some((_, of)) = found else {
            return;
        };
        let request = &of["request"];
        assert!(request["tries"].as_u64() > Some(2), "{leave}: {of}");
        assert_eq!(request["executed_in_copies"], 0, "{leave}: {of}");
    }
}

/// A copy of the program has another value: it ends with no parent.
const UNLIKE: &str = r#"
libc = ctypes.CDLL(None); libc.prctl(1, 15, 0, 0, 0)
def state():
    found = ctypes.c_int(); libc.prctl(2, ctypes.byref(found), 0, 0, 0)
    return found.value"#;

#[test]
fn a_copy_that_differs_from_the_program_decides_nothing() {
    let Some((_, of)) = of_stateful(UNLIKE) else {
        return;
    };
    let request = &of["request"];
    assert!(request["executed_in_copies"].as_u64() > Some(0), "{of}");
    // The search was made again with a start for each attempt.
    let starts =
        request["executions"].as_u64().unwrap() - request["executed_in_copies"].as_u64().unwrap();
    assert!(starts > request["tries"].as_u64().unwrap(), "{of}");
    let (_, started) = of_stateful("signal.setitimer(signal.ITIMER_REAL, 3600)").unwrap();
    for field in ["fed", "tries"] {
        let (one, two) = (&of["request"][field], &started["request"][field]);
        assert_eq!(one, two, "{field}: {of}");
    }
}

#[test]
fn the_requests_of_a_series_share_one_start_and_each_has_its_verdict_and_its_files() {
    let write = "def state(): return 0";
    let Some((place, alone)) = of_stateful(write) else {
        return;
    };
    let answer = place.again(&["--request", "1-5", "--json"]).unwrap();
    let all: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
    let all = all.as_array().unwrap();
    assert_eq!(all.len(), 5, "{answer:?}");
    for (number, of) in all.iter().enumerate() {
        let of = &of["reconstruction"];
        assert_eq!(of["verdict"], "equal", "{number}: {of}");
        let request = &of["request"];
        let starts = request["executions"].as_u64().unwrap()
            - request["executed_in_copies"].as_u64().unwrap();
        assert_eq!(starts, u64::from(number == 0), "{number}: {of}");
    }
    let last = &all[4]["reconstruction"];
    assert_eq!(without_costs(last), without_costs(&alone));
}

/// Has all that a copy of the started server would share with the server, or would lack.
const SHARING: &str = r#"
import mmap, os, select, socket, threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
memory, log, event = mmap.mmap(-1, 4096), open("log", "w"), os.eventfd(0)
os.remove("log")
LISTEN
e = select.epoll(); e.register(s, select.EPOLLIN); e.register(event, select.EPOLLIN)
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
        "eventfd",
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
