//! Stores exchange runs: `store push` and `store pull` between directories.

use super::{Answer, Place};
use backstory_testkit::need::needs;
use backstory_testkit::ssh_server::make_key;
use serde_json::Value;
use std::fs;
use std::path::Path;

impl Place {
    /// The directory of the store, as an argument.
    pub(super) fn store(&self) -> String {
        self.stage.store().into_os_string().into_string().unwrap()
    }

    /// The ids and labels of the runs, with their tags.
    pub(super) fn listed(&self) -> String {
        self.run(&["log"]).out
    }

    /// `store push` or `pull`, which must succeed. Returns its JSON.
    pub(super) fn exchanged(&self, command: &str, args: &[&str]) -> Value {
        let all = [&["store", command, "--json"], args].concat();
        self.json(&all)
    }

    /// A program of the stage's user that stands for ssh. The command for the other machine is in
    /// `$4`.
    pub(super) fn ssh(&self, script: &str) -> String {
        self.write_program("ssh", &format!("#!/bin/sh\n{script}\n"));
        self.path("ssh")
    }
}

/// The number of runs, contents and annotations that arrived.
fn counts(answer: &Value) -> (usize, u64, u64) {
    (
        answer["runs"].as_array().unwrap().len(),
        answer["contents"].as_u64().unwrap(),
        answer["annotations"].as_u64().unwrap(),
    )
}

/// Three recorded runs that depend on each other.
fn three_runs(place: &Place) -> Vec<String> {
    place.write_aged("in", "text to take along\n");
    let lines = ["cat in > one", "cat one one > two", "cat two in > three"];
    lines
        .iter()
        .map(|line| place.keep(line, &["--contents=lazy"]))
        .collect()
}

#[test]
fn a_pushed_store_gives_the_same_answers_and_a_second_push_sends_nothing() {
    let (here, there) = (Place::new(), Place::new());
    let runs = three_runs(&here);
    let done = here.exchanged("push", &[&there.store()]);
    assert_eq!(done["runs"].as_array().unwrap().len(), 3, "{done}");
    assert!(done["contents"].as_u64().unwrap() >= 3, "{done}");
    let other = there.store();
    for question in [&["of", "three"][..], &["show", &runs[1]], &["uses", "in"]] {
        let there = here.run(&[&["--store", &other], question].concat()).out;
        assert_eq!(there, here.run(question).out, "{question:?}");
    }
    let three = here.path("three");
    assert_eq!(
        there.run(&["contents", &three]).out,
        here.run(&["contents", &three]).out
    );
    assert_eq!(there.run(&["store", "verify"]).status, 0);
    let again = here.exchanged("push", &[&there.store()]);
    assert_eq!(
        (counts(&again), again["known"].as_u64()),
        ((0, 0, 0), Some(3))
    );
    // The mirror image: another store fetches them.
    let third = Place::new();
    let rehearsed = third.exchanged("pull", &[&there.store(), "--dry-run"]);
    assert_eq!(third.listed(), "");
    let fetched = third.exchanged("pull", &[&there.store()]);
    for field in ["runs", "contents", "bytes"] {
        assert_eq!(rehearsed[field], fetched[field], "{field}");
        assert_eq!(fetched[field], done[field], "{field}");
    }
    assert_eq!(third.listed(), here.listed());
    let line = third.run(&["store", "pull", &there.store()]);
    assert!(line.out.ends_with("3 runs were here already\n"), "{line:?}");
}

#[test]
fn only_the_selected_runs_are_exchanged() {
    let (here, there) = (Place::new(), Place::new());
    let runs = three_runs(&here);
    here.run(&["name", &runs[0], "first"]);
    here.exchanged("push", &[&there.store(), "--run", "first"]);
    assert_eq!(there.json(&["log", "--json"])[0]["run"], runs[0].as_str());
    let fetched = there.exchanged("pull", &[&here.store(), "--command", "*two in*"]);
    assert_eq!(fetched["runs"], serde_json::json!([runs[2]]));
    let fetched = there.exchanged("pull", &[&here.store(), "--since", "@4000000000"]);
    assert_eq!(counts(&fetched), (0, 0, 0));
    there
        .run(&["store", "pull", &here.store(), "--run", "nothere"])
        .is_error(1, &["nothere"]);
    there
        .run(&["store", "pull", &here.store(), "--run", "first", "--failed"])
        .is_error(2, &["--run"]);
}

