//! Differences and views by the real worker, as `diff` and `serve` ask for them.

use backstory_comparison::ContentDifference;
use backstory_inspection::question::{FormatQuestion, Portion};
use backstory_inspection::row_changes::DatabaseFiles;
use backstory_inspection::{Catalogue, FormatReader, TableKeys, Trouble};

use super::{Samples, worker};

fn reader() -> FormatReader {
    FormatReader::by(Ok(worker()))
}

/// The kind of a difference in one word. The worker must have answered.
fn kind(name: &str, a: &[u8], b: &[u8]) -> &'static str {
    let found = reader().compare(name.as_bytes(), a, b);
    assert!(found.trouble.is_none(), "{name}: {found:?}");
    match found.difference {
        ContentDifference::Same => "same",
        ContentDifference::Text(_) => "text",
        ContentDifference::Table(_) => "table",
        ContentDifference::Image(_) => "image",
        ContentDifference::Binary(_) => "binary",
    }
}

#[test]
fn the_kind_of_a_comparison_follows_from_name_and_content() {
    assert_eq!(kind("x", b"a", b"a"), "same");
    assert_eq!(kind("x.c", b"a\n", b"b\n"), "text");
    assert_eq!(kind("x.csv", b"a,b\n1,2\n", b"a,b\n1,3\n"), "table");
    assert_eq!(kind("x.csv", b"a;b\n1;0,2\n", b"a;b\n1;0,3\n"), "table");
    assert_eq!(kind("X.TSV", b"a\tb\n1\t2\n", b"a\tb\n1\t3\n"), "table");
    assert_eq!(kind("x.csv", b"one\ntwo\n", b"one\nthree\n"), "text");
    assert_eq!(kind("x.csv", b"a,b\n1\n", b"a,b\n2\n"), "text");
    assert_eq!(kind("x.png", b"no image", b"none"), "text");
    assert_eq!(kind("x.o", b"\x7fELF\0", b"\x7fELF\0\0"), "binary");
    assert_eq!(kind("x.txt", b"\xff\xfea\0", b"\xff\xfeb\0"), "text");
    assert_eq!(kind("x.txt", b"a", b"\xff\xfea\0"), "binary");
}

#[test]
fn tables_and_images_of_each_format_are_compared_by_cells_and_pixels() {
    let Some(samples) = Samples::made() else {
        return;
    };
    for sample in samples.each() {
        let wanted = match sample.format.split(' ').next() {
            Some("csv" | "parquet" | "arrow") => "table",
            Some("image") if sample.expected["by_bytes"] == true => "binary",
            Some("image") => "image",
            _ => continue,
        };
        let found = kind(sample.name, &sample.old, &sample.new);
        assert_eq!(found, wanted, "{}", sample.format);
    }
}

#[test]
fn rows_of_each_format_are_matched_by_the_chosen_column() {
    let Some(samples) = Samples::made() else {
        return;
    };
    let mut formats = 0;
    for sample in samples.each() {
        if !["csv", "parquet", "arrow"].contains(&sample.format) {
            continue;
        }
        formats += 1;
        let named = |key: &str| {
            let keys = TableKeys::default().with(&[key.to_owned()]);
            let reader = reader().by_keys(keys);
            let found = reader.compare(sample.name.as_bytes(), &sample.old, &sample.new);
            match found.difference {
                ContentDifference::Table(table) => table,
                other => panic!("{}: {other:?}", sample.format),
            }
        };
        let table = named("name");
        assert_eq!(table.key_not_used_because, None, "{}", sample.format);
        assert_eq!(table.cells[0].row, b"Bob", "{}", sample.format);
        let added = sample.format == "csv";
        assert_eq!(
            table.keys_added.len(),
            usize::from(added),
            "{}",
            sample.format
        );
        let refused = named("Name").key_not_used_because;
        let why = refused.unwrap_or_default();
        assert!(why.contains("no column `Name`"), "{}: {why}", sample.format);
    }
    assert_eq!(formats, 3);
}

#[test]
fn a_key_for_contents_that_are_no_tables_is_not_used_in_silence() {
    let keys = TableKeys::default().with(&["id".to_owned()]);
    let reader = reader().by_keys(keys);
    let large = |end: &str| [vec![b'a'; 9 << 20], format!(",b\n1,{end}\n").into()].concat();
    for (old, new, why) in [
        (&b"one\ntwo\n"[..], &b"one\nthree\n"[..], "no table"),
        (&large("2"), &large("3"), "8 MiB"),
    ] {
        let found = reader.compare(b"x.csv", old, new);
        let said = found.trouble.map(|trouble| trouble.to_string());
        let said = said.unwrap_or_default();
        assert!(
            said.contains("no key was used for x.csv") && said.contains(why),
            "{said}"
        );
    }
    assert!(reader.compare(b"x.c", b"a\n", b"b\n").trouble.is_none());
}

