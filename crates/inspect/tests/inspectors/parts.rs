//! Places of parts by the real worker, compared with what the formats' own tools tell.

#[path = "../../../../fuzz/src/parts.rs"]
mod fuzzed;

use std::ops::Range;

use backstory_inspection::file_parts::{NoPart, PartAnswer, PartName};
use backstory_inspection::{FormatReader, Trouble};
use backstory_testkit::corpus::replay;
use serde_json::Value;

use super::malformed::damaged;
use super::{Samples, worker};

fn reader() -> FormatReader {
    FormatReader::by(Ok(worker()))
}

fn asked(file: &str, content: &[u8], wanted: &PartName) -> Result<PartAnswer, Trouble> {
    let reader = reader();
    let format = reader.format_of(file.as_bytes(), content).unwrap();
    reader.part(format, file.as_bytes(), content, wanted)
}

fn cell(name: &str) -> PartName {
    PartName::Cell(name.to_owned())
}

fn member(name: &str) -> PartName {
    PartName::Member(name.to_owned())
}

/// The ranges, joined where one ends at the start of the next.
fn joined(ranges: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut sorted = ranges.to_vec();
    sorted.sort_by_key(|range| range.start);
    let mut all: Vec<Range<usize>> = Vec::new();
    for range in sorted {
        match all.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => all.push(range),
        }
    }
    all
}

fn ranges(wanted: &Value) -> Vec<Range<usize>> {
    serde_json::from_value::<Vec<[usize; 2]>>(wanted.clone())
        .unwrap()
        .iter()
        .map(|&[start, end]| start..end)
        .collect()
}

