//! Results that a replay made again, or not: what policies and attestations say about them.

use backstory_testkit::need::skipped;
use serde_json::{Value, json};

use super::policies::{rule, verified};
use super::{Answer, Place};

/// Whether an expression holds for `result`.
fn holds(place: &Place, expression: &str) -> bool {
    let require = format!("require = \"{expression}\"");
    let answer = verified(place, &rule("artifact", &require), &[]);
    assert!(answer.out.contains(" rules hold for "), "{answer:?}");
    answer.status == 0
}

/// The facts about `result` in its attestation.
fn attested(place: &Place) -> Value {
    let export = place.run(&["export", "in-toto", "result", "-o", "-"]);
    assert_eq!(export.status, 0, "{export:?}");
    let statement: Value = serde_json::from_str(&export.out).unwrap();
    statement["predicate"]["buildDefinition"]["internalParameters"]["hermeticity"].clone()
}

/// Replays a run. `None` if that is not possible here.
fn replayed(place: &Place, run: &str, more: &[&str]) -> Option<Answer> {
    let answer = place.replay(run, more);
    if answer.err.contains("namespace") {
        skipped("a replay", &answer.err);
        return None;
    }
    Some(answer)
}

#[test]
fn a_result_is_reproducible_once_a_replay_has_made_the_same() {
    let place = Place::new();
    if !place.has_inspector() {
        return;
    }
    place.write_aged("in", "b\na\n");
    let run = place.keep("sort in > result", &["--contents=lazy"]);
    assert!(holds(&place, "reproducible == null"));
    assert_eq!(attested(&place).get("reproducible"), Some(&Value::Null));
    let Some(same) = replayed(&place, &run, &[]) else {
        return;
    };
    assert_eq!(same.status, 0, "{same:?}");
    let agrees = |place: &Place| {
        assert!(holds(place, "reproducible"));
        let facts = attested(place);
        assert_eq!(facts["reproducible"], true, "{facts}");
        assert_eq!(facts["differentInReplay"], json!([]), "{facts}");
    };
    agrees(&place);
    // Another input says nothing about the result.
    place.write_aged("other", "c\n");
    let other = replayed(&place, &run, &["--input", "in=other"]).unwrap();
    assert_eq!(other.status, 1, "{other:?}");
    agrees(&place);
}

#[test]
fn a_hermetic_result_that_differs_in_a_replay_is_hermetic_no_more() {
    let place = Place::new();
    if !place.has_inspector() {
        return;
    }
    // The cache of the loader is outside of any other directory.
    let line = format!("head -c 20 /dev/urandom > {}", place.path("result"));
    let args = ["record", "--contents=lazy", "--name", "it", "--"];
    let mut record = place.command(&[&args[..], &["sh", "-c", &line]].concat());
    let recorded = Answer::of(record.current_dir("/").output().unwrap());
    assert_eq!(
        (recorded.status, recorded.err.as_str()),
        (0, ""),
        "{recorded:?}"
    );
    assert_eq!(place.run(&["index", "--wait"]).status, 0);
    let nothing_known = json!({
        "hermetic": true, "network": [], "inputsFromElsewhere": [], "inputsWithoutDigest": [],
        "undeclaredInputs": null,
        "reproducible": null, "differentInReplay": [],
    });
    assert_eq!(attested(&place), nothing_known);
    assert!(holds(&place, "hermetic && reproducible == null"));
    let Some(other) = replayed(&place, "it", &[]) else {
        return;
    };
    assert_eq!(other.status, 1, "{other:?}");
    let differs = json!({
        "hermetic": false, "network": [], "inputsFromElsewhere": [], "inputsWithoutDigest": [],
        "undeclaredInputs": null,
        "reproducible": false, "differentInReplay": [place.path("result")],
    });
    assert_eq!(attested(&place), differs);
    assert!(holds(&place, "!hermetic && reproducible == false"));
}
