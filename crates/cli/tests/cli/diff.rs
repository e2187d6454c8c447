//! `diff`: where two runs part.

use serde_json::Value;

use super::Place;

/// The kinds and subjects of all differences, in their order.
fn told(answer: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let all = answer["differences"].as_array().unwrap().iter();
    all.map(|one| (text(&one["kind"]), text(&one["of"]))).collect()
}

fn diff(place: &Place, args: &[&str]) -> Value {
    let answer = place.run(&[&["diff", "--json"], args].concat());
    assert!(answer.status <= 1 && answer.err.is_empty(), "{answer:?}");
    let read: Value = serde_json::from_str(&answer.out).unwrap();
    assert_eq!(read["same"], answer.status == 0);
    read
}

#[test]
fn two_runs_of_the_same_are_the_same() {
    let place = Place::new();
    place.write_settled("in", "one\n");
    let a = place.keep("sort in | uniq > out", &["--contents=lazy"]);
    let b = place.keep("sort in | uniq > out", &["--contents=lazy"]);
    let answer = diff(&place, &[&a, &b]);
    assert_eq!(told(&answer), []);
    assert_eq!(answer["same_outputs"][0], "out");
    let text = place.run(&["diff", &a, &b]);
    assert!(text.status == 0 && text.out.contains("no difference"), "{text:?}");
}

#[test]
fn a_changed_input_comes_first_and_is_what_fed_the_output() {
    let place = Place::new();
    place.write_settled("in", "one\n");
    place.write_settled("other", "the same for both\n");
    let line = "cat other > untouched; sort in > sorted; uniq sorted > out";
    let a = place.keep(line, &["--contents=lazy"]);
    place.write_settled("in", "two\n");
    let b = place.keep(line, &["--contents=lazy"]);
    let answer = diff(&place, &[&a, &b]);
    assert_eq!(answer["earliest"]["kind"], "input");
    assert_eq!(answer["earliest"]["of"], "in");
    let out = answer["differences"].as_array().unwrap().iter();
    let out = out.filter(|one| one["kind"] == "output").collect::<Vec<_>>();
    assert_eq!(out.len(), 2, "{answer}");
    for one in out {
        assert_eq!(one["fed_by"], serde_json::json!([0]), "{answer}");
    }
    assert_eq!(answer["same_outputs"], serde_json::json!(["untouched"]));
    let only = diff(&place, &["untouched", "--in", &a, &b]);
    assert_eq!(
        only["differences"].as_array().unwrap().len(),
        0,
        "what did not go into it is not compared: {only}"
    );
    let versions = diff(&place, &[&format!("out@{a}"), &format!("out@{b}")]);
    assert_eq!(versions["earliest"]["of"], "in");
}

#[test]
fn arguments_environment_and_commands_are_told_apart() {
    let place = Place::new();
    place.write_settled("in", "b\na\n");
    place.write_settled(
        "run.sh",
        "sort $FLAG in > out\n[ -z \"$MORE\" ] || cat in > more\n",
    );
    let record = |flag: &str, more: &str| {
        let summary = place.path("..s.json");
        let mut command = place.command(&[
            "record",
            "--contents=lazy",
            "--json-summary",
            &summary,
            "--",
            "sh",
            "run.sh",
        ]);
        command.env("FLAG", flag).env("MORE", more);
        assert!(command.status().unwrap().success());
        let read: Value = serde_json::from_slice(&std::fs::read(&summary).unwrap()).unwrap();
        read["run"].as_str().unwrap().to_owned()
    };
    let (a, b) = (record("-n", ""), record("-r", "yes"));
    let all = told(&diff(&place, &[&a, &b]));
    let has = |kind: &str, of: &str| all.contains(&(kind.to_owned(), of.to_owned()));
    assert!(
        has("environment", "FLAG") && has("environment", "MORE"),
        "{all:?}"
    );
    assert!(
        has("arguments", "sort") && has("command", "cat") && has("output", "more"),
        "{all:?}"
    );
    assert_eq!(all[0].0, "environment");
}

#[test]
fn work_done_in_two_directories_is_the_same_work() {
    let place = Place::new();
    place.write_settled("in", "text\n");
    let line = |dir: &str| format!("mkdir {dir} && cp in {dir} && cd {dir} && exec sh -c 'cat in > out'");
    let a = place.keep(&line("one"), &["--contents=lazy"]);
    let b = place.keep(&line("one2"), &["--contents=lazy"]);
    let all = told(&diff(&place, &[&a, &b]));
    assert!(all.iter().any(|(kind, _)| kind == "directory"), "{all:?}");
    assert!(
        !all.iter().any(|(kind, of)| kind == "input" && of == "in"),
        "{all:?}"
    );
}

#[test]
fn what_cannot_be_compared_says_what_to_give() {
    let place = Place::new();
    let a = place.record("true");
    place.run(&["diff", &a]).is_error(2, &["--in"]);
    place.run(&["diff", &a, "nothing"]).is_error(1, &["nothing"]);
    place.run(&["diff", &a, "./nothing"]).is_error(1, &["nothing"]);
}
