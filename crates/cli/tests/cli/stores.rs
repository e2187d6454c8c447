//! Faulty stores: a clear error, and no file is changed or lost.

use super::Place;
use backstory_testkit::procs::eventually;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// Removes the database, and leaves the logs.
fn remove_database(place: &Place) {
    place.quiet();
    for entry in fs::read_dir(place.stage.store()).unwrap() {
        let path = entry.unwrap().path();
        if path
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with("graph.db")
        {
            fs::remove_file(path).unwrap();
        }
    }
}

#[test]
fn a_store_that_is_a_file_is_refused() {
    let place = Place::new();
    place.write("file", "text");
    let file = place.path("file");
    place
        .run(&["record", "--store", &file, "--", "touch", "ran"])
        .is_error(125, &[&file, "--store"]);
    place.run(&["log", "--store", &file]).is_error(2, &[&file]);
    assert!(!place.work().join("ran").exists());
    assert_eq!(fs::read_to_string(&file).unwrap(), "text");
}

#[test]
fn a_store_that_cannot_be_written_is_refused() {
    let place = Place::new();
    place
        .run(&["record", "--store", "/proc/store", "--", "touch", "ran"])
        .is_error(125, &["/proc/store", "--store DIR"]);
    place
        .run(&["record", "--store", "/usr/store", "--", "touch", "ran"])
        .is_error(125, &["/usr/store"]);
    assert!(!place.work().join("ran").exists());
}

#[test]
fn a_store_of_a_newer_program_is_refused_and_left_alone() {
    let place = Place::new();
    place.record("true");
    let format = place.stage.store().join("format");
    fs::write(&format, "99\n").unwrap();
    place.run(&["log"]).is_error(1, &["99", "upgrade"]);
    place
        .run(&["record", "--", "true"])
        .is_error(125, &["99", "upgrade"]);
    assert_eq!(fs::read_to_string(&format).unwrap(), "99\n");
}

#[test]
fn a_question_without_a_store_is_an_error() {
    let place = Place::new();
    let nowhere = place.path("nowhere");
    place
        .run(&["log", "--store", &nowhere])
        .is_error(1, &[&nowhere]);
    assert!(!place.work().join("nowhere").exists());
}

#[test]
fn without_home_and_store_the_error_names_the_option() {
    let place = Place::new();
    let mut command = place.command(&["record", "--", "true"]);
    command.env_remove("HOME").env_remove("BACKSTORY_STORE");
    super::Answer::of(command.output().unwrap()).is_error(125, &["--store"]);
    let mut command = place.command(&["log"]);
    command.env_remove("HOME").env_remove("BACKSTORY_STORE");
    super::Answer::of(command.output().unwrap()).is_error(2, &["--store"]);
}

#[test]
fn a_damaged_database_is_reported_and_can_be_made_anew_from_the_logs() {
    let place = Place::new();
    let run = place.record("true");
    place.json(&["show", "--json"]);
    place.quiet();
    for entry in fs::read_dir(place.stage.store()).unwrap() {
        let path = entry.unwrap().path();
        if path
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with("graph.db")
        {
            fs::write(&path, vec![0x5a; 8192]).unwrap();
        }
    }
    let answer = place.run(&["show"]);
    answer.is_error(1, &["graph.db"]);
    remove_database(&place);
    assert_eq!(place.json(&["show", "--json"])["run"], run.as_str());
}

#[test]
fn a_log_that_cannot_be_folded_stays_and_blocks_no_other() {
    let place = Place::new();
    let first = place.record("true");
    place.json(&["log", "--json"]);
    let bad = place.stage.store().join("runs/badbadba.log");
    fs::write(&bad, "this is no log").unwrap();
    place.stage.user().owns(&bad).unwrap();
    let second = place.record("true");
    let answer = place.run(&["log"]);
    assert_eq!(answer.status, 0, "{answer:?}");
    assert!(
        answer.out.contains(&first) && answer.out.contains(&second),
        "{answer:?}"
    );
    assert!(answer.err.contains("badbadba"), "{answer:?}");
    assert_eq!(fs::read_to_string(&bad).unwrap(), "this is no log");
    place
        .run(&["show", "badbadba"])
        .is_error(1, &["badbadba", "could not be indexed"]);
    assert_eq!(place.run(&["rm", "badbadba"]).status, 0);
    assert!(!bad.exists());
    assert_eq!(place.run(&["log"]).err, "");
}

#[test]
fn a_log_cut_in_the_middle_is_indexed_as_far_as_it_goes() {
    let place = Place::new();
    place.write("a", "text");
    let run = place.record("cat a; cat a");
    place.json(&["log", "--json"]);
    // As if the store's database had been lost, and part of the log with it.
    let store = place.stage.store();
    remove_database(&place);
    let path = store.join(format!("runs/{run}.log"));
    let log = fs::read(&path).unwrap();
    fs::write(&path, &log[..log.len() - log.len() / 4]).unwrap();
    let json = place.json(&["show", "--json"]);
    assert_eq!(
        (&json["run"], &json["complete"]),
        (&run.as_str().into(), &false.into()),
        "{json}"
    );
    assert!(
        !json["incomplete_because"].as_array().unwrap().is_empty(),
        "{json}"
    );
}

