//! Faulty stores: a clear error, and no file is changed or lost.

use super::Place;
use backstory_testkit::procs::eventually;
use std::fs;
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
                "INSERT INTO texts (id, bytes) VALUES (1, zeroblob(3000000))",
                [],
            )
            .unwrap();
    }
    assert!(length() > 3_000_000);
    assert_eq!(place.run(&["log"]).status, 0);
    assert!(
        eventually(Duration::from_secs(60), || length() == 0),
        "{}",
        length()
    );
    assert!(fs::metadata(&database).unwrap().len() > 3_000_000);
}