/// The questions about samples, and the samples' directory.
fn questions(samples: &Samples) -> Value {
    let text = std::fs::read(samples.directory.path().join("parts.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn a_part_is_where_the_formats_own_tools_say() {
    let Some(samples) = Samples::made() else {
        return;
    };
    for question in questions(samples)["questions"].as_array().unwrap() {
        let file = question["file"].as_str().unwrap();
        let content = std::fs::read(samples.directory.path().join(file)).unwrap();
        let wanted = match (question["cell"].as_str(), question["member"].as_str()) {
            (Some(name), _) => cell(name),
            (None, name) => member(name.unwrap()),
        };
        let place = asked(file, &content, &wanted).unwrap();
        let place = place.unwrap_or_else(|why| panic!("{question}: {why:?}"));
        assert_eq!(
            joined(&place.ranges),
            ranges(&question["ranges"]),
            "{question}"
        );
        assert_eq!(
            place.within.is_some(),
            question["coarse"] == true,
            "{question}"
        );
    }
}

#[test]
fn a_member_of_each_kind_of_archive_has_the_digest_of_its_content() {
    let Some(samples) = Samples::made() else {
        return;
    };
    let digest = *blake3::hash(b"one\n").as_bytes();
    for kind in ["zip", "tar.gz", "tar.xz", "tar.bz2", "tar.zst"] {
        let name = format!("old.{kind}");
        let content = std::fs::read(samples.directory.path().join(&name)).unwrap();
        let place = asked(&name, &content, &member("a.txt")).unwrap().unwrap();
        assert_eq!(place.content, Some(digest), "{name}");
    }
}

#[test]
fn a_page_or_buffer_has_all_bytes_that_a_change_of_its_value_changes() {
    let Some(samples) = Samples::made() else {
        return;
    };
    for question in questions(samples)["inner"].as_array().unwrap() {
        let file = question["file"].as_str().unwrap();
        let content = std::fs::read(samples.directory.path().join(file)).unwrap();
        let [start, end] = ["0", "1"].map(|at| {
            question
                .pointer(&format!("/inner/{at}"))
                .unwrap()
                .as_u64()
                .unwrap() as usize
        });
        let has_all = |name: &str| {
            let place = asked(file, &content, &member(question[name].as_str().unwrap()));
            let ranges = place.unwrap().unwrap().ranges;
            ranges
                .iter()
                .any(|range| range.start <= start && end <= range.end)
        };
        assert!(has_all("name"), "{question}");
        assert!(!has_all("other"), "{question}");
    }
}

#[test]
fn a_part_that_is_not_there_is_told_apart_from_a_wrong_name_and_a_damaged_file() {
    let Some(samples) = Samples::made() else {
        return;
    };
    let read = |name: &str| std::fs::read(samples.directory.path().join(name)).unwrap();
    let absent = |name: &str, wanted: PartName, says: &str| {
        let found = asked(name, &read(name), &wanted).unwrap();
        let Err(NoPart::Absent(why)) = &found else {
            panic!("{name} {wanted:?}: {found:?}");
        };
        assert!(why.contains(says), "{name} {wanted:?}: {why}");
    };
    absent(
        "old.xlsx",
        cell("Nothing!A1"),
        "no sheet `Nothing`, but `Doses`",
    );
    absent("old.xlsx", cell("C3"), "sheet `Doses` has no value in C3");
    absent("old.ods", cell("B9"), "sheet `Doses` has no value in B9");
    absent("old.parquet", cell("A1"), "row 1 is the heading");
    absent("old.parquet", cell("A999999"), "rows of values");
    absent("old.parquet", cell("ZZ2"), "columns");
    absent("old.feather", member("nothing[0]"), "no column `nothing`");
    absent("old.feather", cell("A999999"), "rows of values");
    absent("old.zip", member("c.txt"), "no member `c.txt`");
    absent("old.tar.gz", member("c.txt"), "no member `c.txt`");
    absent("old.tar.gz", member("link"), "symbolic link to `a.txt`");
    absent("old.docx", member("c.txt"), "no member `c.txt`");
    absent("old.csv", cell("Z1"), "no such cell");
    for (name, wanted) in [
        ("old.xlsx", cell("3")),
        ("old.parquet", cell("Sheet!A1")),
        ("old.parquet", member("id")),
        ("old.ipynb", member("a..b")),
        ("old.csv", cell("x")),
    ] {
        let found = asked(name, &read(name), &wanted).unwrap();
        assert!(
            matches!(found, Err(NoPart::Misnamed(_))),
            "{name}: {found:?}"
        );
    }
    for (name, wanted) in [
        ("old.pdf", cell("A1")),
        ("old.docx", cell("A1")),
        ("old.so", member("a")),
        ("old.py", member("a")),
    ] {
        let found = asked(name, &read(name), &wanted).unwrap();
        assert_eq!(found, Err(NoPart::OtherKind), "{name}");
    }
}

/// Asks for a part of the damaged forms of a file of each format.
fn try_damaged(forms: impl Fn(&[u8]) -> Vec<Vec<u8>>) {
    let Some(samples) = Samples::made() else {
        return;
    };
    let questions = questions(samples);
    let mut seen = Vec::new();
    for question in questions["questions"].as_array().unwrap() {
        let file = question["file"].as_str().unwrap();
        let format = file.rsplit('.').next().unwrap();
        if seen.contains(&format) {
            continue;
        }
        seen.push(format);
        let content = std::fs::read(samples.directory.path().join(file)).unwrap();
        let wanted = match question["cell"].as_str() {
            Some(name) => cell(name),
            None => member(question["member"].as_str().unwrap()),
        };
        let reader = reader();
        let entry = reader.format_of(file.as_bytes(), &content).unwrap();
        for (number, damaged) in forms(&content).into_iter().enumerate() {
            let found = reader.part(entry, file.as_bytes(), &damaged, &wanted);
            let is_fair = match &found {
                Ok(Ok(place)) => place.ranges.iter().all(|range| range.end <= damaged.len()),
                // A damaged offset or length may lead behind the end of the file.
                Ok(Err(_)) | Err(Trouble::Unreadable { .. } | Trouble::Refused { .. }) => true,
                Err(_) => false,
            };
            assert!(is_fair, "{file} {number}: {found:?}");
        }
    }
    assert!(seen.len() >= 8, "{seen:?}");
}

#[test]
fn parts_of_the_corpus_are_found_or_refused() {
    replay("parts", fuzzed::run);
}

#[test]
fn a_part_of_a_damaged_file_is_found_or_refused() {
    try_damaged(|content| {
        let form = |number: usize| {
            let mut damaged = content.to_vec();
            let at = content.len() - 1 - (number * 7919) % content.len();
            damaged[at] ^= 0x5a;
            if number % 2 == 1 {
                damaged.truncate(content.len() - number * content.len() / 24);
            }
            damaged
        };
        (0..16).map(form).collect()
    });
}

#[test]
#[ignore = "minutes"]
fn parts_of_thousands_of_damaged_files_are_found_or_refused() {
    try_damaged(|content| damaged(content, 1000));
}

#[test]
fn a_small_file_that_asks_for_much_costs_a_limited_time_and_an_error() {
    let member_of = |text: String| asked("a.json", text.as_bytes(), &member("a[0]"));
    let many = format!("{{\"a\":[{}0]}}", "0,".repeat(300_000));
    assert!(member_of(many).unwrap().is_ok());
    let wide = vec![b','; 500_000];
    let found = asked("a.csv", &wide, &member("x[0]")).unwrap();
    assert!(matches!(found, Err(NoPart::Absent(_))), "{found:?}");
}
