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
        let path = self.directory.path().join("out.txt");
        plan(&self.store, path, &[]).unwrap()
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
