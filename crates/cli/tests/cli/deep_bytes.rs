//! `refine` of runs that were recorded with `record --deep`: bytes are followed from the log.

use backstory_testkit::need::{needs, skipped};
use serde_json::Value;

use super::bytes::{engine, refined};
use super::{Answer, Place};

const TABLE: &str = "3,cedar,30\n1,ash,10\n2,birch,20\n";

impl Place {
    /// Records a shell line deeply, without contents of files.
    fn deep_without_contents(&self, line: &str) {
        self.deep_with("--contents=off", line);
    }

    fn remove(&self, name: &str) {
        std::fs::remove_file(self.path(name)).unwrap();
    }
}

/// The sources of a part: kind, end of the path, how, and range.
fn sources(place: &Place, engine: &str, part: &str) -> Vec<(String, String, String, u64, u64)> {
    let answer = place.shell(&format!("env {engine} $B of {part} --json"));
    assert_eq!(answer.status, 0, "{answer:?}");
    let found: Value = serde_json::from_str(&answer.out).unwrap();
    let mut all = Vec::new();
    for source in found["sources"].as_array().unwrap() {
        let path = source["path"].as_str().unwrap();
        let name = path.rsplit('/').next().unwrap();
        for how in ["copied", "computed", "implicit"] {
            for range in source[how].as_array().unwrap() {
                let end = |at: usize| range[at].as_u64().unwrap();
                let kind = source["kind"].as_str().unwrap();
                let words = [kind, name, how].map(str::to_owned);
                let [kind, name, how] = words;
                all.push((kind, name, how, end(0), end(1)));
            }
        }
    }
    all
}

fn file(name: &str, how: &str, start: u64, end: u64) -> (String, String, String, u64, u64) {
    (
        "file".to_owned(),
        name.to_owned(),
        how.to_owned(),
        start,
        end,
    )
}

fn succeeds(answer: &Answer) {
    assert_eq!(answer.status, 0, "{answer:?}");
    assert!(answer.err.contains("from the deep log"), "{answer:?}");
}

#[test]
fn a_deep_run_is_refined_without_contents_and_without_the_files_that_it_read() {
    let place = Place::new();
    let Some(engine) = engine(&place) else {
        return;
    };
    place.write_aged("in.csv", TABLE);
    place.deep_without_contents("RECORD sh -c 'sort in.csv | cut -d, -f2,3 > out.csv'");
    place.remove("in.csv");
    let Some(answer) = refined(&place, &engine, "deep") else {
        return;
    };
    succeeds(&answer);
    // Through a pipe, whose reader may run before its writer here.
    assert_eq!(
        sources(&place, &engine, "out.csv --bytes 0-5"),
        [
            file("in.csv", "copied", 13, 16),
            file("in.csv", "copied", 17, 19)
        ]
    );
    assert!(!answer.err.contains("could not be compared"), "{answer:?}");
}

#[test]
fn standard_input_and_output_of_a_deep_run_are_the_files_that_they_were() {
    let place = Place::new();
    let Some(engine) = engine(&place) else {
        return;
    };
    place.write_aged("in.csv", TABLE);
    // The first line was read before, and the output has a line before.
    place.deep_without_contents(
        "{ read -r first; echo head > out.csv; RECORD sort >> out.csv; } < in.csv",
    );
    place.write_aged("in.csv", "changed\n");
    let Some(answer) = refined(&place, &engine, "deep") else {
        return;
    };
    succeeds(&answer);
    assert_eq!(
        sources(&place, &engine, "out.csv@deep --bytes 5-12"),
        [file("in.csv", "copied", 11, 19)]
    );
}

#[test]
fn only_the_programs_behind_a_file_of_a_deep_run_are_followed() {
    let place = Place::new();
    let Some(engine) = engine(&place) else {
        return;
    };
    place.write_aged("in.csv", TABLE);
    place.write_aged("other", "b\na\n");
    place.deep_without_contents(
        "RECORD sh -c 'sort in.csv | cut -d, -f2 > out.csv; sort other > too; wc -l < in.csv > count'",
    );
    place.remove("in.csv");
    let Some(answer) = refined(&place, &engine, "out.csv") else {
        return;
    };
    succeeds(&answer);
    // The shell, sort and cut. The other sort has an argument of its own.
    assert!(answer.err.contains("3 of 5 programs"), "{answer:?}");
    let of_line = [file("in.csv", "copied", 13, 16)];
    assert_eq!(sources(&place, &engine, "out.csv --bytes 0-2"), of_line);
    for name in ["too", "count"] {
        let unknown = place.shell(&format!("$B of {name} --bytes 0"));
        assert!(unknown.err.contains("backstory refine"), "{unknown:?}");
    }
    let answer = refined(&place, &engine, "too").unwrap();
    succeeds(&answer);
    assert!(answer.err.contains("2 of 5 programs"), "{answer:?}");
    let of_letter = [file("other", "copied", 2, 3)];
    assert_eq!(sources(&place, &engine, "too --bytes 0"), of_letter);
    // The other part is still known.
    assert_eq!(sources(&place, &engine, "out.csv --bytes 0-2"), of_line);
}

const TOTAL: &str = "import csv\n\
    with open('in.csv') as f: rows = [(r[1], int(r[2])) for r in csv.reader(f)]\n\
    with open('total.txt', 'w') as f: f.write(f'{rows[1][0]} {rows[0][1] + rows[2][1]}\\n')\n";

