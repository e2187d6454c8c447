//! A program that copies several files made each copy of one of them.

use super::Place;

/// The own inputs of a file.
fn inputs(place: &Place, path: &str) -> Vec<String> {
    let answer = place.run(&["of", path, "--inputs"]);
    let lines = answer
        .out
        .lines()
        .filter(|line| !line.starts_with(['(', ' ']));
    lines.map(str::to_owned).collect()
}

fn made(place: &Place) {
    for (raw, text) in [("raw1", "1\n"), ("raw2", "2\n")] {
        place.write_aged(raw, text);
    }
    place.keep("sort raw1 > a.txt; sort raw2 > b.txt; mkdir pub all", &[]);
}

#[test]
fn a_copy_comes_from_the_file_of_its_name() {
    for copies in [
        ["cp a.txt b.txt pub/", "cp -r pub all"],
        ["install a.txt b.txt pub/", "cp -a pub all"],
        ["cp --reflink=never a.txt b.txt pub/", "cp -r pub all"],
    ] {
        let place = Place::new();
        made(&place);
        for line in copies {
            place.keep(line, &[]);
        }
        for (path, raw) in [
            ("pub/a.txt", "raw1"),
            ("pub/b.txt", "raw2"),
            ("all/pub/a.txt", "raw1"),
            ("all/pub/b.txt", "raw2"),
        ] {
            assert_eq!(inputs(&place, path), [raw], "{path} by {copies:?}");
        }
        let used = place.run(&["uses", "raw1"]).out;
        assert!(
            used.contains("all/pub/a.txt") && !used.contains("pub/b.txt"),
            "{used}"
        );
    }
}

/// A program that joins files has the name of none, and a copier's copy with another content is no
/// copy.
#[test]
fn what_is_no_copy_comes_from_all() {
    let place = Place::new();
    made(&place);
    place.keep("cat a.txt b.txt > pub/b.txt", &[]);
    assert_eq!(inputs(&place, "pub/b.txt"), ["raw1", "raw2"]);
    // Under a name of its own, a copy may be of any of them.
    place.keep(
        "cp a.txt all/x; cp b.txt all/y; cat all/x all/y > both",
        &[],
    );
    assert_eq!(inputs(&place, "both"), ["raw1", "raw2"]);
}
