//! A background indexer comes last, and no question waits for it on a busy processor.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use backstory_testkit::need;

use super::{Answer, Place};

/// The longest time that the question may take. Without a handover it takes the time of the
/// background indexer: several minutes, at a few milliseconds of processor time each second.
const LONGEST: Duration = Duration::from_secs(120);

/// Ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    fn start(command: &mut Command) -> Running {
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Running(command.spawn().unwrap())
    }

    /// True if the process has locked this file.
    fn has_locked(&self, path: &Path) -> bool {
        let Ok(inode) = fs::metadata(path).map(|meta| meta.ino()) else {
            return false;
        };
        let Ok(files) = fs::read_dir(format!("/proc/{}/fdinfo", self.0.id())) else {
            return false;
        };
        files.flatten().any(|file| {
            let text = fs::read_to_string(file.path()).unwrap_or_default();
            let mut locks = text.lines().filter(|line| line.starts_with("lock:"));
            locks.any(|line| line.contains(&format!(":{inode} ")))
        })
    }

    fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }
}

/// A store with one run that takes some seconds to index, and no database.
fn unindexed(place: &Place) -> String {
    place.write_aged("data", "d");
    let run = place.record("i=0; while [ $i -lt 60000 ]; do : < data; i=$((i+1)); done");
    place.quiet();
    let runs = place.path("second/runs");
    fs::create_dir_all(&runs).unwrap();
    let log = place.stage.store().join(format!("runs/{run}.log"));
    fs::copy(log, format!("{runs}/{run}.log")).unwrap();
    let second = place.path("second");
    place.stage.user().owns(second.as_ref()).unwrap();
    second
}

/// Asks a question while a background indexer that gets no processor holds the lock. Returns the
/// indexer.
fn ask(place: &Place) -> Option<Running> {
    let store = unindexed(place);
    let on_one = |words: &[&str]| {
        let mut command = place.stage.command("taskset");
        command.args(["-c", "0"]).args(words);
        command
    };
    if !on_one(&["true"])
        .status()
        .is_ok_and(|status| status.success())
    {
        need::skipped("a busy processor", "`taskset -c 0` fails");
        return None;
    }
    let program = env!("CARGO_BIN_EXE_backstory");
    let mut last = on_one(&["chrt", "--idle", "0", "nice", "-n", "19", program]);
    let indexer = Running::start(last.args(["index", "--store", &store]));
    let lock = Path::new(&store).join("index.lock");
    let before = Instant::now();
    while !indexer.has_locked(&lock) {
        assert!(before.elapsed() < LONGEST, "the indexer took no lock");
        std::thread::yield_now();
    }
    let busy = ["sh", "-c", "while :; do :; done"];
    let _all = [0, 1, 2].map(|_| Running::start(&mut on_one(&busy)));
    let asked = Instant::now();
    let answer = Answer::of(place.command(&["log", "--store", &store]).output().unwrap());
    let took = asked.elapsed();
    assert_eq!(answer.status, 0, "{answer:?}");
    assert!(answer.out.contains("while [ $i"), "{answer:?}");
    assert!(took < LONGEST, "the question took {took:?}");
    Some(indexer)
}

#[test]
fn a_question_on_a_busy_processor_takes_over_the_work_of_the_background() {
    let place = Place::new();
    let Some(mut indexer) = ask(&place) else {
        return;
    };
    assert!(indexer.has_ended(), "it handed its work over");
    // Its successor stores contents, then ends.
    let second = place.path("second");
    let waits = Answer::of(
        place
            .command(&["index", "--wait", "--store", &second])
            .output()
            .unwrap(),
    );
    assert_eq!((waits.status, waits.err.as_str()), (0, ""));
    let shown = place.run(&["show", "--store", &second, "--json"]);
    assert!(shown.out.contains("\"settled\": true"), "{shown:?}");
}

#[test]
#[ignore = "half a minute, as the same test of an ordinary user"]
fn a_background_process_of_root_takes_an_ordinary_priority_while_a_question_waits() {
    if let Some(place) = Place::of_root() {
        ask(&place);
    }
}

#[test]
fn a_store_that_was_removed_is_not_made_again_by_the_indexer() {
    let place = Place::new();
    let removed = place.path("removed");
    let answer = place.run(&["index", "--store", &removed]);
    assert_eq!((answer.status, answer.err.as_str()), (0, ""));
    assert!(!Path::new(&removed).exists());
}