#[test]
fn python_computes_from_bytes_of_a_file_that_only_the_deep_log_has() {
    if !needs("bytes of a Python program", &["python3"]) {
        return;
    }
    let place = Place::new();
    let Some(engine) = engine(&place) else {
        return;
    };
    place.write_aged("in.csv", TABLE);
    place.write_aged("total.py", TOTAL);
    place.deep_without_contents("RECORD python3 total.py");
    place.remove("in.csv");
    place.remove("total.py");
    let Some(answer) = refined(&place, &engine, "deep") else {
        return;
    };
    succeeds(&answer);
    assert_eq!(
        sources(&place, &engine, "total.txt --bytes 0-2"),
        [file("in.csv", "copied", 13, 16)]
    );
    let sum = sources(&place, &engine, "total.txt --bytes 4-5");
    for number in [(8, 10), (28, 30)] {
        let computed = |one: &(String, String, String, u64, u64)| {
            one.1 == "in.csv" && one.2 == "computed" && one.3 <= number.0 && number.1 <= one.4
        };
        assert!(sum.iter().any(computed), "{sum:?}");
    }
}

/// Answers each request with its end reversed, and writes it into a file.
const SERVER: &str = r#"
import os, socket
LISTEN
for n in range(3):
    c, a = s.accept()
    name, value = c.recv(1000).split(b" ", 1)
    with open(name.decode() + ".txt", "wb") as f: f.write(value)
    c.sendall(value[::-1])
    c.close()
"#;

const CLIENT: &str = r#"
CONNECT
for text in (b"one first", b"two second", b"three third"):
    c = connect()
    c.sendall(text)
    with open("peers", "a") as f: f.write("%s:%d\n" % c.getsockname())
    assert c.recv(1000)
"#;

#[test]
fn bytes_of_an_answer_lead_to_the_bytes_of_its_request() {
    if !needs("bytes of a server", &["python3"]) {
        return;
    }
    let place = Place::new();
    let Some(engine) = engine(&place) else {
        return;
    };
    place.deep_server_with("--contents=off", SERVER, CLIENT);
    let peers = std::fs::read_to_string(place.path("peers")).unwrap();
    let peers: Vec<&str> = peers.lines().collect();
    let socket = |peer: usize, start, end| {
        let words = ["socket", peers[peer], "copied"].map(str::to_owned);
        let [kind, name, how] = words;
        (kind, name, how, start, end)
    };
    let Some(answer) = refined(&place, &engine, "deep --request 2") else {
        return;
    };
    succeeds(&answer);
    // "second"
    let of_request = [socket(1, 4, 10)];
    assert_eq!(sources(&place, &engine, "two.txt --bytes 0-5"), of_request);
    let to_peer = format!("{}@deep --bytes", peers[1]);
    assert_eq!(
        sources(&place, &engine, &format!("{to_peer} 0-2")),
        [socket(1, 7, 10)]
    );
    let text = place.shell("$B of two.txt --bytes 0-5");
    let shown = format!("copied from the connection with {}, bytes 4-9", peers[1]);
    assert!(text.out.contains(&shown), "{text:?}");
    assert!(text.out.contains(": second"), "{text:?}");
    let other = place.shell("$B of three.txt --bytes 0-4");
    assert!(other.err.contains("backstory refine"), "{other:?}");
    // The whole run.
    let answer = refined(&place, &engine, "deep").unwrap();
    succeeds(&answer);
    assert_eq!(
        sources(&place, &engine, "three.txt --bytes 0-4"),
        [socket(2, 6, 11)]
    );
    assert_eq!(sources(&place, &engine, "two.txt --bytes 0-5"), of_request);
    refined(&place, &engine, "deep --request 9")
        .unwrap()
        .is_error(1, &["no request 9"]);
}

/// Writes the time-stamp counter, which no log has, if it is asked to.
const COUNTER: &str = r#"
#include <stdio.h>
#include <x86intrin.h>
int main(int n, char **arg) { FILE *f = fopen("out.txt", "w"); (void)arg;
    fprintf(f, "%llu\n", n > 1 ? __rdtsc() : 7ull); return fclose(f); }
"#;

#[test]
fn a_run_that_comes_out_differently_keeps_the_bytes_that_were_known() {
    if !needs("a program of its own", &["gcc"]) {
        return;
    }
    let place = Place::new();
    let Some(engine) = engine(&place) else {
        return;
    };
    place.write_aged("counter.c", COUNTER);
    let built = place.shell("gcc -o counter counter.c");
    if built.status != 0 {
        return skipped("a program of its own", &built.err);
    }
    place.deep_without_contents("RECORD ./counter x");
    let Some(answer) = refined(&place, &engine, "deep") else {
        return;
    };
    // The write went into a file that no stored content can be compared with.
    answer.is_error(1, &["other output of", "stays as it was"]);
    let unknown = place.shell("$B of out.txt --bytes 0-1");
    assert!(unknown.err.contains("backstory refine"), "{unknown:?}");
    let kept = place.shell("$B record --deep --name kept --contents=lazy -- ./counter x");
    assert_eq!(kept.status, 0, "{kept:?}");
    let answer = refined(&place, &engine, "kept").unwrap();
    // With contents, the run is replayed from these instead.
    assert_eq!(answer.status, 1, "{answer:?}");
    for part in ["replayed from contents", "its replay made another"] {
        assert!(answer.err.contains(part), "{answer:?}");
    }
    let same = place.shell("$B record --deep --name same --contents=off -- ./counter");
    assert_eq!(same.status, 0, "{same:?}");
    succeeds(&refined(&place, &engine, "same").unwrap());
}
