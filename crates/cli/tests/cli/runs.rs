//! Runs: listed, named, noted, removed, found again.

use backstory_testkit::need::needs;

use super::Place;

#[test]
fn runs_are_listed_newest_first() {
    let place = Place::new();
    let ids: Vec<String> = ["true 1", "true 2", "exit 0"]
        .iter()
        .map(|line| place.record(line))
        .collect();
    let log = place.json(&["log", "--json"]);
    let listed: Vec<&str> = log
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["run"].as_str().unwrap())
        .collect();
    assert_eq!(
        listed,
        ids.iter().rev().map(String::as_str).collect::<Vec<_>>()
    );
    let text = place.run(&["log"]).out;
    assert!(
        text.lines().next().unwrap().starts_with(ids[2].as_str()),
        "{text}"
    );
    assert_eq!(text.lines().count(), 3);
}

#[test]
fn a_name_finds_its_run_until_the_name_is_removed() {
    let place = Place::new();
    place.run(&["record", "--name", "first", "--", "true"]);
    let second = place.record("true");
    let first = place.json(&["show", "first", "--json"])["run"].clone();
    assert_ne!(first, second.as_str());
    assert_eq!(place.run(&["name", &second, "other"]).status, 0);
    assert_eq!(
        place.json(&["show", "other", "--json"])["run"],
        second.as_str()
    );
    assert_eq!(place.run(&["name", "other", ""]).status, 0);
    place.run(&["show", "other"]).is_error(1, &["other"]);
    place
        .run(&["name", &second, "two words"])
        .is_error(2, &["two words"]);
}

#[test]
fn a_note_is_shown_with_its_run() {
    let place = Place::new();
    let run = place.record("true");
    let noted = place.run(&["note", &run, "with the old compiler"]);
    assert_eq!(noted.status, 0, "{noted:?}");
    assert!(place.run(&["log"]).out.contains("with the old compiler"));
    assert_eq!(
        place.json(&["show", "--json"])["note"],
        "with the old compiler"
    );
    assert_eq!(place.run(&["note", &run, ""]).status, 0);
    assert!(place.json(&["show", "--json"])["note"].is_null());
}

#[test]
fn a_removed_run_is_gone_for_good_and_the_others_stay() {
    let place = Place::new();
    place.write("a", "text");
    let first = place.record("cp a b");
    let second = place.record("cp b c");
    assert_eq!(place.run(&["rm", &first]).status, 0);
    let log = place.json(&["log", "--json"]);
    assert_eq!(
        (log.as_array().unwrap().len(), &log[0]["run"]),
        (1, &second.as_str().into())
    );
    place.run(&["show", &first]).is_error(1, &[&first]);
    assert!(place.work().join("b").exists());
    assert_eq!(place.run(&["of", "c"]).status, 0);
    place
        .run(&["rm", "no-such-run"])
        .is_error(1, &["no-such-run"]);
}

#[test]
fn a_missing_run_is_not_found() {
    let place = Place::new();
    place.record("true");
    for command in ["show", "files", "processes"] {
        place.run(&[command, "zzzzzzzz"]).is_error(1, &["zzzzzzzz"]);
    }
}

#[test]
fn the_raw_log_can_be_read() {
    let place = Place::new();
    place.write("a", "text");
    let run = place.record("cat a");
    let raw = place.run(&["log", "--raw", &run]);
    assert_eq!((raw.status, raw.err.as_str()), (0, ""));
    assert!(raw.out.lines().count() > 5, "{}", raw.out);
}