#[test]
fn a_log_under_the_name_of_another_run_is_refused() {
    let place = Place::new();
    let run = place.record("true");
    let runs = place.stage.store().join("runs");
    fs::copy(runs.join(format!("{run}.log")), runs.join("copycopy.log")).unwrap();
    place.stage.user().owns(&runs).unwrap();
    let answer = place.run(&["index", "--wait"]);
    assert!(
        answer.status == 1 && answer.err.contains("copycopy"),
        "{answer:?}"
    );
    assert_eq!(place.json(&["show", "--json"])["run"], run.as_str());
}

#[test]
fn a_store_that_may_only_be_read_still_answers() {
    let place = Place::new();
    let run = place.record("true");
    place.json(&["log", "--json"]);
    let store = place.stage.store();
    let chmod = |mode: &str| {
        assert!(
            place
                .stage
                .command("chmod")
                .arg("-R")
                .arg(mode)
                .arg(&store)
                .status()
                .unwrap()
                .success()
        )
    };
    chmod("a-w");
    let answer = place.run(&["log"]);
    chmod("u+w");
    assert!(
        answer.status == 0 && answer.out.contains(&run),
        "{answer:?}"
    );
}

/// A FUSE directory that passes everything on to another directory. Unmounted when dropped.
struct Fuse(std::path::PathBuf);

impl Fuse {
    /// `None`, with a notice, where FUSE is not available.
    fn over(place: &Place) -> Option<Fuse> {
        let what = "a store in a file system of FUSE";
        if !backstory_testkit::need::needs(what, &["bindfs", "fusermount3"]) {
            return None;
        }
        let behind = place.stage.directory("behind").unwrap();
        let mount = place.stage.directory("mount").unwrap();
        let done = place
            .stage
            .command("bindfs")
            .args([&behind, &mount])
            .output()
            .unwrap();
        if !done.status.success() {
            backstory_testkit::need::skipped(what, String::from_utf8_lossy(&done.stderr).trim());
            return None;
        }
        Some(Fuse(mount))
    }
}

impl Drop for Fuse {
    fn drop(&mut self) {
        let _ = std::process::Command::new("fusermount3")
            .arg("-uz")
            .arg(&self.0)
            .status();
    }
}

#[test]
fn a_store_in_a_file_system_of_fuse_works_for_many_at_once() {
    // Root may mount where `/dev/fuse` is closed to others.
    let Some(place) = Place::of_root().or_else(|| Some(Place::new())) else {
        return;
    };
    let Some(fuse) = Fuse::over(&place) else {
        return;
    };
    let store = fuse.0.join("store").into_os_string().into_string().unwrap();
    place.write_aged("a", "text");
    let names: Vec<String> = (0..6).map(|n| format!("b{n}")).collect();
    let record = |name: &String| {
        let mut command = place.command(&["record", "--store", &store, "--", "cp", "a", name]);
        command.spawn().unwrap()
    };
    let running: Vec<_> = names.iter().map(record).collect();
    for mut child in running {
        assert!(child.wait().unwrap().success());
    }
    for name in &names {
        let lineage = place.json(&["of", name, "--json", "--store", &store]);
        let read = lineage["nodes"].as_array().unwrap().iter();
        assert!(
            read.into_iter()
                .any(|n| n["path"] == place.path("a").as_str()),
            "{lineage}"
        );
    }
    assert_eq!(
        place
            .json(&["log", "--json", "--store", &store])
            .as_array()
            .unwrap()
            .len(),
        6
    );
    // Processes of another machine would not see a write-ahead log's shared memory.
    place.quiet();
    let database = fs::read(fuse.0.join("store/graph.db")).unwrap();
    assert_eq!(
        database[18..20],
        [1, 1],
        "the journal is a rollback journal"
    );
    assert!(!fuse.0.join("store/graph.db-wal").exists());
}

#[test]
fn the_write_ahead_log_is_checkpointed_after_a_question() {
    let place = Place::new();
    place.record("true");
    assert_eq!(place.run(&["log"]).status, 0);
    place.quiet();
    let database = place.stage.store().join("graph.db");
    let log = place.stage.store().join("graph.db-wal");
    let length = || fs::metadata(&log).map_or(0, |meta| meta.len());
    {
        let connection = rusqlite::Connection::open(&database).unwrap();
        let left = rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
        connection.set_db_config(left, true).unwrap();
        connection
            .execute(
                "INSERT INTO texts (id, block) VALUES (1000000, zeroblob(3000000))",
                [],
            )
            .unwrap();
    }
    assert!(length() > 3_000_000);
    assert_eq!(place.run(&["log"]).status, 0);
    assert!(
        eventually(Duration::from_secs(120), || length() == 0),
        "{}",
        length()
    );
    assert!(fs::metadata(&database).unwrap().len() > 3_000_000);
}

