//! Exported documents: the answer names the digests that seals cover, and those that they do not.

use std::fs;

use serde_json::Value;

use super::sealed;

#[test]
fn the_answer_about_a_document_names_digests_that_no_seal_covers() {
    let Some((place, [first, _], ..)) = sealed() else {
        return;
    };
    let verified = |format: &str, file: &str| {
        let export = place.run(&["export", format, &first, "-o", file]);
        assert_eq!(export.status, 0, "{export:?}");
        place.run(&["store", "verify", "--evidence", file])
    };
    let attestation = verified("in-toto", "a.json");
    let blake3 = "of a.json by their BLAKE3 digests\n";
    assert!(attestation.out.contains(blake3), "{attestation:?}");
    // Each content has a digest of each kind.
    let covered = attestation.out.split(" cover ").nth(1).unwrap();
    let contents = covered.split(' ').next().unwrap().to_owned();
    let text = fs::read_to_string(place.path("a.json")).unwrap();
    let name = text.find("\"sha256\"").unwrap() + "\"sha256\"".len();
    let at = name + text[name..].find('"').unwrap() + 1;
    let digit = if &text[at..=at] == "0" { "1" } else { "0" };
    let forged = format!("{}{digit}{}", &text[..at], &text[at + 1..]);
    fs::write(place.path("a.json"), forged).unwrap();
    let forged = place.run(&["store", "verify", "--evidence", "a.json"]);
    assert_eq!(forged.status, 0, "no seal covers it: {forged:?}");
    for kind in ["SHA-1", "SHA-256"] {
        let line = format!("of {kind}, which no seal covers\n");
        assert!(attestation.out.contains(&line), "{attestation:?}");
        assert!(forged.out.contains(&line), "{forged:?}");
    }
    let json = place.run(&["store", "verify", "--evidence", "a.json", "--json"]);
    let report: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(report["checked"], serde_json::json!(["blake3"]), "{report}");
    let unchecked = &report["not_checked"]["sha1"];
    assert_eq!(unchecked.to_string(), contents, "{report}");
    let crate_ = verified("ro-crate", "crate");
    assert!(crate_.out.contains("of SHA-256, which"), "{crate_:?}");
    let prov = verified("prov-json", "b.json");
    assert!(!prov.out.contains("not checked"), "{prov:?}");
    // The text of PROV-N has the seals, too, and is not read.
    let text = verified("prov-n", "c.provn");
    text.is_error(1, &["c.provn", "no JSON document"]);
    let text = fs::read_to_string(place.path("c.provn")).unwrap();
    assert!(text.contains("backstory:backstory_evidence="), "{text}");
    assert!(text.contains("backstory seal 1"), "{text}");
}