#[test]
fn many_recordings_at_once_all_arrive() {
    let place = Place::new();
    let children: Vec<_> = (0..6)
        .map(|n| {
            place
                .command(&["record", "--", "sh", "-c", &format!("echo {n} > f{n}")])
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(place.json(&["log", "--json"]).as_array().unwrap().len(), 6);
    for n in 0..6 {
        assert_eq!(place.run(&["of", &format!("f{n}")]).status, 0);
    }
}

#[test]
fn no_secret_reaches_the_log_the_database_or_any_answer() {
    let place = Place::new();
    let (inherited, given, named) = (
        "hunter2-inherited",
        "hunter2-given-to-a-child",
        "hunter2-named",
    );
    let line =
        format!("MY_PASSWORD={given} MY_DSN={named} env > /dev/null; MY_PASSWORD={given} cp a b");
    place.write("a", "text");
    let script = place.path("script");
    std::fs::write(&script, &line).unwrap();
    let mut command = place.command(&[
        "record",
        "--contents",
        "off",
        "--redact",
        "MY_DSN",
        "--",
        "sh",
        "./script",
    ]);
    assert!(
        command
            .env("GITHUB_TOKEN", inherited)
            .output()
            .unwrap()
            .status
            .success()
    );
    std::fs::remove_file(&script).unwrap();
    let run = place.json(&["show", "--json"])["run"]
        .as_str()
        .unwrap()
        .to_owned();
    let questions: [&[&str]; 8] = [
        &["processes", "--json"],
        &["processes"],
        &["show", "--json"],
        &["files", "--json"],
        &["of", "b", "--json"],
        &["of", "b", "--all"],
        &["of", "b", "--dot"],
        &["log", "--raw", &run],
    ];
    let mut everything: Vec<(String, Vec<u8>)> = Vec::new();
    for question in questions {
        let answer = place.command(question).output().unwrap();
        assert!(answer.status.success(), "{question:?}: {answer:?}");
        everything.push((question.join(" "), answer.stdout));
    }
    let shown = String::from_utf8_lossy(&everything[0].1).into_owned();
    assert!(
        shown.contains("MY_PASSWORD") && shown.contains("MY_DSN"),
        "{shown}"
    );
    let mut folders = vec![place.stage.store()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    everything.push((path.display().to_string(), std::fs::read(&path).unwrap()))
                }
            }
        }
    }
    for (what, bytes) in everything {
        for secret in [inherited, given, named] {
            let found = bytes
                .windows(secret.len())
                .any(|part| part == secret.as_bytes());
            assert!(!found, "{secret} in {what}");
        }
    }
}

/// Records a shell's line. The caller redirected standard input and output to these files.
fn record_redirected(place: &Place, line: &str, stdin: Option<&str>, stdout: &str) {
    let mut command = place.command(&["record", "--wait", "--", "sh", "-c", line]);
    if let Some(stdin) = stdin {
        command.stdin(std::fs::File::open(place.path(stdin)).unwrap());
    }
    let out = std::fs::File::create(place.path(stdout)).unwrap();
    assert!(command.stdout(out).status().unwrap().success());
}

/// The user's own files of the last run: inputs and outputs by `show`, and those that `files` says
/// were made.
fn own_files(place: &Place) -> (Vec<String>, Vec<String>, Vec<String>) {
    let name = |path: &serde_json::Value| {
        let path = path.as_str().unwrap();
        path.rsplit('/').next().unwrap().to_owned()
    };
    let show = place.json(&["show", "--json"]);
    let named = |field: &str| show[field].as_array().unwrap().iter().map(name).collect();
    let files = place.json(&["files", "--own", "--level", "step", "--json"]);
    let made = files.as_array().unwrap().iter();
    let made = made.filter(|file| !file["made_by"].as_array().unwrap().is_empty());
    (
        named("own_inputs"),
        named("own_outputs"),
        made.map(|file| name(&file["path"])).collect(),
    )
}

#[test]
fn a_log_that_the_caller_redirected_is_an_output_neither_of_show_nor_of_files() {
    let place = Place::new();
    place.write_aged("in.txt", "b\na\n");
    for log in ["log", "../log"] {
        record_redirected(&place, "sort in.txt > out.txt; echo done", None, log);
        let (inputs, outputs, made) = own_files(&place);
        assert_eq!(
            (inputs, outputs),
            (vec!["in.txt".into()], vec!["out.txt".into()])
        );
        assert_eq!(made, ["out.txt"], "{log}");
        let listed = place.run(&["files", "--own"]).out;
        assert!(!listed.contains("log"), "{listed}");
    }
}

