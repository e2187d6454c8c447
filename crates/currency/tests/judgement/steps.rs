//! Stale steps of a file.

use std::path::Path;

use backstory_currency::{PlannedStep, Reason, plan};
use backstory_eventlog::event::Bytes;
use backstory_graph::model::{EntityKind, Relation};
use backstory_store::MemoryStore;

use crate::scene::Scene;

/// `sh build.sh` in a directory: `sort in.txt > mid.txt`, then `uniq < mid.txt > out.txt`, which
/// looked for `uniq.conf`.
struct Built {
    directory: tempfile::TempDir,
    store: MemoryStore,
}

impl Built {
    fn new() -> Built {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
        let mut scene = Scene::inside(directory.path(), "run0000a", &["sh", "build.sh"]);
        let sh = scene.program(None, &path("sh"), &["sh", "build.sh"], (0, 90));
        let script = scene.before(&path("build.sh"), "sort\nuniq\n", 0o100_644);
        scene.edge(sh, script, Relation::Read, (1, 2));
        let sort = scene.program(Some(sh), &path("sort"), &["sort", "in.txt"], (10, 20));
        let input = scene.before(&path("in.txt"), "b\na\na\n", 0o100_644);
        let middle = scene.version(&path("mid.txt"), 1, "a\na\nb\n", 0o100_644);
        scene.edge(sort, input, Relation::Read, (11, 12));
        scene.edge(sort, middle, Relation::Write, (13, 14));
        scene.standard(sort, [None, Some(middle), None]);
        let uniq = scene.program(Some(sh), &path("uniq"), &["uniq"], (30, 40));
        let output = scene.version(&path("out.txt"), 1, "a\nb\n", 0o100_644);
        scene.edge(uniq, middle, Relation::Read, (31, 32));
        scene.edge(uniq, output, Relation::Write, (33, 34));
        scene.standard(uniq, [Some(middle), Some(output), None]);
        let missing = scene.entity(EntityKind::Missing, &path("uniq.conf"), 0);
        scene.edge(uniq, missing, Relation::Missing, (31, 31));
        let contents = directory.path().join("contents");
        let store = scene.store(&contents);
        Built { directory, store }
    }

    fn path(&self, name: &str) -> Bytes {
        let path = self.directory.path().join(name);
        path.to_str().unwrap().as_bytes().into()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.directory.path().join(name), text).unwrap();
    }

    fn steps(&self) -> Vec<PlannedStep> {
        self.steps_of(&["out.txt"])
    }

    fn steps_of(&self, names: &[&str]) -> Vec<PlannedStep> {
        let paths = names.iter().map(|name| self.directory.path().join(name));
        plan(&self.store, &paths.collect::<Vec<_>>(), &[]).unwrap()
    }

    /// The reasons of each step, by its name.
    fn reasons(&self) -> Vec<(String, Vec<Reason>)> {
        let steps = self.steps().into_iter();
        steps.map(|step| (step.name, step.reasons)).collect()
    }
}

#[test]
fn steps_are_current_as_long_as_nothing_has_changed() {
    let built = Built::new();
    let steps = built.steps();
    let scripts: Vec<&str> = steps.iter().map(|step| step.script.as_str()).collect();
    assert_eq!(
        scripts,
        ["sort in.txt > mid.txt", "uniq < mid.txt > out.txt"]
    );
    assert!(steps.iter().all(|step| step.reasons.is_empty()));
    assert_eq!(steps[1].fed_by, [(0, built.path("mid.txt"))]);
    assert_eq!(
        Path::new(std::str::from_utf8(&steps[0].cwd).unwrap()),
        built.directory.path()
    );
}

#[test]
fn a_changed_input_makes_only_its_reader_stale() {
    let built = Built::new();
    built.write("in.txt", "something longer than before\n");
    let reason = Reason::InputChanged(built.path("in.txt"));
    assert_eq!(
        built.reasons(),
        [
            ("mid_txt".to_owned(), vec![reason]),
            ("out_txt".to_owned(), vec![])
        ]
    );
}

#[test]
fn an_input_with_the_same_content_and_another_identity_is_current() {
    let built = Built::new();
    std::fs::remove_file(built.directory.path().join("in.txt")).unwrap();
    built.write("in.txt", "b\na\na\n");
    assert!(
        built
            .reasons()
            .iter()
            .all(|(_, reasons)| reasons.is_empty())
    );
}

#[test]
fn a_missing_output_makes_its_maker_stale() {
    let built = Built::new();
    std::fs::remove_file(built.directory.path().join("out.txt")).unwrap();
    let reason = Reason::OutputGone(built.path("out.txt"));
    assert_eq!(built.reasons()[1].1, [reason]);
}

#[test]
fn a_file_that_was_looked_for_in_vain_and_exists_now_makes_its_reader_stale() {
    let built = Built::new();
    built.write("uniq.conf", "");
    let reason = Reason::Appeared(built.path("uniq.conf"));
    assert_eq!(built.reasons()[1].1, [reason]);
}

