//! `record --deep`, what `show` says about it, and `requests`.

use backstory_testkit::need::needs;

use super::Place;

/// Records a shell line deeply.
fn record_deep(place: &Place, options: &[&str], line: &str) {
    let words = [
        &["record", "--deep"][..],
        options,
        &["--", "sh", "-c", line],
    ]
    .concat();
    let answer = place.run(&words);
    assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{line}");
}

#[test]
fn show_says_which_programs_are_deep_and_which_are_only_shallow() {
    let Some(busybox) = backstory_testkit::busybox::busybox() else {
        return;
    };
    let place = Place::new();
    let busybox = busybox.display();
    record_deep(
        &place,
        &[],
        &format!("/bin/echo a >x; {busybox} cp x y; cat y"),
    );
    let shown = place.json(&["show", "--json"]);
    let paths = |list: &str| {
        let all = shown["deep"][list].as_array().unwrap().iter();
        all.map(|one| one["exec_path"].as_str().unwrap_or("").to_owned())
            .collect::<Vec<_>>()
    };
    let ends = |list: &[String], name: &str| list.iter().any(|path| path.ends_with(name));
    let (deep, shallow) = (paths("deep"), paths("shallow"));
    assert!(ends(&deep, "/echo") && ends(&deep, "/cat"), "{shown:#}");
    assert!(
        !ends(&deep, "busybox") && ends(&shallow, "busybox"),
        "{shown:#}"
    );
    assert!(
        !ends(&shallow, "/cat") && !ends(&shallow, "/echo"),
        "{shown:#}"
    );
    let text = place.run(&["show"]).out;
    assert!(
        text.contains("are deep") && text.contains("shallow"),
        "{text}"
    );
    place.record("cat x");
    assert_eq!(
        place.json(&["show", "--json"])["deep"],
        serde_json::Value::Null
    );
}

/// True if a process waits for a lock of a file.
fn waits_for_lock(pid: u32) -> bool {
    let locks = std::fs::read_to_string("/proc/locks").unwrap();
    let of = |line: &str| line.contains("->") && line.contains(&format!(" {pid} "));
    locks.lines().any(of)
}

#[test]
fn a_question_waits_for_a_deep_log_that_only_has_to_be_finished() {
    let place = Place::new();
    // It ends with the directory of a test that fails.
    let daemon = "(while test -e $PWD && ! test -e go; do sleep 0.01; done) >&- 2>&- &";
    record_deep(&place, &["--name", "late"], daemon);
    let runs = std::fs::read_dir(place.stage.store().join("runs")).unwrap();
    let mut parts = runs.map(|entry| entry.unwrap().path());
    let part = parts.find(|path| path.extension().is_some_and(|e| e == "part"));
    let path = part.unwrap().with_extension("").with_extension("deep");
    // As the process that finishes it.
    let mut options = std::fs::OpenOptions::new();
    let finished = options.append(true).create(true).open(&path).unwrap();
    finished.lock().unwrap();
    let mut question = place.command(&["show", "late"]);
    let mut question = question
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    while !waits_for_lock(question.id()) {
        assert!(question.try_wait().unwrap().is_none(), "it does not wait");
        std::thread::yield_now();
    }
    place.write("go", "");
    place.finalized();
    drop(finished);
    let answer = question.wait_with_output().unwrap();
    let shown = String::from_utf8_lossy(&answer.stdout);
    assert!(
        answer.status.success() && shown.contains("late"),
        "{answer:?}"
    );
}

#[test]
fn store_stats_says_how_much_of_a_deep_log_is_io() {
    let place = Place::new();
    place.write("in.txt", &"a line of text\n".repeat(10_000));
    let options = ["--contents=off", "--outputs=full"];
    record_deep(&place, &options, "cat in.txt | cat >out.txt");
    let deep = place.json(&["store", "stats", "--deep", "--json"])["deep"].clone();
    let bytes = |name: &str| deep[name].as_u64().unwrap();
    // The text is read and written twice.
    let text = 4 * 150_000;
    assert!(bytes("io_bytes") >= text, "{deep}");
    assert!(bytes("stored_io_bytes") >= text, "{deep}");
    assert!(bytes("record_bytes") > bytes("stored_io_bytes"), "{deep}");
    assert!(bytes("record_bytes") < 2 * text, "{deep}");
    let shown = place.run(&["store", "stats", "--deep"]).out;
    assert!(
        shown.contains("deep I/O") && shown.contains("before compression"),
        "{shown}"
    );
    let without = place.json(&["store", "stats", "--json"]);
    assert_eq!(without["deep"], serde_json::Value::Null);
}