#[test]
fn a_redirected_output_is_an_output_of_show_and_of_files_if_it_is_the_runs_only_result() {
    let place = Place::new();
    place.write_aged("in.txt", "b\na\n");
    record_redirected(&place, "exec sort", Some("in.txt"), "sorted");
    let (inputs, outputs, made) = own_files(&place);
    assert_eq!(inputs, ["in.txt"]);
    assert_eq!(
        (outputs, made),
        (vec!["sorted".into()], vec!["sorted".into()])
    );
}

#[test]
fn a_result_that_was_moved_right_after_the_run_is_an_output_of_show_and_compare() {
    if !needs("a move before anybody looks", &["flock"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("in", "b\na\n");
    assert_eq!(place.run(&["index"]).status, 0);
    let line = format!(
        "'{}' record -- sh -c 'sort in > out; tee extra < in > copy; rm extra' && mv out final && rm copy",
        place.program()
    );
    let mut both = place.stage.command("flock");
    both.arg(place.stage.store().join("index.lock"))
        .args(["sh", "-c", &line])
        .env("BACKSTORY_STORE", place.stage.store());
    let output = both.current_dir(place.work()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(place.run(&["index", "--wait"]).status, 0);
    let outputs = &place.json(&["show", "--json"])["own_outputs"];
    assert_eq!(
        *outputs,
        serde_json::json!([place.path("copy"), place.path("out")])
    );
    let compared = place.run(&["compare", "--all"]).out;
    for name in ["copy", "out"] {
        let row = format!("result     {name} ");
        assert!(compared.contains(&row), "{compared}");
    }
    assert!(!compared.contains("result     extra"), "{compared}");
    // The move changed the status time before the content was stored, so only that can be compared.
    assert_eq!(
        place.file_states(&["out", "final"]),
        ["removed", "uncertain"]
    );
}

#[test]
fn show_counts_no_temporary_file_that_the_run_removed_as_not_stored() {
    if !needs("a temporary file of dpkg-deb", &["dpkg-deb"]) {
        return;
    }
    let place = Place::new();
    let control = [
        "Package: a",
        "Version: 1",
        "Architecture: all",
        "Maintainer: A <a@example.org>",
        "Description: x\n",
    ];
    std::fs::create_dir_all(place.path("d/DEBIAN")).unwrap();
    place.write("d/DEBIAN/control", &control.join("\n"));
    place.run(&["record", "--wait", "--", "dpkg-deb", "-b", "d", "a.deb"]);
    assert_eq!(place.run(&["index", "--wait"]).status, 0);
    let shown = place.run(&["show"]).out;
    assert!(shown.contains("a.deb"), "{shown}");
    assert!(!shown.contains("not stored"), "{shown}");
}

#[test]
fn show_begins_with_what_matters_and_leaves_the_rest_to_verbose() {
    let place = Place::new();
    place.write_aged("in.txt", "b\na\n");
    let run = place.record("sort in.txt > out.txt");
    assert_eq!(place.run(&["index", "--wait"]).status, 0);
    let names = |args: &[&str]| -> Vec<String> {
        let text = place.run(args).out;
        let first = |line: &str| {
            line.split_whitespace()
                .next()
                .unwrap_or_default()
                .to_owned()
        };
        text.lines().map(first).collect()
    };
    let first = [
        "command", "result", "complete", "inputs", "outputs", "started", "took", "memory", "run",
    ];
    assert_eq!(names(&["show", &run]), first);
    let text = place.run(&["show", &run]).out;
    assert!(text.contains("inputs       in.txt\n"), "{text}");
    assert!(text.contains("outputs      out.txt\n"), "{text}");
    let all = names(&["show", &run, "--verbose"]);
    for name in ["machine", "recorded", "log", "contents", "processes"] {
        assert!(all.iter().any(|line| line == name), "{name} in {all:?}");
    }
    let json = place.json(&["show", &run, "--json"]);
    assert_eq!(json["own_inputs"][0], place.path("in.txt"));
    assert_eq!(json["own_outputs"][0], place.path("out.txt"));
}
