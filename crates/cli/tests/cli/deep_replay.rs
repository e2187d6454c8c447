//! `replay --deep`: a program runs again with all that it received.

use std::fs;

use backstory_testkit::need::{needs, skipped};
use backstory_testkit::program;
use serde_json::Value;

use super::deep_equal::is_equal;
use super::{Answer, Place};

/// The lines of a server that listens, and puts the number of its port into a file.
const LISTEN: &str = r#"s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(5)
with open("port.new", "w") as f: f.write(str(s.getsockname()[1]))
os.rename("port.new", "port")
"#;

/// The lines of a client that waits for such a server, and connects to it by `connect()`.
const CONNECT: &str = r#"import os, socket, time
while not os.path.exists("port"): time.sleep(0.01)
def connect(): return socket.create_connection(("127.0.0.1", int(open("port").read())))
"#;

/// The options of a record that has the bytes that left.
const WITH_OUTPUTS: &str = "--outputs full --contents=lazy";

impl Place {
    /// Writes a server, with the lines [`LISTEN`] in the place of its line `LISTEN`.
    pub(super) fn write_server(&self, script: &str) {
        self.write_server_as("server.py", script);
    }

    pub(super) fn write_server_as(&self, name: &str, script: &str) {
        self.write_aged(name, &script.replace("LISTEN\n", LISTEN));
    }

    /// Records a shell line deeply, with the bytes that left, as the run `deep`.
    pub(super) fn deep(&self, line: &str) {
        self.deep_with(WITH_OUTPUTS, line);
    }

    /// Records a shell line deeply with these options, as the run `deep`.
    pub(super) fn deep_with(&self, options: &str, line: &str) {
        let head = format!("$B record --deep {options} --name deep --");
        let answer = self.shell(&line.replace("RECORD", &head));
        assert_eq!(answer.status, 0, "{answer:?}");
        assert_eq!(self.run(&["index", "--wait"]).status, 0);
    }

    /// Records a server deeply while a client talks to it. Both are in Python. The client has the
    /// lines [`CONNECT`] in the place of its line `CONNECT`.
    pub(super) fn deep_server(&self, server: &str, client: &str) {
        self.deep_server_with(WITH_OUTPUTS, server, client);
    }

    /// The same with these options.
    pub(super) fn deep_server_with(&self, options: &str, server: &str, client: &str) {
        self.write_server(server);
        self.write_aged("client.py", &client.replace("CONNECT\n", CONNECT));
        let line = "python3 client.py & RECORD python3 server.py && wait";
        self.deep_with(options, line);
    }

    /// Runs the deep run again, without the files of the working directory. `None`: this machine
    /// has no namespaces.
    pub(super) fn again(&self, more: &[&str]) -> Option<Answer> {
        let answer = self.replay("deep", &[&["--deep"], more].concat());
        if answer.err.contains("namespace") {
            skipped("a deep replay", &answer.err);
            return None;
        }
        Some(answer)
    }

    /// The report of such an execution as JSON, with this exit status. `None`: this machine has no
    /// namespaces.
    pub(super) fn report(&self, more: &[&str], status: i32) -> Option<Value> {
        let answer = self.again(&[&["--json"], more].concat())?;
        assert_eq!(answer.status, status, "{answer:?}");
        Some(serde_json::from_str(&answer.out).unwrap())
    }
}

/// A place with a C program that a shell line executed in a deep record. `None`: there is no
/// compiler.
pub(super) fn recorded_program(
    options: &str,
    name: &str,
    source: &str,
    line: &str,
) -> Option<Place> {
    let place = Place::new();
    if !compiled(&place, options, name, source) {
        return None;
    }
    place.deep(line);
    Some(place)
}

/// The same, and the answer of its replay. `None`: this machine has no namespaces, or no compiler.
pub(super) fn replayed_program(
    options: &str,
    name: &str,
    source: &str,
    line: &str,
) -> Option<(Place, Answer)> {
    let place = recorded_program(options, name, source, line)?;
    let answer = place.again(&[])?;
    Some((place, answer))
}

/// A place where a server was recorded deeply while a client talked to it. `None`: there is no
/// Python.
pub(super) fn recorded_server(what: &str, server: &str, client: &str) -> Option<Place> {
    recorded_server_with(WITH_OUTPUTS, what, server, client)
}

/// The same with these options.
pub(super) fn recorded_server_with(
    options: &str,
    what: &str,
    server: &str,
    client: &str,
) -> Option<Place> {
    if !needs(what, &["python3"]) {
        return None;
    }
    let place = Place::new();
    place.deep_server_with(options, server, client);
    Some(place)
}

#[test]
fn input_from_a_pipe_and_random_numbers_come_again() {
    let place = Place::new();
    place.deep("printf 'b\\na\\n' | RECORD sort > out");
    place.is_equal_without_its_files();
    if needs("random numbers that come again", &["od"]) {
        let place = Place::new();
        place.deep("RECORD od -An -N8 -tx1 /dev/urandom > out");
        place.is_equal_without_its_files();
    }
}

#[test]
fn a_shell_with_its_children_runs_again() {
    let place = Place::new();
    place.write_aged("in", "c\na\nb\n");
    place.deep("RECORD sh -c 'cat in | sort | head -2; echo $$' > out");
    place.is_equal_without_its_files();
}