/// A server of one thread that answers three requests on two connections, and its client.
const SERVER: &str = "/usr/bin/python3 -c '
import socket, threading
s = socket.create_server((\"127.0.0.1\", 0))
def ask():
    for sizes in ([10, 2000], [30000]):
        c = socket.create_connection(s.getsockname())
        for n in sizes:
            c.sendall(b\"%08d\" % n)
            got = 0
            while got < n: got += len(c.recv(65536))
        c.close()
t = threading.Thread(target=ask); t.start()
for _ in range(2):
    c, _a = s.accept()
    while True:
        line = c.recv(8)
        if not line: break
        with open(\"log\", \"a\") as f: f.write(\"x\")
        c.sendall(b\"y\" * int(line))
    c.close()
t.join()
'";

#[test]
fn requests_lists_what_a_server_served_with_its_bytes_and_files() {
    if !needs("a server", &["/usr/bin/python3"]) {
        return;
    }
    let place = Place::new();
    record_deep(&place, &["--outputs=full"], SERVER);
    let all = place.json(&["requests", "--json"]);
    let all = all.as_array().unwrap();
    let of = |role: &str| {
        let own = all.iter().filter(|r| r["role"] == role);
        own.cloned().collect::<Vec<_>>()
    };
    let (served, made) = (of("server"), of("client"));
    let bytes = |list: &[serde_json::Value], field: &str| {
        list.iter()
            .map(|r| r[field].as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(bytes(&served, "bytes_in"), [8, 8, 8], "{all:#?}");
    assert_eq!(bytes(&served, "bytes_out"), [10, 2000, 30000], "{all:#?}");
    assert_eq!(bytes(&made, "bytes_in"), [10, 2000, 30000], "{all:#?}");
    for request in &served {
        assert!(
            request["peer"].as_str().unwrap().starts_with("127.0.0.1:"),
            "{request}"
        );
        assert_eq!(request["files"], serde_json::json!(["log"]), "{request}");
    }
    // One thread served them in order, so they do not overlap.
    let times = |request: &serde_json::Value| {
        ["start", "end"].map(|field| request[field].as_f64().unwrap())
    };
    let times: Vec<f64> = served.iter().flat_map(times).collect();
    assert!(times.is_sorted() && times[0] < times[5], "{all:#?}");
    let text = place.run(&["requests"]).out;
    assert_eq!(text.lines().count(), 1 + all.len(), "{text}");
}

#[test]
fn a_run_without_a_deep_log_has_no_requests_and_says_how_to_get_them() {
    let place = Place::new();
    place.record("true");
    let answer = place.run(&["requests"]);
    assert_ne!(answer.status, 0);
    assert!(answer.err.contains("record --deep"), "{answer:?}");
}

#[test]
fn rm_removes_the_deep_log_with_its_run() {
    let place = Place::new();
    record_deep(&place, &[], "echo a");
    let deep = |place: &Place| {
        let entries = std::fs::read_dir(place.stage.store().join("runs")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name());
        names
            .filter(|name| name.to_string_lossy().ends_with(".deep"))
            .count()
    };
    let id = place.json(&["show", "--json"])["run"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(deep(&place), 1);
    assert_eq!(place.run(&["rm", &id]).status, 0);
    assert_eq!(deep(&place), 0);
}

#[test]
fn outputs_needs_deep() {
    let place = Place::new();
    let answer = place.run(&["record", "--outputs=full", "--", "true"]);
    assert!(
        answer.status != 0 && answer.err.contains("--deep"),
        "{answer:?}"
    );
}
