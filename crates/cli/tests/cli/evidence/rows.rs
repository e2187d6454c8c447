//! A changed row of the database is found.

use rusqlite::Connection;

use super::{BLOCK, flip_blocks, sealed};

/// Tables, each with the SQL that changes one value of a row about the two runs.
const CHANGES: [(&str, &str); 17] = [
    (
        "runs",
        "UPDATE runs SET header = replace(header, '\"uid\":', '\"uid\":1')",
    ),
    (
        "runs",
        "UPDATE runs SET end = replace(end, '\"exit\":0', '\"exit\":1')",
    ),
    ("runs", "UPDATE runs SET note = 'x'"),
    ("runs", "DELETE FROM runs"),
    ("texts", BLOCK),
    ("directories", BLOCK),
    ("paths", "UPDATE paths SET dir = dir + 1000"),
    ("versions", BLOCK),
    ("inodes", "UPDATE OR REPLACE inodes SET dir = dir + 1000"),
    ("members", BLOCK),
    ("touched", "DELETE FROM touched"),
    ("made", "DELETE FROM made"),
    ("activities", BLOCK),
    ("edge_lists", BLOCK),
    ("segments", BLOCK),
    ("annotations", "UPDATE annotations SET value = 'other'"),
    (
        "facts",
        "UPDATE facts SET content = content + 1 WHERE content IS NOT NULL",
    ),
];

#[test]
fn a_changed_row_of_each_table_is_found() {
    let Some((place, [first, second], ..)) = sealed() else {
        return;
    };
    for (table, change) in CHANGES {
        let found = place.faults_after(&[], &mut |store| {
            let database = Connection::open(store.join("graph.db")).unwrap();
            match change {
                BLOCK => flip_blocks(&database, table, "id", "block"),
                sql => database.execute_batch(sql).unwrap(),
            }
        });
        // A run whose row is gone is indexed again from its sealed log.
        let named = found
            .iter()
            .any(|fault| fault.starts_with(&*first) || fault.starts_with(&*second));
        assert_eq!(
            named,
            change != "DELETE FROM runs",
            "{table}: {change}: {found:?}"
        );
    }
    for (table, key, column) in [
        ("facts", "id", "record"),
        ("directory_snapshots", "run", "record"),
    ] {
        let found = place.faults_after(&[], &mut |store| {
            let database = Connection::open(store.join("graph.db")).unwrap();
            flip_blocks(&database, table, key, column);
        });
        assert!(!found.is_empty(), "{table}");
    }
}
