//! The effects of a crash or a disk error on an unfinished recording.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use backstory_testkit::procs::{alive, children, eventually};

use super::Place;

const PATIENCE: Duration = Duration::from_secs(120);

/// A recording whose processes were all killed, as by a power loss that spares shared memory.
pub(in super::super) struct Cut {
    pub place: Place,
    run: String,
    part: PathBuf,
    pub arena: PathBuf,
    /// Keeps the recordings of other tests from finishing this one: they sweep every arena without
    /// a lock.
    _in_use: Option<fs::File>,
}

impl Cut {
    pub fn new() -> Cut {
        let place = Place::new();
        place.write("in", "text\n");
        let mut command = place.command(&[
            "record",
            "--",
            "sh",
            "-c",
            "cat in >out; : >ready; sleep 1000",
        ]);
        let mut launcher = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        assert!(eventually(PATIENCE, || place.work().join("ready").exists()));
        let part = only(&place.stage.store().join("runs"), "part");
        let name = part.file_name().unwrap().to_str().unwrap();
        let run = name.split('.').next().unwrap().to_owned();
        let arena = PathBuf::from(format!("/dev/shm/backstory-{run}.arena"));
        let in_use = fs::File::open(&arena).ok();
        if let Some(arena) = &in_use {
            arena.lock_shared().unwrap();
        }
        kill_all(&mut launcher);
        Cut {
            place,
            run,
            part,
            arena,
            _in_use: in_use,
        }
    }

    /// Asserts that the run is reported truthfully, and that the store goes on.
    fn is_told(&self) {
        let json = self.place.json(&["show", &self.run, "--json"]);
        assert_eq!(json["complete"], false, "{json}");
        assert!(
            json["incomplete_because"][0]
                .as_str()
                .unwrap()
                .contains("was killed"),
            "{json}"
        );
        assert_eq!(json["command"][0], "sh");
        assert!(!self.arena.exists(), "shared memory is given back");
        self.goes_on();
    }

    /// Asserts that a new recording works, and is the latest.
    fn goes_on(&self) {
        let run = self.place.record("cat in >again");
        assert_eq!(self.place.json(&["show", "--json"])["run"], run.as_str());
        assert!(self.place.wrote("again"));
    }
}

/// Stops a whole tree first, because a remaining process would take over from a dead one. Children
/// die before their parents: a stopped process continues when its group is orphaned (POSIX,
/// `_exit`).
fn kill_all(launcher: &mut Child) {
    let mut all = vec![launcher.id()];
    let mut next = 0;
    while let Some(&pid) = all.get(next) {
        signal(pid, "STOP");
        all.extend(children(pid));
        next += 1;
    }
    all.iter().rev().for_each(|&pid| signal(pid, "KILL"));
    launcher.wait().unwrap();
    assert!(eventually(PATIENCE, || !all.iter().any(|&pid| alive(pid))));
}

fn signal(pid: u32, name: &str) {
    let mut kill = std::process::Command::new("kill");
    kill.args(["-s", name, &pid.to_string()])
        .stderr(Stdio::null());
    kill.status().unwrap();
}

fn only(directory: &Path, extension: &str) -> PathBuf {
    let files = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

#[test]
fn a_recording_that_was_cut_off_loses_nothing_that_was_in_shared_memory() {
    let cut = Cut::new();
    if !cut.arena.exists() {
        backstory_testkit::need::skipped("arenas", "needs /dev/shm");
        return;
    }
    let file = cut.place.path("out");
    let answer = cut.place.run(&["of", "--tree", &file]);
    assert!(answer.out.contains("written by cat in"), "{answer:?}");
    cut.is_told();
}

#[test]
fn a_truncated_arena_is_read_as_far_as_it_goes() {
    for length in [0, 100, 5_000, 70_000] {
        let cut = Cut::new();
        let whole = fs::metadata(&cut.arena).unwrap().len();
        let arena = fs::File::options().write(true).open(&cut.arena).unwrap();
        arena.set_len(length.min(whole)).unwrap();
        cut.is_told();
    }
}

#[test]
fn an_arena_full_of_garbage_is_no_reason_to_lose_the_log() {
    for seed in [0x5au8, 0xff, 0x01] {
        let cut = Cut::new();
        let whole = fs::metadata(&cut.arena).unwrap().len() as usize;
        let mut bytes = fs::read(&cut.arena).unwrap();
        // In one case the header is left as it was, and only the chunks are damaged.
        let from = if seed == 0x01 { 4096 } else { 0 };
        let mut state = u32::from(seed);
        for byte in &mut bytes[from..whole.min(from + 300_000)] {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *byte = (state >> 24) as u8;
        }
        fs::write(&cut.arena, bytes).unwrap();
        cut.is_told();
    }
}

#[test]
fn a_cut_log_without_its_arena_is_recovered_as_it_is() {
    let cut = Cut::new();
    fs::remove_file(&cut.arena).unwrap();
    cut.is_told();
}

#[test]
fn a_cut_off_log_that_is_damaged_itself_blocks_nothing() {
    for garbage in [&b""[..], b"garbage", &[0; 5000]] {
        let cut = Cut::new();
        fs::write(&cut.part, garbage).unwrap();
        cut.goes_on();
        let answer = cut.place.run(&["log"]);
        assert_eq!(answer.status, 0, "{answer:?}");
        let told = answer.out.contains(&cut.run) || answer.err.contains(&cut.run);
        assert!(
            told,
            "a run that cannot be read is still mentioned: {answer:?}"
        );
        // No process will finish it, so the test frees its shared memory.
        let _ = fs::remove_file(&cut.arena);
    }
}

#[test]
fn bytes_flipped_anywhere_in_a_log_are_reported_or_harmless() {
    let place = Place::new();
    place.write("in", "text\n");
    let run = place.record("cat in >out; sort out >sorted");
    place.quiet();
    let store = place.stage.store();
    let log = store.join(format!("runs/{run}.log"));
    let whole = fs::read(&log).unwrap();
    for at in (0..whole.len()).step_by(whole.len() / 12) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        fs::write(&log, &bytes).unwrap();
        for name in ["graph.db", "graph.db-wal", "graph.db-shm"] {
            let _ = fs::remove_file(store.join(name));
        }
        let _ = fs::remove_file(store.join(format!("runs/{run}.log.bad")));
        let answer = place.run(&["show", &run, "--json"]);
        match answer.status {
            0 => {
                let json: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
                let right = json["complete"] == false || place.wrote("sorted");
                assert!(right, "byte {at}: {json}");
            }
            _ => assert!(
                answer.err.contains(&run) && answer.out.is_empty(),
                "byte {at}: {answer:?}"
            ),
        }
    }
}
