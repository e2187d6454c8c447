//! The rows before and after a change, as far as PostgreSQL sends them.

use serde_json::{Value, json};

use crate::watch::place::PostgresPlace;

/// The reason in the record if the server did not send the whole row before a change.
const INCOMPLETE: &str = "the table's REPLICA IDENTITY is not FULL";

/// The changes of a row, the newest first: for each its operation, the rows before and after, and
/// why the row before is not whole.
fn changes(place: &PostgresPlace, table: &str, key: &str) -> Vec<Value> {
    let answer = place.json(&["of", "--table", table, "--key", key]);
    let events = answer["history"].as_array().unwrap().iter();
    let fields = ["operation", "before", "after", "before_incomplete"];
    let of_change = |event: &Value| fields.map(|field| event["change"][field].clone());
    events.map(|event| json!(of_change(event))).collect()
}

/// A row of `accounts`.
fn account(id: &str, sum: &str, owner: Option<&str>) -> Value {
    json!({"id": id, "sum": sum, "owner": owner})
}

#[test]
fn a_table_with_full_replica_identity_has_whole_rows_before_and_after_its_changes() {
    let Some(place) = PostgresPlace::new("rows before and after their changes", &[]) else {
        return;
    };
    // No watch has seen the rows before.
    place.query(
        "CREATE TABLE accounts (id int PRIMARY KEY, sum int, owner varchar(20)); \
         CREATE TABLE notes (id int PRIMARY KEY, sum int, text text); \
         ALTER TABLE notes ALTER COLUMN text SET STORAGE EXTERNAL; \
         ALTER TABLE accounts REPLICA IDENTITY FULL; ALTER TABLE notes REPLICA IDENTITY FULL; \
         INSERT INTO accounts VALUES (1, 10, 'ann'), (2, 20, NULL), (3, 30, 'bob'); \
         INSERT INTO notes VALUES (1, 10, repeat('x', 10000))",
    );
    let watch = place.watched();
    place.query("UPDATE accounts SET sum = 11 WHERE id = 1");
    place.query("DELETE FROM accounts WHERE id = 2");
    place.query("UPDATE accounts SET id = 4 WHERE id = 3");
    place.query("UPDATE notes SET sum = 11 WHERE id = 1");
    place.ends_complete(watch);

    let (before, after) = (
        account("1", "10", Some("ann")),
        account("1", "11", Some("ann")),
    );
    let update = json!(["update", before, after, null]);
    assert_eq!(changes(&place, "accounts", "1"), [update]);
    let text = place.text(&["of", "--table", "accounts", "--key", "1"]);
    assert!(text.contains("sum: 10 → 11"), "{text}");
    let deletion = json!(["delete", account("2", "20", None), null, null]);
    assert_eq!(changes(&place, "accounts", "2"), [deletion]);
    let (before, after) = (
        account("3", "30", Some("bob")),
        account("4", "30", Some("bob")),
    );
    let moved = json!(["update", before, after, null]);
    assert_eq!(changes(&place, "accounts", "4"), [moved]);

    // The server does not send a long value again that it stores outside of the row.
    let note = &changes(&place, "notes", "1")[0];
    assert_eq!(
        (&note[1]["sum"], &note[2]["sum"]),
        (&json!("10"), &json!("11"))
    );
    assert_eq!(note[1]["text"]["bytes"], 10_000, "{note}");
    assert_eq!(note[2]["text"], json!({"unchanged": true}), "{note}");
}

#[test]
fn the_row_before_a_change_is_its_key_by_default_and_whole_from_full_replica_identity_on() {
    let Some(place) = PostgresPlace::new("a replica identity that changes", &[]) else {
        return;
    };
    place.query(
        "CREATE TABLE accounts (id int PRIMARY KEY, sum int, owner varchar(20)); \
         INSERT INTO accounts VALUES (1, 10, 'ann'), (2, 20, NULL), (3, 30, 'bob')",
    );
    let watch = place.watched();
    place.query("UPDATE accounts SET sum = 11 WHERE id = 1");
    place.query("DELETE FROM accounts WHERE id = 2");
    place.query("UPDATE accounts SET id = 4 WHERE id = 3");
    place.query("ALTER TABLE accounts REPLICA IDENTITY FULL");
    place.query("UPDATE accounts SET sum = 12 WHERE id = 1");
    place.query("DELETE FROM accounts WHERE id = 4");
    place.ends_complete(watch);

    let ann = |sum: &str| account("1", sum, Some("ann"));
    let wanted = [
        json!(["update", ann("11"), ann("12"), null]),
        json!(["update", null, ann("11"), INCOMPLETE]),
    ];
    assert_eq!(changes(&place, "accounts", "1"), wanted);
    let deletion = json!(["delete", {"id": "2"}, null, INCOMPLETE]);
    assert_eq!(changes(&place, "accounts", "2"), [deletion]);
    let bob = account("4", "30", Some("bob"));
    let wanted = [
        json!(["delete", bob, null, null]),
        json!(["update", {"id": "3"}, bob, INCOMPLETE]),
    ];
    assert_eq!(changes(&place, "accounts", "4"), wanted);
}