#[test]
fn a_changed_script_replaces_its_steps_by_the_runs_command() {
    let built = Built::new();
    built.write("build.sh", "sort -r\nuniq\n");
    let steps = built.steps();
    let [step] = &steps[..] else {
        panic!("{steps:?}");
    };
    assert_eq!(step.script, "sh build.sh");
    assert_eq!(step.reasons, [Reason::GuideChanged(built.path("build.sh"))]);
}

#[test]
fn a_step_behind_several_results_is_planned_once() {
    let built = Built::new();
    built.write("in.txt", "something longer than before\n");
    let names = |steps: Vec<PlannedStep>| -> Vec<String> {
        steps.into_iter().map(|step| step.name).collect()
    };
    for asked in [["mid.txt", "out.txt"], ["out.txt", "mid.txt"]] {
        assert_eq!(names(built.steps_of(&asked)), ["mid_txt", "out_txt"]);
    }
    let mut steps = built.steps_of(&["mid.txt", "mid.txt"]);
    assert_eq!(steps.len(), 1);
    let reason = Reason::InputChanged(built.path("in.txt"));
    assert_eq!(steps.remove(0).reasons, [reason]);
}

#[test]
fn the_first_output_of_a_planned_step_is_one_that_was_asked_for() {
    let built = Built::new();
    built.write("build.sh", "sort -r\nuniq\n");
    for (asked, first) in [
        (["mid.txt", "out.txt"], "mid.txt"),
        (["out.txt", "mid.txt"], "out.txt"),
    ] {
        let steps = built.steps_of(&asked);
        let [step] = &steps[..] else {
            panic!("{steps:?}");
        };
        assert_eq!(step.outputs[0].0, built.path(first), "{asked:?}");
        assert_eq!(step.outputs.len(), 2);
    }
}

/// The command changes its result in place. A repetition begins with the content that the first
/// run found.
#[test]
fn a_step_that_rerun_repeated_is_planned_as_it_was_done_last() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let run = |id: &str, repeats: Option<&str>, text: &str| {
        std::fs::write(path("out.txt"), "a").unwrap();
        let mut scene = Scene::inside(directory.path(), id, &["bump", "out.txt"]);
        scene.header.repeats = repeats.map(str::to_owned);
        let bump = scene.program(None, &path("bump"), &["bump", "out.txt"], (0, 90));
        let before = scene.unchanged(&path("out.txt"));
        scene.edge(bump, before, Relation::Read, (1, 2));
        let after = scene.version(&path("out.txt"), 1, text, 0o100_644);
        scene.edge(bump, after, Relation::Write, (3, 4));
        scene
    };
    let contents = directory.path().join("contents");
    let mut store = run("run0000a", None, "ab").store(&contents);
    run("run0000b", Some("run0000a"), "abc").append(&mut store, &contents);
    run("run0000c", Some("run0000b"), "abcd").append(&mut store, &contents);
    let built = Built { directory, store };
    let scripts: Vec<String> = built.steps().into_iter().map(|step| step.script).collect();
    assert_eq!(scripts, ["bump out.txt"]);
}

#[test]
fn a_changed_script_of_a_step_is_named_as_such() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let mut scene = Scene::inside(
        directory.path(),
        "run0000a",
        &["python3", "fit.py", "in.txt"],
    );
    let words = ["python3", "-u", "fit.py", "in.txt"];
    let python = scene.program(None, &path("python3"), &words, (0, 90));
    for name in ["fit.py", "in.txt"] {
        let file = scene.before(&path(name), "before\n", 0o100_644);
        scene.edge(python, file, Relation::Read, (1, 2));
    }
    let out = scene.version(&path("out.txt"), 1, "made\n", 0o100_644);
    scene.edge(python, out, Relation::Write, (3, 4));
    let store = scene.store(&directory.path().join("contents"));
    let built = Built { directory, store };
    built.write("fit.py", "changed since\n");
    built.write("in.txt", "changed since\n");
    let reasons = [
        Reason::ScriptChanged(built.path("fit.py")),
        Reason::InputChanged(built.path("in.txt")),
    ];
    assert_eq!(built.reasons(), [("out_txt".to_owned(), reasons.to_vec())]);
}

#[test]
#[should_panic(expected = "the scene does not write it")]
fn a_scene_writes_no_file_outside_its_directory() {
    let (place, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut scene = Scene::inside(place.path(), "run0000a", &["tool"]);
    let path = other.path().join("file");
    scene.before(path.to_str().unwrap(), "text", 0o100_644);
}

#[test]
#[should_panic(expected = "the scene does not write it")]
fn a_scene_writes_no_file_above_its_directory() {
    let place = tempfile::tempdir().unwrap();
    let inner = place.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    let mut scene = Scene::inside(&inner, "run0000a", &["tool"]);
    let path = inner.join("../file");
    scene.before(path.to_str().unwrap(), "text", 0o100_644);
}
