//! Seals that were made without a signature, and runs that are sealed again.

use std::fs;

use backstory_testkit::need::needs;

use super::{Place, faults};

#[test]
fn a_run_that_is_sealed_again_with_a_key_counts_as_signed() {
    if !needs("signed seals", &["ssh-keygen"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("in", "text\n");
    let first = place.keep("cat in > one", &[]);
    let second = place.keep("cat in > two", &[]);
    let plain = place.run(&["store", "seal", "--all"]);
    assert!(plain.out.contains("not signed"), "{plain:?}");
    assert!(
        !plain.out.contains("--again"),
        "no key, no advice: {plain:?}"
    );
    let (key, allowed) = place.signer("ann");
    let signed = ["store", "seal", "--all", "--key", &key];
    let later = place.run(&signed);
    assert!(
        later.out.contains("2 runs have a seal without a signature"),
        "{later:?}"
    );
    assert!(later.out.contains("--all --again"), "{later:?}");
    let signers = ["--signers", &allowed];
    let (status, report) = place.verified(&signers);
    let both = [&first, &second].map(|run| format!("{run} signature"));
    let mut found = faults(&report);
    found.sort();
    let mut expected = both.to_vec();
    expected.sort();
    assert_eq!((status, found), (1, expected), "{report}");
    // The run that is sealed again is signed, and the other one is not.
    let one = place.run(&["store", "seal", &first, "--again", "--key", &key]);
    assert!(one.out.starts_with("sealed 1 run,"), "{one:?}");
    let (status, report) = place.verified(&signers);
    assert_eq!((status, faults(&report)), (1, vec![both[1].clone()]));
    let all = place.run(&[&signed[..], &["--again"]].concat());
    assert!(all.out.starts_with("sealed 2 runs,"), "{all:?}");
    assert!(!all.out.contains("without a signature"), "{all:?}");
    let (status, report) = place.verified(&signers);
    assert_eq!((status, faults(&report)), (0, vec![]), "{report}");
    assert_eq!(report["intact"].as_array().unwrap().len(), 2, "{report}");
    assert_eq!(report["seals"], 5, "the chain stays as it is: {report}");
    let told = place.run(&["store", "verify", "--evidence", "--signers", &allowed]);
    let none = "signature: 2 seals have none, and later seals of their runs count instead";
    assert!(told.out.contains(none), "{told:?}");
}

#[test]
fn a_seal_without_a_signature_never_hides_a_change_of_the_signed_one() {
    if !needs("signed seals", &["ssh-keygen"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("in", "text\n");
    let run = place.keep("cat in > one", &[]);
    let (key, allowed) = place.signer("ann");
    let signed = ["store", "seal", "--all", "--again", "--key", &key];
    let signers = ["--signers", &allowed];
    assert_eq!(place.run(&["store", "seal", "--all"]).status, 0);
    assert_eq!(place.run(&signed).status, 0);
    // A later seal without a signature counts for nothing.
    let later = place.faults_after(&signers, &mut |_| {
        let sealed = place.run(&["store", "seal", &run, "--again"]);
        assert_eq!(sealed.status, 0, "{sealed:?}");
    });
    assert_eq!(later, [format!("{run} signature")]);
    // Nor does the later signature cover another earlier seal.
    let path = place.seal_file(1, "seal");
    let other = place.faults_after(&signers, &mut |_| {
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replacen("\nat 1", "\nat 2", 1)).unwrap();
    });
    assert!(other.contains(&format!("{run} order")), "{other:?}");
}

#[test]
fn a_seal_without_a_signature_is_no_fault_after_its_run_was_removed() {
    if !needs("signed seals", &["ssh-keygen"]) {
        return;
    }
    let place = Place::new();
    place.write_aged("in", "text\n");
    let gone = place.keep("cat in > one", &[]);
    place.keep("cat in > two", &[]);
    let (key, allowed) = place.signer("ann");
    assert_eq!(place.run(&["store", "seal", "--all"]).status, 0);
    assert_eq!(place.run(&["rm", &gone]).status, 0);
    let signed = ["store", "seal", "--all", "--again", "--key", &key];
    assert_eq!(place.run(&signed).status, 0);
    let (status, report) = place.verified(&["--signers", &allowed]);
    assert_eq!((status, faults(&report)), (0, vec![]), "{report}");
}
