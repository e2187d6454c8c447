//! Logs written out line by line: what each must mean.

use super::Desk;

/// Imports these lines, each of which gets a time.
fn imported(lines: &[&str]) -> Desk {
    let desk = Desk::new();
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        let (pid, rest) = line.split_once(' ').unwrap();
        text.push_str(&format!("{pid} 1700000000.{at:06} {rest}\n"));
    }
    let log = desk.write("trace.log", text.as_bytes());
    desk.import(&[log], &["--cwd", "/", "--machine", "other"]);
    desk
}

fn paths(desk: &Desk, access: &str) -> Vec<String> {
    let files = desk.json(&["files", "--all", "--json"]);
    let all = files.as_array().unwrap().iter();
    let used = all.filter(|file| {
        file["access"]
            .as_array()
            .unwrap()
            .iter()
            .any(|of| of == access)
    });
    used.map(|file| file["path"].as_str().unwrap().to_owned())
        .collect()
}

fn tree(desk: &Desk) -> Vec<(u64, Option<u64>, String)> {
    let all = desk.json(&["processes", "--json"]);
    let one = |of: &serde_json::Value| {
        let program = of["exec_path"].as_str().unwrap_or("-").to_owned();
        (of["pid"].as_u64().unwrap(), of["parent"].as_u64(), program)
    };
    all.as_array().unwrap().iter().map(one).collect()
}

const BEGIN: [&str; 2] = [
    "1 execve(\"/bin/sh\", [\"sh\"], 0x7f /* 1 var */) = 0",
    "1 brk(NULL) = 0x1000",
];

fn begun(lines: &[&str]) -> Desk {
    let all: Vec<&str> = BEGIN.iter().chain(lines).copied().collect();
    imported(&all)
}

#[test]
fn a_child_that_acts_before_its_fork_returns_has_its_parent() {
    let desk = begun(&[
        "1 vfork( <unfinished ...>",
        "2 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3",
        "2 execve(\"/bin/x\", [\"x\"], 0x7f /* 1 var */ <unfinished ...>",
        "1 <... vfork resumed>) = 2",
        "2 <... execve resumed>) = 0",
        "2 +++ exited with 0 +++",
        "1 +++ exited with 0 +++",
    ]);
    let wanted = [
        (1, None, "/bin/sh".to_owned()),
        (2, Some(1), "/bin/x".to_owned()),
    ];
    assert_eq!(tree(&desk), wanted);
    assert_eq!(desk.reasons(), "[]");
}

#[test]
fn of_two_open_forks_each_child_finds_its_own() {
    let desk = begun(&[
        "1 clone(child_stack=NULL, flags=SIGCHLD) = 2",
        "2 execve(\"/bin/two\", [\"two\"], 0x7f) = 0",
        "1 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>",
        "2 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>",
        "4 execve(\"/bin/four\", [\"four\"], 0x7f) = 0",
        "3 execve(\"/bin/three\", [\"three\"], 0x7f) = 0",
        "2 <... clone resumed>) = 3",
        "1 <... clone resumed>) = 4",
        "3 +++ exited with 0 +++",
        "4 +++ exited with 0 +++",
        "2 +++ exited with 0 +++",
        "1 +++ exited with 0 +++",
    ]);
    let mut found = tree(&desk);
    found.sort();
    let wanted = [
        (1, None, "/bin/sh".to_owned()),
        (2, Some(1), "/bin/two".to_owned()),
        (3, Some(2), "/bin/three".to_owned()),
        (4, Some(1), "/bin/four".to_owned()),
    ];
    assert_eq!(found, wanted);
    assert_eq!(desk.reasons(), "[]");
}

#[test]
fn a_process_id_that_is_used_again_is_another_process() {
    let desk = begun(&[
        "1 clone(child_stack=NULL, flags=SIGCHLD) = 2",
        "2 execve(\"/bin/first\", [\"first\"], 0x7f) = 0",
        "2 +++ exited with 3 +++",
        "1 wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 3}], 0, NULL) = 2",
        "1 clone(child_stack=NULL, flags=SIGCHLD) = 2",
        "2 execve(\"/bin/second\", [\"second\"], 0x7f) = 0",
        "2 +++ killed by SIGKILL +++",
        "1 +++ exited with 0 +++",
    ]);
    let all = desk.json(&["processes", "--json"]);
    let ends: Vec<String> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|one| format!("{} {} {}", one["exec_path"], one["exit"], one["signal"]))
        .collect();
    let wanted = [
        "\"/bin/sh\" 0 null",
        "\"/bin/first\" 3 null",
        "\"/bin/second\" null 9",
    ];
    assert_eq!(ends, wanted);
}

#[test]
fn a_log_that_begins_in_the_middle_keeps_what_it_has() {
    let desk = imported(&[
        "5 brk(NULL) = 0x1000",
        "5 openat(AT_FDCWD, \"/five\", O_RDONLY) = 3",
        "4 openat(AT_FDCWD, \"/four\", O_WRONLY|O_CREAT|O_EXCL, 0666) = 3",
        "4 execve(\"/bin/x\", [\"x\"], 0x7f) = 0",
        "5 +++ exited with 0 +++",
        "4 +++ exited with 0 +++",
    ]);
    assert!(
        desk.reasons()
            .contains("the beginning of 2 processes is not in the log")
    );
    assert_eq!(paths(&desk, "read"), ["/five"]);
    assert_eq!(paths(&desk, "write"), ["/four"]);
    assert_eq!(tree(&desk).len(), 2);
}