#[test]
fn other_input_parts_from_the_record_and_the_report_has_both_sides() {
    let place = Place::new();
    place.deep("echo one | RECORD cat > out");
    place.write("other", "two\n");
    let other = format!("0={}", place.path("other"));
    let Some(answer) = place.again(&["--feed", &other]) else {
        return;
    };
    assert_eq!(answer.status, 1, "{answer:?}");
    // The last calls of both executions are there, too.
    for part in [
        "different: ",
        "recorded \"one\\n\"",
        "came     \"two\\n\"",
        "log call read(0) = 4",
        "log call write(1) = 4",
        "    call     write(1, ",
    ] {
        assert!(answer.err.contains(part), "{part}: {answer:?}");
    }
    let Some(json) = place.again(&["--feed", &other, "--json"]) else {
        return;
    };
    let json: Value = serde_json::from_str(&json.out).unwrap();
    let of = &json["reconstruction"];
    assert_eq!(of["verdict"], "different");
    let difference = &of["processes"][0]["difference"];
    assert_eq!(difference["kind"], "other output");
    let recorded = difference["log_calls"].as_array().unwrap();
    assert_eq!(recorded.last().unwrap(), "write(1) = 4", "{difference}");
}

#[test]
fn another_argument_or_variable_parts_from_the_record() {
    let place = Place::new();
    // The program is the interpreter of the command, so it has one argument more.
    place.write("tell", "#!/bin/sh\necho $1\necho $WORD\n");
    assert_eq!(place.shell("chmod +x tell").status, 0);
    place.age("tell");
    place.deep("export WORD=red; RECORD ./tell one | cat > out");
    let parts = [("--arg=1=two", "two"), ("--env=WORD=blue", "blue")];
    for (change, came) in parts {
        let Some(answer) = place.again(&[change]) else {
            return;
        };
        assert_eq!(answer.status, 1, "{answer:?}");
        assert!(
            answer.err.contains(&format!("came     \"{came}\\n\"")),
            "{answer:?}"
        );
    }
    let same = place.again(&["--arg=1=one", "--env=WORD=red"]).unwrap();
    assert!(same.err.contains("equal: 1 program"), "{same:?}");
    let none = place.again(&["--arg=2=two"]).unwrap();
    assert!(
        none.status != 0 && none.err.contains("argument"),
        "{none:?}"
    );
}

/// Serves three connections, each by a child.
const SERVER: &str = r#"
import os, socket
LISTEN
for n in range(3):
    c, a = s.accept()
    if os.fork() == 0:
        c.sendall(c.recv(100)[::-1]); c.close(); os._exit(0)
    c.close()
for n in range(3): os.wait()
"#;

const CLIENT: &str = r#"
CONNECT
for n in range(3):
    c = connect()
    c.sendall(b"request %d" % n); assert c.recv(100); c.close()
"#;

#[test]
fn a_server_answers_again_without_its_network_and_one_request_alone() {
    let Some(place) = recorded_server("a server that runs again", SERVER, CLIENT) else {
        return;
    };
    let Some(answer) = place.again(&[]) else {
        return;
    };
    assert!(answer.err.contains("equal: "), "{answer:?}");
    for request in ["1", "2", "3"] {
        let answer = place.again(&["--request", request]).unwrap();
        assert!(answer.err.contains("equal: "), "{answer:?}");
        assert!(
            answer.err.contains(" 9 bytes fed, 9 bytes compared"),
            "{answer:?}"
        );
    }
    place
        .again(&["--request", "4"])
        .unwrap()
        .is_error(1, &["no request 4", "served 3"]);
}

#[test]
fn a_cut_deep_log_is_used_up_to_there_and_a_missing_one_is_an_error() {
    let place = Place::new();
    place.deep("echo one | RECORD cat > out");
    let runs = place.stage.store().join("runs");
    let mut all = fs::read_dir(&runs).unwrap().flatten();
    let log = all.find(|entry| entry.path().extension().is_some_and(|e| e == "deep"));
    let log = log.unwrap().path();
    let bytes = fs::read(&log).unwrap();
    for length in (0..bytes.len()).step_by(97) {
        fs::write(&log, &bytes[..length]).unwrap();
        let answer = place.run(&["replay", "deep", "--deep", "--process", "999999999"]);
        let is_told = answer
            .err
            .lines()
            .all(|line| line.starts_with("backstory: "));
        assert!(
            answer.status == 1 && !answer.err.is_empty() && is_told,
            "{length}: {answer:?}"
        );
    }
    let listed = place.run(&["requests", "deep"]);
    assert!(listed.err.contains("the deep log has no end"), "{listed:?}");
    fs::write(&log, &bytes).unwrap();
    assert_eq!(place.run(&["requests", "deep"]).err, "");
    fs::remove_file(&log).unwrap();
    place
        .run(&["replay", "deep", "--deep"])
        .is_error(1, &["no deep log", "record --deep"]);
}

