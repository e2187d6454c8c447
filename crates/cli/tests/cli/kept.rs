//! Reports about contents; and a process that stores or removes contents may be killed at any
//! moment.

use super::Place;
use backstory_testkit::need::needs;
use rustix::fs::{FlockOperation, flock};
use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;

impl Place {
    /// Runs `backstory` and kills it before its `at`th call that changes files. Returns false if it
    /// made fewer.
    fn kill_at(&self, at: usize, args: &[&str]) -> bool {
        let calls = "write,pwrite64,fsync,fdatasync,rename,unlink,unlinkat,mkdir,ftruncate,flock";
        self.kill_in(calls, at, args)
    }

    /// The same for the `at`th call of any of these kinds.
    pub(super) fn kill_in(&self, calls: &str, at: usize, args: &[&str]) -> bool {
        let mut command = self.stage.command("strace");
        command
            .env("BACKSTORY_STORE", self.stage.store())
            .current_dir(self.work());
        command.args([
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            &format!("trace={calls}"),
        ]);
        command.arg(format!("--inject={calls}:signal=SIGKILL:when={at}"));
        command.arg(self.program()).args(args);
        command.output().unwrap().status.signal() == Some(9)
    }

    /// Asserts that the store is whole, and holds the content that `name` had.
    fn is_whole(&self, name: &str, text: &str, when: &str) {
        let verified = self.run(&["store", "verify"]);
        assert_eq!(
            verified.status, 0,
            "{when}: {}{}",
            verified.out, verified.err
        );
        assert_eq!(self.run(&["contents", name]).out, text, "{when}");
    }
}

#[test]
fn a_content_that_is_not_stored_has_a_reason() {
    let place = Place::new();
    place.write_aged("in", "as it was read\n");
    place.write_aged("stays", "as it stays\n");
    place.keep(
        "cat in stays > out; echo new > in",
        &["--contents=lazy", "--guard=off"],
    );
    let shown = place.json(&["show", "--json"]);
    let contents = &shown["contents"];
    assert_eq!(contents["settled"], true);
    let missing: Vec<&str> = contents["not_kept"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| !one["because"].as_str().unwrap().is_empty())
        .filter_map(|one| one["path"].as_str())
        .collect();
    assert_eq!(missing, [place.path("in")]);
    assert!(contents["kept"].as_u64().unwrap() >= 3, "{contents}");
    assert!(place.run(&["show"]).out.contains("not stored"));
}

#[test]
fn a_file_whose_content_an_earlier_run_stored_is_not_read_again() {
    let place = Place::new();
    place.write_aged("in", "text\n");
    place.write_aged("new", "another\n");
    place.keep("cat in > /dev/null", &["--contents=lazy"]);
    // An attempt to open an unreadable file leaves a reason among the facts.
    let attempted = || {
        let facts = fs::read(place.stage.store().join("facts.log")).unwrap();
        String::from_utf8_lossy(&facts).contains("it cannot be opened")
    };
    place.keep("cat in > /dev/null; chmod 0 in", &["--contents=lazy"]);
    assert!(!attempted());
    assert_eq!(place.run(&["contents", "in"]).out, "text\n");
    place.keep("cat new > /dev/null; chmod 0 new", &["--contents=lazy"]);
    assert!(attempted());
}

#[test]
fn contents_says_why_a_content_is_not_stored() {
    let place = Place::new();
    let reason = |what: &str| {
        let answer = place.run(&["contents", what]);
        answer.is_error(1, &[what.split('@').next().unwrap(), "not stored"]);
        answer.err
    };
    place.keep("echo x > off", &["--contents=off", "--name=off"]);
    assert!(
        reason("off").contains("--contents=off"),
        "{}",
        reason("off")
    );
    place.keep("echo 1 > gone; rm gone", &["--contents=lazy"]);
    let why = reason("gone");
    assert!(why.contains("changed or removed the file again"), "{why}");
    assert!(!why.contains("--contents=off"), "{why}");
    // Another program changes the file before it is examined.
    place.write("lock", "");
    let lock = File::create(place.stage.store().join("index.lock"));
    let held =
        lock.and_then(|lock| Ok(flock(&lock, FlockOperation::LockExclusive).map(|()| lock)?));
    let run = place.run(&[
        "record",
        "--contents=lazy",
        "--",
        "sh",
        "-c",
        "echo 1 > later",
    ]);
    assert_eq!(run.status, 0, "{run:?}");
    fs::remove_file(place.path("later")).unwrap();
    drop(held);
    assert_eq!(place.run(&["index", "--wait"]).status, 0);
    let why = reason("later");
    assert!(why.contains("after the run"), "{why}");
    assert!(!why.contains("--contents=off"), "{why}");
}

#[test]
fn show_does_not_miss_the_output_that_its_caller_redirected() {
    let place = Place::new();
    place.write_aged("in", "text\n");
    let mut record = place.command(&[
        "record",
        "--contents=lazy",
        "--",
        "sh",
        "-c",
        "cat in; echo new > in",
    ]);
    record.stdout(File::create(place.path("printed")).unwrap());
    assert!(record.status().unwrap().success());
    fs::write(place.path("printed"), "something else\n").unwrap();
    assert_eq!(place.run(&["index", "--wait"]).status, 0);
    let shown = place.run(&["show"]).out;
    assert!(!shown.contains("printed"), "{shown}");
}