#[test]
fn descriptors_follow_copies_execs_and_shared_tables() {
    let desk = begun(&[
        "1 openat(AT_FDCWD, \"/a\", O_WRONLY|O_CREAT|O_EXCL|O_CLOEXEC, 0666) = 3",
        "1 fcntl(3, F_DUPFD, 10) = 10",
        "1 openat(AT_FDCWD, \"/d\", O_RDONLY|O_DIRECTORY) = 4",
        "1 clone(child_stack=0x7f, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD|CLONE_SYSVSEM) = 2",
        "2 openat(4, \"e/../f\", O_RDONLY) = 5",
        "2 chdir(\"/home\") = 0",
        "2 +++ exited with 0 +++",
        "1 openat(AT_FDCWD, \"g\", O_RDONLY) = 6",
        "1 execve(\"/bin/next\", [\"next\"], 0x7f) = 0",
        "1 write(10, \"x\", 1) = 1",
        "1 read(5, \"x\", 1) = 1",
        "1 +++ exited with 0 +++",
    ]);
    assert_eq!(desk.reasons(), "[]");
    assert_eq!(paths(&desk, "write"), ["/a"]);
    assert_eq!(paths(&desk, "read"), ["/d/f", "/home/g"]);
    let of = desk.backstory(&["of", "/a"]);
    let text = String::from_utf8(of.stdout).unwrap();
    assert!(text.contains("next"), "{text}");
}

#[test]
fn an_exec_by_another_thread_replaces_the_first_one() {
    // The forms of strace 6.13 and of older versions.
    for end in ["<pid changed to 1 ...>", "<unfinished ...>"] {
        let exec = format!("2 execve(\"/bin/next\", [\"next\"], 0x7f /* 1 var */ {end}");
        let desk = begun(&[
            "1 clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD, stack=0x7f}, 88) = 2",
            "1 pause( <unfinished ...>",
            &exec,
            "1 +++ superseded by execve in pid 2 +++",
            "1 <... execve resumed>) = 0",
            "1 openat(AT_FDCWD, \"/x\", O_RDONLY) = 3",
            "1 +++ exited with 0 +++",
        ]);
        assert_eq!(desk.reasons(), "[]", "{end}");
        let programs: Vec<String> = tree(&desk).into_iter().map(|one| one.2).collect();
        assert_eq!(programs, ["/bin/sh", "/bin/next"], "{end}");
        assert_eq!(paths(&desk, "read"), ["/x"], "{end}");
    }
}

#[test]
fn hostile_paths_come_back_byte_by_byte() {
    let desk = begun(&[
        r#"1 openat(AT_FDCWD, "/a\nb\"c\\ <unfinished ...>\377\7z\0101", O_RDONLY) = 3</a>"#,
        r#"1 openat(AT_FDCWD, "/) = -1 ENOENT (", O_RDONLY) = 4</x\74\76>"#,
        r#"1 openat(AT_FDCWD, "/../../etc/./p", O_RDONLY) = 5"#,
        r#"1 unlink("/\x64\x65l") = 0"#,
        "1 +++ exited with 0 +++",
    ]);
    let output = desk.backstory(&["files", "--all", "--json"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains(r#""/a\nb\"c\\ <unfinished ...>\udcff\u0007z\u00081""#),
        "{text}"
    );
    for path in ["/) = -1 ENOENT (", "/etc/p"] {
        assert!(
            text.contains(&serde_json::to_string(path).unwrap()),
            "{path}: {text}"
        );
    }
    assert!(
        text.contains("\"/del\", \"access\": [\"delete\"]"),
        "{text}"
    );
    let show = desk.backstory(&["show"]);
    let show = String::from_utf8(show.stdout).unwrap();
    assert!(show.contains("complete     yes"), "{show}");
}

#[test]
fn a_call_that_never_returned_is_possible() {
    let desk = begun(&[
        "1 openat(AT_FDCWD, \"/never\", O_WRONLY|O_CREAT|O_TRUNC, 0666 <unfinished ...>",
        "1 +++ killed by SIGKILL +++",
    ]);
    let files = desk.json(&["files", "--all", "--json"]);
    let never = files
        .as_array()
        .unwrap()
        .iter()
        .find(|file| file["path"] == "/never");
    assert_eq!(never.unwrap()["certainty"], "possible");
    assert_eq!(desk.json(&["show", "--json"])["signal"], 9);
}

#[test]
fn sockets_have_their_addresses() {
    let desk = begun(&[
        "1 socket(AF_INET, SOCK_STREAM|SOCK_CLOEXEC, IPPROTO_TCP) = 3",
        "1 connect(3, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr(\"192.0.2.7\")}, 16) = 0",
        "1 sendto(3, \"x\", 1, 0, NULL, 0) = 1",
        "1 socket(AF_UNIX, SOCK_STREAM, 0) = 4",
        "1 connect(4, {sa_family=AF_UNIX, sun_path=\"/run/none\"}, 110) = -1 ENOENT (No such file or directory)",
        "1 +++ exited with 0 +++",
    ]);
    let peers = desk.json(&["peers", "--json"]).to_string();
    assert!(peers.contains("tcp:192.0.2.7:80"), "{peers}");
    assert_eq!(paths(&desk, "missing"), ["/run/none"]);
}
