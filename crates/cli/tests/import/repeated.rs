//! Steps of imported runs, run again.

use super::Desk;

/// Records a line in one store, and imports its OpenLineage events into another. Both have the
/// same working directory.
fn imported(line: &str) -> Desk {
    imported_at(Desk::new(), line)
}

/// The same with files that the line finds.
fn imported_at(desk: Desk, line: &str) -> Desk {
    desk.write("in", b"b\na\n");
    let own = desk.stage.path().join("own");
    let own = own.to_str().unwrap();
    let all: [&[&str]; 3] = [
        &[
            "record", "--store", own, "--wait", "--name", "own", "--", "sh", "-c", line,
        ],
        &[
            "export",
            "--store",
            own,
            "openlineage",
            "own",
            "-o",
            "events",
        ],
        &["import", "openlineage", "events"],
    ];
    for args in all {
        let output = desk.backstory(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
    }
    desk.write("in", b"d\nc\n");
    desk
}

#[test]
fn an_imported_step_that_writes_no_output_for_want_of_a_redirection_has_failed() {
    let desk = imported("sort in > out");
    let output = desk.backstory(&["rerun", "out", "--yes"]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    for part in [
        "it did not write out: the imported record has no redirection to it",
        "its standard output (4 B) is not shown",
        "run the command yourself under backstory record",
    ] {
        assert!(errors.contains(part), "no {part:?} in {errors}");
    }
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(!printed.contains("c\nd\n"), "{printed}");
    assert!(!printed.contains("the same as before"), "{printed}");
    assert_eq!(std::fs::read(desk.work().join("out")).unwrap(), b"a\nb\n");
}

#[test]
fn an_imported_step_that_writes_its_output_runs_again_and_prints() {
    let desk = imported("sort -o out in");
    let output = desk.backstory(&["rerun", "out", "--yes"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(std::fs::read(desk.work().join("out")).unwrap(), b"c\nd\n");
}

#[test]
fn an_imported_step_that_examines_an_equal_output_may_leave_it_alone() {
    let desk = Desk::new();
    desk.write("out", b"other\n");
    let desk = imported_at(
        desk,
        "echo same > new; cat in > /dev/null; cmp -s new out || cp new out; rm new; echo done",
    );
    let output = desk.backstory(&["rerun", "out", "--yes"]);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("the same as before"), "{output:?}");
    // The imported record remains that of the last maker, and it has no exit statuses.
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(printed.contains("out is not up to date"), "{output:?}");
}

/// The step reads its output before it changes it. So it begins with the content that it found when
/// it was recorded.
#[test]
fn a_step_of_an_own_run_begins_with_the_first_content_of_its_output() {
    let desk = Desk::new();
    desk.write("in", b"1\n");
    // An output that was not there would be removed before the step.
    desk.write("out", b"other\n");
    let line = "grep -q . in && echo same > new; cmp -s new out || cp new out; rm new; echo done";
    let output = desk.backstory(&["record", "--wait", "--", "sh", "-c", line]);
    assert!(output.status.success(), "{output:?}");
    desk.write("in", b"2\n");
    let output = desk.backstory(&["rerun", "out", "--yes"]);
    assert_eq!(std::fs::read(desk.work().join("out")).unwrap(), b"same\n");
    let printed = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(printed.contains("made, the same as before"), "{output:?}");
}