#[test]
fn a_name_of_an_open_descriptor_leads_to_that_descriptor_again() {
    if !needs("names of descriptors", &["bash"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("in", "four\n");
    place.deep(
        "printf 'three\\n' | RECORD bash -c 'cat <(echo one) /dev/stdin; cat /proc/self/fd/0 < in' > out",
    );
    place.is_equal_without_its_files();
}

#[test]
fn links_that_a_script_reads_are_the_same_again() {
    if !needs("links that a script reads", &["bash", "readlink"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("target", "x\n");
    std::os::unix::fs::symlink("target", place.path("link")).unwrap();
    place.deep(
        "RECORD bash -c 'n=$(readlink link) && echo $n; readlink target || echo none; readlink -f link' > out",
    );
    place.is_equal_without_its_files();
}

/// Adds numbers, in memory of `malloc`.
const SUM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    char *text = malloc(64);
    int number, sum = 0;
    while (scanf("%d", &number) == 1)
        sum += number;
    sprintf(text, "%d\n", sum);
    fputs(text, stdout);
    fputs("summed\n", stderr);
    free(text);
    return 0;
}
"#;

/// Compiles a C program of the working directory. False if there is no compiler.
pub(super) fn compiled(place: &Place, options: &str, name: &str, source: &str) -> bool {
    if !needs("a program that runs again", &["gcc"]) {
        return false;
    }
    place.write_aged(&format!("{name}.c"), source);
    let built = place.shell(&format!("gcc -g {options} -o {name} {name}.c"));
    if built.status != 0 {
        skipped("a program that runs again", &built.err);
    }
    built.status == 0
}

#[test]
fn valgrind_sees_the_program_run_again() {
    let place = Place::new();
    if !needs("a replay under valgrind", &["valgrind"]) || !compiled(&place, "", "sum", SUM) {
        return;
    }
    // The program uses the descriptor on which Valgrind would write.
    place.deep("printf '1 2 3\\n' | RECORD ./sum > out 2> errors");
    let Some(answer) = place.again(&["--with", "valgrind"]) else {
        return;
    };
    assert_eq!(answer.status, 0, "{answer:?}");
    assert!(answer.err.contains("equal: 1 program"), "{answer:?}");
    assert!(answer.err.contains("3 allocs, 3 frees"), "{answer:?}");
}

#[test]
fn standard_input_is_read_again_from_where_it_was_read() {
    let place = Place::new();
    place.write_aged("in.txt", "one\ntwo\nthree\n");
    place.deep("{ read -r first; RECORD sort > out; } < in.txt");
    place.is_equal_without_its_files();
}

#[test]
fn a_build_with_a_sanitizer_gives_the_same_answer() {
    let place = Place::new();
    if !compiled(&place, "", "sum", SUM) || !compiled(&place, "-fsanitize=address", "checked", SUM)
    {
        return;
    }
    // The command has a relative path. The library of the sanitizer is no file of the run.
    place.deep("printf '1 2 3\\n' | RECORD ./sum > out");
    let checked = place.path("checked");
    let tool = format!("asan={checked}");
    for build in [
        &["--with", tool.as_str()][..],
        &["--binary", checked.as_str(), "--allow-host"],
    ] {
        let Some(answer) = place.again(build) else {
            return;
        };
        assert!(answer.err.contains("equal: 1 program"), "{answer:?}");
    }
    place
        .again(&["--with", &tool, "--binary", &checked])
        .unwrap()
        .is_error(2, &["--with asan=", "--binary"]);
}

#[test]
fn a_process_runs_again_without_those_that_made_it() {
    let place = Place::new();
    place.deep("printf 'b\\na\\n' | RECORD sh -c 'sort; echo done' > out");
    let processes = place.json(&["processes", "deep", "--json"]);
    let all = processes.as_array().unwrap();
    let sort = all.iter().find(|one| one["argv"][0] == "sort").unwrap();
    let pid = sort["pid"].to_string();
    let Some(answer) = place.again(&["--process", &pid]) else {
        return;
    };
    assert_eq!(answer.status, 0, "{answer:?}");
    for part in ["equal: 1 program", "4 bytes fed, 4 bytes compared"] {
        assert!(answer.err.contains(part), "{part}: {answer:?}");
    }
}

/// Prints whether its code is in a mapping. With an argument, prints the first mapping, too.
const MAPS: &str = r#"
#include <stdio.h>
int main(int count, char **arguments) {
    char line[4096], first[4096] = "";
    unsigned long from, to, own = (unsigned long)main;
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps)) {
        if (!first[0])
            sprintf(first, "%s", line);
        if (sscanf(line, "%lx-%lx", &from, &to) == 2 && from <= own && own < to)
            found++;
    }
    printf("%d%s\n", found, count > 1 ? first : "");
    return 0;
}
"#;

#[test]
fn a_program_that_reads_its_own_mappings_sees_those_of_the_new_execution() {
    if let Some((_, answer)) = replayed_program("", "maps", MAPS, "RECORD ./maps > out") {
        assert!(answer.err.contains("equal: 1 program"), "{answer:?}");
    }
    if let Some((_, answer)) = replayed_program("", "maps", MAPS, "RECORD ./maps all > out") {
        assert_eq!(answer.status, 1, "{answer:?}");
        for part in [
            "different: ",
            "first difference: other output",
            "recorded \"",
            "came     \"",
        ] {
            assert!(answer.err.contains(part), "{part}: {answer:?}");
        }
    }
}

#[test]
fn the_time_of_day_is_that_of_the_recording() {
    let place = Place::new();
    place.deep("RECORD sh -c 'date +%s; sleep 1.1; date +%s' > out");
    place.is_equal_without_its_files();
}

#[test]
fn another_build_of_the_program_runs_on_the_recorded_input() {
    if !needs("another build of a program", &["tac", "cat"]) {
        return;
    }
    let place = Place::new();
    place.deep("printf 'one\\ntwo\\n' | RECORD cat > out");
    let Some(answer) = place.again(&["--binary", "/usr/bin/tac"]) else {
        return;
    };
    assert!(answer.err.contains("different: "), "{answer:?}");
    assert!(
        answer.err.contains(r#"came     "two\none\n""#),
        "{answer:?}"
    );
    program::copy("/bin/cat".as_ref(), place.path("patched").as_ref()).unwrap();
    let answer = place.again(&["--binary", &place.path("patched")]).unwrap();
    assert!(answer.err.contains("equal: "), "{answer:?}");
}

#[test]
fn a_tool_runs_outside_the_record_and_its_program_inside() {
    for tool in ["strace", "perf"] {
        if !needs("a deep replay under a tool", &[tool]) {
            continue;
        }
        let place = Place::new();
        place.deep("printf 'one\\n' | RECORD cat > out");
        let Some(answer) = place.again(&["--with", tool]) else {
            return;
        };
        assert!(answer.err.contains("equal: "), "{tool}: {answer:?}");
    }
}

/// A recorded server whose requests depend on others. `None`: there is no Python.
fn dependent_requests(server: &str, client: &str) -> Option<Place> {
    recorded_server("requests that depend on others", server, client)
}

/// Keeps values that its clients set, with one process and `epoll`.
pub(super) const KEEPER: &str = r#"
import os, select, socket
LISTEN
e = select.epoll(); e.register(s, select.EPOLLIN)
values, open_ones, ended = {}, {}, 0
while ended < 3:
    for fd, _ in e.poll():
        if fd == s.fileno():
            c, _ = s.accept(); open_ones[c.fileno()] = c; e.register(c, select.EPOLLIN)
            continue
        words = open_ones[fd].recv(100).split()
        if not words:
            e.unregister(fd); open_ones.pop(fd).close(); ended += 1
        elif words[0] == b"set":
            values[words[1]] = words[2]; open_ones[fd].sendall(b"done\n")
        else:
            open_ones[fd].sendall(values.get(words[1], b"nothing") + b"\n")
"#;

pub(super) const KEEPER_CLIENT: &str = r#"
CONNECT
def ask(*lines):
    with connect() as c:
        for line in lines:
            c.sendall(line); assert c.recv(100)
ask(b"set a 1", b"set b 2"); ask(b"get a"); ask(b"get c")
"#;

#[test]
fn a_request_is_fed_with_the_earlier_ones_that_it_needs_and_no_more() {
    let Some(place) = dependent_requests(KEEPER, KEEPER_CLIENT) else {
        return;
    };
    for (number, fed, tries) in [
        (1, vec![], 1),
        (2, vec![], 1),
        (3, vec![1], 3),
        (4, vec![], 1),
    ] {
        let number = number.to_string();
        let Some(answer) = place.again(&["--request", &number, "--json"]) else {
            return;
        };
        let json: Value = serde_json::from_str(&answer.out).unwrap();
        let of = &json["reconstruction"];
        assert_eq!(of["verdict"], "equal", "{answer:?}");
        assert_eq!(of["request"]["fed"], serde_json::json!(fed), "{answer:?}");
        assert_eq!(of["request"]["tries"], tries, "{answer:?}");
        assert!(of["calls"].as_u64() > Some(0), "{answer:?}");
    }
    // Several, one after the other: a line each.
    let answer = place.again(&["--request", "1,3-4"]).unwrap();
    assert_eq!(answer.status, 0, "{answer:?}");
    for part in [
        "     1  equal: 1 attempt,",
        "     3  equal: 3 attempts,",
        "3 of 3 requests are equal",
    ] {
        assert!(answer.err.contains(part), "{part}: {answer:?}");
    }
    assert!(!answer.err.contains("     2  "), "{answer:?}");
    let answer = place.again(&["--request", "1,4", "--json"]).unwrap();
    let json: Value = serde_json::from_str(&answer.out).unwrap();
    let numbers = json.as_array().unwrap().iter();
    let numbers: Vec<_> = numbers
        .map(|one| &one["reconstruction"]["request"]["number"])
        .collect();
    assert_eq!(numbers, [1, 4]);
    place
        .again(&["--request", "1-9"])
        .unwrap()
        .is_error(1, &["no request 9"]);
    place
        .again(&["--request", "4-1"])
        .unwrap()
        .is_error(2, &["as in 3,5-9"]);
    // With one attempt only, the difference is reported.
    let answer = place.again(&["--request", "3", "--tries", "1"]).unwrap();
    assert_eq!(answer.status, 1, "{answer:?}");
    assert!(answer.err.contains("different: "), "{answer:?}");
}

/// Counts, and keeps values, beside a thread that sleeps.
const COUNTER: &str = r#"
import os, socket, select, threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
LISTEN
e = select.epoll(); e.register(s, select.EPOLLIN)
values, open_ones, count, ended = {}, {}, 0, 0
while ended < 13:
    for fd, _ in e.poll():
        if fd == s.fileno():
            c, _ = s.accept(); open_ones[c.fileno()] = c; e.register(c, select.EPOLLIN)
            continue
        words = open_ones[fd].recv(100).split()
        if not words:
            e.unregister(fd); open_ones.pop(fd).close(); ended += 1
        elif words[0] == b"count":
            count += 1; open_ones[fd].sendall(b"%d\n" % count)
        elif words[0] == b"set":
            values[words[1]] = words[2]; open_ones[fd].sendall(b"done\n")
        else:
            open_ones[fd].sendall(values.get(words[1], b"nothing") + b"\n")
"#;

const COUNTER_CLIENT: &str = r#"
CONNECT
def ask(c, line): c.sendall(line); assert c.recv(100)
kept = connect()
ask(kept, b"set a 1")
for n in range(12):
    with connect() as c: ask(c, b"count")
    if n % 3 == 2: ask(kept, b"count")
ask(kept, b"get a"); kept.close()
"#;

#[test]
fn earlier_answers_of_another_length_do_not_change_the_verdict() {
    let Some(place) = dependent_requests(COUNTER, COUNTER_CLIENT) else {
        return;
    };
    let Some(answer) = place.again(&["--request", "18", "--json"]) else {
        return;
    };
    let json: Value = serde_json::from_str(&answer.out).unwrap();
    let of = &json["reconstruction"];
    assert_eq!(of["verdict"], "equal", "{answer:?}");
    // The counts of the other connections are not fed, so that those of this one are shorter.
    let fed = serde_json::json!([1, 5, 9, 13, 17]);
    assert_eq!(of["request"]["fed"], fed, "{answer:?}");
    assert_eq!(of["request"]["tries"], 2, "{answer:?}");
    assert!(of["request"]["differs_before"].is_u64(), "{answer:?}");
}

/// Serves each connection by a child. They share memory. Between two connections, a child cleans
/// up.
const SHARER: &str = r#"
import mmap, os, socket
memory = mmap.mmap(-1, 4096)
LISTEN
def serve(c):
    words = c.recv(100).split()
    if words[0] == b"set":
        for n in range(4_000_000): pass
        memory[:len(words[2])] = words[2]; c.sendall(b"done")
    else: c.sendall(memory[:6])
for n in range(4):
    c, _ = s.accept()
    if os.fork() == 0:
        serve(c); os._exit(0)
    c.close()
    if os.fork() == 0: os._exit(0)
for n in range(8): os.wait()
"#;

const SHARER_CLIENT: &str = r#"
CONNECT
for line in [b"get other", b"set first yellow", b"set alpha purple", b"get alpha"]:
    with connect() as c:
        c.sendall(line); assert c.recv(100)
"#;

#[test]
fn a_request_finds_what_another_process_was_told_before_it() {
    let Some(place) = dependent_requests(SHARER, SHARER_CLIENT) else {
        return;
    };
    for (number, fed) in [(1, vec![]), (3, vec![]), (4, vec![3])] {
        let number = number.to_string();
        let Some(answer) = place.again(&["--request", &number, "--json"]) else {
            return;
        };
        let json: Value = serde_json::from_str(&answer.out).unwrap();
        let of = &json["reconstruction"];
        assert_eq!(of["verdict"], "equal", "{answer:?}");
        assert_eq!(of["request"]["fed"], serde_json::json!(fed), "{answer:?}");
    }
    // Without the other one the answer differs, and the report says what brought the missing word.
    let answer = place.again(&["--request", "4", "--tries", "1"]).unwrap();
    let source = "source   \"purple\" entered process ";
    assert!(answer.err.contains(source), "{answer:?}");
    assert!(answer.err.contains(" with request 3, from "), "{answer:?}");
    let answer = place
        .again(&["--request", "4", "--tries", "1", "--json"])
        .unwrap();
    let json: Value = serde_json::from_str(&answer.out).unwrap();
    let processes = json["reconstruction"]["processes"].as_array().unwrap();
    let mut sources = processes
        .iter()
        .map(|one| &one["difference"]["recorded_source"]);
    let source = sources.find(|source| source.is_object()).unwrap();
    assert_eq!(
        (&source["request"], &source["position"]),
        (&3.into(), &10.into())
    );
}

/// Goes on when it has the first bytes of an answer, and takes the rest at the end.
const HASTY_CLIENT: &str = r#"
CONNECT
kept = []
for line in [b"get other", b"set alpha purple", b"get alpha"]:
    c = connect()
    c.sendall(line); assert c.recv(100); kept.append(c)
for c in kept:
    while c.recv(1 << 16): pass
"#;

#[test]
fn a_request_finds_what_was_told_before_it_although_that_answer_was_still_being_sent() {
    // The call that sends the answer returns after the next request was served.
    let answer =
        "c.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096); c.sendall(b'done' * 10**6)";
    let server = SHARER
        .replace("c.sendall(b\"done\")", answer)
        .replace("range(4)", "range(3)")
        .replace("range(8)", "range(6)");
    let Some(place) = dependent_requests(&server, HASTY_CLIENT) else {
        return;
    };
    let Some(answer) = place.again(&["--request", "3", "--json"]) else {
        return;
    };
    let json: Value = serde_json::from_str(&answer.out).unwrap();
    let of = &json["reconstruction"];
    assert_eq!(of["verdict"], "equal", "{answer:?}");
    assert_eq!(of["request"]["fed"], serde_json::json!([2]), "{answer:?}");
}

/// Prints the time-stamp counter, which no log has. As with threads that race, the result is
/// another one each time. Without an argument, the program has a second thread. With `computing`,
/// that one makes no recorded call.
const UNSTEADY: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void *other(void *calls) { if (calls) access("/nothing", 0); return calls; }
int main(int argc, char **argv) {
    pthread_t thread;
    void *calls = argc == 1 ? &thread : 0;
    if (calls || argv[1][0] == 'c') {
        pthread_create(&thread, 0, other, calls);
        pthread_join(thread, 0);
    }
    printf("%llu %s\n", __builtin_ia32_rdtsc(), argv[0]);
}
"#;

/// Waits for room before each part of an answer, and for input at the same time. It expects three
/// lines, and does not answer the last one.
const LOOKING_BOTH_WAYS: &str = r#"
import os, select, socket
LISTEN
c, _ = s.accept()
p = select.poll()
def wait(events): p.register(c, events); p.poll()
lines = 0
while True:
    wait(select.POLLIN)
    line = c.recv(100)
    if line == b"end\n" and lines == 2: break
    lines += 1
    for part in [line, b"done\n"]:
        wait(select.POLLIN | select.POLLOUT)
        c.sendall(part)
"#;

const PATIENT_CLIENT: &str = r#"
CONNECT
with connect() as c, c.makefile("rb") as f:
    for line in [b"one\n", b"two\n"]:
        c.sendall(line); assert (f.readline(), f.readline()) == (line, b"done\n")
    c.sendall(b"end\n"); c.recv(1)
"#;

#[test]
fn input_is_not_there_yet_because_there_is_room_for_output() {
    let what = "a server that waits for room";
    let Some(place) = recorded_server(what, LOOKING_BOTH_WAYS, PATIENT_CLIENT) else {
        return;
    };
    if let Some(answer) = place.again(&["--request", "3"]) {
        assert_eq!(answer.status, 0, "{answer:?}");
        assert!(!answer.err.contains("requests before it"), "{answer:?}");
    }
}

#[test]
fn threads_with_another_result_each_time_are_counted_and_never_equal() {
    for (argument, threads, unsteady) in [("", 2, 1), (" computing", 2, 1), (" alone", 1, 0)] {
        let line = format!("RECORD ./unsteady{argument} > out");
        let Some(place) = recorded_program("-pthread", "unsteady", UNSTEADY, &line) else {
            return;
        };
        let Some(answer) = place.again(&["--json"]) else {
            return;
        };
        let json: Value = serde_json::from_str(&answer.out).unwrap();
        assert_eq!(json["reconstruction"]["verdict"], "different", "{answer:?}");
        assert_eq!(json["reconstruction"]["unsteady"], unsteady, "{answer:?}");
        let process = &json["reconstruction"]["processes"][0];
        assert_eq!(process["threads"], threads, "{answer:?}");
        let answer = place.again(&[]).unwrap();
        let says = answer.err.contains("another execution had another result");
        assert_eq!(says, unsteady == 1, "{answer:?}");
    }
}

#[test]
fn a_text_is_found_where_it_entered_and_where_it_left() {
    let what = "a search in a server's bytes";
    // The record has digests of what left: only another execution shows the bytes.
    let Some(place) = recorded_server_with("", what, KEEPER, KEEPER_CLIENT) else {
        return;
    };
    let found = |more: &[&str]| place.run(&[&["when", "--run", "deep", "--json"], more].concat());
    let answer = found(&["set a 1"]);
    if answer.err.contains("namespace") {
        return skipped(what, &answer.err);
    }
    let list = |answer: &Answer| -> Vec<String> {
        let all: Value = serde_json::from_str(&answer.out).unwrap();
        let all = all.as_array().unwrap().iter();
        // Python reads the text of the program, too.
        all.filter(|one| !one["object"].as_str().unwrap().ends_with(".py"))
            .map(|one| format!("{} {} {}", one["action"], one["request"], one["position"]))
            .collect()
    };
    assert_eq!(list(&answer), [r#""received" 1 0"#], "{answer:?}");
    let answers = [r#""wrote" 1 0"#, r#""wrote" 2 5"#];
    assert_eq!(list(&found(&["done\n"])), answers);
    // In two writes of one stream.
    assert_eq!(list(&found(&["--hex", "6e650a646f"])), [r#""wrote" 2 2"#]);
    let port = fs::read_to_string(place.path("port")).unwrap();
    let answer = found(&["--to", "port.new"]);
    assert_eq!(list(&answer), [r#""wrote" null 0"#], "{answer:?}");
    assert!(
        answer.out.contains(&format!(r#""bytes": "{port}""#)),
        "{answer:?}"
    );
    let none = place.run(&["when", "--run", "deep", "nowhere"]);
    assert_eq!(
        (none.status, none.out.contains("No call")),
        (1, true),
        "{none:?}"
    );
    place
        .run(&["when", "--run", "deep"])
        .is_error(2, &["give a text"]);
    place
        .run(&["when", "--run", "deep", "--hex", "0g"])
        .is_error(2, &["pairs of hexadecimal digits"]);
}

/// Serves each connection by a session without rights, which asks its monitor for files, as vsftpd
/// and sshd do. Another child works without any connection.
const MONITOR: &str = r#"
import os, socket
LISTEN
for n in range(2):
    c, a = s.accept()
    if n == 0 and os.fork() == 0:
        os._exit(0)
    if os.fork() == 0:
        monitor, session = socket.socketpair()
        if os.fork() == 0:
            monitor.close()
            for m in range(2):
                session.sendall(c.recv(9))
                _, (fd,), _, _ = socket.recv_fds(session, 9, 1)
                c.sendall(b"%d: " % m + os.read(fd, 9)); os.close(fd)
            os._exit(0)
        session.close(); c.close()
        while name := monitor.recv(9):
            r, w = os.pipe(); os.write(w, name[::-1])
            socket.send_fds(monitor, [b"x"], [r]); os.close(r); os.close(w)
        os._exit(0)
    c.close()
"#;

const MONITOR_CLIENT: &str = r#"
CONNECT
for n in range(2):
    c = connect()
    for m in range(2):
        c.sendall(b"file %d%d" % (n, m)); assert c.recv(100)
    c.close()
"#;

#[test]
fn a_session_gets_the_descriptors_that_its_monitor_passes() {
    let what = "a server of several processes";
    let Some(place) = recorded_server(what, MONITOR, MONITOR_CLIENT) else {
        return;
    };
    for (request, fed) in [("1", vec![]), ("4", vec![3])] {
        let Some(answer) = place.again(&["--request", request, "--json"]) else {
            return;
        };
        let json: Value = serde_json::from_str(&answer.out).unwrap();
        let of = &json["reconstruction"];
        assert_eq!(of["verdict"], "equal", "{request}: {answer:?}");
        assert_eq!(of["request"]["fed"], serde_json::json!(fed), "{answer:?}");
    }
}

/// Writes a file for each request, and answers with an address, which no log has.
const WRITER: &str = r#"
import os, socket, time
LISTEN
for n in range(3):
    c, a = s.accept()
    name = c.recv(9).decode()
    with open(name, "w") as f: f.write(name * 3)
    with open("journal", "a") as f: f.write(name)
    c.sendall(b"cost %012d of %s" % (id(c) % 10**12, name.encode())); c.close()
"#;

const WRITER_CLIENT: &str = r#"
CONNECT
for n in range(3):
    c = connect()
    c.sendall(b"file %d" % n); assert c.recv(100); c.close()
"#;

/// The part of the answer that may differ.
const DECLARED: [&str; 2] = ["--volatile", "cost [0-9]+"];

/// The report on the second request alone. `None`: this machine has no namespaces.
fn second_request(place: &Place, more: &[&str]) -> Option<Value> {
    let options = ["--request", "2", "--tries", "1", "--json"];
    let answer = place.again(&[&options, more].concat())?;
    Some(serde_json::from_str(&answer.out).unwrap())
}

#[test]
fn a_request_is_judged_by_its_own_files_and_declared_parts_of_its_answer_may_differ() {
    let what = "a server that writes files";
    let Some(place) = recorded_server(what, WRITER, WRITER_CLIENT) else {
        return;
    };
    let Some(plain) = second_request(&place, &[]) else {
        return;
    };
    assert_eq!(plain["reconstruction"]["verdict"], "different", "{plain:#}");
    let declared = second_request(&place, &DECLARED).unwrap();
    let of = &declared["reconstruction"];
    // The other requests wrote to the journal, too, so it cannot be compared.
    assert_eq!(of["verdict"], "equal-where-recorded", "{declared:#}");
    let named = serde_json::json!(["the declared pattern cost [0-9]+"]);
    assert_eq!(of["volatile"], named, "{declared:#}");
    let outputs = declared["outputs"].as_array().unwrap();
    let state = |name: &str| {
        let path = place.path(name);
        let found = outputs.iter().find(|output| output["path"] == path);
        found.map(|output| output["state"].as_str().unwrap().to_owned())
    };
    assert_eq!(state("file 0"), None, "{declared:#}");
    assert_eq!(state("file 1").as_deref(), Some("identical"));
    // Each request appended to it.
    assert_eq!(state("journal").as_deref(), Some("unknown"));
    assert_eq!(declared["identical"], true, "{declared:#}");
    let wrong = place.again(&["--volatile", "["]).unwrap();
    wrong.is_error(2, &["--volatile"]);
}

#[test]
fn a_request_with_equal_files_whose_answer_differs_in_a_declared_part_is_equal_but_for_that() {
    let journal = r#"    with open("journal", "a") as f: f.write(name)"#;
    let server = WRITER.replace(journal, "");
    assert_ne!(server, WRITER);
    let what = "a server that writes files";
    let Some(place) = recorded_server(what, &server, WRITER_CLIENT) else {
        return;
    };
    let Some(declared) = second_request(&place, &DECLARED) else {
        return;
    };
    let of = &declared["reconstruction"];
    assert_eq!(of["verdict"], "equal-but-volatile", "{declared:#}");
    assert_eq!(of["files"]["equal"], 1, "{declared:#}");
}

/// A program with this build id, which prints its input.
fn compiled_as(place: &Place, build: &str) -> bool {
    let id = format!("-Wl,--build-id=0x{build}");
    compiled(place, &id, "prog", SUM)
}

#[test]
fn a_program_that_is_gone_is_named_with_its_package_and_both_builds() {
    let place = Place::new();
    if !compiled_as(&place, "aa11bb22") {
        return;
    }
    place.deep("echo 1 2 | RECORD ./prog > out 2> errors");
    let Some(answer) = place.again(&[]) else {
        return;
    };
    assert!(
        answer.err.contains("equal: "),
        "a relative path: {answer:?}"
    );
    fs::remove_dir_all(place.stage.store().join("contents")).unwrap();
    assert!(compiled_as(&place, "cc33dd44"));
    let other = place.again(&[]).unwrap();
    other.is_error(
        1,
        &[
            "prog",
            "no known package provides it; build aa11bb22 was recorded; build cc33dd44 is on this \
             machine, and --binary ",
        ],
    );
    fs::remove_file(place.path("prog")).unwrap();
    let gone = place.again(&[]).unwrap();
    gone.is_error(
        1,
        &[
            "no known package provides it; build aa11bb22 was recorded; ",
            "prog is not on this machine",
        ],
    );
}

#[test]
fn another_build_that_runs_in_the_place_of_the_recorded_one_is_named() {
    let place = Place::new();
    if !compiled_as(&place, "aa11bb22") {
        return;
    }
    let line = "echo 1 2 | RECORD ./prog > out 2> errors";
    place.deep_with("--contents=off", line);
    let note = "another build than the recorded one runs: ";
    let Some(same) = place.again(&["--allow-host"]) else {
        return;
    };
    assert!(is_equal(&same) && !same.err.contains(note), "{same:?}");
    assert!(compiled_as(&place, "cc33dd44"));
    let other = place.again(&["--allow-host"]).unwrap();
    for part in [
        note,
        "build aa11bb22 was recorded; build cc33dd44 is on this machine",
    ] {
        assert!(other.err.contains(part), "{part}: {other:?}");
    }
    // The user named another one.
    let prog = place.path("prog");
    let chosen = place.again(&["--allow-host", "--binary", &prog]).unwrap();
    assert!(!chosen.err.contains(note), "{chosen:?}");
}

/// Large files are mounted into the root of the replay, and not copied.
#[test]
fn a_replaced_program_that_cannot_be_executed_is_started_or_the_reason_is_said() {
    let place = Place::new();
    if !compiled(&place, "", "prog", SUM) {
        return;
    }
    assert_eq!(place.shell("truncate -s 100000 prog").status, 0);
    place.age("prog");
    let line = "echo 1 2 | RECORD ./prog > out 2> errors";
    place.deep_with("--contents=off", line);
    let replace = "cp prog other && chmod 644 other && mv other prog";
    assert_eq!(place.shell(replace).status, 0);
    let Some(again) = place.again(&["--allow-host"]) else {
        return;
    };
    assert!(is_equal(&again), "{again:?}");
    place.write("prog", "this is no program");
    let other = place.again(&["--allow-host"]).unwrap();
    other.is_error(1, &["cannot start ", "prog: Exec format error"]);
}

#[test]
fn a_run_is_compared_between_two_moments_and_ends_at_the_second() {
    let place = Place::new();
    place
        .deep("printf 'one\\ntwo\\n' | RECORD sh -c 'read a; echo $a; read b; echo $b; read c; :'");
    let Some(whole) = place.again(&["--json"]) else {
        return;
    };
    let compared = |answer: &Answer| {
        let json: Value = serde_json::from_str(&answer.out).unwrap();
        let of = &json["reconstruction"];
        assert_eq!(of["verdict"], "equal", "{answer:?}");
        let calls = of["recorded_calls"].as_u64().unwrap();
        (of["processes"][0]["bytes_fed"].as_u64().unwrap(), calls)
    };
    let (all, calls) = compared(&whole);
    let fed: Vec<u64> = (1..=calls)
        .step_by(4)
        .map(|to| compared(&place.again(&["--json", "--to", &to.to_string()]).unwrap()).0)
        .collect();
    let between = fed.iter().any(|fed| (1..all).contains(fed));
    assert!(
        fed.is_sorted() && fed[0] == 0 && between,
        "{fed:?} of {all}"
    );
    // Another first line differs before the moment, and not after it.
    place.write("other", "six\ntwo\n");
    let other = format!("0={}", place.path("other"));
    let last = calls.to_string();
    let late = place.again(&["--feed", &other, "--from", &last]).unwrap();
    assert!(
        late.err.contains("equal: ") && late.err.contains("differs before --from"),
        "{late:?}"
    );
    let early = place.again(&["--feed", &other, "--from", "1"]).unwrap();
    assert!(early.err.contains("different: "), "{early:?}");
    let absent = place.again(&["--to", "99999999"]).unwrap();
    absent.is_error(1, &["no call 99999999"]);
}
