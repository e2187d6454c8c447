//! Tests of the groups of rows in the binlog.

use super::*;
use crate::binlog_event::{decode, frame};
use crate::fuzz_entry::{captured_catalog as catalog, captured_events as events};
use crate::row_value::ColumnKind;
use backstory_database::row_change::{ColumnValue, RowImage};

fn groups(events: &[Vec<u8>]) -> Vec<CommittedGroup> {
    let (mut groups, catalog) = (RowGroups::default(), catalog());
    let mut found = Vec::new();
    for bytes in events {
        let event = decode(frame(bytes, true).unwrap()).unwrap();
        found.extend(groups.take(event, "binlog.1:2", &catalog).unwrap());
    }
    found
}

fn shown(image: Option<&RowImage>) -> Vec<String> {
    let text = |value: &ColumnValue| match value {
        ColumnValue::Text(text) => text.clone(),
        other => format!("{other:?}"),
    };
    image
        .unwrap()
        .iter()
        .map(|(_, value)| text(value))
        .collect()
}

#[test]
fn captured_rows_have_the_values_that_the_server_shows() {
    let groups = groups(&events());
    let changes = &groups[0].changes;
    let mut wanted: Vec<String> = [
        "200",
        "-3",
        "-70000",
        "18446744073709551615",
        "1.5",
        "-2.25",
        "-12345.67800",
        "2026-01-02",
        "-12:34:56.789",
        "2026-01-02 03:04:05.123456",
        "2026-01-02 03:04:05",
        "2026",
        "ab",
        "n",
        "0x00ff",
        "text",
        "0xff01",
        "y",
        "p,r",
        "513",
        "é",
        "6ccd780c-baba-1026-9564-5b8c656024db",
        "::1",
    ]
    .map(Into::into)
    .into();
    wanted.push("c".repeat(300));
    assert_eq!(shown(changes[0].after.as_ref()), wanted);
    let second = [
        "0",
        "0",
        "0",
        "0",
        "-0.1",
        "1e100",
        "0.00000",
        "0000-00-00",
        "838:59:59.000",
        "1000-01-01 00:00:00.000000",
        "1970-01-01 00:00:01",
        "0000",
        "",
        "",
        "",
        "",
        "",
        "Null",
        "",
        "0",
        "Null",
        "Null",
        "Null",
        "Null",
    ];
    assert_eq!(shown(changes[1].after.as_ref()), second);
}

#[test]
fn captured_groups_have_their_statements_and_ends() {
    let groups = groups(&events());
    let parts: Vec<(&str, Option<u64>, Option<u64>, usize)> = groups
        .iter()
        .map(|group| {
            (
                &*group.number,
                group.query,
                group.thread,
                group.changes.len(),
            )
        })
        .collect();
    let wanted = [
        ("0-1-15", Some(76), None, 2),
        ("0-1-16", Some(77), None, 1),
        ("0-1-17", None, Some(18), 1),
        ("0-1-18", Some(80), Some(18), 1),
        ("0-1-19", None, Some(18), 1),
    ];
    assert_eq!(parts, wanted);
    assert_eq!(groups[2].statements, ["insert into ary values (7)"]);
    assert_eq!(groups[2].changes[0].statement, Some(0));
    assert_eq!(groups[4].changes[0].operation, RowOperation::Truncate);
    let update = &groups[1].changes[0];
    assert!(update.whole_before);
    let (before, after) = (shown(update.before.as_ref()), shown(update.after.as_ref()));
    assert_eq!((&*before[1], &*after[1]), ("-3", "4"));
    assert_eq!(before[2..], after[2..]);
}

#[test]
fn an_event_that_is_cut_or_damaged_is_refused() {
    for bytes in events().into_iter().filter(|bytes| bytes[4] != 15) {
        for end in 0..bytes.len() {
            assert_eq!(frame(&bytes[..end], true), None);
        }
        for at in 19..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            assert_eq!(frame(&damaged, true), None, "{at}");
        }
    }
}

#[test]
fn rows_that_are_cut_are_refused_and_not_misread() {
    let catalog = catalog();
    for bytes in events() {
        let event = decode(frame(&bytes, true).unwrap()).unwrap();
        let BinlogEvent::Rows(rows) = event else {
            continue;
        };
        for end in 0..rows.packed.len() {
            let mut groups = RowGroups::default();
            for earlier in events().iter().take(4) {
                let event = decode(frame(earlier, true).unwrap()).unwrap();
                if !matches!(event, BinlogEvent::Rows(_)) {
                    groups.take(event, "", &catalog).unwrap();
                }
            }
            let mut cut = rows.clone();
            cut.packed.truncate(end);
            let taken = groups.take(BinlogEvent::Rows(cut), "", &catalog);
            let changes = groups.open.map_or(0, |open| open.changes.len());
            assert!(taken.is_none() || changes < 2 || end == rows.packed.len());
        }
    }
}

/// The transaction of events with these packed rows, of a table with one text.
fn inserted(
    (width, present): (usize, u8),
    packed: Vec<u8>,
    events: usize,
) -> Option<CommittedGroup> {
    let mut groups = RowGroups {
        budget: ChangeBudget::of_bytes(1 << 14),
        ..RowGroups::default()
    };
    let catalog = ServerCatalog::default();
    let mut take = |event: BinlogEvent| groups.take(event, "", &catalog);
    take(BinlogEvent::Begin {
        number: "0-1-1".to_owned(),
        standalone: false,
    })?;
    let table = MappedTable {
        database: "bank".to_owned(),
        name: "notes".to_owned(),
        columns: vec![ColumnKind::Text(2)],
        names: vec!["note".to_owned()],
    };
    take(BinlogEvent::Table(7, table))?;
    let rows = EventRows {
        kind: RowsKind::Insert,
        table: 7,
        width,
        present: vec![present],
        present_after: Vec::new(),
        packed,
    };
    for _ in 0..events {
        take(BinlogEvent::Rows(rows.clone()))?;
    }
    take(BinlogEvent::Commit(1))?
}

#[test]
fn rows_without_columns_or_of_another_width_are_refused() {
    let row = vec![0, 1, 0, b'x'];
    assert!(inserted((1, 1), row.clone(), 1).is_some());
    assert_eq!(inserted((1, 0), row.clone(), 1), None);
    assert_eq!(inserted((2, 1), row, 1), None);
}

#[test]
fn changes_beyond_the_memory_of_a_transaction_are_counted() {
    let row = [&[0, 0, 4][..], &[b'x'; 1024]].concat();
    let group = inserted((1, 1), row, 50).unwrap();
    assert!(group.changes.len() < 20, "{}", group.changes.len());
    assert_eq!(group.changes.len() as u64 + group.left_out, 50);
}
