//! `replay` with deliberate changes, and replays that cannot be done. The message names the missing
//! file and the remedy.

use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use backstory_testkit::need::{needs, skipped};
use backstory_testkit::procs::eventually;

use super::{Answer, Place};

fn recorded(line: &str) -> (Place, String) {
    let place = Place::new();
    place.write_aged("in", "b\na\n");
    let run = place.keep(line, &["--contents=lazy"]);
    (place, run)
}

impl Place {
    /// The file that a replay left at a path of `work`.
    fn left(&self, name: &str) -> String {
        fs::read_to_string(self.path("../home/again/files") + &self.path(name)).unwrap()
    }

    fn leaves_nothing(&self) {
        assert!(
            !std::path::Path::new(&self.path("../home/again")).exists(),
            "nothing half-done"
        );
    }
}

#[test]
fn an_argument_a_variable_or_another_command_changes_the_outputs() {
    let (place, run) = recorded("sort $HOW in > out; echo $WHO >> out");
    assert_eq!(
        place
            .replay(&run, &["--env", "HOW=-r", "--env", "WHO=me"])
            .status,
        1
    );
    assert_eq!(place.left("out"), "b\na\nme\n");
    place.replay(&run, &["--arg", "2=sort -u in > out"]);
    assert_eq!(place.left("out"), "a\nb\n");
    let answer = place.replay(&run, &["--", "sort", "-o", "sorted", "in"]);
    assert_eq!(place.left("sorted"), "a\nb\n", "{answer:?}");
    assert!(answer.err.contains("new"), "{answer:?}");
}

#[test]
fn an_untouched_file_is_in_the_replay_only_on_request() {
    let (place, run) = recorded("cat in > out");
    place.write("never", "nobody read this\n");
    let other = ["--", "sh", "-c", "cat never > out"];
    let without = place.replay(&run, &other);
    assert!(
        without.status == 1
            && without
                .err
                .contains("/never, which the recorded run did not use")
            && without.err.contains("--allow-host"),
        "{without:?}"
    );
    let with = place.replay(&run, &[&["--allow-host"][..], &other].concat());
    assert_eq!(with.status, 1, "{with:?}");
    assert_eq!(place.left("out"), "nobody read this\n");
    place
        .replay(&run, &["--input", "in=nothing-of-that-name"])
        .is_error(1, &["nothing-of-that-name", "No such file"]);
}

#[test]
fn a_program_that_the_run_did_not_use_is_named_with_where_it_is() {
    let (place, run) = recorded("cat in > out");
    for more in [&[][..], &["--no-record"]] {
        let answer = place.replay(&run, &[more, &["--", "wc", "-l", "in"]].concat());
        assert_eq!(answer.status, 1, "{answer:?}");
        for words in [
            "could not be started: wc",
            "bin/wc, which the recorded run did not use",
            "--allow-host",
        ] {
            assert!(answer.err.contains(words), "no {words:?} in {answer:?}");
        }
        let answer = place.replay(&run, &[more, &["--json", "--", "no-such-program"]].concat());
        let report: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
        assert_eq!(
            (&report["exit"], &report["not_touched"]),
            (&127.into(), &serde_json::json!([]))
        );
        assert!(
            report["not_started"]
                .as_str()
                .unwrap()
                .contains("no-such-program")
        );
    }
    let answer = place.replay(&run, &["--allow-host", "--", "wc", "-l", "in"]);
    assert!(
        answer.out.contains("2 in") && !answer.err.contains("not be started"),
        "{answer:?}"
    );
    place
        .replay(&run, &["--input", "in=/tmp"])
        .is_error(1, &["/tmp", "as an input", "no regular file"]);
    place.leaves_nothing();
}

/// An unrelated compiler writes into `/tmp` all the time.
#[test]
fn changes_on_the_machine_disturb_no_running_replay() {
    let (place, run) = recorded("cat in > out");
    let passing = |i: u32| place.path(&format!("passing-{i}"));
    let over = AtomicBool::new(false);
    let answers = std::thread::scope(|threads| {
        threads.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                (0..100).for_each(|i| fs::write(passing(i), "").unwrap());
                (0..100).for_each(|i| fs::remove_file(passing(i)).unwrap());
            }
        });
        let answers: Vec<Answer> = (0..5)
            .map(|_| place.replay(&run, &["--allow-host"]))
            .collect();
        over.store(true, Ordering::Relaxed);
        answers
    });
    for answer in answers {
        assert_eq!(answer.status, 0, "{answer:?}");
    }
}

#[test]
fn a_replay_has_the_network_only_on_request() {
    if !needs("a replay with the network", &["bash"]) {
        return;
    }
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let line = format!(
        "bash -c 'echo > /dev/tcp/127.0.0.1/{port}' 2>/dev/null && echo reached > out || echo none > out"
    );
    let run = place.keep(&line, &["--contents=lazy"]);
    let without = place.replay(&run, &[]);
    assert_eq!((without.status, place.left("out").as_str()), (1, "none\n"));
    let with = place.replay(&run, &["--network"]);
    assert_eq!(with.status, 0, "{with:?}");
    assert_eq!(place.left("out"), "reached\n");
}

