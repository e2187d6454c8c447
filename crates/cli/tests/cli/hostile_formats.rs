//! Contents that harm their reader, and readers that fail: `diff` and `undo` go on, and say why
//! they compare by lines or bytes.

use std::fs;
use std::path::Path;

use super::*;

/// The first bytes of an image of this size, without its pixels.
fn image(width: u32, height: u32, rest: &[u8]) -> Vec<u8> {
    let header = [
        b"IHDR",
        &width.to_be_bytes()[..],
        &height.to_be_bytes(),
        b"\x08\x02\0\0\0",
    ]
    .concat();
    let length = (header.len() as u32 - 4).to_be_bytes();
    let check = crc32fast::hash(&header).to_be_bytes();
    [b"\x89PNG\r\n\x1a\n", &length[..], &header, &check, rest].concat()
}

/// A place in which two versions of `name` are recorded.
fn recorded(name: &str, contents: [&[u8]; 2]) -> Place {
    let place = Place::new();
    for content in contents {
        fs::write(place.work().join("in"), content).unwrap();
        place.keep(&format!("cat in > {name}"), &["--contents=all"]);
    }
    place
}

/// Makes the worker this script of a shell.
fn replace_worker(place: &Place, script: &str) {
    let worker = Path::new(&place.program()).with_file_name("backstory-inspect");
    let script = format!("#!/bin/sh\n{script}\n");
    backstory_testkit::program::write(&worker, script.as_bytes()).unwrap();
}

/// What `diff` and `undo` print about the file. Both must end by themselves.
fn said(place: &Place, name: &str) -> (String, String) {
    let diff = place.run(&["diff", name]);
    assert_eq!((diff.status, &*diff.err), (1, ""), "{diff:?}");
    let undo = place.run(&["undo", "--dry-run", name]);
    assert_eq!(undo.status, 0, "{undo:?}");
    assert!(undo.out.contains("would become"), "{undo:?}");
    (diff.out, undo.err)
}

#[test]
fn a_reader_that_crashes_hangs_floods_or_lies_leaves_diff_and_undo_alive_and_they_say_why() {
    let place = recorded("out.png", [&image(2, 2, b"a"), &image(2, 2, b"b")]);
    for (script, why) in [
        ("kill -SEGV $$", "crashed on"),
        (
            "echo 'memory allocation of 9 bytes failed' >&2; exit 134",
            "memory allocation of 9 bytes",
        ),
        ("kill -XCPU $$", "took more than 2 s on"),
        ("exec yes", "it has more than 49152 KiB"),
        ("echo '{\"size\":[1,2]}'", "it answers another question"),
        ("echo '{\"unreadable\":\"bad \\u001b[2J\"}'", "cannot read"),
    ] {
        replace_worker(&place, script);
        let (diff, undo) = said(&place, "out.png");
        for answer in [&diff, &undo] {
            assert!(answer.contains(why), "{script}: {answer}");
            assert!(
                answer.contains("out.png") && !answer.contains('\u{1b}'),
                "{answer:?}"
            );
        }
        assert!(
            diff.contains("1 of 34 bytes differ, the first at 33"),
            "{diff}"
        );
        let json = place.run(&["diff", "--json", "out.png"]);
        let json: Value = serde_json::from_str(&json.out).unwrap();
        assert_eq!(json["content"]["kind"], "binary", "{json}");
        let because = json["content"]["format_not_read_because"].as_str();
        assert!(
            because.is_some_and(|because| because.contains(why)),
            "{json}"
        );
    }
}

#[test]
fn without_a_reader_diff_and_undo_say_where_it_belongs_and_compare_by_lines_or_bytes() {
    let remedy = "backstory-inspect is not installed: install it";
    let place = recorded("out.png", [&image(2, 2, b"a"), &image(2, 2, b"b")]);
    let (diff, undo) = said(&place, "out.png");
    assert!(
        diff.contains("1 of 34 bytes differ, the first at 33"),
        "{diff}"
    );
    // The input `in` is a cause. Its line does not repeat the remedy.
    assert_eq!(diff.matches(remedy).count(), 1, "{diff}");
    assert!(undo.contains(remedy) && undo.contains("out.png"), "{undo}");
    let place = recorded("out.csv", [b"k,v\na,1\n", b"k,v\na,2\n"]);
    let (diff, _) = said(&place, "out.csv");
    assert!(
        diff.contains(remedy) && diff.contains("\n      -a,1\n      +a,2\n"),
        "{diff}"
    );
    // A text needs no reader.
    let place = recorded("out.txt", [b"a\n", b"b\n"]);
    let (diff, undo) = said(&place, "out.txt");
    assert!(!diff.contains(remedy) && undo.is_empty(), "{diff} {undo}");
}

#[test]
fn a_file_that_is_damaged_or_asks_for_all_memory_is_compared_by_its_bytes_with_the_reason() {
    let ask = |rest: &[u8]| image(u32::MAX, u32::MAX, rest);
    let footer = |byte: u8| [&b"PAR1"[..], &[0, byte, 0, byte], b"\xff\xff\xff\x7fPAR1"].concat();
    for (name, contents) in [
        ("huge.png", [ask(b"a"), ask(b"b")]),
        ("cut.png", [image(2, 2, b"a"), image(2, 2, b"b")]),
        ("footer.parquet", [footer(1), footer(2)]),
        (
            "cut.arrow",
            [b"ARROW1\0\0a".to_vec(), b"ARROW1\0\0b".to_vec()],
        ),
    ] {
        let place = recorded(name, [&contents[0], &contents[1]]);
        if !place.has_inspector() {
            return;
        }
        let (diff, undo) = said(&place, name);
        assert!(
            diff.contains(&format!("cannot read {name}")),
            "{name}: {diff}"
        );
        assert!(diff.contains("bytes differ"), "{name}: {diff}");
        assert!(
            undo.contains("cannot read") && undo.contains(name),
            "{name}: {undo}"
        );
    }
}

#[test]
fn a_text_in_utf16_is_compared_by_its_lines() {
    let utf16 = |text: &str| -> Vec<u8> {
        let units = text.encode_utf16().flat_map(u16::to_le_bytes);
        [0xff, 0xfe].into_iter().chain(units).collect()
    };
    let place = recorded(
        "out.ini",
        [&utf16("[a]\ndt = 0.1\n"), &utf16("[a]\ndt = 0.01\n")],
    );
    if !place.has_inspector() {
        return;
    }
    let (diff, _) = said(&place, "out.ini");
    assert!(diff.contains("`dt` 0.1 → 0.01"), "{diff}");
    assert!(
        diff.contains("\n      -dt = 0.1\n      +dt = 0.01\n"),
        "{diff}"
    );
}
