//! `replay --deep`: the verdict speaks of the files that a run wrote, too, and of the bytes that
//! only the kernel had.

use backstory_testkit::need::needs;
use serde_json::{Value, json};

use super::Place;
use super::deep_replay::{recorded_server, replayed_program};

/// Writes a file that is always the same, and one with the time-stamp counter, which no log has.
/// Its output is the same each time.
const MARKER: &str = r#"
#include <stdio.h>
int main(void)
{
    FILE *mark = fopen("mark", "w"), *same = fopen("same", "w");
    fprintf(mark, "%llu\n", __builtin_ia32_rdtsc());
    fputs("always\n", same);
    puts("done");
    return fclose(mark) | fclose(same);
}
"#;

/// The state of an output, by the end of its path.
fn state(report: &Value, name: &str) -> String {
    let outputs = report["outputs"].as_array().unwrap();
    let path = |output: &&Value| output["path"].as_str().unwrap().ends_with(name);
    let found = outputs.iter().find(path);
    let found = found.unwrap_or_else(|| panic!("{name}: {report:#}"));
    found["state"].as_str().unwrap().to_owned()
}

#[test]
fn a_run_whose_file_differs_is_different_in_words_in_json_and_by_its_status() {
    let line = "RECORD ./marker | cat > out";
    let Some((place, answer)) = replayed_program("", "marker", MARKER, line) else {
        return;
    };
    assert_eq!(answer.status, 1, "{answer:?}");
    let mut lines = answer.err.lines();
    assert!(!lines.any(|line| line.starts_with("equal")), "{answer:?}");
    for part in [
        "different: 1 program ran again",
        "different: 1 of 2 outputs identical",
        "/mark",
    ] {
        assert!(answer.err.contains(part), "{part}: {answer:?}");
    }
    let report = place.report(&[], 1).unwrap();
    let of = &report["reconstruction"];
    // Nothing else differs.
    assert_eq!(of["processes"][0]["difference"], Value::Null, "{of:#}");
    assert_eq!(of["verdict"], "different", "{of:#}");
    assert_eq!(report["identical"], false, "{report:#}");
    let files = json!({"equal": 1, "different": 1, "not_compared": 0});
    assert_eq!(of["files"], files, "{of:#}");
}

/// Writes a file for each request. That of the second one has an address, which no log has.
const WRITER: &str = r#"
import os, socket
LISTEN
for n in range(2):
    c, a = s.accept()
    name = c.recv(9).decode()
    with open(name, "w") as f: f.write(str(id(c)) if name == "file 1" else "same")
    c.sendall(b"done"); c.close()
"#;

const WRITER_CLIENT: &str = r#"
CONNECT
for n in range(2):
    c = connect()
    c.sendall(b"file %d" % n); assert c.recv(100); c.close()
"#;

#[test]
fn a_request_whose_file_differs_is_different_although_its_answer_is_equal() {
    let what = "a server that writes files";
    let Some(place) = recorded_server(what, WRITER, WRITER_CLIENT) else {
        return;
    };
    let Some(both) = place.again(&["--request", "1-2"]) else {
        return;
    };
    assert_eq!(both.status, 1, "{both:?}");
    for part in [
        "     1  equal: 1 attempt,",
        "     2  different: 1 attempt,",
        "        different: ",
        "1 of 2 requests are equal",
    ] {
        assert!(both.err.contains(part), "{part}: {both:?}");
    }
    let second = place.report(&["--request", "2"], 1).unwrap();
    let of = &second["reconstruction"];
    assert_eq!(of["verdict"], "different", "{of:#}");
    assert_eq!(of["processes"][0]["difference"], Value::Null, "{of:#}");
    assert_eq!(state(&second, "/file 1"), "different", "{second:#}");
}

/// Changes a table in memory at a request. A process beside it writes the table when the server
/// ends.
const TABLE: &str = r#"
import mmap, os, socket
LISTEN
table, (one, two) = mmap.mmap(-1, 8), socket.socketpair()
if os.fork() == 0:
    two.close(); one.send(b"ready"); one.recv(1)
    with open("table", "r+b") as f: f.write(table[:8])
    os._exit(0)
