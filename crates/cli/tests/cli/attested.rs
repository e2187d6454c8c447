//! Attestations list undeclared inputs of builds, and digests of packages' files, if asked.

use std::path::Path;
use std::process::Command;

use backstory_testkit::need::{needs, skipped};
use serde_json::{Value, json};

use super::Place;

/// The definition of the build in the attestation about `result`.
fn attested(place: &Place, options: &[&str]) -> Value {
    let export = place.run(&[&["export", "in-toto", "result"], options].concat());
    assert_eq!(export.status, 0, "{export:?}");
    let statement: Value = serde_json::from_str(&export.out).unwrap();
    statement["predicate"]["buildDefinition"].clone()
}

#[test]
fn inputs_that_the_build_did_not_declare_are_listed_if_they_are_asked_for() {
    if !needs("undeclared inputs of make", &["make"]) {
        return;
    }
    let place = Place::new();
    let listed = |options: &[&str]| {
        let definition = attested(&place, options);
        let facts = &definition["internalParameters"]["hermeticity"];
        facts["undeclaredInputs"].clone()
    };
    place.write_aged("listed", "1\n");
    place.write_aged("forgotten", "2\n");
    let forgetful = "result: listed\n\tcat listed forgotten > result\n";
    place.write_aged("Makefile", forgetful);
    place.keep("make", &[]);
    assert_eq!(listed(&[]), Value::Null);
    let forgotten = json!([place.path("forgotten")]);
    assert_eq!(listed(&["--undeclared"]), forgotten);
    let whole = forgetful.replace(": listed", ": listed forgotten");
    place.write_aged("Makefile", &whole);
    place.keep("rm result; make", &[]);
    assert_eq!(listed(&["--undeclared"]), json!([]));
    // Without declarations it is not known.
    place.keep("cat forgotten > result", &[]);
    std::fs::remove_file(place.path("Makefile")).unwrap();
    assert_eq!(listed(&["--undeclared"]), Value::Null);
    let other = place.run(&["export", "shell", "--undeclared"]);
    other.is_error(2, &["shell does not list undeclared inputs", "in-toto"]);
}

#[test]
fn files_of_packages_have_digests_if_they_are_asked_for() {
    if !Path::new("/var/lib/dpkg/info/coreutils.list").exists() {
        skipped("files of packages in in-toto", "needs dpkg");
        return;
    }
    let place = Place::new();
    place.write_aged("in", "b\na\n");
    place.keep("sort in > result", &["--contents=lazy"]);
    let program = |options: &[&str]| {
        let definition = attested(&place, options);
        let all = definition["resolvedDependencies"].as_array().unwrap();
        let is_it = |one: &&Value| one["name"].as_str().unwrap().ends_with("/bin/sort");
        all.iter().find(is_it).cloned()
    };
    assert_eq!(program(&[]), None);
    let sort = program(&["--files"]).unwrap();
    let sum = Command::new("sha256sum").arg("/usr/bin/sort").output();
    let sum = String::from_utf8(sum.unwrap().stdout).unwrap();
    assert_eq!(sort["digest"]["sha256"], sum[..64], "{sort}");
    assert_eq!(sort["annotations"]["package"], "coreutils", "{sort}");
    // A seal covers each BLAKE3 digest of the document.
    assert_eq!(place.run(&["store", "seal", "--all"]).status, 0);
    let words = ["export", "in-toto", "result", "--files", "-o", "a.json"];
    assert_eq!(place.run(&words).status, 0);
    let verified = place.run(&["store", "verify", "--evidence", "a.json"]);
    assert_eq!(verified.status, 0, "{verified:?}");
    let covered = "valid seals of 1 run cover";
    assert!(verified.out.contains(covered), "{verified:?}");
}
