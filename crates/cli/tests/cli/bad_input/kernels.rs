//! Kernels and environments without a guard: the recorder works alone, and the run says so.

use super::Place;

/// Records with a kernel that lacks a feature.
fn without(what: &str, why: &str) {
    let place = Place::new();
    let Some(kernel) = place.fixture("kernel_without") else {
        return;
    };
    place.write("in", "text\n");
    let line = format!("{kernel} {what} $B record -- sh -c 'cat in | tee out; ls no-such; exit 3'");
    let native = place.shell("sh -c 'cat in | tee out; ls no-such; exit 3'");
    let answer = place.shell(&line);
    assert_eq!((answer.status, &answer.out), (3, &native.out), "{answer:?}");
    let ours: Vec<&str> = answer
        .err
        .lines()
        .filter(|line| line.starts_with("backstory: "))
        .collect();
    assert_eq!(
        answer.err.lines().count(),
        native.err.lines().count() + 1,
        "{answer:?}"
    );
    assert!(ours.len() == 1 && ours[0].contains(why), "{what}: {ours:?}");
    let json = place.json(&["show", "--json"]);
    assert_eq!(
        (&json["complete"], &json["exit"]),
        (&false.into(), &3.into())
    );
    let because = json["incomplete_because"][0].as_str().unwrap();
    assert!(
        because.contains(why)
            && because.contains("only calls that the recorder wraps were recorded"),
        "{because}"
    );
    assert!(place.wrote("out"), "{what}");
}

#[test]
fn without_notifications_the_recorder_works_alone_and_reports_it() {
    without("notify", "5.19");
}

#[test]
fn with_an_older_kernel_the_recorder_works_alone_and_reports_it() {
    without("killable", "5.19");
}

#[test]
fn under_another_listener_the_recorder_works_alone_and_says_so() {
    without("listener", "already");
}

#[test]
fn a_run_of_dynamic_programs_without_the_guard_misses_nothing() {
    let place = Place::new();
    let Some(kernel) = place.fixture("kernel_without") else {
        return;
    };
    let answer = place.shell(&format!(
        "{kernel} notify $B record --guard=off -- sh -c 'echo x >out'"
    ));
    assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{answer:?}");
    assert!(place.wrote("out"));
}
