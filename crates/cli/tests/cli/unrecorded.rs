//! Programs that take no recorder: flows through pipes and descriptors whose creation was not
//! observed.

use super::Place;
use backstory_testkit::need::{find, needs, skipped};
use serde_json::Value;
use std::process::Command;

const BUSYBOX: &str = "busybox";

/// A stage with a static busybox and a file `a`. `None` without a static busybox.
fn place() -> Option<Place> {
    let place = Place::new();
    if !needs("a static shell", &["busybox"]) {
        return None;
    }
    place.write_aged("a", "b\na\n");
    place.write_aged("b", "other\n");
    Some(place)
}

/// Records a line of the static shell, without a message of backstory.
fn record(place: &Place, line: &str) {
    let answer = place.run(&["record", "--", BUSYBOX, "sh", "-c", line]);
    assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{line}");
}

/// The names in `work` that an answer has nodes for.
fn names(place: &Place, question: &str, name: &str) -> Vec<String> {
    let json = place.json(&[question, name, "--json"]);
    let work = format!("{}/", place.path(""));
    let mut found: Vec<String> = json["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|node| {
            node["path"]
                .as_str()?
                .strip_prefix(work.trim_end_matches('/'))
        })
        .map(|name| name.trim_start_matches('/').to_owned())
        .collect();
    found.sort();
    found.dedup();
    found
}

fn came_from(place: &Place, name: &str) -> Vec<String> {
    let mut found = names(place, "of", name);
    found.retain(|other| other != name);
    found
}

