//! Symbolic links that the run made, and that a failed call did not follow to a file.

use crate::common::{CREAT, EXCL, RDONLY, Scene, WRONLY, bytes, told};
use backstory_eventlog::event::{CWD, Op, Outcome};

const O_NOFOLLOW: i32 = 0o400_000;
const EEXIST: i32 = 17;
const ELOOP: i32 = 40;

/// Asserts that a process looked at the links `a` and, with `both`, `b`, and at no file there.
fn looked_at_links(s: &Scene, both: bool) {
    let lines = told(&s.graph());
    assert!(lines.contains("cat#1 Stat a@1"), "{lines}");
    assert_eq!(lines.contains("cat#1 Stat b@1"), both, "{lines}");
    let files = ["a@0", "b@0", "nothing@"];
    assert!(!files.iter().any(|file| lines.contains(file)), "{lines}");
}

#[test]
fn a_look_along_links_in_a_circle_is_a_look_at_a_link() {
    let mut s = Scene::new(&["sh"]);
    s.symlink(2, "b", "a");
    s.symlink(2, "a", "b");
    s.runs(2, 3, &["cat"]);
    let look = Op::Stat {
        dir: CWD,
        path: bytes("a"),
        flags: 0,
    };
    s.push(3, Outcome::Done(-ELOOP), look);
    s.open(3, "b", RDONLY, -ELOOP);
    looked_at_links(&s, true);
}

#[test]
fn a_failed_exec_of_a_link_to_itself_is_a_look_at_the_link() {
    let mut s = Scene::new(&["sh"]);
    s.symlink(2, "a", "a");
    s.runs(2, 3, &["cat"]);
    s.exec(3, "a", &["a"]).outcome = Outcome::Done(-ELOOP);
    looked_at_links(&s, false);
}

#[test]
fn an_open_that_follows_no_link_looks_at_no_target() {
    for (flags, error) in [
        (O_NOFOLLOW | RDONLY, ELOOP),
        (CREAT | EXCL | WRONLY, EEXIST),
    ] {
        let mut s = Scene::new(&["sh"]);
        s.symlink(2, "nothing", "a");
        s.runs(2, 3, &["cat"]);
        s.open(3, "a", flags, -error);
        looked_at_links(&s, false);
    }
}