#[test]
fn each_kind_of_content_has_its_view() {
    let part = Portion { first: 1, limit: 2 };
    let table = reader().rows("csv", b"x.csv", b"k;v\na;1\nb;2,5\nc;3\nd;4\n", part);
    let table = table.unwrap();
    assert_eq!((table.total, table.rows.len()), (4, 2));
    assert_eq!(table.rows[0][1].as_ref().unwrap().0, b"2,5");
    let text: Vec<u8> = "a\nb\u{f8}\nc\n"
        .encode_utf16()
        .flat_map(u16::to_be_bytes)
        .collect();
    let lines = reader()
        .lines(b"x", &[b"\xfe\xff", &text[..]].concat(), part)
        .unwrap();
    let texts: Vec<&[u8]> = lines.lines.iter().map(|line| &line.0[..]).collect();
    assert_eq!((lines.total, texts), (3, vec!["b\u{f8}".as_bytes(), b"c"]));
    let notebook = br#"{"cells": [{"source": "a"}, {"source": "b", "cell_type": "code"}]}"#;
    let cells = reader().cells(b"x.ipynb", notebook, part).unwrap();
    assert_eq!((cells.total, &*cells.cells[0].source), (2, "b"));
    let gif = b"GIF89a\x07\0\x05\0\x80\0\0\xff\xff\xff\0\0\0,\0\0\0\0\x07\0\x05\0\0\x02\x01\0;";
    assert_eq!(reader().image_size(b"x.gif", gif).unwrap(), (7, 5));
    let cut = reader().image_size(b"x.gif", &gif[..8]).unwrap_err();
    assert!(cut.to_string().contains("cannot read x.gif"), "{cut}");
}

#[test]
fn a_wide_or_long_table_has_a_view_that_fits_into_an_answer() {
    let all = Portion {
        first: 0,
        limit: 5000,
    };
    let wide = [vec![b','; 300_000], b"\n".to_vec(), vec![b','; 300_000]].concat();
    let table = reader().rows("csv", b"x.csv", &wide, all).unwrap();
    assert_eq!((table.columns.len(), table.rows.len()), (300_001, 1));
    let long = [
        &b"a\n"[..],
        &[&[b'x'; 2500][..], b"\n"].concat().repeat(9000),
    ]
    .concat();
    let table = reader().rows("csv", b"x.csv", &long, all).unwrap();
    assert_eq!((table.total, table.rows.len()), (9000, 5000));
}

#[test]
fn damaged_contents_of_every_format_are_compared_and_viewed_or_refused() {
    let Some(samples) = Samples::made() else {
        return;
    };
    let all = Catalogue::built_in();
    let part = Portion {
        first: 0,
        limit: 50,
    };
    for sample in samples.each() {
        let inspector = sample.format.split(' ').next().unwrap();
        let entry = all
            .entries()
            .iter()
            .find(|entry| entry.name == inspector)
            .unwrap();
        let length = sample.old.len();
        for number in 0..6 {
            let mut damaged = sample.old.clone();
            let at = length - 1 - (number * 7919) % length;
            damaged[at] ^= 0x5a;
            damaged.truncate(length - number * length / 12);
            for (question, contents) in [
                (FormatQuestion::Difference, &[&sample.old[..], &damaged][..]),
                (FormatQuestion::Text, &[&damaged]),
                (FormatQuestion::Lines(part), &[&damaged]),
                (FormatQuestion::Rows(part), &[&damaged]),
                (FormatQuestion::Cells(part), &[&damaged]),
                (FormatQuestion::Size, &[&damaged]),
            ] {
                let name = sample.name.as_bytes();
                let found = worker().read_format(entry, (name, &[]), question, contents, Some);
                let is_fair = matches!(found, Ok(_) | Err(Trouble::Unreadable { .. }));
                assert!(is_fair, "{} {question:?}: {found:?}", sample.format);
            }
        }
    }
}

/// SQLite makes an empty file before it writes the first page.
#[test]
fn a_database_is_compared_with_the_empty_file_that_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bank.db");
    let database = rusqlite::Connection::open(&path).unwrap();
    let setup = "CREATE TABLE t (a); CREATE VIEW v AS SELECT a FROM t; INSERT INTO t VALUES (1)";
    database.execute_batch(setup).unwrap();
    let written = std::fs::read(&path).unwrap();
    let (empty, written) = (
        DatabaseFiles::default(),
        DatabaseFiles {
            database: &written,
            ..DatabaseFiles::default()
        },
    );
    for (older, newer, change) in [
        (empty, written, "`t` was made: 1 row added"),
        (written, empty, "`t` was dropped: 1 row removed"),
    ] {
        let found = reader().differing_rows(b"bank.db", older, newer).unwrap();
        let said = found.sentences.join("; ");
        assert!(said.contains(change) && said.contains("view"), "{said}");
    }
}