/// A place with two indexed runs, the first with a name and a note.
pub(super) fn two_runs() -> (Place, PathBuf) {
    let place = Place::new();
    place.write_aged("in", "text\n");
    let run = place.record("sort in > out; sort out > sorted");
    place.record("cat sorted > copy");
    assert_eq!(place.run(&["index", "--wait"]).status, 0);
    assert_eq!(place.run(&["name", &run, "first"]).status, 0);
    assert_eq!(place.run(&["note", &run, "of two"]).status, 0);
    let database = place.stage.store().join("graph.db");
    (place, database)
}

/// Bytes that look random.
pub(super) fn noise(bytes: &mut [u8]) {
    let mut state = 7u32;
    for byte in bytes {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *byte = (state >> 24) as u8;
    }
}

#[test]
fn verify_finds_random_bytes_anywhere_in_the_database_and_a_rebuild_repairs_them() {
    let (place, database) = two_runs();
    assert_eq!(place.run(&["store", "verify"]).status, 0);
    let answers = |place: &Place| {
        let ask = |args: &[&str]| place.run(args).out;
        [
            ask(&["of", "copy", "--json"]),
            ask(&["show", "first", "--json"]),
            ask(&["log", "--json"]),
            ask(&["contents", "sorted"]),
        ]
    };
    // A rebuild leaves nothing in SQLite's log, which would hide the damage.
    assert_eq!(place.run(&["store", "rebuild"]).status, 0);
    let whole = fs::read(&database).unwrap();
    let before = answers(&place);
    let mut found = 0;
    for at in (0..whole.len()).step_by(8192) {
        let mut bytes = whole.clone();
        let end = (at + 8192).min(bytes.len());
        noise(&mut bytes[at + 100..end]);
        for beside in ["graph.db-wal", "graph.db-shm"] {
            let _ = fs::remove_file(place.stage.store().join(beside));
        }
        fs::write(&database, &bytes).unwrap();
        let verified = place.run(&["store", "verify"]);
        if verified.status == 0 {
            // The bytes were of no use.
            assert_eq!(answers(&place), before, "page at {at}");
            continue;
        }
        found += 1;
        assert_eq!(verified.status, 1, "{verified:?}");
        assert!(
            verified.out.contains("`backstory store rebuild`"),
            "{verified:?}"
        );
        let mut lines: Vec<&str> = verified.out.lines().chain(verified.err.lines()).collect();
        let all = lines.len();
        lines.sort_unstable();
        lines.dedup();
        assert_eq!(lines.len(), all, "damage is reported once: {verified:?}");
        // The names are still known if the table of runs can be read.
        let rebuilt = place.run(&["store", "rebuild"]);
        assert_eq!(rebuilt.status, 0, "{rebuilt:?}");
        assert_eq!(place.run(&["store", "verify"]).status, 0, "page at {at}");
        assert_eq!(
            place.run(&["of", "copy", "--json"]).out,
            before[0],
            "page at {at}"
        );
    }
    assert!(found > 3, "{found} of {} bytes", whole.len());
}

#[test]
fn a_rebuild_gives_the_same_answers_and_keeps_names_notes_and_contents() {
    let (place, database) = two_runs();
    let answers = || {
        let ask = |args: &[&str]| place.run(args).out;
        // The log has grown by identities since it was indexed first.
        let mut shown = place.json(&["show", "first", "--json"]);
        shown.as_object_mut().unwrap().remove("log_bytes");
        [
            ask(&["of", "copy", "--json"]),
            shown.to_string(),
            ask(&["log", "--json"]),
            ask(&["contents", "sorted"]),
        ]
    };
    let before = answers();
    let rebuilt = place.run(&["store", "rebuild"]);
    assert_eq!((rebuilt.status, rebuilt.err.as_str()), (0, ""));
    assert_eq!(answers(), before);
    let left = fs::read_dir(place.stage.store()).unwrap();
    let names = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let aside: Vec<String> = names
        .filter(|name| name.contains(".old") || name.contains(".new"))
        .collect();
    assert_eq!(aside, [""; 0]);
    assert!(database.exists());
}

#[test]
fn a_rebuild_does_not_forget_a_run_without_a_log_unless_it_is_forced() {
    let (place, _) = two_runs();
    let run = place.json(&["show", "first", "--json"])["run"].clone();
    let run = run.as_str().unwrap();
    fs::remove_file(place.stage.store().join(format!("runs/{run}.log"))).unwrap();
    place
        .run(&["store", "rebuild"])
        .is_error(1, &[run, "--force"]);
    assert_eq!(place.run(&["show", "first"]).status, 0);
    assert_eq!(place.run(&["store", "rebuild", "--force"]).status, 0);
    assert_eq!(place.run(&["show", "first"]).status, 1);
}