#[test]
fn names_notes_and_tags_of_both_stores_become_one_and_the_last_writer_wins() {
    let (here, there) = (Place::new(), Place::new());
    let runs = three_runs(&here);
    here.run(&["name", &runs[0], "old"]);
    here.exchanged("push", &[&there.store()]);
    assert_eq!(there.listed(), here.listed());
    there.run(&["tag", &runs[0], "stage=test"]);
    there.run(&["note", &runs[1], "from there"]);
    here.run(&["name", &runs[0], "older"]);
    there.run(&["name", &runs[0], "newest"]);
    here.run(&["tag", &runs[2], "kind=good"]);
    here.exchanged("push", &[&there.store()]);
    here.exchanged("pull", &[&there.store()]);
    assert_eq!(there.listed(), here.listed());
    for word in ["newest", "stage=test", "from there", "kind=good"] {
        assert!(here.listed().contains(word), "{word}: {}", here.listed());
    }
    assert!(!here.listed().contains("old"));
    // A name that was removed stays removed, although the other store still has it.
    here.run(&["name", "newest", ""]);
    assert_eq!(counts(&here.exchanged("pull", &[&there.store()])).2, 0);
    here.exchanged("push", &[&there.store()]);
    assert!(!there.listed().contains("newest"));
    // The journal alone gives the names back.
    let listed = here.listed();
    here.quiet();
    fs::remove_file(here.stage.store().join("graph.db")).unwrap();
    here.run(&["store", "rebuild"]);
    assert_eq!(here.listed(), listed);
}

#[test]
fn stores_of_other_engines_exchange_runs() {
    let engines: &[&str] = &[
        #[cfg(feature = "lsm")]
        "lsm",
        #[cfg(feature = "redb")]
        "redb",
    ];
    let here = Place::new();
    three_runs(&here);
    for engine in engines {
        let (there, back) = (Place::new(), Place::new());
        there.record("true");
        there.run(&["store", "migrate", "--to", engine]);
        let pushed = here.exchanged("push", &[&there.store()]);
        assert_eq!(counts(&pushed).0, 3, "{engine}");
        let answer = there.run(&["of", &here.path("three")]).out;
        assert!(answer.contains("cat two in > three"), "{engine}: {answer}");
        assert_eq!(there.run(&["store", "verify"]).status, 0, "{engine}");
        assert_eq!(counts(&back.exchanged("pull", &[&there.store()])).0, 4);
    }
}

/// Changes one byte of a log's command line, behind the frame's checksum, so that it stays a log.
fn forge(log: &Path) {
    let mut bytes = fs::read(log).unwrap();
    bytes.push(0);
    fs::write(log, bytes).unwrap();
}

#[test]
fn another_run_with_the_same_id_is_refused_in_both_directions_and_nothing_is_replaced() {
    let (here, there) = (Place::new(), Place::new());
    let runs = three_runs(&here);
    here.exchanged("push", &[&there.store(), "--run", &runs[0]]);
    let name = format!("runs/{}.log", runs[0]);
    forge(&there.stage.store().join(&name));
    let before = fs::read(there.stage.store().join(&name)).unwrap();
    for (command, arrived) in [("push", 2), ("pull", 0)] {
        let answer = here.run(&["store", command, &there.store()]);
        assert_eq!(answer.status, 1, "{answer:?}");
        let wanted = format!("another run {}", runs[0]);
        assert!(answer.err.contains(&wanted), "{answer:?}");
        assert!(
            answer.out.contains(&format!("{arrived} runs")),
            "{answer:?}"
        );
        assert!(answer.out.contains("1 run left out"), "{answer:?}");
    }
    assert_eq!(fs::read(there.stage.store().join(&name)).unwrap(), before);
    assert_eq!(here.run(&["store", "verify"]).status, 0);
}

