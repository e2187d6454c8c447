//! Limits in `config.toml` bound a store, and break no lineage of a file that exists.

use std::fs;

use super::{Answer, Place};

/// Sets the limits of the user.
fn limit(place: &Place, text: &str) {
    let directory = place.path("config/backstory");
    fs::create_dir_all(&directory).unwrap();
    fs::write(
        format!("{directory}/config.toml"),
        format!("[limits]\n{text}\n"),
    )
    .unwrap();
}

fn gc(place: &Place, args: &[&str]) -> Answer {
    let mut command = place.command(&[&["store", "gc"], args].concat());
    command.env("XDG_CONFIG_HOME", place.path("config"));
    Answer::of(command.output().unwrap())
}

/// Three runs that lead to `report`, and one whose file is removed again.
fn recorded() -> (Place, [String; 4]) {
    let place = Place::new();
    place.write_aged("data", "b\na\n");
    let lost = place.keep("seq 30000 > large; wc -l large > /dev/null; rm large", &[]);
    let first = place.keep("sort data > middle", &["--contents=all"]);
    let second = place.keep("uniq middle > report", &["--contents=all"]);
    let third = place.keep("cat report > copy; rm copy", &[]);
    (place, [lost, first, second, third])
}

#[test]
fn what_an_existing_file_came_from_stays() {
    let (place, [_, first, second, _]) = recorded();
    limit(&place, "store = \"1k\"");
    let before = place.run(&["of", "report"]).out;
    let would = gc(&place, &["--limits", "--dry-run"]);
    assert!(would.out.starts_with("would forget 2 runs"), "{would:?}");
    assert_eq!(place.runs().len(), 4);
    let answer = gc(&place, &["--limits"]);
    assert_eq!(answer.status, 0, "{answer:?}");
    assert_eq!(place.runs(), [second, first], "{answer:?}");
    assert_eq!(place.run(&["of", "report"]).out, before);
    assert_eq!(place.run(&["store", "verify"]).status, 0);
}

#[test]
fn a_run_with_a_name_or_a_note_stays() {
    let (place, [lost, .., third]) = recorded();
    assert_eq!(place.run(&["name", &lost, "kept"]).status, 0);
    assert_eq!(place.run(&["note", &third, "look here"]).status, 0);
    limit(&place, "day = \"1\"");
    gc(&place, &["--limits"]);
    assert_eq!(place.runs().len(), 4);
}

#[test]
fn a_store_within_its_limits_loses_nothing() {
    let (place, _) = recorded();
    limit(&place, "store = \"1G\"\nday = \"1G\"");
    gc(&place, &["--limits"]);
    assert_eq!(place.runs().len(), 4);
}

#[test]
fn without_limits_only_the_default_budget_counts() {
    let (place, _) = recorded();
    let answer = gc(&place, &["--limits"]);
    assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{answer:?}");
    assert!(answer.out.starts_with("forgot 0 contents"), "{answer:?}");
    assert_eq!(place.runs().len(), 4);
}

/// The reasons of the contents that a run lacks, as `show` names them.
fn not_kept(place: &Place, run: &str) -> Vec<(String, String)> {
    let shown = place.json(&["show", run, "--json"]);
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let missing = shown["contents"]["not_kept"].as_array().unwrap().iter();
    missing
        .map(|one| (text(&one["path"]), text(&one["because"])))
        .collect()
}

/// Stores the contents of all runs under the user's limits.
fn store_contents(place: &Place) {
    let mut command = place.command(&["index", "--wait"]);
    command.env("XDG_CONFIG_HOME", place.path("config"));
    assert_eq!(Answer::of(command.output().unwrap()).status, 0);
}

/// Records a line without an indexer in the background: the limits are set for the next one.
fn record_limited(place: &Place, line: &str) -> String {
    let run = place.record_with(line, &[("XDG_CONFIG_HOME", &place.path("config"))]);
    store_contents(place);
    run
}

#[test]
fn what_is_over_a_limit_of_contents_is_not_stored_and_named() {
    let place = Place::new();
    let hundred = "0123456789".repeat(10);
    place.write_aged("small", "s");
    place.write_aged("large", &hundred.repeat(10));
    place.write_aged("movie.iso", "m");
    limit(
        &place,
        "file = \"500\"\n[limits.directories]\n\"*.iso\" = \"0\"",
    );
    let run = record_limited(&place, "cat small large movie.iso > /dev/null");
    let reasons = not_kept(&place, &run);
    let of = |name: &str| {
        let found = reasons.iter().find(|(path, _)| path.ends_with(name));
        found.map(|(_, why)| why.clone()).unwrap_or_default()
    };
    assert_eq!(of("/small"), "", "{reasons:?}");
    assert!(
        of("/large").contains("over the limit of 500"),
        "{reasons:?}"
    );
    assert!(of("/movie.iso").contains("*.iso"), "{reasons:?}");
    let answer = place.run(&["contents", "large", "--run", &run]);
    answer.is_error(1, &["is not stored", "over the limit of 500"]);
    // A raised limit stores the file at its next use.
    limit(&place, "file = \"5000\"");
    record_limited(&place, "cat large > /dev/null");
    assert_eq!(place.run(&["contents", "large"]).out, hundred.repeat(10));
}

#[test]
fn a_lower_budget_drops_what_a_run_makes_again_and_says_so() {
    let place = Place::new();
    // Bytes that zstd cannot make smaller, so that each content takes its size.
    let program =
        "import random\nr=random.Random(7)\nopen('source','wb').write(r.randbytes(300000))";
    let mut python = place.stage.command("python3");
    python.current_dir(place.work()).args(["-c", program]);
    assert!(python.status().unwrap().success());
    place.age("source");
    let run = place.keep(
        "rev source > product 2>/dev/null || cp source product; printf x >> product",
        &[],
    );
    limit(&place, "contents = \"400k\"");
    let answer = gc(&place, &["--limits"]);
    assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{answer:?}");
    assert_eq!(place.runs(), std::slice::from_ref(&run), "no run goes");
    let reasons = not_kept(&place, &run);
    let (path, why) = &reasons[0];
    assert!(
        path.ends_with("/product") && reasons.len() == 1,
        "{reasons:?}"
    );
    assert!(why.contains(&format!("backstory replay {run}")), "{why}");
    assert_eq!(place.run(&["contents", "source"]).status, 0);
    let answer = place.run(&["contents", "product", "--run", &run]);
    answer.is_error(1, &["to keep to the limit", "replay"]);
    assert_eq!(place.run(&["store", "verify"]).status, 0);
    let again = place.run(&["replay", &run]);
    assert_eq!(again.status, 0, "{again:?}");
}

#[test]
fn the_indexer_keeps_to_the_limits_and_spares_new_runs() {
    let (place, _) = recorded();
    limit(&place, "store = \"1k\"");
    let mut command = place.command(&["index", "--wait"]);
    command.env("XDG_CONFIG_HOME", place.path("config"));
    assert_eq!(Answer::of(command.output().unwrap()).status, 0);
    assert_eq!(place.runs().len(), 4);
    assert!(place.stage.store().join("limits.looked").exists());
}
