//! `replay --deep`: a program runs again with all that it received.

use std::fs;

use backstory_testkit::need::{needs, skipped};

use super::{Answer, Place};

impl Place {
    /// Records a shell line deeply, with the bytes that left. Returns the run's id.
    fn deep(&self, line: &str) -> String {
        let head = "$B record --deep --outputs full --name deep --contents=lazy --";
        let answer = self.shell(&line.replace("RECORD", head));
        assert_eq!(answer.status, 0, "{answer:?}");
        assert_eq!(self.run(&["index", "--wait"]).status, 0);
        "deep".to_owned()
    }

    /// Runs the deep run again, without the files of the working directory. `None`: this machine
    /// has no namespaces.
    fn again(&self, more: &[&str]) -> Option<Answer> {
        let answer = self.replay("deep", &[&["--deep"], more].concat());
        if answer.err.contains("namespace") {
            skipped("a deep replay", &answer.err);
            return None;
        }
        Some(answer)
    }

    fn is_equal_again(&self) {
        self.forget_everything();
        if let Some(answer) = self.again(&[]) {
            assert!(
                answer.status == 0 && answer.err.contains("\nequal: ")
                    || answer.err.starts_with("equal: "),
                "{answer:?}"
            );
        }
    }
}

#[test]
fn input_from_a_pipe_and_random_numbers_come_again() {
    let place = Place::new();
    place.deep("printf 'b\\na\\n' | RECORD sort > out");
    place.is_equal_again();
    if needs("random numbers that come again", &["od"]) {
        let place = Place::new();
        place.deep("RECORD od -An -N8 -tx1 /dev/urandom > out");
        place.is_equal_again();
    }
}

#[test]
fn a_shell_with_its_children_runs_again() {
    let place = Place::new();
    place.write_aged("in", "c\na\nb\n");
    place.deep("RECORD sh -c 'cat in | sort | head -2; echo $$' > out");
    place.is_equal_again();
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
    for part in ["different: ", "recorded \"one\\n\"", "came     \"two\\n\""] {
        assert!(answer.err.contains(part), "{part}: {answer:?}");
    }
    let Some(json) = place.again(&["--feed", &other, "--json"]) else {
        return;
    };
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    let of = &json["reconstruction"];
    assert_eq!(of["verdict"], "different");
    assert_eq!(of["processes"][0]["difference"]["kind"], "other output");
}

/// Serves three connections, each by a child.
const SERVER: &str = r#"
import os, socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(5)
with open("port.new", "w") as f: f.write(str(s.getsockname()[1]))
os.rename("port.new", "port")
for n in range(3):
    c, a = s.accept()
    if os.fork() == 0:
        c.sendall(c.recv(100)[::-1]); c.close(); os._exit(0)
    c.close()
for n in range(3): os.wait()
"#;

const CLIENT: &str = r#"
import os, socket, time
while not os.path.exists("port"): time.sleep(0.01)
for n in range(3):
    c = socket.create_connection(("127.0.0.1", int(open("port").read())))
    c.sendall(b"request %d" % n); assert c.recv(100); c.close()
"#;

#[test]
fn a_server_answers_again_without_its_network_and_one_request_alone() {
    if !needs("a server that runs again", &["python3"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("server.py", SERVER);
    place.write_aged("client.py", CLIENT);
    place.deep("python3 client.py & RECORD python3 server.py && wait");
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
        answer.is_error(1, &[]);
    }
    fs::remove_file(&log).unwrap();
    place
        .run(&["replay", "deep", "--deep"])
        .is_error(1, &["no deep log", "record --deep"]);
}
