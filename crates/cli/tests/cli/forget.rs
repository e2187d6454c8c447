//! `forget` leaves no byte of a run in the store.

use std::fs;
use std::path::{Path, PathBuf};

use super::Place;

/// A text that nothing else has.
const SECRET: &str = "q7ZkT0vXw9RfYb3LhEoNc5UaGdJm8PsS";

/// The files of the store that have the text.
fn holders(place: &Place, text: &str) -> Vec<PathBuf> {
    fn walk(directory: &Path, text: &[u8], found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, text, found);
            } else if memchr::memmem::find(&fs::read(&path).unwrap(), text).is_some() {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&place.stage.store(), text.as_bytes(), &mut found);
    found
}

/// Two runs: one has the text in an argument, a path, a content and a tag, the other nowhere.
fn recorded() -> (Place, String, String) {
    let place = Place::new();
    place.write("in.txt", "harmless\n");
    place.write("keys.txt", &format!("password {SECRET}\n"));
    let secret = place.keep(
        &format!("cat keys.txt > {SECRET}.txt; sort keys.txt > sorted.txt; : {SECRET}"),
        &["--contents=lazy"],
    );
    let tag = format!("key={SECRET}");
    assert_eq!(place.run(&["tag", &secret, &tag]).status, 0);
    let other = place.keep("sort in.txt > out.txt", &["--contents=lazy"]);
    assert_eq!(place.run(&["tag", &other, "kind=other"]).status, 0);
    assert_eq!(place.run(&["index", "--wait"]).status, 0);
    // A process that ends removes the write-ahead log, which has the text, too.
    place.quiet();
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    let found: Vec<String> = holders(&place, SECRET).iter().map(name).collect();
    let has = |end: &str| found.iter().any(|name| name.ends_with(end));
    assert!(
        has(".log") && has("annotations.log") && found.len() > 2,
        "{found:?}"
    );
    (place, secret, other)
}

#[test]
fn what_matches_a_text_leaves_no_byte_in_the_store() {
    let (place, _, other) = recorded();
    let answer = place.run(&["forget", "--matching", SECRET, "--yes"]);
    assert_eq!(answer.status, 0, "{answer:?}");
    assert!(answer.out.starts_with("forgot 1 run"), "{answer:?}");
    assert_eq!(holders(&place, SECRET), Vec::<PathBuf>::new());
    assert_eq!(place.runs(), std::slice::from_ref(&other));
    let of = place.run(&["of", "out.txt"]).out;
    assert!(of.contains("sort in.txt"), "{of}");
    assert_eq!(place.run(&["contents", "out.txt"]).out, "harmless\n");
    assert_eq!(
        place.json(&["show", &other, "--json"])["tags"]["kind"],
        "other"
    );
    assert_eq!(place.run(&["store", "verify"]).status, 0);
    place
        .run(&["forget", "--matching", SECRET, "--yes"])
        .is_error(1, &["nothing was removed"]);
}

#[test]
fn a_path_or_a_time_means_the_runs_that_are_forgotten() {
    for (what, gone) in [("keys.txt", 1), ("no-such", 0), ("--last=1h", 2), (".", 2)] {
        let (place, ..) = recorded();
        let answer = place.run(&["forget", what, "--yes"]);
        assert_eq!(answer.status, i32::from(gone == 0), "{what}: {answer:?}");
        assert_eq!(place.runs().len(), 2 - gone, "{what}: {answer:?}");
        if gone > 0 {
            assert_eq!(holders(&place, SECRET), Vec::<PathBuf>::new(), "{what}");
        }
    }
}

#[test]
fn a_text_that_only_a_deep_log_has_is_found_and_removed() {
    let place = Place::new();
    place.write("in.txt", "harmless\n");
    let (one, two) = SECRET.split_at(9);
    // Two reads have a part of the text each.
    let line = format!(
        "{{ printf {one}; sleep 0.2; printf {two}; }} | \
         $B record --deep -- sh -c 'dd bs=100 count=2 2>/dev/null | wc -c > out.txt'"
    );
    assert_eq!(place.shell(&line).status, 0);
    let other = place.keep("sort in.txt > sorted.txt", &["--deep"]);
    place.quiet();
    let deep_logs = || {
        let all = fs::read_dir(place.stage.store().join("runs")).unwrap();
        let ends = |path: &PathBuf| path.extension().is_some_and(|end| end == "deep");
        all.map(|entry| entry.unwrap().path()).filter(ends).count()
    };
    assert_eq!(deep_logs(), 2);
    let stats = place.json(&["store", "stats", "--json"]);
    assert!(stats["deep_log_bytes"].as_u64().unwrap() > 0, "{stats}");
    let answer = place.run(&["forget", "--matching", SECRET, "--yes"]);
    assert_eq!(answer.status, 0, "{answer:?}");
    assert!(answer.out.starts_with("forgot 1 run"), "{answer:?}");
    assert_eq!((place.runs(), deep_logs()), (vec![other], 1));
    for part in [one, two, SECRET] {
        assert_eq!(holders(&place, part), Vec::<PathBuf>::new(), "{part}");
    }
    assert_eq!(place.run(&["forget", "--last=1h", "--yes"]).status, 0);
    assert_eq!(deep_logs(), 0);
}

#[test]
fn nothing_is_forgotten_without_consent() {
    let (place, secret, _) = recorded();
    let before = holders(&place, SECRET).len();
    place
        .run(&["forget", "--matching", SECRET])
        .is_error(2, &["nothing was removed", "--yes", "--dry-run"]);
    let dry = place.run(&["forget", "--matching", SECRET, "--dry-run"]);
    assert!(dry.status == 0 && dry.out.contains(&secret), "{dry:?}");
    assert!(dry.out.contains("1 content with the text"), "{dry:?}");
    assert_eq!(
        (place.runs().len(), holders(&place, SECRET).len()),
        (2, before)
    );
    place.run(&["forget"]).is_error(2, &["--matching"]);
}
