//! Programs that lose a privilege by being recorded.

use std::os::unix::fs::MetadataExt;

use backstory_testkit::need;

use super::Place;

/// A system program with another user's privilege, which does no harm when called.
const CANDIDATES: [&str; 3] = ["/usr/bin/passwd", "/usr/bin/chsh", "/usr/bin/su"];

fn set_user_id() -> Option<&'static str> {
    let is = |path: &&&str| std::fs::metadata(path).is_ok_and(|meta| meta.mode() & 0o4000 != 0);
    let found = CANDIDATES.iter().find(is).copied();
    if found.is_none() {
        need::skipped("set-user-id programs", "needs one of passwd, chsh, su");
    }
    found
}

#[test]
pub(in super::super) fn a_program_that_loses_its_privilege_is_named() {
    let Some(program) = set_user_id() else { return };
    let place = Place::new();
    let line = format!("{program} --help >/dev/null; {program} --help >/dev/null");
    let answer = place.run(&["record", "--", "sh", "-c", &line]);
    answer.is_error(0, &[program, "set-user-id", "--guard=off"]);
    let json = place.json(&["show", "--json"]);
    assert_eq!(json["complete"], true, "nothing is missing from the record");
    assert_eq!(json["warnings"].as_array().unwrap().len(), 1, "{json}");
    assert!(json["warnings"][0].as_str().unwrap().contains(program));
    assert!(place.run(&["show"]).out.contains(program));
}

#[test]
fn no_program_is_named_that_loses_no_privilege() {
    let Some(program) = set_user_id() else { return };
    let place = Place::new();
    let help = [program, "--help"];
    let mut cases = vec![
        vec!["record", "--guard=off", "--"],
        vec!["record", "--", "echo"],
    ];
    // Where the privilege was lost before, recording removes none.
    if need::needs("no_new_privs", &["setpriv"]) {
        let program = place.program();
        let line = format!(
            "exec setpriv --no-new-privs {program} record -- {} --help >/dev/null",
            help[0]
        );
        let answer = place.shell(&line);
        assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{answer:?}");
    }
    for case in &mut cases {
        case.extend(help);
        let answer = place.run(case);
        assert_eq!(answer.status, 0, "{answer:?}");
        // Without the guard its operations are unknown, which is reported separately.
        assert!(!answer.err.contains("privilege"), "{answer:?}");
        let json = place.json(&["show", "--json"]);
        assert_eq!(json["warnings"].as_array().unwrap().len(), 0);
    }
}

#[test]
fn as_root_no_privilege_is_lost_and_no_program_named() {
    let (Some(place), Some(program)) = (Place::of_root(), set_user_id()) else {
        return;
    };
    let answer = place.run(&["record", "--", program, "--help"]);
    assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{answer:?}");
}

#[test]
fn sudo_that_loses_its_privilege_fails_by_its_own_words_and_is_named() {
    if !need::needs("sudo in a run", &["sudo"]) || Place::of_root().is_none() {
        return;
    }
    let place = Place::new();
    let answer = place.run(&["record", "--", "sudo", "-n", "true"]);
    assert_eq!(answer.status, 1, "{answer:?}");
    let (own, ours) = answer.err.trim_end().rsplit_once('\n').unwrap();
    assert!(
        own.lines().all(|line| line.starts_with("sudo: ")),
        "{answer:?}"
    );
    for word in ["/usr/bin/sudo", "set-user-id", "--guard=off"] {
        assert!(ours.contains(word), "{answer:?}");
    }
}