/// Otherwise what the process wrote and the next change would count as one version, whose content
/// is the one that the change left.
#[test]
fn the_end_of_an_unrecorded_process_is_logged_before_the_next_change_of_a_file() {
    let Some(place) = place() else { return };
    let line = "for n in 1 2 3 4 5 6; do busybox sh -c \"echo $n >> f\"; done";
    let run = place.keep(line, &["--contents=lazy"]);
    let raw = place.run(&["log", "--raw", &run]).out;
    // A line has the record's offset, its time, its operation and, from the guard, the caller.
    let of = |operation: &str, path: &str| -> Vec<(u64, String)> {
        let fields = |line: &str| {
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let lines = raw.lines().filter(|line| line.contains(path)).map(fields);
        let lines = lines.filter(|line| line.get(2).is_some_and(|word| word == operation));
        let mut found: Vec<_> = lines
            .map(|line| (line[1].parse().unwrap(), line[3].clone()))
            .collect();
        found.sort_unstable();
        found
    };
    let (opened, ended) = (of("OPEN", "/work/f\""), of("GONE", ""));
    assert_eq!(opened.len(), 6, "{raw}");
    for pair in opened.windows(2) {
        let id = |caller: &str| caller.split('/').next().map(str::to_owned);
        let end = ended.iter().find(|end| id(&end.1) == id(&pair[0].1));
        assert!(end.is_some_and(|end| end.0 < pair[1].0), "{pair:?}: {raw}");
    }
}

#[test]
fn a_static_shells_pipeline_leads_from_its_input_to_its_output() {
    let Some(place) = place() else { return };
    record(
        &place,
        "busybox cat a | busybox sort > c; busybox cat b | busybox sort > d",
    );
    assert_eq!(came_from(&place, "c"), ["a"]);
    assert_eq!(came_from(&place, "d"), ["b"]);
    assert_eq!(names(&place, "uses", "a"), ["a", "c"]);
}

#[test]
fn a_loop_in_a_subshell_passes_on_what_it_reads() {
    let Some(place) = place() else { return };
    record(&place, "busybox cat a | while read x; do echo $x; done > c");
    assert_eq!(came_from(&place, "c"), ["a"]);
    record(
        &place,
        "busybox cat a | (while read x; do echo $x; done) | busybox cat > d",
    );
    assert_eq!(came_from(&place, "d"), ["a"]);
}

#[test]
fn a_static_program_reads_and_writes_the_files_that_its_shell_opened() {
    let Some(place) = place() else { return };
    record(&place, "busybox cat < a > c; busybox cat b");
    assert_eq!(came_from(&place, "c"), ["a"]);
    record(&place, "exec 3> d; busybox cat a >&3; exec 3>&-");
    assert_eq!(came_from(&place, "d"), ["a"]);
}

#[test]
fn a_static_shells_substitution_came_from_the_command() {
    let Some(place) = place() else { return };
    record(&place, "x=$(busybox cat a); echo $x > c");
    assert_eq!(came_from(&place, "c"), ["a"]);
}

#[test]
fn recorded_and_unrecorded_programs_share_a_pipe() {
    let Some(place) = place() else { return };
    place.record("cat a | busybox sh -c 'busybox cat | sort > c'");
    assert_eq!(came_from(&place, "c"), ["a"]);
    record(&place, "cat a | sed s/a/A/ | busybox sort > d");
    assert_eq!(came_from(&place, "d"), ["a"]);
}

#[test]
fn a_recorded_shell_makes_no_needless_request() {
    let place = Place::new();
    let run = place.record("for i in 1 2 3; do /bin/true; done; (/bin/true); /bin/true | /bin/cat");
    let log = place.run(&["log", "--raw", &run]).out;
    assert!(log.contains(" EXEC ") && !log.contains(" HOLD "), "{log}");
}

#[test]
fn a_go_program_that_joins_two_others_joins_what_they_read_and_write() {
    let Some(place) = place() else { return };
    let source = r#"package main
import ("os"; "os/exec")
func main() {
    from, to := exec.Command("busybox", "cat", "a"), exec.Command("busybox", "sort")
    to.Stdin, _ = from.StdoutPipe()
    file, _ := os.Create("c")
    to.Stdout = file
    from.Start(); to.Start(); to.Wait(); from.Wait()
}
"#;
    place.write("main.go", source);
    let built = Command::new(find("go").unwrap_or("go".into()))
        .args(["build", "-o", "joins", "main.go"])
        .current_dir(place.work())
        .env("GOCACHE", concat!(env!("CARGO_TARGET_TMPDIR"), "/go"))
        .env("GO111MODULE", "off")
        .status();
    if !built.is_ok_and(|status| status.success()) {
        return skipped("a Go program", "go does not build here");
    }
    assert_eq!(place.run(&["record", "--", "./joins"]).status, 0);
    assert_eq!(came_from(&place, "c"), ["a", "joins"]);
}

#[test]
fn an_absent_name_server_is_missing_and_no_peer() {
    let place = Place::new();
    let socket = "/var/run/nscd/socket";
    if std::path::Path::new(socket).exists() {
        return skipped("a missing name server", "there is one");
    }
    place.record("id; ls -l /etc/passwd");
    let show = place.json(&["show", "--json"]);
    assert_eq!(show["peers"], Value::Array(Vec::new()), "{show}");
}

/// The file of the socket is opened, looked at and removed by its name.
#[test]
fn a_server_of_the_same_run_is_no_peer_outside_it() {
    let place = Place::new();
    let script = r#"
import os, socket, threading
server = socket.socket(socket.AF_UNIX)
server.bind("s")
server.listen(1)
os.chmod("s", 0o700)
def serve():
    client = server.accept()[0]
    client.sendall(client.recv(9))
if os.fork() == 0:
    client = socket.socket(socket.AF_UNIX)
    client.connect("s")
    client.sendall(b"word")
    assert client.recv(9) == b"word"
    os._exit(0)
serve()
assert os.wait()[1] == 0
os.unlink("s")
"#;
    let recorded = place.run(&["record", "--", "python3", "-c", script]);
    assert_eq!(recorded.status, 0, "{}", recorded.err);
    let show = place.json(&["show", "--json"]);
    assert_eq!(show["peers"], Value::Array(Vec::new()), "{show}");
}

#[test]
fn a_file_that_loses_a_name_while_it_is_read_keeps_its_origin() {
    let place = Place::new();
    place.write_aged("a", "text");
    place.record("cat a > d");
    std::fs::hard_link(place.work().join("d"), place.work().join("e")).unwrap();
    place.age("d");
    place.record("cat d > f; rm -f e");
    assert!(came_from(&place, "f").contains(&"a".to_owned()));
}

/// The tree of where a file came from, as text.
fn tree(place: &Place, name: &str) -> String {
    let answer = place.run(&["of", name, "--tree"]);
    assert_eq!((answer.status, answer.err.as_str()), (0, ""));
    answer.out
}

#[test]
fn the_tree_shows_what_a_subshell_could_have_passed_on() {
    let Some(place) = place() else { return };
    for line in [
        "{ read x < a; echo $x; } | busybox sort > c",
        "busybox cat a | while read x; do echo $x; done > c",
        "busybox cat a | (while read x; do echo $x; done) | busybox cat > c",
        "(read x < a; echo $x; busybox cat b; true) | busybox sort > c",
    ] {
        record(&place, line);
        let text = tree(&place, "c");
        assert!(text.contains("/work/a\n"), "{line}\n{text}");
        assert!(text.contains("possibly piped from"), "{line}\n{text}");
    }
}

/// The accesses of a path: each word with its certainty.
fn deeds(place: &Place, path: &str) -> Vec<(String, String)> {
    let files = place.json(&["files", "--json"]);
    let of_path = |file: &&Value| file["path"] == path;
    let mut deeds = Vec::new();
    for file in files.as_array().unwrap().iter().filter(of_path) {
        let certainty = file["certainty"].as_str().unwrap();
        for word in file["access"].as_array().unwrap() {
            deeds.push((word.as_str().unwrap().to_owned(), certainty.to_owned()));
        }
    }
    deeds
}

#[test]
fn a_static_program_that_removes_an_empty_directory_was_seen_to() {
    let Some(place) = place() else { return };
    record(
        &place,
        "mkdir -p m n/o k; rmdir m; rmdir n 2>/dev/null; (cd k; rmdir . 2>/dev/null); true",
    );
    let removed = |name: &str| {
        let deeds = deeds(&place, &place.path(name));
        let found = deeds.iter().find(|(word, _)| word == "delete");
        found.map(|(_, certainty)| certainty.clone())
    };
    assert_eq!(removed("m").as_deref(), Some("seen"));
    assert_eq!(removed("n"), None, "it is not empty");
    assert_eq!(removed("k"), None, "its name was given as a dot");
}

#[test]
fn files_that_only_the_kernel_makes_have_no_maker() {
    if place().is_none() {
        return;
    }
    for place in [Some(Place::new()), Place::of_root()].into_iter().flatten() {
        let line =
            "mkdir /proc/backstory-x /sys/backstory-x; rmdir /proc/sys; : > /proc/backstory-y";
        place.run(&["record", "--", BUSYBOX, "sh", "-c", line]);
        let changes = ["write", "dir", "delete", "rename"];
        for path in [
            "/proc/backstory-x",
            "/sys/backstory-x",
            "/proc/sys",
            "/proc/backstory-y",
        ] {
            let wrong =
                |deed: &&(String, String)| deed.1 == "seen" && changes.contains(&deed.0.as_str());
            let deeds = deeds(&place, path);
            assert_eq!(deeds.iter().find(wrong), None, "{path}: {deeds:?}");
        }
    }
}

/// Its whole path is too long for one system call.
#[test]
fn a_file_deeper_than_path_max_is_in_the_record() {
    let Some(place) = place() else { return };
    let (directory, name) = ("d".repeat(200), "n".repeat(250));
    let mut deep = place.work();
    let mut line = String::from("set -e");
    while deep.as_os_str().len() + directory.len() + 1 < 4000 {
        deep.push(&directory);
        line += &format!("; mkdir {directory}; cd {directory}");
    }
    line += &format!("; {BUSYBOX} cp /etc/passwd {name}; {BUSYBOX} cat {name} >/dev/null");
    let path = deep.join(&name).into_os_string().into_string().unwrap();
    assert!(path.len() > 4096);
    for guard in ["on", "strict"] {
        let removed = std::fs::remove_dir_all(place.work().join(&directory));
        assert!(guard == "on" || removed.is_ok(), "{removed:?}");
        let answer = place.run(&["record", "--guard", guard, "--", BUSYBOX, "sh", "-c", &line]);
        assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{guard}");
        let files = place.json(&["files", "--json", "--all"]);
        let told = files
            .as_array()
            .unwrap()
            .iter()
            .find(|file| file["path"] == path.as_str());
        let access = told
            .map(|file| file["access"].to_string())
            .unwrap_or_default();
        assert!(
            access.contains("read") && access.contains("write"),
            "{guard}: {access:?}"
        );
    }
}
