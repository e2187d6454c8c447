//! Limits and descriptors as a shell may set them.

use super::Place;

/// Runs a line with and without recording, in a shell that runs `before` first. Status and output
/// must be the same.
fn same(before: &str, line: &str, after: &str) -> Place {
    let place = Place::new();
    place.write("in", "text\n");
    let native = place.shell(&format!("{before} sh -c '{line}' {after}"));
    let recorded = place.shell(&format!("{before} $B record -- sh -c '{line}' {after}"));
    let all = |answer: &super::Answer| (answer.status, answer.out.clone(), answer.err.clone());
    assert_eq!(all(&recorded), all(&native), "{before} … {after}");
    let json = place.json(&["show", "--json"]);
    let status = if native.status < 0 {
        128 - native.status
    } else {
        native.status
    };
    assert_eq!(
        (&json["complete"], &json["exit"]),
        (&true.into(), &status.into()),
        "{json}"
    );
    assert!(place.wrote("out"), "{before} … {after}");
    place
}

#[test]
fn few_descriptors_are_enough() {
    for limit in ["-n 64", "-Sn 20", "-n 32"] {
        same(
            &format!("ulimit {limit};"),
            "cat in >out; ulimit -n; ls | wc -l",
            "",
        );
    }
}

#[test]
fn little_memory_is_enough() {
    // A build without optimization is itself 50 MB larger, and grows with each dependency.
    let least = if cfg!(debug_assertions) {
        116_000
    } else {
        40_000
    };
    for kilobytes in [least, 120_000] {
        same(
            &format!("ulimit -v {kilobytes};"),
            "cat in >out; ulimit -v; ls | wc -l",
            "",
        );
    }
}

#[test]
fn a_file_size_limit_is_the_commands_own() {
    same(
        "ulimit -Sf 8;",
        "cat in >out; ulimit -f; head -c 100000 /dev/zero >big; echo $?; ls -s big",
        "",
    );
}

#[test]
fn limits_under_which_nothing_can_be_recorded_are_an_error_before_the_command_runs() {
    let place = Place::new();
    place
        .shell("ulimit -f 1; exec $B record -- touch ran")
        .is_error(125, &["File too large"]);
    place
        .shell("ulimit -n 8; exec $B record -- touch ran")
        .is_error(125, &["Too many open files", "ulimit -n"]);
    assert!(!place.work().join("ran").exists());
}

#[test]
fn a_command_runs_with_few_descriptors_or_its_user_hears_what_to_do() {
    for most in 9..24 {
        let place = Place::new();
        let line = format!("ulimit -n {most}; exec $B record -- sh -c 'echo ran; exit 3'");
        let answer = place.shell(&line);
        match answer.status {
            3 => assert_eq!(answer.out, "ran\n", "{most}: {answer:?}"),
            _ => answer.is_error(125, &["Too many open files", "ulimit -n"]),
        }
        // The tests may have inherited some, too.
        let enough = most >= 20;
        assert!(!enough || answer.status == 3, "{most}: {answer:?}");
    }
}

#[test]
fn closed_standard_descriptors_stay_closed() {
    let open = "for fd in 0 1 2; do [ -e /proc/self/fd/$fd ] && echo $fd; done >out; cat in >/dev/null; exit 5";
    for closed in ["<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"] {
        let place = same("", open, closed);
        let said = std::fs::read_to_string(place.path("out")).unwrap();
        // Standard output is the file itself while the loop runs.
        assert_eq!(
            said.contains('0'),
            !closed.contains('<'),
            "{closed}: {said}"
        );
        assert_eq!(
            said.contains('2'),
            !closed.contains('2'),
            "{closed}: {said}"
        );
    }
}

#[test]
fn a_write_to_a_closed_or_full_descriptor_fails_as_without_recording() {
    same("", "cat in >out; echo lost; echo $? >&2", ">&-");
    same("", "cat in >out; echo lost; echo $? >&2", ">/dev/full");
}
