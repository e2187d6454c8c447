//! Files have the names that they have at the end of the run, whichever names they were made by.

use backstory_testkit::need::needs;
use serde_json::Value;

use super::Place;

/// How the last run used `name` below the work directory, in `files`; `None` if it is not listed.
fn access_of(place: &Place, name: &str) -> Option<Vec<String>> {
    let files = place.json(&["files", "--json"]);
    let path = place.path(name);
    let file = files
        .as_array()
        .unwrap()
        .iter()
        .find(|file| file["path"] == path.as_str())?;
    let words = file["access"].as_array().unwrap().iter();
    Some(words.filter_map(Value::as_str).map(str::to_owned).collect())
}

#[test]
fn files_made_at_descriptors_of_renamed_directories_have_their_new_paths() {
    let place = Place::new();
    let Some(program) = place.fixture("moved_directory") else {
        return;
    };
    for directory in ["moved", "top/sub", "a", "b", "stood", "held", "entered"] {
        let made = place.command_line(&format!("mkdir -p {directory}"));
        assert_eq!(made.status, 0, "{made:?}");
    }
    let recorded = place.run(&["record", "--", &program]);
    assert_eq!((recorded.status, recorded.err.as_str()), (0, ""));
    for name in [
        "moved2/late",
        "top2/sub/late",
        "b/of-a",
        "a/of-b",
        "stood2/late",
        "held2/late",
        "entered2/late",
    ] {
        assert_eq!(
            access_of(&place, name),
            Some(vec!["write".to_owned()]),
            "{name}"
        );
        let of = place.run(&["of", name, "--tree"]).out;
        assert!(of.starts_with(&place.path(name)), "{of}");
        assert_eq!(
            of.matches("/late").count(),
            usize::from(name.contains("late")),
            "{of}"
        );
    }
    for name in [
        "moved/late",
        "top/sub/late",
        "a/of-a",
        "b/of-b",
        "stood/late",
        "held/late",
    ] {
        assert_eq!(access_of(&place, name), None, "{name}");
    }
}

#[test]
fn a_file_made_without_a_name_is_created_under_the_name_that_it_gets() {
    let place = Place::new();
    let Some(program) = place.fixture("tmpfile_link") else {
        return;
    };
    let recorded = place.run(&["record", "--", &program]);
    assert_eq!((recorded.status, recorded.err.as_str()), (0, ""));
    assert_eq!(
        access_of(&place, "named-late"),
        Some(vec!["write".to_owned()])
    );
    let of = place.run(&["of", "named-late", "--tree"]).out;
    assert!(!of.contains("renamed") && !of.contains('#'), "{of}");
    assert!(of.contains(&format!("made by {program}")), "{of}");
    let shown = place.json(&["show", "--json"]);
    assert!(!shown.to_string().contains("renamed"), "{shown}");
}

#[test]
fn a_file_used_through_a_removed_link_has_the_name_that_is_there() {
    let place = Place::new();
    let set_up = "mkdir real; ln -s real dl; ln -s dl dl2; ln -s real/leaf leaf; ln -s real current; mkdir next";
    assert_eq!(place.command_line(set_up).status, 0);
    place.write_aged("real/in", "old\n");
    place.record(
        "echo > dl2/new; echo > dl/plain; echo > leaf; cat dl2/in; echo > current/x; \
         ln -sfn next current; rm dl leaf",
    );
    for (name, gone) in [
        ("real/new", "dl2/new"),
        ("real/plain", "dl/plain"),
        ("real/leaf", "leaf"),
        ("real/x", "current/x"),
    ] {
        let access = access_of(&place, name).unwrap_or_default();
        assert!(access.contains(&"write".to_owned()), "{name}: {access:?}");
        let of = place.run(&["of", name, "--tree"]).out;
        assert!(of.starts_with(&place.path(name)), "{of}");
        assert!(!of.contains(&place.path(gone)), "{of}");
        let exported = place.run(&["export", "prov-json"]).out;
        assert!(exported.contains(&place.path(name)), "{exported}");
    }
    assert_eq!(access_of(&place, "real/in"), Some(vec!["read".to_owned()]));
}

/// The files below the work directory that the last run used, each with its accesses.
fn own_files(place: &Place) -> Vec<(String, Value)> {
    let (files, work) = (place.json(&["files", "--json"]), place.path(""));
    let files = files.as_array().unwrap().iter().filter_map(|file| {
        let name = file["path"].as_str()?.strip_prefix(&work)?;
        Some((name.to_owned(), file["access"].clone()))
    });
    let mut files: Vec<_> = files.collect();
    files.sort_by(|a, b| a.0.cmp(&b.0));
    files
}

#[test]
fn a_file_read_through_a_link_that_a_static_program_removes_has_its_own_name() {
    if !needs("a static program that removes links", &["busybox"]) {
        return;
    }
    for change in [
        "ln -s real link",
        "rm link",
        "ln -sfn other link",
        "mv -T new link",
    ] {
        let [by_library, by_guard] = ["", "busybox "].map(|by| {
            let place = Place::new();
            let before = "mkdir real other; echo text > real/f";
            let links = match change.contains("-s real") {
                true => "",
                false => "; ln -s real link; ln -s other new",
            };
            let made = place.command_line(&format!("{before}{links}"));
            assert_eq!(made.status, 0, "{made:?}");
            let line = match change.contains("-s real") {
                true => format!("{by}{change}; cat link/f > out"),
                false => format!("cat link/f > out; {by}{change}"),
            };
            place.record(&line);
            let of = place.run(&["of", "out", "--tree"]).out;
            assert!(of.contains("real/f"), "{line}: {of}");
            own_files(&place)
        });
        let named = |files: &[(String, Value)], name: &str| {
            let mut found = files.iter().filter(|file| file.0 == name);
            found.next().map(|file| file.1.clone())
        };
        assert!(
            named(&by_library, "real/f").is_some(),
            "{change}: {by_library:?}"
        );
        for name in ["real/f", "link/f", "out"] {
            let both = [&by_library, &by_guard].map(|files| named(files, name));
            assert_eq!(
                both[0], both[1],
                "{change}: {name}: {by_library:?} {by_guard:?}"
            );
        }
    }
}