impl Place {
    /// Runs `backstory ARGS…` in `work`, where no namespace can be made. `None`, with a notice, if
    /// that cannot be arranged.
    pub(super) fn without_namespaces(&self, args: &[&str]) -> Option<Answer> {
        let inner = self.command(args);
        let mut command = self.stage.command("unshare");
        command.args([
            "-Ur",
            "sh",
            "-c",
            "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"",
            "sh",
        ]);
        command.arg(inner.get_program()).args(inner.get_args());
        let variables = inner.get_envs();
        command.envs(variables.filter_map(|(name, value)| Some((name, value?))));
        let answer = Answer::of(command.current_dir(self.work()).output().unwrap());
        if answer.err.contains("unshare") {
            skipped("a replay without namespaces", &answer.err);
            return None;
        }
        Some(answer)
    }
}

#[test]
fn denied_namespaces_suggest_the_container_export() {
    if !needs("a replay without namespaces", &["unshare"]) {
        return;
    }
    let (place, run) = recorded("cat in > out");
    let again = place.path("../home/again");
    let words = ["replay", &run, "--output-dir", &again];
    let Some(answer) = place.without_namespaces(&words) else {
        return;
    };
    answer.is_error(1, &["user namespace", "export oci"]);
    place.leaves_nothing();
}

/// Installs a package of the user's own, as pip does, and returns its path.
fn install(place: &Place) -> String {
    let script = "import base64, hashlib, os, sys\n\
        at = sys.argv[1]; os.makedirs(at + '/mine'); os.makedirs(at + '/mine-1.2.dist-info')\n\
        files = {'mine/__init__.py': b'def double(text): return text * 2\\n', 'mine-1.2.dist-info/METADATA': b'Metadata-Version: 2.1\\nName: mine\\nVersion: 1.2\\n'}\n\
        record = ''\n\
        for name, text in files.items():\n\
        \x20   open(at + '/' + name, 'wb').write(text)\n\
        \x20   digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b'=').decode()\n\
        \x20   record += f'{name},sha256={digest},{len(text)}\\n'\n\
        open(at + '/mine-1.2.dist-info/RECORD', 'w').write(record)\n";
    let at = place.path("../home/lib/python3/site-packages");
    let mut python = place.stage.command("python3");
    let status = python.args(["-c", script, &at]).status().unwrap();
    assert!(status.success());
    at
}

#[test]
fn a_moved_package_is_named_or_is_in_the_store_on_request() {
    if !needs("the replay of a package of the user's", &["python3"]) {
        return;
    }
    let place = Place::new();
    let packages = install(&place);
    place.write_aged("in", "text\n");
    place.write_aged(
        "work.py",
        "import mine\nopen('out', 'w').write(mine.double(open('in').read()))\n",
    );
    let line = format!("PYTHONDONTWRITEBYTECODE=1 PYTHONPATH={packages} python3 work.py");
    let named = place.keep(&line, &["--contents=lazy"]);
    let whole = place.keep(&line, &["--contents=lazy", "--self-contained"]);
    // With the contents of the first store, the first one would come back, too.
    let second = Place::new();
    let elsewhere = install(&second);
    second.write_aged("in", "text\n");
    second.write_aged(
        "work.py",
        &fs::read_to_string(place.path("work.py")).unwrap(),
    );
    let alone = second.keep(&line.replace(&packages, &elsewhere), &["--contents=lazy"]);
    for (place, packages) in [(&place, &packages), (&second, &elsewhere)] {
        fs::rename(packages, place.path("../home/aside")).unwrap();
    }
    place.replays_alike(&whole);
    place.replays_alike(&named);
    second
        .replay(&alone, &[])
        .is_error(1, &["mine 1.2 (pip)", "not here", "--self-contained"]);
    second.leaves_nothing();
}

