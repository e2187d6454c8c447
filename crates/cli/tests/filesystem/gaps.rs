//! A watch reports its gaps, and does not record its own files.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use backstory_testkit::need::needs;
use backstory_testkit::procs::eventually;
use backstory_testkit::stage::Stage;
use backstory_testkit::user::User;
use rustix::process::Signal;

use crate::filesystem::watched::{Kind, PATIENCE, watched};

#[test]
fn a_full_queue_makes_a_gap_with_its_times_and_stops_no_program() {
    let limit = fs::read_to_string("/proc/sys/fs/fanotify/max_queued_events");
    let limit: usize = limit.map_or(16_384, |text| text.trim().parse().unwrap());
    let Some(mut watched) = watched("a full queue", Kind::Tmpfs, |_| ()) else {
        return;
    };
    watched.signal(Signal::STOP);
    for n in 0..=limit {
        fs::write(watched.at.join(format!("f{n}")), "").unwrap();
    }
    watched.signal(Signal::CONT);
    fs::write(watched.at.join("after"), "text").unwrap();
    watched.end();
    let show = watched.answer(&["show", "--json"]);
    assert!(show.contains("\"complete\": false"), "{show}");
    assert!(
        show.contains("the kernel's queue was full, so operations from 20"),
        "{show}"
    );
    let who = watched.answer(&["who", &watched.path("f0")]);
    assert!(!who.is_empty());
}

/// Programs that use files until they are dropped.
struct BusyPrograms(Vec<Child>);

impl Drop for BusyPrograms {
    fn drop(&mut self) {
        for program in &mut self.0 {
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}

/// Notifications come faster than the watch takes them.
#[test]
fn a_signal_ends_the_watch_of_a_file_system_that_is_never_quiet() {
    if !needs("a file system that is never quiet", &["perl"]) {
        return;
    }
    let what = "a file system that is never quiet";
    let Some(mut watched) = watched(what, Kind::Tmpfs, |_| ()) else {
        return;
    };
    let uses = "for ($n = 0;; $n++) { open F, '>', \"$$-\" . $n % 999; print F 1; close F }";
    let program = || {
        let mut command = Command::new("perl");
        command.args(["-e", uses]).current_dir(&watched.at);
        command.stdin(Stdio::null()).spawn().unwrap()
    };
    let busy = BusyPrograms((0..4).map(|_| program()).collect());
    watched.wait_for("-998");
    watched.signal(Signal::INT);
    let ended = eventually(PATIENCE, || watched.watcher.try_wait().unwrap().is_some());
    assert!(ended, "the watch goes on");
    drop(busy);
    assert!(watched.watcher.wait().unwrap().success());
}

#[test]
fn a_store_on_the_watched_file_system_is_not_recorded() {
    let Some(mut watched) = watched("a store on the watched file system", Kind::Tmpfs, |_| ())
    else {
        return;
    };
    let store = watched.at.join("store");
    let mut second = watched
        .stage
        .backstory(&["watch", "--filesystem"])
        .arg(&watched.at)
        .args(["--store".as_ref(), store.as_os_str()])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut lines = std::io::BufReader::new(second.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut lines, &mut said).unwrap();
    watched.shell("echo text > file; echo other > store/other");
    let pid = rustix::process::Pid::from_raw(second.id() as i32).unwrap();
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    assert!(second.wait().unwrap().success());
    watched.end();
    let mut ask = watched.stage.backstory(&["files", "--json", "--store"]);
    let answer = ask.arg(&store).output().unwrap();
    let answer = String::from_utf8(answer.stdout).unwrap();
    assert!(answer.contains("/at/file\""), "{answer}");
    assert!(!answer.contains("/at/store/"), "{answer}");
}

#[test]
fn a_killed_watch_keeps_what_it_had_recorded() {
    let filled = |at: &Path| fs::write(at.join("a"), "text\n").unwrap();
    let Some(mut watched) = watched("a killed watch", Kind::Tmpfs, filled) else {
        return;
    };
    watched.shell("cat a > b");
    // Notifications come in order.
    watched.shell("echo > later");
    watched.wait_for("/at/later");
    watched.signal(Signal::KILL);
    watched.watcher.wait().unwrap();
    assert_eq!(watched.inputs("b"), ["a", "b"]);
    let show = watched.answer(&["show", "--json"]);
    assert!(show.contains("was killed"), "{show}");
}

#[test]
fn a_user_without_the_right_learns_what_a_watch_needs() {
    let binary = Path::new(env!("CARGO_BIN_EXE_backstory"));
    let Ok(stage) = Stage::of(User::ordinary(), binary) else {
        return;
    };
    let output = stage
        .backstory(&["watch", "--filesystem", "/"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("needs root") && said.contains("Linux 5.17"),
        "{said}"
    );
}
