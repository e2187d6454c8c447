//! Tags, parameters, metrics and git states of runs, by which they are found and compared.

use backstory_testkit::need;

use super::listed;
use crate::Place;

#[test]
fn tags_find_a_run_until_they_are_removed() {
    let place = Place::new();
    place.run(&[
        "record",
        "--tag",
        "stage=tune",
        "--tag",
        "by=anna",
        "--",
        "true",
        "one",
    ]);
    place.run(&["record", "--", "true", "two"]);
    assert_eq!(listed(&place, &["--tag", "stage=tune"]), ["one"]);
    assert_eq!(
        listed(&place, &["--tag", "stage=t*", "--tag", "by"]),
        ["one"]
    );
    assert_eq!(listed(&place, &["--tag", "stage=final"]), [""; 0]);
    let two = place.json(&["show", "--json"])["run"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(place.run(&["tag", &two, "stage=final", "by=a=b"]).status, 0);
    assert_eq!(listed(&place, &["--tag", "stage"]), ["two", "one"]);
    assert_eq!(place.run(&["tag", &two]).out, "by=a=b\nstage=final\n");
    assert_eq!(place.json(&["show", "--json"])["tags"]["stage"], "final");
    assert!(place.run(&["log"]).out.contains("stage=tune"));
    assert_eq!(place.run(&["tag", &two, "stage="]).status, 0);
    assert_eq!(listed(&place, &["--tag", "stage"]), ["one"]);
    place
        .run(&["tag", &two, "no-value"])
        .is_error(2, &["no-value"]);
}

#[test]
fn tags_survive_a_lost_database_and_leave_with_their_run() {
    let place = Place::new();
    place.run(&["record", "--tag", "stage=tune", "--", "true"]);
    assert_eq!(listed(&place, &["--tag", "stage"]).len(), 1);
    place.quiet();
    for file in ["graph.db", "graph.db-wal", "graph.db-shm"] {
        let _ = std::fs::remove_file(place.stage.store().join(file));
    }
    assert_eq!(listed(&place, &["--tag", "stage"]).len(), 1);
    let run = place.json(&["show", "--json"])["run"]
        .as_str()
        .unwrap()
        .to_owned();
    let export = place.path("x.backstory");
    assert_eq!(
        place.run(&["store", "export", &run, "-o", &export]).status,
        0
    );
    assert_eq!(place.run(&["rm", &run]).status, 0);
    assert_eq!(place.run(&["store", "import", &export]).status, 0);
    assert_eq!(listed(&place, &["--tag", "stage"]).len(), 1);
}

#[test]
fn parameters_are_those_before_the_command_and_metrics_those_after() {
    let place = Place::new();
    place.write("config.yaml", "model:\n  lr: 1e-3\ndb_password: hunter2\n");
    let line =
        "echo 'model: 1' > config.yaml; echo '{\"acc\": 0.75, \"loss\": {\"last\": 2}}' > m.json";
    let options = [
        "record",
        "--param-from",
        "config.yaml",
        "--metric-from",
        "m.json",
        "--",
    ];
    let answer = place.run(&[&options[..], &["sh", "-c", line]].concat());
    assert_eq!((answer.status, answer.err.as_str()), (0, ""));
    let show = place.json(&["show", "--json"]);
    assert_eq!(show["parameters"]["model.lr"].as_f64(), Some(0.001));
    assert_eq!(
        (&show["metrics"]["acc"], &show["metrics"]["loss.last"]),
        (&0.75.into(), &2.into())
    );
    let journal = std::fs::read_to_string(place.stage.store().join("annotations.log")).unwrap();
    assert!(journal.contains("db_password") && !journal.contains("hunter2"));
    place
        .run(&["record", "--param-from", "none.yaml", "--", "true"])
        .is_error(125, &["none.yaml"]);
    let lost = place.run(&[
        "record",
        "--metric-from",
        "none.json",
        "--",
        "sh",
        "-c",
        "exit 3",
    ]);
    lost.is_error(3, &["none.json"]);
}

#[test]
fn runs_are_compared_with_the_differing_rows_first() {
    let place = Place::new();
    for (lr, acc) in [("0.1", "0.5"), ("0.2", "0.7")] {
        place.write("p.json", &format!("{{\"lr\": {lr}, \"seed\": 7}}"));
        let line =
            format!("echo '{{\"acc\": {acc}}}' > m.json; echo same > out; echo {lr} > model");
        let options = [
            "record",
            "--param-from",
            "p.json",
            "--metric-from",
            "m.json",
            "--tag",
            "stage=tune",
        ];
        place.run(&[&options[..], &["--", "sh", "-c", &line]].concat());
        place.run(&["index", "--wait"]);
    }
    let table = place.json(&["compare", "--tag", "stage", "--json"]);
    let rows = table["rows"].as_array().unwrap();
    let named = |name: &str| rows.iter().position(|row| row["name"] == name).unwrap();
    assert_eq!(rows[0]["name"], "acc");
    assert_eq!(rows[0]["values"], serde_json::json!([0.7, 0.5]));
    assert_eq!(rows[1]["name"], "lr");
    assert!(rows[named("seed")]["differs"] == false && named("seed") > named("model"));
    assert!(rows[named("out")]["differs"] == false && rows[named("model")]["differs"] == true);
    let runs = ["0", "1"].map(|at| {
        table["runs"][at.parse::<usize>().unwrap()]
            .as_str()
            .unwrap()
    });
    let text = place.run(&["compare", runs[0], runs[1]]).out;
    assert!(text.contains("acc") && !text.contains("seed"), "{text}");
    assert!(place.run(&["compare", "--all"]).out.contains("seed"));
    let csv = place.run(&["compare", "--csv"]).out;
    assert!(
        csv.starts_with(&format!(
            "group,name,{},{}\nmetric,acc,0.7,0.5\n",
            runs[0], runs[1]
        )),
        "{csv}"
    );
    place
        .run(&["compare", "--tag", "none"])
        .is_error(1, &["no run"]);
}

#[test]
fn a_list_of_packed_references_that_is_not_read_is_named() {
    if !need::needs("git", &["git"]) {
        return;
    }
    let place = Place::new();
    place.git(&["init", "-q", "-b", "main"]);
    place.write("a", "text");
    place.git(&["add", "a"]);
    place.git(&["commit", "-qm", "first"]);
    place.git(&["pack-refs", "--all"]);
    let packed = place.path(".git/packed-refs");
    let packed = std::fs::OpenOptions::new().write(true).open(packed);
    packed.unwrap().set_len(64 << 20).unwrap();
    place.record("cat a");
    place.run(&["index", "--wait"]);
    let state = place.json(&["show", "--json"])["git"][0].clone();
    assert_eq!(state["commit"], serde_json::Value::Null, "{state}");
    let unread = "packed-refs was not read: it has 64 MiB or more";
    assert_eq!(state["unread"], unread, "{state}");
    let text = place.run(&["show"]).out;
    let expected = format!("main, whose commit is not known ({unread})");
    assert!(text.contains(&expected), "{text}");
}

#[test]
fn the_git_state_of_the_directories_used_is_a_fact_of_the_run() {
    if !need::needs("git", &["git"]) {
        return;
    }
    let place = Place::new();
    place.record("true outside");
    place.git(&["init", "-q", "-b", "main"]);
    place.write("a", "text");
    place.write("b", "text");
    place.git(&["add", "a", "b"]);
    place.git(&["commit", "-qm", "first"]);
    let first = place.git(&["rev-parse", "HEAD"]);
    place.write("a", "changed");
    place.record("cat a; echo new > b");
    place.run(&["index", "--wait"]);
    let state = place.json(&["show", "--json"])["git"].clone();
    assert_eq!(state.as_array().unwrap().len(), 1, "{state}");
    assert_eq!(
        (&state[0]["commit"], &state[0]["branch"]),
        (&first.as_str().into(), &"main".into())
    );
    assert_eq!(state[0]["changed"], serde_json::json!(["a"]));
    assert!(state[0]["dirty"] == true);
    let text = place.run(&["show"]).out;
    assert!(
        text.contains(&format!("main @ {}, changed: a", &first[..10])),
        "{text}"
    );
    place.git(&["commit", "-qam", "second"]);
    place.record("true second");
    place.run(&["index", "--wait"]);
    let second = place.json(&["show", "--json"])["git"].clone();
    assert!(second[0]["dirty"] == false, "{second}");
    assert_eq!(
        listed(&place, &["--commit", &first[..8]]),
        ["cat a; echo new > b"]
    );
    assert_eq!(listed(&place, &["--commit", "HEAD"]), ["true second"]);
    assert_eq!(
        listed(&place, &["--commit", "main~1"]),
        ["cat a; echo new > b"]
    );
    place
        .run(&["log", "--commit", "no-such"])
        .is_error(2, &["no-such"]);
}

#[test]
fn the_git_state_of_another_directorys_files_is_a_fact_of_the_run() {
    if !need::needs("git", &["git"]) {
        return;
    }
    let place = Place::new();
    std::fs::create_dir(place.work().join("lib")).unwrap();
    place.stage.user().owns(&place.work().join("lib")).unwrap();
    place.write("lib/a", "text");
    for args in [
        &["init", "-q"][..],
        &["add", "a"],
        &["commit", "-qm", "first"],
    ] {
        let mut git = place.stage.command("git");
        git.current_dir(place.work().join("lib"));
        git.args(["-c", "user.name=n", "-c", "user.email=e"]);
        assert!(git.args(args).output().unwrap().status.success());
    }
    place.record("cat lib/a");
    place.run(&["index", "--wait"]);
    let state = place.json(&["show", "--json"])["git"].clone();
    assert_eq!(state[0]["root"], place.path("lib"), "{state}");
}

#[test]
fn a_result_that_the_next_run_overwrote_is_compared() {
    let place = Place::new();
    // The runs are indexed when the question is asked.
    let recorded: Vec<String> = ["one", "twoo", "four"]
        .iter()
        .map(|text| place.record(&format!("echo {text} > out; echo x > scratch; rm scratch")))
        .collect();
    let oldest_first: Vec<&str> = recorded.iter().map(String::as_str).collect();
    let table = place.json(&[&["compare", "--json"], &oldest_first[..]].concat());
    let rows = table["rows"].as_array().unwrap();
    let mut results = rows.iter().filter(|row| row["group"] == "result");
    let row = results.next().unwrap_or_else(|| panic!("{table}"));
    assert_eq!(
        (&row["name"], &row["differs"]),
        (&"out".into(), &true.into())
    );
    let values = row["values"].as_array().unwrap().iter();
    let values: Vec<&str> = values.map(|value| value.as_str().unwrap_or("-")).collect();
    // Either all contents were stored in time, or the row says which were not.
    let sized = ["4 bytes", "5 bytes", "5 bytes"];
    let is_sized = values
        .iter()
        .zip(sized)
        .all(|(value, size)| value.starts_with(size));
    let is_hash = |value: &&str| value.len() == 12 && value.bytes().all(|b| b.is_ascii_hexdigit());
    assert!(is_sized || values.iter().all(is_hash), "{values:?}");
    assert!(results.next().is_none(), "{table}");
}
