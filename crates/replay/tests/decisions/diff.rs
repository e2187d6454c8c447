//! Comparisons of two runs.

use backstory_replay::diff::{Diff, DiffSubject, DifferenceKind, diff};

use crate::sorted;

fn compare(a: (&[&str], &str, &str), b: (&[&str], &str, &str)) -> Diff {
    let directory = tempfile::tempdir().unwrap();
    let contents = directory.path().join("contents");
    let mut store = sorted("run0000a", a.0, a.1, a.2).store(&contents);
    sorted("run0000b", b.0, b.1, b.2).append(&mut store, &contents);
    let run = |id: &str| DiffSubject::Run(id.to_owned());
    diff(&store, &run("run0000a"), &run("run0000b")).unwrap()
}

#[test]
fn equal_runs_have_no_difference_and_the_same_outputs() {
    let same = (&["-n"][..], "b\na\n", "a\nb\n");
    let diff = compare(same, same);
    assert_eq!(diff.differences, []);
    assert_eq!(diff.same_outputs, [b"out.txt".to_vec()]);
    assert_eq!(diff.unknown, [b""; 0]);
}

#[test]
fn a_changed_argument_and_input_come_before_the_output_that_they_feed() {
    let diff = compare(
        (&["-n"], "b\na\n", "a\nb\n"),
        (&["-r"], "b\nc\nd\n", "d\nc\nb\n"),
    );
    let found: Vec<(DifferenceKind, &[u8])> = diff
        .differences
        .iter()
        .map(|difference| (difference.kind, difference.of.as_slice()))
        .collect();
    assert_eq!(
        found,
        [
            (DifferenceKind::Arguments, &b"sort"[..]),
            (DifferenceKind::Input, b"in.txt"),
            (DifferenceKind::Output, b"out.txt"),
        ]
    );
    assert_eq!(
        diff.differences[0].a.as_deref(),
        Some(&b"sort -n in.txt"[..])
    );
    assert_eq!(
        diff.differences[0].b.as_deref(),
        Some(&b"sort -r in.txt"[..])
    );
    assert_eq!(diff.differences[2].fed_by, [0, 1]);
}
