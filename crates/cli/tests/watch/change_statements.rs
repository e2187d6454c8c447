//! The statement that made a change of a row, among those of its transaction.

use backstory_testkit::database_server::DatabaseServer;
use serde_json::Value;

use crate::watch::place::{DatabasePlace, MariadbPlace, PostgresPlace};

const ROW: [&str; 5] = ["of", "--table", "accounts", "--key", "42"];

/// Two transactions of two statements each. In the second, only one of them finds the row, and the
/// texts do not tell which.
fn change_twice<S: DatabaseServer>(place: &DatabasePlace<S>) {
    place.query(
        "CREATE TABLE accounts (id int PRIMARY KEY, sum int, owner varchar(20)); \
         INSERT INTO accounts VALUES (41, 1, 'ann'), (42, 2, 'bob')",
    );
    let watch = place.watched();
    place.write(
        "twice.sql",
        "BEGIN;\nUPDATE accounts SET sum = sum * 2;\n\
         UPDATE accounts SET owner = upper(owner);\nCOMMIT;\n",
    );
    place.write(
        "once.sql",
        "BEGIN;\nUPDATE accounts SET sum = sum + 1 WHERE owner LIKE 'B%';\n\
         UPDATE accounts SET sum = sum + 2 WHERE owner LIKE 'Z%';\nCOMMIT;\n",
    );
    place.record("$SQL <twice.sql");
    place.record("$SQL <once.sql");
    watch.end().unwrap();
}

/// The text of the statement that made a change.
fn statement(event: &Value) -> Option<&str> {
    let place = event["change"]["statement"].as_u64()?;
    event["transaction"]["statements"][place as usize]["text"].as_str()
}

/// The statements of the three changes, the newest first, and the screen.
fn asked<S: DatabaseServer>(place: &DatabasePlace<S>) -> (Value, String) {
    let history = place.json(&ROW)["history"].clone();
    assert_eq!(history.as_array().unwrap().len(), 3, "{history}");
    for (at, text) in [(1, "SET owner"), (2, "SET sum = sum * 2")] {
        let found = statement(&history[at]);
        assert!(found.is_some_and(|found| found.contains(text)), "{history}");
    }
    let screen = place.text(&ROW);
    // The change before the newest one has its own statement, and not that of the oldest one.
    let lines = screen.split("transaction ").nth(2).unwrap();
    assert!(lines.contains("SET owner = upper(owner)"), "{screen}");
    assert!(!lines.contains("SET sum = sum * 2"), "{screen}");
    (history, screen)
}

#[test]
fn a_change_of_postgresql_has_its_statement_if_no_other_one_fits() {
    let Some(place) = PostgresPlace::new("statements of changes", &[]) else {
        return;
    };
    change_twice(&place);
    let (history, screen) = asked(&place);
    assert_eq!(statement(&history[0]), None, "{history}");
    let lines = "    possibly by one of these statements:\n    UPDATE accounts SET sum = sum + 1";
    assert!(screen.contains(lines), "{screen}");
}

#[test]
fn a_change_of_postgresql_has_no_statement_if_a_text_does_not_tell_its_rows() {
    let Some(place) = PostgresPlace::new("statements that others execute", &[]) else {
        return;
    };
    place.query(
        "CREATE TABLE accounts (id int PRIMARY KEY, sum int, password text); \
         INSERT INTO accounts VALUES (41, 1, 'a'), (42, 2, 'b'); \
         CREATE TABLE years (id int PRIMARY KEY, sum int) PARTITION BY RANGE (id); \
         CREATE TABLE now PARTITION OF years FOR VALUES FROM (0) TO (100); \
         INSERT INTO years VALUES (42, 1)",
    );
    let watch = place.watched();
    place.write(
        "executed.sql",
        "PREPARE up (int) AS UPDATE accounts SET sum = 7 WHERE id = $1;\nBEGIN;\n\
         EXECUTE up (42);\nUPDATE accounts SET sum = sum + 1 WHERE sum < 2;\nCOMMIT;\n",
    );
    place.write(
        "redacted.sql",
        "BEGIN;\nUPDATE accounts SET password = 'x' WHERE id = 42;\n\
         UPDATE accounts SET sum = sum + 1 WHERE sum < 2;\nCOMMIT;\n",
    );
    place.write(
        "parts.sql",
        "BEGIN;\nUPDATE years SET sum = sum + 1;\n\
         UPDATE now SET sum = sum + 2 WHERE sum > 9;\nCOMMIT;\n",
    );
    for file in ["executed.sql", "redacted.sql", "parts.sql"] {
        place.record(&format!("$SQL <{file}"));
    }
    watch.end().unwrap();
    for (table, changes) in [("accounts", 2), ("now", 1)] {
        let row = ["of", "--table", table, "--key", "42"];
        let history = place.json(&row)["history"].clone();
        let found: Vec<Option<&str>> = history.as_array().unwrap().iter().map(statement).collect();
        assert_eq!(found, vec![None; changes], "{history}");
        let screen = place.text(&row);
        assert!(screen.contains("    possibly by"), "{screen}");
    }
}

#[test]
fn a_change_of_mariadb_has_the_statement_that_the_binlog_names() {
    let Some(place) = MariadbPlace::new("statements of changes of MariaDB", &[]) else {
        return;
    };
    change_twice(&place);
    let (history, screen) = asked(&place);
    let found = statement(&history[0]);
    assert!(
        found.is_some_and(|found| found.contains("'B%'")),
        "{history}"
    );
    assert!(!screen.contains("possibly by"), "{screen}");
}
