//! A rule that takes too long is ended, in a stored run and in one that goes on. Other rules are
//! looked at all the same.

use serde_json::{Value, json};

use super::Place;

/// A rule that looks for many values in a long command line, and a rule that matches.
fn rules() -> String {
    let values = vec!["aaab"; 1_000].join(", ");
    format!(
        "title: Endless\nid: endless\nlevel: low\n\
         detection: {{a: {{CommandLine|contains: [{values}]}}, condition: a}}\n---\n\
         title: Made\nid: made\nlevel: low\n\
         detection: {{a: {{TargetFilename|endswith: /made-7}}, condition: a}}\n"
    )
}

/// A shell line of 6 kB that makes many files.
fn long_line() -> String {
    let words = "a".repeat(6_000);
    format!(": {words}; i=0; while [ $i -lt 6000 ]; do : > made-$i; i=$((i+1)); done; echo went on")
}

#[test]
fn a_hunt_by_a_rule_without_end_ends_in_time_and_is_not_decided() {
    let place = Place::new();
    place.write("endless.yml", &rules());
    let run = place.record(&long_line());
    let hunt = |more: &[&str]| {
        let rule = ["--rules", "endless.yml", "--rule", "endless"];
        place.run(&[&["hunt", &run, "--timeout", "1"], &rule[..], more].concat())
    };
    let ended =
        format!("backstory: rule endless has not seen all of run {run} within 1 s (--timeout)\n");
    let nothing = hunt(&[]);
    assert_eq!((nothing.status, &nothing.err), (2, &ended), "{nothing:?}");
    assert!(nothing.out.starts_with("not decided: "), "{nothing:?}");
    let nothing = hunt(&["--json"]);
    let list: Value = serde_json::from_str(&nothing.out).unwrap();
    assert_eq!((nothing.status, list), (2, json!([])), "{}", nothing.err);
    let other = hunt(&["--rule", "made"]);
    assert_eq!((other.status, &other.err), (0, &ended), "{other:?}");
    assert!(other.out.contains("/made-7"), "{other:?}");
}

#[test]
#[ignore = "a rule has 10 s in each look"]
fn a_rule_without_end_holds_up_neither_the_watched_command_nor_other_rules_for_ever() {
    let place = Place::new();
    place.write("endless.yml", &rules());
    let line = long_line();
    let answer = place.run(&["record", "--watch", "endless.yml", "--", "sh", "-c", &line]);
    assert_eq!(
        (answer.status, &*answer.out),
        (0, "went on\n"),
        "{answer:?}"
    );
    let ended = answer.err.matches("rule endless takes more than 10 s: ");
    assert_eq!(ended.count(), 1, "{answer:?}");
    assert!(answer.err.contains("low: made: "), "{answer:?}");
}
