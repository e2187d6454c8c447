//! Questions to `hunt` and `timeline`: rules of the user, times, hosts, subjects and contents.

use serde_json::Value;

use super::Place;
use super::hunt::LoopbackServer;

#[test]
fn a_rule_of_the_user_runs_beside_one_that_does_not_compile() {
    let place = Place::new();
    place.write(
        "rules.yml",
        "title: A marker\nid: marker\nlevel: low\n\
         detection:\n  made:\n    Operation: [write, make]\n    TargetFilename|endswith: /marker\n  \
         condition: made\n---\n\
         title: Broken\nid: broken\ndetection:\n  s:\n    Imag: x\n  condition: s\n",
    );
    let run = place.record("echo x > marker");
    let answer = place.run(&["hunt", &run, "--rules", "rules.yml", "--json"]);
    let mistake = "backstory: rule left out: rules.yml:14:5: unknown field `Imag`";
    assert!(answer.err.starts_with(mistake), "{answer:?}");
    assert!(
        answer.status == 0 && answer.out.contains("\"marker\""),
        "{answer:?}"
    );
    let clean = place.record("true");
    let answer = place.run(&["hunt", &clean, "--rules", "rules.yml"]);
    assert_eq!(answer.status, 2, "{answer:?}");
    assert!(answer.out.starts_with("not decided: "), "{answer:?}");
    place
        .run(&["hunt", "--rules", "nowhere"])
        .is_error(2, &["cannot read rules from nowhere"]);
    place
        .run(&["hunt", "--rule", "nothing"])
        .is_error(2, &["no rule is named nothing:", "--list"]);
    place
        .run(&["hunt", "--rule", "secret-snet"])
        .is_error(2, &["secret-snet, did you mean secret-sent?: ", "--list"]);
}

#[test]
fn a_timeline_has_the_events_of_a_run_a_file_and_an_address_in_order() {
    let Some((place, server)) = LoopbackServer::at_place(1, "x\n") else {
        return;
    };
    // A name of one letter can be the beginning of a run's id.
    let first = place.record("echo x > a; mv a moved");
    let second = place.record(&format!("{} > c; cat moved", server.download()));
    let port = server.port.to_string();
    server.end();
    let words = |answer: &Value| -> Vec<(String, String)> {
        let word = |event: &Value, key: &str| event[key].as_str().unwrap_or("").to_owned();
        let all = answer.as_array().unwrap().iter();
        all.map(|event| (word(event, "run"), word(event, "operation")))
            .collect()
    };
    let of_file = words(&place.json(&["timeline", "moved", "--json"]));
    for other in [&*place.path("moved"), "./moved", "none/../moved"] {
        assert_eq!(
            words(&place.json(&["timeline", other, "--json"])),
            of_file,
            "{other}"
        );
    }
    let has = |run: &str, what: &str| of_file.contains(&(run.to_owned(), what.to_owned()));
    assert!(has(&first, "rename") && has(&second, "read"), "{of_file:?}");
    assert_eq!(of_file[0].0, first);
    let of_peer = words(&place.json(&["timeline", &format!("127.0.0.1:{port}"), "--json"]));
    assert!(
        of_peer.contains(&(second.clone(), "receive".to_owned())),
        "{of_peer:?}"
    );
    let text = place.run(&["timeline", &first]).out;
    let at = |word: &str| {
        text.find(word)
            .unwrap_or_else(|| panic!("no {word} in {text}"))
    };
    assert!(at("write") < at("rename"), "{text}");
    let csv = place.run(&["timeline", &first, "--csv"]).out;
    assert!(
        csv.starts_with("time,run,operation,target,source,certainty,pid,command\n"),
        "{csv}"
    );
    // Events of one second have different times.
    let time = csv.lines().nth(1).unwrap().split(',').next().unwrap();
    let fraction = time.split_once('.').unwrap().1;
    assert_eq!(fraction.len(), 9, "{time}");
    let none = place.run(&["timeline", &first, "--to", "2001-01-01"]);
    assert_eq!((none.status, none.out.as_str()), (1, "no events\n"));
}

