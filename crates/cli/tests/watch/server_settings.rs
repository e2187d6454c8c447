//! Settings of servers that change the form of logs and row changes, or refuse a connection.

use backstory_testkit::database_server::DatabaseServer;
use backstory_testkit::mariadb::MariadbServer;
use backstory_testkit::postgres::PostgresServer;

use crate::watch::place::{DatabasePlace, MariadbPlace, PostgresPlace};

const ACCOUNTS: &str = "CREATE TABLE accounts (id int PRIMARY KEY, sum int, text varchar(100))";

/// A server with these settings, and a complete record of changes of rows 1 and 2 of `accounts`.
fn recorded<S: DatabaseServer>(what: &str, settings: &[&str]) -> Option<DatabasePlace<S>> {
    let place = DatabasePlace::new(what, settings)?;
    place.query(ACCOUNTS);
    let watch = place.watched();
    place.query("INSERT INTO accounts VALUES (1, 10, 'first'), (2, 20, 'second')");
    place.query(
        "UPDATE accounts\n\nSET sum = 11,\n text = 'a \"quoted\" word, and a comma'\nWHERE id = 1",
    );
    place.query("DELETE FROM accounts WHERE id = 2");
    place.ends_complete(watch);
    rows_have_their_statements(&place);
    Some(place)
}

/// The operations and statements of the history of a row, the newest first.
fn history<S: DatabaseServer>(place: &DatabasePlace<S>, key: &str) -> Vec<(String, String)> {
    let answer = place.json(&["of", "--table", "accounts", "--key", key]);
    let events = answer["history"].as_array().unwrap().iter();
    let word = |event: &serde_json::Value| event["change"]["operation"].as_str().map(Into::into);
    events
        .map(|event| {
            let statements = event["transaction"]["statements"].to_string();
            (word(event).unwrap_or_default(), statements)
        })
        .collect()
}

fn rows_have_their_statements<S: DatabaseServer>(place: &DatabasePlace<S>) {
    let first = history(place, "1");
    let operations: Vec<&str> = first.iter().map(|event| &*event.0).collect();
    assert_eq!(operations, ["update", "insert"], "{first:?}");
    assert!(first[0].1.contains("and a comma"), "{first:?}");
    let second = history(place, "2");
    let operations: Vec<&str> = second.iter().map(|event| &*event.0).collect();
    assert_eq!(operations, ["delete", "insert"], "{second:?}");
}

#[test]
#[ignore = "a server of its own"]
fn a_log_of_comma_separated_values_is_read_like_one_in_json() {
    recorded::<PostgresServer>("a log of csvlog", &["log_destination = csvlog"]);
}

#[test]
#[ignore = "a server of its own"]
fn with_plans_of_auto_explain_a_statement_alone_is_matched_by_its_transaction_number() {
    let settings = [
        "session_preload_libraries = auto_explain",
        "auto_explain.log_min_duration = 0",
    ];
    let Some(place) = recorded::<PostgresServer>("plans of auto_explain", &settings) else {
        return;
    };
    for key in ["1", "2"] {
        let answer = place.json(&["of", "--table", "accounts", "--key", key]);
        let events = answer["history"].as_array().unwrap().iter();
        let matched: Vec<_> = events
            .map(|event| event["transaction"]["matched_by"].clone())
            .collect();
        assert_eq!(matched, ["number"; 2], "{answer}");
    }
}

#[test]
#[ignore = "a server of its own"]
fn a_compressed_binlog_is_read_like_another() {
    let settings = ["--log-bin-compress=ON", "--log-bin-compress-min-len=10"];
    let Some(place) = recorded::<MariadbServer>("a compressed binlog", &settings) else {
        return;
    };
    let answer = place.json(&["of", "--table", "accounts", "--key", "1"]);
    assert_eq!(answer["history"][0]["change"]["before"]["sum"], "10");
}

/// The key before a change, and the changed columns after it.
#[test]
#[ignore = "a server of its own"]
fn a_row_of_which_the_server_sends_a_part_has_its_key_and_the_setting_that_left_out_the_rest() {
    let settings = ["--binlog-row-image=MINIMAL"];
    let Some(place) = recorded::<MariadbServer>("parts of rows", &settings) else {
        return;
    };
    let answer = place.json(&["of", "--table", "accounts", "--key", "1"]);
    let change = &answer["history"][0]["change"];
    assert_eq!(change["after"]["sum"], "11", "{change}");
    assert!(change["before"]["sum"].is_null(), "{change}");
    assert!(change.to_string().contains("binlog_row_image"), "{change}");
}

/// The error of a watch that does not begin.
fn refusal<S: DatabaseServer>(place: &DatabasePlace<S>) -> String {
    let watch = place.server.watched(&place.stage, &[]);
    watch.err().unwrap().to_string()
}

#[test]
#[ignore = "a server of its own"]
fn a_postgresql_server_that_wants_encryption_is_named_with_the_remedy() {
    let Some(place) = PostgresPlace::new("encryption alone", &[]) else {
        return;
    };
    place.server.encrypted_alone(&place.stage).unwrap();
    let error = refusal(&place);
    assert!(
        error.contains("encrypted") && error.contains("socket"),
        "{error}"
    );
}

#[test]
#[ignore = "a server of its own"]
fn a_mariadb_server_that_wants_encryption_is_watched_through_its_socket() {
    let Some(place) = MariadbPlace::new("encryption alone of MariaDB", &[]) else {
        return;
    };
    place.query(ACCOUNTS);
    place.query("SET GLOBAL require_secure_transport = ON");
    let error = refusal(&place);
    assert!(
        error.contains("encrypted") && error.contains("socket"),
        "{error}"
    );
    let watch = place.server.watched_at_socket(&place.stage).unwrap();
    place.record("$LOCAL -e 'INSERT INTO accounts VALUES (1, 10, NULL)'");
    watch.end().unwrap();
    let row = history(&place, "1");
    assert_eq!(row.len(), 1, "{row:?}");
}
