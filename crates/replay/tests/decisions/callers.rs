//! The commands that a comparison of two versions names: the command that changed the file, or the
//! one that stands for all that it started.

use backstory_graph::model::{ActivityId, EntityId, Relation};
use backstory_replay::diff::{Diff, DiffSubject, DifferenceKind, DifferenceWeight, diff};
use backstory_store::{EntityKey, Store};

use crate::scene::Scene;

const SED: &[&str] = &["sed", "-i", "s/2,b/2,c/", "n.csv"];
const SED_LINE: &str = "sed -i s/2,b/2,c/ n.csv";

/// A run in which Python made `n.csv`.
fn made() -> (Scene, EntityId) {
    let mut scene = Scene::new("run0000a", &["backstory", "mount", "data", "/w"]);
    let python = scene.program(None, "/usr/bin/python3", &["python3", "-"], (0, 10));
    let table = scene.version("/w/n.csv", 1, "2,b\n", 0o100_644);
    scene.edge(python, table, Relation::Write, (5, 6));
    (scene, table)
}

/// A `sed` that changes `n.csv`.
fn changed(scene: &mut Scene, caller: ActivityId, inputs: &[EntityId]) -> EntityId {
    let sed = scene.program(Some(caller), "/usr/bin/sed", SED, (30, 40));
    for input in inputs {
        scene.edge(sed, *input, Relation::Read, (31, 32));
    }
    let table = scene.version("/w/n.csv", 2, "2,c\n", 0o100_644);
    scene.edge(sed, table, Relation::Write, (33, 34));
    table
}

/// A `sort` that makes another file.
fn sorted(scene: &mut Scene, caller: ActivityId, name: &str) -> EntityId {
    let sort = scene.program(Some(caller), "/usr/bin/sort", &["sort", name], (23, 26));
    let table = scene.version(&format!("/w/{name}.sorted"), 1, name, 0o100_644);
    scene.edge(sort, table, Relation::Write, (24, 25));
    table
}

/// The caller reads a file of the user's own.
fn reads(scene: &mut Scene, caller: ActivityId, path: &str) {
    let file = scene.before(path, "text\n", 0o100_644);
    scene.edge(caller, file, Relation::Read, (21, 22));
}

/// Compares two versions of the run.
fn compare(scene: &Scene, versions: [EntityId; 2]) -> Diff {
    let directory = tempfile::tempdir().unwrap();
    let memory = scene.store(&directory.path().join("contents"));
    let store: &dyn Store = &memory;
    let run = store.run(&scene.header.id).unwrap().unwrap().key;
    let [a, b] = versions.map(|version| DiffSubject::Version(EntityKey::new(run, version)));
    diff(store, &a, &b).unwrap()
}

/// The lines of the commands of one side with this weight.
fn commands(diff: &Diff, weight: DifferenceWeight) -> Vec<String> {
    let all = diff.differences.iter();
    let found = all.filter(|one| one.kind == DifferenceKind::Command && one.weight == weight);
    let lines = found.map(|one| one.a.as_ref().or(one.b.as_ref()).unwrap());
    lines
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect()
}

#[test]
fn a_shell_that_only_started_a_command_gives_way_to_it() {
    for line in [
        &["bash", "/dev/fd/3"][..],
        &["bash", "-c", "cd mnt; sed -i s/2,b/2,c/ n.csv; true"],
        &["bash", "/elsewhere/edit.sh"],
    ] {
        let (mut scene, first) = made();
        let bash = scene.program(None, "/usr/bin/bash", line, (20, 50));
        let second = changed(&mut scene, bash, &[first]);
        let diff = compare(&scene, [first, second]);
        assert_eq!(commands(&diff, DifferenceWeight::Own), [SED_LINE]);
        assert_eq!(commands(&diff, DifferenceWeight::Noise), [line.join(" ")]);
    }
}

#[test]
fn callers_that_only_started_each_other_give_way_to_the_last_command() {
    let (mut scene, first) = made();
    let words = ["env", "bash", "/dev/fd/3"];
    let env = scene.program(None, "/usr/bin/env", &words, (15, 50));
    let bash = scene.program(Some(env), "/usr/bin/bash", &words[1..], (20, 50));
    let second = changed(&mut scene, bash, &[first]);
    let diff = compare(&scene, [first, second]);
    assert_eq!(commands(&diff, DifferenceWeight::Own), [SED_LINE]);
    let callers = ["env bash /dev/fd/3", "bash /dev/fd/3"];
    assert_eq!(commands(&diff, DifferenceWeight::Noise), callers);
}

#[test]
fn a_builder_stands_for_all_that_it_started() {
    let (mut scene, first) = made();
    let make = scene.program(None, "/usr/bin/make", &["make"], (20, 50));
    reads(&mut scene, make, "/w/Makefile");
    let mut inputs = vec![first];
    for name in ["a", "b", "c"] {
        inputs.push(sorted(&mut scene, make, name));
    }
    let recipe = ["sh", "-c", SED_LINE];
    let shell = scene.program(Some(make), "/usr/bin/dash", &recipe, (28, 45));
    let second = changed(&mut scene, shell, &inputs);
    let diff = compare(&scene, [first, second]);
    assert_eq!(commands(&diff, DifferenceWeight::Own), ["make"]);
    let parts = commands(&diff, DifferenceWeight::Consequence);
    assert_eq!(parts.len(), 5, "{parts:?}");
}

#[test]
fn a_shell_that_read_its_script_stands_for_what_it_started() {
    for script in ["/w/edit.sh", "/usr/local/bin/edit"] {
        let (mut scene, first) = made();
        let bash = scene.program(None, "/usr/bin/bash", &["bash", script], (20, 50));
        reads(&mut scene, bash, script);
        let second = changed(&mut scene, bash, &[first]);
        let diff = compare(&scene, [first, second]);
        assert_eq!(commands(&diff, DifferenceWeight::Consequence), [SED_LINE]);
        assert_eq!(commands(&diff, DifferenceWeight::Own).len(), 1);
    }
}

#[test]
fn a_shell_that_redirected_a_command_is_named_with_its_redirection() {
    let (mut scene, first) = made();
    let line = ["sh", "-c", "sed s/2,b/2,c/ o.csv > n.csv"];
    let shell = scene.program(None, "/usr/bin/dash", &line, (20, 50));
    let second = changed(&mut scene, shell, &[first]);
    scene.edge(shell, second, Relation::Write, (29, 45));
    let diff = compare(&scene, [first, second]);
    assert_eq!(commands(&diff, DifferenceWeight::Own), [line.join(" ")]);
}

#[test]
fn a_shell_with_several_commands_gives_way_only_if_its_line_says_nothing_of_them() {
    let (text, input) = (["bash", "-c", "sort a; sed n.csv"], ["bash", "/dev/fd/3"]);
    for (line, named) in [
        (&text[..], vec!["bash -c sort a; sed n.csv"]),
        (&input[..], vec!["sort a", SED_LINE]),
    ] {
        let (mut scene, first) = made();
        let bash = scene.program(None, "/usr/bin/bash", line, (20, 50));
        let part = sorted(&mut scene, bash, "a");
        let second = changed(&mut scene, bash, &[first, part]);
        let diff = compare(&scene, [first, second]);
        assert_eq!(commands(&diff, DifferenceWeight::Own), named);
    }
}