#[test]
fn a_timeline_shows_what_is_certain_before_what_is_possible() {
    let place = Place::new();
    // Each program can have written to the descriptor that it was given.
    let run = place.record(
        "exec 3> given; i=0; while [ $i -lt 50 ]; do /bin/true; i=$((i+1)); done; echo x > made",
    );
    let text = place.run(&["timeline", &run]).out;
    assert!(text.contains("/made  sh"), "{text}");
    assert!(!text.contains("(possibly)"), "{text}");
    let count = text.lines().last().unwrap();
    assert!(count.ends_with(" only possible) left out: --all"), "{text}");
    let events = place.json(&["timeline", &run, "--json"]);
    let events = events.as_array().unwrap();
    let certainty = |event: &Value| event["certainty"].as_str().unwrap().to_owned();
    let possible = events.iter().filter(|one| certainty(one) == "possible");
    assert!(possible.count() >= 50);
    for two in events.windows(2) {
        let is_one_moment = two[0]["time"] == two[1]["time"];
        let order = (certainty(&two[0]), certainty(&two[1]));
        let is_wrong = order == ("possible".to_owned(), "seen".to_owned());
        assert!(!(is_one_moment && is_wrong), "{two:?}");
    }
}

#[test]
fn a_time_and_a_host_choose_the_runs_that_are_looked_at() {
    let place = Place::new();
    let runs = [(); 2].map(|()| place.record("echo x >> .bashrc"));
    let host = place.json(&["query", "--json", "SELECT host FROM runs LIMIT 1"]);
    let host = host[0]["host"].as_str().unwrap().to_owned();
    let looked = |arguments: &[&str]| {
        let words = [
            &["hunt", "--rule", "startup-file-written", "--json"],
            arguments,
        ]
        .concat();
        let found: Value = serde_json::from_str(&place.run(&words).out).unwrap();
        let found = found.as_array().unwrap().iter();
        found
            .map(|one| one["run"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let mut all = runs.to_vec();
    all.reverse();
    assert_eq!(looked(&["--since", "1 hour ago", "--host", &host]), all);
    assert_eq!(looked(&["--host", "nowhere"]), [""; 0]);
    let nowhere = place.run(&["hunt", "--host", "nowhere"]);
    assert_eq!(nowhere.status, 1, "{nowhere:?}");
    assert!(nowhere.err.contains("no run was looked at"), "{nowhere:?}");
    assert_eq!(looked(&["--until", "1 hour ago"]), [""; 0]);
    assert_eq!(
        looked(&[&runs[0], "--since", "1 hour ago"]),
        [runs[0].as_str()]
    );
    assert_eq!(looked(&[&runs[0], "--until", "1 hour ago"]), [""; 0]);
}

/// The runs in which a rule finds something, of all runs. Each is there once.
fn runs_found(place: &Place, rule: &str) -> Vec<String> {
    let words = [
        "hunt", "--all", "--rules", "rules", "--rule", rule, "--json",
    ];
    let answer = place.run(&words);
    assert_eq!(answer.err, "");
    let found: Vec<Value> = serde_json::from_str(&answer.out).unwrap();
    let runs = found
        .iter()
        .map(|one| one["run"].as_str().unwrap().to_owned());
    let mut runs: Vec<String> = runs.collect();
    runs.sort();
    runs.dedup();
    runs
}

#[test]
fn a_rule_about_contents_finds_the_run_that_changed_them() {
    let place = Place::new();
    if !place.has_inspector() {
        return;
    }
    std::fs::create_dir(place.work().join("rules")).unwrap();
    for (id, file, test) in [
        ("setting", "out.toml", "ContentChange|contains: '`dt`'"),
        ("changed", "out.toml", "ContentChange|exists: true"),
        ("two-rows", "out.csv", "ContentFact: rows=2"),
    ] {
        place.write(
            format!("rules/{id}.yml"),
            &format!(
                "title: t\nid: {id}\ndetection:\n  of:\n    Operation: write\n    \
                 TargetFilename|endswith: /{file}\n    {test}\n  condition: of\n"
            ),
        );
    }
    let mut runs = Vec::new();
    for (steps, dt, rows) in [
        (10, "0.1", "1,2\n"),
        (20, "0.1", "1,2\n3,4\n"),
        (20, "0.01", ""),
    ] {
        place.write("in.toml", &format!("steps = {steps}\ndt = {dt}\n"));
        place.write("in.csv", &format!("a,b\n{rows}"));
        let script = "cat in.toml > out.toml; cat in.csv > out.csv; cp out.toml other.toml";
        runs.push(place.keep(script, &["--contents=all"]));
    }
    assert_eq!(runs_found(&place, "setting"), [runs[2].clone()]);
    let mut changed = runs[1..].to_vec();
    changed.sort();
    assert_eq!(runs_found(&place, "changed"), changed);
    assert_eq!(runs_found(&place, "two-rows"), [runs[1].clone()]);
    let message = "rule setting asks inspectors about contents";
    let watched = ["record", "--watch", "rules", "--", "true"];
    assert!(place.run(&watched).err.contains(message));
}