#[test]
fn runs_are_accepted_only_with_a_signature_of_an_allowed_signer_which_travels_on() {
    if !needs("signatures of runs", &["ssh-keygen"]) {
        return;
    }
    let (here, between, there) = (Place::new(), Place::new(), Place::new());
    let runs = three_runs(&here);
    for name in ["good", "other"] {
        make_key(here.path(name).as_ref()).unwrap();
        here.stage.user().owns(here.path(name).as_ref()).unwrap();
    }
    let public = fs::read_to_string(here.path("good.pub")).unwrap();
    there.write("allowed", &format!("ann@example.org {public}"));
    let push = |key: &str, run: &str| {
        here.exchanged(
            "push",
            &[&between.store(), "--sign", &here.path(key), "--run", run],
        )
    };
    push("good", &runs[0]);
    push("other", &runs[1]);
    here.exchanged("push", &[&between.store(), "--run", &runs[2]]);
    let allowed = there.path("allowed");
    let pull = |signers: &str| -> Answer {
        there.run(&[
            "store",
            "pull",
            &between.store(),
            "--allowed-signers",
            signers,
        ])
    };
    let answer = pull(&allowed);
    assert_eq!(answer.status, 1, "{answer:?}");
    let reason = |run: &str| {
        let line = answer.err.lines().find(|line| line.contains(run));
        line.unwrap_or_default().to_owned()
    };
    assert_eq!(reason(&runs[0]), "");
    assert!(
        reason(&runs[1]).contains("no valid signature"),
        "{answer:?}"
    );
    assert!(reason(&runs[2]).contains("not signed"), "{answer:?}");
    assert_eq!(there.json(&["log", "--json"]).as_array().unwrap().len(), 1);
    // A second signature arrives at a store that has the run already, and so does a third store.
    push("good", &runs[1]);
    let answer = pull(&allowed);
    assert!(answer.out.contains("pulled 1 run "), "{answer:?}");
    // The signature of a run is not valid for another one.
    let sig = |run: &str| between.stage.store().join(format!("runs/{run}.sig"));
    fs::copy(sig(&runs[0]), sig(&runs[2])).unwrap();
    between.stage.user().owns(&sig(&runs[2])).unwrap();
    assert!(pull(&allowed).err.contains("no valid signature"));
    pull(&there.path("none")).is_error(1, &["none"]);
    // Nor does it cover other digests of the run's files.
    there.run(&["rm", &runs[0]]);
    assert!(
        !there
            .stage
            .store()
            .join(format!("runs/{}.sig", runs[0]))
            .exists()
    );
    assert!(pull(&allowed).out.contains("pulled 1 run "));
}

#[test]
fn a_store_receives_nothing_through_a_symbolic_link() {
    let (here, there) = (Place::new(), Place::new());
    three_runs(&here);
    there.record("true");
    there.quiet();
    for part in ["runs", "contents"] {
        let (inside, outside) = (there.stage.store().join(part), there.path(part));
        fs::rename(&inside, &outside).unwrap();
        std::os::unix::fs::symlink(&outside, &inside).unwrap();
        let before = fs::read_dir(&outside).unwrap().count();
        let answer = here.run(&["store", "push", &there.store()]);
        assert_eq!((answer.status, answer.out.as_str()), (1, ""), "{answer:?}");
        assert!(answer.err.contains("symbolic link"), "{answer:?}");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), before);
        fs::remove_file(&inside).unwrap();
        fs::rename(&outside, &inside).unwrap();
    }
    // A link at the name of a log is replaced, and not followed.
    let run = here.json(&["log", "--json"])[0]["run"]
        .as_str()
        .unwrap()
        .to_owned();
    there.write("victim", "as it was\n");
    let link = there.stage.store().join(format!("runs/{run}.sig"));
    std::os::unix::fs::symlink(there.path("victim"), &link).unwrap();
    here.exchanged("push", &[&there.store()]);
    assert_eq!(
        fs::read_to_string(there.path("victim")).unwrap(),
        "as it was\n"
    );
}

#[test]
fn a_store_cannot_be_pushed_to_itself_or_pulled_from_nowhere() {
    let here = Place::new();
    here.record("true");
    here.run(&["store", "push", &here.store()])
        .is_error(2, &["this store itself"]);
    here.run(&["store", "push", "ftp://bucket/a"])
        .is_error(2, &["ftp://"]);
    let nowhere = here.path("nowhere");
    let answer = here.run(&["store", "pull", &nowhere]);
    assert_eq!((answer.status, answer.out.as_str()), (1, ""));
    assert!(answer.err.contains("there is no store"), "{answer:?}");
    assert!(!Path::new(&nowhere).exists());
}