#[test]
fn an_incomplete_run_reports_what_is_missing() {
    if !needs("the replay of an incomplete run", &["busybox"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("in", "text\n");
    let out = place.run(&[
        "record",
        "--contents=lazy",
        "--guard=off",
        "--",
        "busybox",
        "cp",
        "in",
        "out",
    ]);
    assert_eq!(out.status, 0, "{out:?}");
    place.run(&["index", "--wait"]);
    let run = place.json(&["log", "--json"])[0]["run"]
        .as_str()
        .unwrap()
        .to_owned();
    let answer = place.replay(&run, &[]);
    for word in ["not complete", "busybox", "record it with the guard"] {
        assert!(answer.err.contains(word), "no {word:?} in {answer:?}");
    }
}

#[test]
fn an_output_that_was_removed_before_it_was_stored_is_named_with_the_reason() {
    let place = Place::new();
    place.write_aged("in", "text\n");
    let run = place.record("cat in > out; cat in > other");
    fs::remove_file(place.path("out")).unwrap();
    let answer = place.replay(&run, &["--allow-host"]);
    assert!(
        answer.status == 0
            && answer.err.contains("identical as far as is known")
            && answer.err.contains("/out")
            && answer.err.contains("before its content could be taken"),
        "{answer:?}"
    );
}

#[test]
fn an_unwritable_directory_is_named_and_a_full_one_left_alone() {
    let (place, run) = recorded("cat in > out");
    place.write("file", "mine\n");
    for bad in [
        "/proc/again",
        &place.path("file"),
        &place.path("file/below"),
    ] {
        place
            .run(&["replay", &run, "--output-dir", bad])
            .is_error(1, &[bad, "--output-dir"]);
    }
    let holds = place.path("..");
    place
        .run(&["replay", &run, "--output-dir", &holds])
        .is_error(2, &["not empty", "--output-dir"]);
    assert_eq!(fs::read_to_string(place.path("file")).unwrap(), "mine\n");
}

/// Starts a replay that does not end by itself, and waits until it runs.
fn endless(place: &Place, run: &str) -> std::process::Child {
    let again = place.path("../home/again");
    let mut command = place.command(&["replay", run, "--output-dir", &again]);
    command.args(["--", "sh", "-c", "cat in > out; while :; do :; done"]);
    let child = command
        .process_group(0)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let root = std::path::Path::new(&again).join("root");
    assert!(eventually(Duration::from_secs(120), || root.exists()));
    child
}

#[test]
fn an_interrupted_replay_leaves_no_files() {
    use std::os::unix::process::ExitStatusExt;
    let (place, run) = recorded("cat in > out");
    let mut child = endless(&place, &run);
    let group = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process_group(group, rustix::process::Signal::INT).unwrap();
    // It reports that its command was ended. If the command had only just been started, it ends
    // like it.
    let status = child.wait().unwrap();
    let key = Some(rustix::process::Signal::INT.as_raw());
    assert!(
        status.code() == Some(1) || status.signal() == key,
        "{status}"
    );
    place.leaves_nothing();
}

/// A signal to the replay alone, or the loss of its terminal, ends it like any program. Its command
/// ends with it, and no file stays.
#[test]
fn a_replay_that_is_ended_leaves_no_files() {
    use rustix::process::Signal;
    use std::os::unix::process::ExitStatusExt;
    let (place, run) = recorded("cat in > out");
    for signal in [Signal::TERM, Signal::HUP] {
        let mut child = endless(&place, &run);
        let launcher = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(launcher, signal).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(signal.as_raw()));
        place.leaves_nothing();
    }
}

/// Whether a process of the group still runs. Its status lines are `pid (name) state parent group`.
fn has_processes(group: u32) -> bool {
    let stats = fs::read_dir("/proc").unwrap().flatten();
    stats
        .filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok())
        .any(|stat| {
            let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
            let fields: Vec<&str> = after.split_whitespace().collect();
            fields[0] != "Z" && fields[2] == group.to_string()
        })
}

#[test]
fn a_killed_replays_remains_go_with_the_next() {
    let (place, run) = recorded("cat in > out");
    let again = std::path::PathBuf::from(place.path("../home/again"));
    let mut child = endless(&place, &run);
    child.kill().unwrap();
    child.wait().unwrap();
    // The kernel kills its processes a moment later. One that ends by itself then still reports.
    let ended = || !has_processes(child.id());
    assert!(eventually(Duration::from_secs(120), ended));
    assert!(
        again.join("plan.json").exists(),
        "or there is nothing to be tested"
    );
    // As if it had happened some time ago: a new directory may belong to a process that has not
    // locked it yet.
    let old = std::time::SystemTime::now() - Duration::from_secs(60);
    let age = |path: &std::path::Path| fs::File::open(path).unwrap().set_modified(old).unwrap();
    age(&again);
    let beside = place.work().join("replay-killed-1");
    fs::rename(&again, &beside).unwrap();
    age(&beside);
    let answer = place.run(&["replay", &run]);
    assert!(answer.status == 0 && !beside.exists(), "{answer:?}");
    fs::rename(place.work().join(format!("replay-{run}-1")), &again).unwrap();
    age(&again);
    assert_eq!(
        place
            .run(&["replay", &run, "--output-dir", &place.path("../home/again")])
            .status,
        2,
        "what is done stays"
    );
}

#[test]
fn a_command_that_never_ran_cannot_be_replayed() {
    let place = Place::new();
    place.run(&["record", "--contents=lazy", "--", "./no-such-program"]);
    place.run(&["index", "--wait"]);
    let run = place.json(&["log", "--json"])[0]["run"]
        .as_str()
        .unwrap()
        .to_owned();
    place
        .replay(&run, &[])
        .is_error(1, &["could not be started", "nothing to replay"]);
    place.leaves_nothing();
}