#[test]
fn files_shows_each_versions_digest_and_contents_all_stores_unread_ones() {
    let place = Place::new();
    place.keep(
        "printf first | dd of=f 2>/dev/null; printf second | dd of=f 2>/dev/null; rm f; printf third > f",
        &["--contents=all"],
    );
    let files = place.json(&["files", "--json"]);
    let path = place.path("f");
    let f = files
        .as_array()
        .unwrap()
        .iter()
        .find(|file| file["path"] == path.as_str());
    let versions = f.unwrap()["versions"].as_array().unwrap();
    let texts: Vec<String> = versions
        .iter()
        .map(|v| place.run(&["contents", v["digest"].as_str().unwrap()]).out)
        .collect();
    assert_eq!(texts, ["first", "second", "third"]);
}

/// BLAKE3 of the empty input, from its authors' test vectors.
const EMPTY: &str = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";

#[test]
fn show_prints_the_digest_of_each_version() {
    let place = Place::new();
    place.write_aged("in", "first\n");
    place.keep(
        "cat in > out; echo second > in; : > empty",
        &["--contents=lazy"],
    );
    let shown = place.json(&["show", "--json"]);
    let versions = shown["contents"]["versions"].as_array().unwrap();
    let of = |name: &str| -> Vec<&Value> {
        let path = place.path(name);
        versions
            .iter()
            .filter(|one| one["path"] == path.as_str())
            .collect()
    };
    let texts = |name: &str| -> Vec<String> {
        let digests = of(name)
            .into_iter()
            .map(|one| one["digest"].as_str().unwrap());
        digests
            .map(|digest| place.run(&["contents", digest]).out)
            .collect()
    };
    assert_eq!(
        (texts("in"), texts("out")),
        (
            vec!["first\n".into(), "second\n".into()],
            vec!["first\n".into()]
        )
    );
    let empty = of("empty")[0];
    assert_eq!(
        (empty["digest"].as_str(), &empty["kept"], &empty["last"]),
        (Some(EMPTY), &true.into(), &true.into())
    );
    assert_eq!(
        [&of("in")[0]["version"], &of("in")[0]["last"]],
        [&Value::from(0), &false.into()]
    );
}

#[test]
fn runs_of_some_age_are_forgotten_with_their_contents() {
    let place = Place::new();
    place.write_aged("in", "text\n");
    let run = place.keep("cat in > out", &["--contents=lazy"]);
    let young = place.json(&["store", "gc", "--older-than", "1h", "--json"]);
    assert_eq!(young["runs"], Value::Array(Vec::new()));
    let old = place.json(&["store", "gc", "--older-than", "0h", "--json"]);
    assert_eq!(old["runs"][0], run.as_str());
    let stats = place.json(&["store", "stats", "--json"]);
    assert_eq!(stats["contents"]["objects"], 0);
    assert_eq!(place.json(&["log", "--json"]), Value::Array(Vec::new()));
}

#[test]
fn storing_contents_may_be_killed_at_any_change_without_loss_or_remains() {
    if !needs("kills while contents are stored", &["strace"]) {
        return;
    }
    let place = Place::new();
    place.keep("echo > first", &["--contents=lazy"]);
    let lock = File::open(place.stage.store().join("keep.lock")).unwrap();
    for at in (1..=40).step_by(3) {
        let (name, text) = (format!("in{at}"), format!("as it was read {at}\n"));
        place.write_aged(&name, &text);
        flock(&lock, FlockOperation::LockExclusive).unwrap();
        let line = format!("cat {name} > out; echo new > {name}; rm {name}; cat out");
        let recorded = place.run(&["record", "--contents=lazy", "--", "sh", "-c", &line]);
        assert_eq!((recorded.status, recorded.err.as_str()), (0, ""));
        place.finalized();
        flock(&lock, FlockOperation::Unlock).unwrap();
        let killed = place.kill_at(at, &["index", "--wait"]);
        assert_eq!(place.run(&["index", "--wait"]).status, 0);
        let when = format!("killed at {at}: {killed}");
        place.is_whole("out", &text, &when);
        let left = fs::read_dir(place.stage.store().join("runs")).unwrap();
        let names = left.flatten().map(|entry| entry.file_name());
        let preserved: Vec<_> = names
            .filter(|name| name.as_encoded_bytes().ends_with(b".kept"))
            .collect();
        assert!(preserved.is_empty(), "{when}: {preserved:?}");
    }
}

#[test]
fn garbage_collection_or_import_may_be_killed_at_any_change() {
    if !needs("kills while contents are collected", &["strace"]) {
        return;
    }
    let (place, there) = (Place::new(), Place::new());
    place.write_aged("in", "as it was read\n");
    there.keep("echo > first", &["--contents=lazy"]);
    let run = place.keep("cat in > out; rm in", &["--contents=lazy"]);
    let file = place.path("x.backstory");
    place.run(&["store", "export", &run, "-o", &file]);
    let copy = there.path("x.backstory");
    fs::copy(&file, &copy).unwrap();
    there.stage.user().owns(copy.as_ref()).unwrap();
    for at in (1..=31).step_by(3) {
        place.write_aged("other", &format!("to be forgotten {at}\n"));
        let gone = place.keep("cat other > other2", &["--contents=lazy"]);
        place.run(&["rm", &gone]);
        place.kill_at(at, &["store", "gc"]);
        place.is_whole("out", "as it was read\n", &format!("gc killed at {at}"));
        there.kill_at(at, &["store", "import", &copy]);
        assert_eq!(
            there.run(&["store", "verify"]).status,
            0,
            "import killed at {at}"
        );
        let known = there.run(&["log"]).out.lines().count();
        assert!(known <= 2, "import killed at {at}: {known}");
    }
    assert_eq!(there.run(&["store", "import", &copy]).status, 0);
    assert_eq!(
        there.run(&["contents", &place.path("out")]).out,
        "as it was read\n"
    );
}
