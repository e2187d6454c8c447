//! Plans of replays.

use std::path::PathBuf;

use backstory_graph::model::{ActivityId, EntityKind, Relation};
use backstory_replay::Error;
use backstory_replay::plan::{Deviations, EntrySource, LoggedUses, Plan, Stdin, plan};

use crate::scene::Scene;
use crate::sorted;

fn planned(scene: &Scene, deviations: &Deviations) -> Result<Plan, Error> {
    planned_with(scene, deviations, &LoggedUses::default())
}

fn planned_with(
    scene: &Scene,
    deviations: &Deviations,
    logged: &LoggedUses,
) -> Result<Plan, Error> {
    let directory = tempfile::tempdir().unwrap();
    let contents = directory.path().join("contents");
    let store = scene.store(&contents);
    plan(&store, contents, "run0000a", deviations, logged)
}

fn source<'p>(plan: &'p Plan, path: &str) -> &'p EntrySource {
    let entry = plan
        .entries
        .iter()
        .find(|entry| entry.path == path.as_bytes());
    &entry.unwrap_or_else(|| panic!("no {path}")).what
}

#[test]
fn a_plan_puts_stored_inputs_in_place_and_expects_the_recorded_output() {
    let scene = sorted("run0000a", &[], "b\na\n", "a\nb\n");
    let plan = planned(&scene, &Deviations::default()).unwrap();
    let (input, _) = backstory_contents::digest_of(&mut &b"b\na\n"[..]).unwrap();
    let (output, _) = backstory_contents::digest_of(&mut &b"a\nb\n"[..]).unwrap();
    assert_eq!(*source(&plan, "/w/in.txt"), EntrySource::Stored(input.0));
    assert_eq!(*source(&plan, "/w"), EntrySource::Directory);
    assert!(matches!(
        source(&plan, "/usr/bin/sort"),
        EntrySource::Stored(_)
    ));
    let has = |path: &[u8]| plan.entries.iter().any(|entry| entry.path == path);
    assert!(!has(b"/w/out.txt") && !has(b"/dev/urandom"));
    assert_eq!(plan.argv, [&b"sort"[..], b"in.txt"]);
    assert_eq!((plan.cwd.as_slice(), plan.uid), (&b"/w"[..], 1000));
    assert_eq!(plan.stdin, Stdin::Empty);
    assert!(plan.missing.contains(&b"/w/sort.conf"[..]));
    let [expected] = &plan.expected[..] else {
        panic!("{:?}", plan.expected);
    };
    assert_eq!(
        (&*expected.path, &expected.digest),
        (&b"/w/out.txt"[..], &Ok(output))
    );
}

#[test]
fn a_directory_that_the_run_could_not_remove_has_an_entry_though_the_run_used_none() {
    let mut scene = sorted("run0000a", &[], "b\na\n", "a\nb\n");
    let sort = ActivityId(0);
    let directories = ["/w/full", "/w/used", "/w/filled", "/w/removed"];
    for directory in directories {
        scene.directory(directory);
    }
    let used = scene.before("/w/used/x", "x\n", 0o100_644);
    scene.edge(sort, used, Relation::Read, (8, 9));
    let made = scene.version("/w/filled/new", 1, "new\n", 0o100_644);
    scene.edge(sort, made, Relation::Write, (10, 11));
    let removed = scene.entity(EntityKind::Directory, "/w/removed", 0);
    scene.edge(sort, removed, Relation::Delete, (12, 12));
    let paths = directories.iter().chain(&["/w/unknown"]);
    let logged = LoggedUses {
        occupied: paths.map(|path| path.as_bytes().into()).collect(),
        ..LoggedUses::default()
    };
    let entries = |deviations: &Deviations| {
        let plan = planned_with(&scene, deviations, &logged).unwrap();
        let all = plan.entries.into_iter();
        let added = all.filter(|entry| entry.path.ends_with(b"/.backstory-entry"));
        let words = |path| String::from_utf8(path).unwrap();
        added.map(|entry| words(entry.path)).collect::<Vec<_>>()
    };
    let expected = ["/w/full/.backstory-entry", "/w/unknown/.backstory-entry"];
    assert_eq!(entries(&Deviations::default()), expected);
    let with_machine = Deviations {
        allow_host: true,
        ..Deviations::default()
    };
    assert_eq!(entries(&with_machine), [""; 0]);
}

#[test]
fn a_plan_without_an_input_names_it_and_its_reason() {
    let mut scene = Scene::new("run0000a", &["sort", "in.txt"]);
    let sort = scene.program(None, "/usr/bin/sort", &["sort", "in.txt"], (0, 50));
    let input = scene.before("/w/in.txt", "b\na\n", 0o100_644);
    scene.missing("it had changed before it could be read");
    scene.edge(sort, input, Relation::Read, (1, 2));
    let error = planned(&scene, &Deviations::default()).unwrap_err();
    let Error::Lacking { run, what } = &error else {
        panic!("{error}");
    };
    assert_eq!(run, "run0000a");
    assert_eq!(what.0.len(), 1);
    assert_eq!(&*what.0[0].0, b"/w/in.txt");
    assert!(
        error
            .to_string()
            .contains("it had changed before it could be read")
    );
}

#[test]
fn a_run_without_contents_has_a_plan_only_with_the_machines_files() {
    let mut scene = sorted("run0000a", &[], "b\na\n", "a\nb\n");
    scene.header.modes.contents = Some(backstory_vocabulary::ContentsMode::Off);
    let refused = planned(&scene, &Deviations::default());
    assert!(matches!(refused, Err(Error::NoContents(run)) if run == "run0000a"));
    let allowed = Deviations {
        allow_host: true,
        ..Deviations::default()
    };
    assert!(planned(&scene, &allowed).is_ok());
}

#[test]
fn a_replaced_input_must_be_one_that_the_run_used() {
    let scene = sorted("run0000a", &[], "b\na\n", "a\nb\n");
    let file = tempfile::NamedTempFile::new().unwrap();
    let deviations = |old: &str| Deviations {
        inputs: vec![(PathBuf::from(old), file.path().to_owned())],
        ..Deviations::default()
    };
    let plan = planned(&scene, &deviations("in.txt")).unwrap();
    assert!(matches!(source(&plan, "/w/in.txt"), EntrySource::Copied(_)));
    let refused = planned(&scene, &deviations("other.txt"));
    assert!(matches!(refused, Err(Error::NotAnInput(path)) if &*path == b"/w/other.txt"));
}
