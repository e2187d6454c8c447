//! What `of` and `uses` answer about copies, earlier versions and other runs.

use crate::Place;

/// The paths of the nodes of an answer.
fn paths(lineage: &serde_json::Value) -> Vec<&str> {
    lineage["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|node| node["path"].as_str())
        .collect()
}

#[test]
fn of_a_copy_names_the_original_and_the_command() {
    let place = Place::new();
    place.write("a", "text");
    assert_eq!(place.run(&["record", "--", "cp", "a", "b"]).status, 0);
    let answer = place.run(&["of", "b", "--tree"]);
    assert_eq!((answer.status, answer.err.as_str()), (0, ""));
    assert!(answer.out.starts_with(&place.path("b")), "{}", answer.out);
    assert!(answer.out.contains("cp a b"), "{}", answer.out);
    assert!(
        answer.out.contains(&format!("read {}", place.path("a"))),
        "{}",
        answer.out
    );
    let json = place.json(&["of", "b", "--json"]);
    assert_eq!(json["nodes"][0]["path"], place.path("b").as_str());
    assert!(paths(&json).contains(&place.path("a").as_str()), "{json}");
}

#[test]
fn other_processes_writes_to_the_commands_output_are_not_its_own() {
    let place = Place::new();
    place.write("a", "text\n");
    // The shell writes just before and just after the command, within one tick of the file system's
    // clock.
    let shell = place.shell(
        "exec >> shared; for i in 1 2 3 4 5; do echo before; \"$B\" record --name quiet$i -- cp a b || exit 1; echo after; done; \
         echo before; \"$B\" record --name talks -- cat a; echo after",
    );
    assert_eq!((shell.status, shell.err.as_str()), (0, ""));
    let shared = place.path("shared");
    let certainty = |run: &str| -> Vec<String> {
        let files = place.json(&["files", run, "--json"]);
        let files = files.as_array().unwrap().iter();
        let wrote = files.filter(|f| {
            f["path"] == shared.as_str()
                && f["access"].as_array().unwrap().contains(&"write".into())
        });
        wrote
            .map(|f| f["certainty"].as_str().unwrap().to_owned())
            .collect()
    };
    for run in ["quiet1", "quiet2", "quiet3", "quiet4", "quiet5"] {
        assert!(!certainty(run).contains(&"seen".to_owned()), "{run}");
    }
    assert_eq!(certainty("talks"), ["seen"]);
}

#[test]
fn an_unobserved_programs_output_is_its_own() {
    if !backstory_testkit::need::needs("output of a static program", &["busybox"]) {
        return;
    }
    let place = Place::new();
    place.write("a", "text\n");
    let shell =
        place.shell("echo before > out; \"$B\" record -- busybox cat a >> out; echo after >> out");
    assert_eq!((shell.status, shell.err.as_str()), (0, ""));
    let lineage = place.json(&["of", "out", "--json", "--no-possible"]);
    assert!(
        paths(&lineage).contains(&place.path("a").as_str()),
        "{lineage}"
    );
}

#[test]
fn uses_of_the_original_names_the_copy() {
    let place = Place::new();
    place.write_aged("a", "text");
    place.record("cp a b; sort b > c");
    let json = place.json(&["uses", "a", "--json"]);
    for name in ["b", "c"] {
        assert!(
            paths(&json).contains(&place.path(name).as_str()),
            "{name}: {json}"
        );
    }
    let answer = place.run(&["uses", "a", "--tree"]);
    assert!(answer.out.contains("sort b"), "{}", answer.out);
}

#[test]
fn what_came_from_earlier_versions_of_a_file_is_among_its_uses() {
    let place = Place::new();
    place.write_aged("a", "first");
    place.record("cp a b");
    place.write_aged("a", "second, and longer");
    place.record("cp a c");
    let json = place.json(&["uses", "a", "--json"]);
    for name in ["b", "c"] {
        assert!(
            paths(&json).contains(&place.path(name).as_str()),
            "{name}: {json}"
        );
    }
    let answer = place.run(&["uses", "a"]).out;
    assert!(
        answer.contains("cp a b") && answer.contains("cp a c"),
        "{answer}"
    );
    let run = place.json(&["show", "--json"])["run"]
        .as_str()
        .unwrap()
        .to_owned();
    let last = place.run(&["uses", &format!("a@{run}")]).out;
    assert!(
        !last.contains("cp a b") && last.contains("cp a c"),
        "{last}"
    );
}

#[test]
fn lineage_crosses_runs() {
    let place = Place::new();
    place.write_aged("a", "text");
    place.record("cp a b");
    place.age("b");
    place.record("cp b c");
    let json = place.json(&["of", "c", "--json"]);
    assert!(paths(&json).contains(&place.path("a").as_str()), "{json}");
    let run = place.json(&["show", "--json"])["run"]
        .as_str()
        .unwrap()
        .to_owned();
    let within = place.json(&["of", "c", "--json", "--run", &run]);
    assert!(
        !paths(&within).contains(&place.path("a").as_str()),
        "{within}"
    );
    let near = place.json(&["of", "c", "--json", "--depth", "1"]);
    assert!(!paths(&near).contains(&place.path("a").as_str()), "{near}");
}

#[test]
fn excluded_files_and_those_behind_them_are_left_out() {
    let place = Place::new();
    place.write("a", "text");
    place.record("cp a b; cp b c");
    let json = place.json(&["of", "c", "--json", "--exclude", "**/b"]);
    assert!(
        paths(&json)
            .iter()
            .all(|path| *path != place.path("a") && *path != place.path("b")),
        "{json}"
    );
    let files = place
        .run(&[
            "files",
            "--exclude",
            "/usr/**",
            "--exclude",
            "**/b",
            "--all",
        ])
        .out;
    assert!(
        !files.contains("/usr/")
            && !files.contains(&place.path("b"))
            && files.contains(&place.path("c")),
        "{files}"
    );
}

/// The nodes of an answer that a path along its links leads back to.
fn on_cycles(lineage: &serde_json::Value) -> Vec<String> {
    let link = |l: &serde_json::Value| (l["from"].as_u64().unwrap(), l["to"].as_u64().unwrap());
    let links: Vec<_> = lineage["links"]
        .as_array()
        .unwrap()
        .iter()
        .map(link)
        .collect();
    let nodes = lineage["nodes"].as_array().unwrap();
    let mut left: std::collections::BTreeSet<u64> = (0..nodes.len() as u64).collect();
    while let Some(end) = left.iter().copied().find(|node| {
        !links
            .iter()
            .any(|(from, to)| to == node && left.contains(from))
    }) {
        left.remove(&end);
    }
    left.iter()
        .map(|&node| nodes[node as usize].to_string())
        .collect()
}

#[test]
fn a_file_with_two_names_does_not_come_from_itself() {
    let place = Place::new();
    place.write("a", "text");
    std::fs::hard_link(place.path("a"), place.path("b")).unwrap();
    std::os::unix::fs::symlink(".", place.work().join("link")).unwrap();
    place.age("a");
    for names in ["a b link/a", "b a link/b", "link/a a b"] {
        place.record(&format!("cat {names} > /dev/null"));
    }
    for question in ["of", "uses"] {
        for name in ["a", "b", "link/a"] {
            let json = place.json(&[question, name, "--json"]);
            assert_eq!(on_cycles(&json), [""; 0], "{question} {name}");
        }
    }
    let readers = place.json(&["uses", "b", "--json"]);
    let runs: std::collections::BTreeSet<_> = readers["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| n["run"].as_str())
        .collect();
    assert_eq!(runs.len(), 3, "all runs that read it: {readers}");
}
