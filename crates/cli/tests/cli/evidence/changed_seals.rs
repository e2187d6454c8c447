//! Seals that were changed themselves are named before the parts of the run.

use std::fs;
use std::path::Path;

use backstory_testkit::need::needs;

use super::{Place, flip};

/// Changes one digit of the digest of the processes in a statement.
fn change_processes(statement: &Path) {
    let text = fs::read_to_string(statement).unwrap();
    let at = text.find("\nprocesses ").unwrap() + "\nprocesses ".len();
    let digit = if &text[at..=at] == "0" { "1" } else { "0" };
    let changed = format!("{}{digit}{}", &text[..at], &text[at + 1..]);
    fs::write(statement, changed).unwrap();
}

/// Seals two runs, changes each seal, and expects these parts of its run, in this order.
fn expect(place: &Place, more: &[&str], parts: &[&str]) {
    place.write_aged("in", "text\n");
    let runs = ["one", "two"].map(|name| place.keep(&format!("cat in > {name}"), &[]));
    let sealed = place.run(&[&["store", "seal", "--all"], more].concat());
    assert_eq!(sealed.status, 0, "{sealed:?}");
    for (number, run) in (1..).zip(&runs) {
        let statement = place.seal_file(number, "seal");
        let mut told = String::new();
        let found = place.faults_after(&[], &mut |_| {
            change_processes(&statement);
            told = place.run(&["store", "verify", "--evidence"]).out;
        });
        let of_run = found.iter().filter_map(|fault| fault.strip_prefix(&**run));
        let of_run: Vec<&str> = of_run.map(str::trim).collect();
        assert_eq!(of_run, parts, "{found:?}");
        let doubt = "processes: was changed; or only a seal was changed";
        assert!(told.contains(doubt), "{told}");
        // The seal is not doubted if the run was changed.
        let found = place.faults_after(&[], &mut |store| {
            flip(&store.join("runs").join(format!("{run}.log")));
        });
        assert!(found.contains(&format!("{run} log")), "{found:?}");
        assert!(!found.contains(&format!("{run} seal")), "{found:?}");
    }
}

#[test]
fn a_changed_seal_is_named_before_the_parts_that_differ_from_it() {
    expect(&Place::new(), &[], &["seal", "processes"]);
}

#[test]
fn a_changed_signed_seal_is_named_before_its_parts_and_its_signature() {
    if !needs("signed seals", &["ssh-keygen"]) {
        return;
    }
    let place = Place::new();
    let (key, _) = place.signer("ann");
    expect(
        &place,
        &["--key", &key],
        &["seal", "processes", "signature"],
    );
}