one.close(); two.recv(5)
c, a = s.accept(); c.recv(9)
with open("table", "r+b") as f: table[:8] = f.read(8)
table[0] += 1; c.sendall(table[:8]); c.close()
two.close(); os.wait()
"#;

const TABLE_CLIENT: &str = r#"
CONNECT
c = connect()
c.sendall(b"count"); assert c.recv(100) == b"1 of all"; c.close()
"#;

#[test]
fn a_file_that_the_server_wrote_behind_the_request_is_no_difference_and_is_said() {
    if !needs("a server that writes at its end", &["python3"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("table", "0 of all");
    place.deep_server(TABLE, TABLE_CLIENT);
    let Some(report) = place.report(&["--request", "1"], 0) else {
        return;
    };
    assert_eq!(state(&report, "/table"), "unknown", "{report:#}");
    let of = &report["reconstruction"];
    assert_eq!(of["verdict"], "equal-where-recorded", "{of:#}");
}

#[test]
fn a_file_of_a_program_that_did_not_run_again_is_no_difference_and_is_said() {
    let place = Place::new();
    place.deep("printf 'b\\na\\n' | RECORD sh -c 'sort -o sorted; echo done > other'");
    let processes = place.json(&["processes", "deep", "--json"]);
    let all = processes.as_array().unwrap();
    let sort = all.iter().find(|one| one["argv"][0] == "sort").unwrap();
    let pid = sort["pid"].to_string();
    let Some(report) = place.report(&["--process", &pid], 0) else {
        return;
    };
    assert_eq!(state(&report, "/sorted"), "identical", "{report:#}");
    assert_eq!(state(&report, "/other"), "unknown", "{report:#}");
    let of = &report["reconstruction"];
    assert_eq!(of["verdict"], "equal-where-recorded", "{of:#}");
    let answer = place.again(&["--process", &pid]).unwrap();
    assert!(answer.err.contains(", 1 file not compared\n"), "{answer:?}");
}

#[test]
fn a_large_file_that_was_open_for_writing_is_so_again() {
    if !needs("a file that is open for reading and writing", &["python3"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("table", &"a row\n".repeat(10_000));
    let script = r#"
import os
for flags in [os.O_RDWR, os.O_RDONLY]:
    file = os.open("table", flags)
    print(os.read(file, 5), os.fstat(file).st_size)
"#;
    place.write_aged("script.py", script);
    place.deep("RECORD python3 script.py > out");
    place.is_equal_again();
}

/// Answers with bytes of its own, and with those of a file, which the kernel moves.
const SENDER: &str = r#"
import os, socket
LISTEN
page = os.open("page", os.O_RDONLY)
c, a = s.accept()
c.sendall(b"head of " + c.recv(9))
assert os.sendfile(c.fileno(), page, 0, 1000) == 600
c.close()
"#;

const SENDER_CLIENT: &str = r#"
CONNECT
c = connect()
c.sendall(b"page"); got = b""
while more := c.recv(1000): got += more
assert len(got) == 612, got
"#;

#[test]
fn bytes_that_the_kernel_moves_to_a_socket_do_not_count_as_compared() {
    if !needs("a server that uses sendfile", &["python3"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("page", &"a line\n".repeat(100)[..600]);
    place.deep_server(SENDER, SENDER_CLIENT);
    for part in [&[][..], &["--request", "1"]] {
        let Some(answer) = place.again(part) else {
            return;
        };
        assert_eq!(answer.status, 0, "{answer:?}");
        for said in [
            " 12 bytes compared, 600 bytes not compared\n",
            "of 600 bytes that the kernel moved, only the number was compared",
        ] {
            assert!(answer.err.contains(said), "{said}: {answer:?}");
        }
    }
    let report = place.report(&["--request", "1"], 0).unwrap();
    let of = &report["reconstruction"];
    let numbers = (&of["bytes_compared"], &of["bytes_counted"]);
    assert_eq!(numbers, (&json!(12), &json!(600)), "{of:#}");
    assert_eq!(of["request"]["bytes_compared"], 12, "{of:#}");
}
