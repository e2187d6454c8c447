//! Versions of a file that is edited again and again: their space, and that each comes back.

use std::fs;

use super::Place;

/// A text that a compressor makes half as long, and no shorter.
fn text() -> String {
    let line = |number: u64| {
        let high = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        format!(
            "{high:016x}{:016x}\n",
            high.rotate_left(29).wrapping_mul(0xd6e8_feb8_6659_fd93)
        )
    };
    (1..=2000).map(line).collect()
}

#[test]
fn versions_of_an_edited_file_take_the_space_of_their_changes() {
    let place = Place::new();
    place.write_aged("notes", &text());
    let mut versions = Vec::new();
    for number in 1..=12 {
        let line = format!("sed -i '{number}00s/^/edited /' notes; sort notes > sorted");
        let run = place.keep(&line, &["--contents=lazy"]);
        let read = |name| fs::read_to_string(place.work().join(name)).unwrap();
        versions.push((run, read("notes"), read("sorted")));
    }
    let stored = || {
        let stats = place.json(&["store", "stats", "--json"]);
        stats["contents"]["stored_bytes"].as_u64().unwrap()
    };
    // Each file has 66 kB, half of that compressed. At most nine versions are stored as changes
    // from one that is stored whole.
    let one = text().len() as u64;
    assert!(stored() < 3 * one, "{} of {one}", stored());
    let come_back = |versions: &[(String, String, String)]| {
        for (run, notes, sorted) in versions {
            for (name, text) in [("notes", notes), ("sorted", sorted)] {
                let version = format!("{name}@{run}");
                let answer = place.run(&["contents", &version]);
                assert_eq!((answer.status, &answer.out), (0, text), "{version}");
            }
        }
    };
    come_back(&versions);
    // The first versions are those that the others depend on.
    for (run, ..) in versions.drain(..3) {
        assert_eq!(place.run(&["rm", &run]).status, 0);
    }
    assert_ne!(place.json(&["store", "gc", "--json"])["contents"], 0);
    come_back(&versions);
    assert_eq!(place.run(&["store", "verify"]).status, 0);
    for number in (0..8).rev() {
        assert_eq!(place.run(&["undo", "notes"]).status, 0);
        let notes = fs::read_to_string(place.work().join("notes")).unwrap();
        assert_eq!(notes, versions[number].1);
    }
}
