//! Functions in statements: those of the server use no table, and those of users lead to theirs.

use crate::watch::place::PostgresPlace;

/// The links between the table `base` and the activities that used it: the activity, and the
/// certainty.
fn uses_of(place: &PostgresPlace, question: &[&str], table: &str) -> Vec<(String, String)> {
    let answer = place.json(&[&["of", "--level", "all"], question].concat());
    let node = |at: &serde_json::Value| answer["nodes"][at.as_u64().unwrap() as usize].clone();
    let links = answer["links"].as_array().unwrap().iter();
    let mut found: Vec<(String, String)> = links
        .filter(|link| {
            let name = node(&link["from"])["path"].to_string();
            link["flow"] == "used" && name.ends_with(&format!("/public.{table}\""))
        })
        .map(|link| {
            let text = node(&link["to"])["argv"][1].as_str().unwrap().to_owned();
            (text, link["certainty"].as_str().unwrap().to_owned())
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

#[test]
fn a_function_of_the_server_leaves_lineage_certain_and_one_of_a_user_leads_to_its_tables() {
    let Some(place) = PostgresPlace::new("functions in statements", &[]) else {
        return;
    };
    place.query(
        "CREATE TABLE a (id int PRIMARY KEY, x text); CREATE TABLE b (id int PRIMARY KEY); \
         CREATE TABLE c (id int PRIMARY KEY); INSERT INTO c VALUES (1); \
         CREATE FUNCTION highest() RETURNS int LANGUAGE sql AS 'SELECT max(id) FROM c'; \
         CREATE FUNCTION shout(text) RETURNS text LANGUAGE internal AS 'upper'; \
         CREATE VIEW highs AS SELECT highest() AS id",
    );
    let watch = place.watched();
    // Two sessions at the same time: the first one only reads, with functions of the server.
    let mut reader = place.server.session(&place.stage).unwrap();
    let mut writer = place.server.session(&place.stage).unwrap();
    for number in 1..=5 {
        reader
            .query("SELECT count(*), lower(max(x)), now() FROM a \\g /dev/null")
            .unwrap();
        let write =
            format!("INSERT INTO a SELECT {number}, upper('x') WHERE now() > '2000-01-01';");
        writer.query(&write).unwrap();
    }
    // Times are known to the millisecond. These may be mistaken for each other if they are close.
    for text in [
        "INSERT INTO b SELECT highest() + 1;",
        "INSERT INTO b SELECT id + 2 FROM highs;",
        "INSERT INTO a VALUES (6, shout('x'));",
    ] {
        writer.query("SELECT pg_sleep(0.1) \\g /dev/null").unwrap();
        writer.query(text).unwrap();
    }
    drop((reader, writer));
    watch.end().unwrap();
    for number in 1..=5 {
        let key = number.to_string();
        let answer = place.json(&["of", "--table", "a", "--key", &key]);
        let matched = &answer["history"][0]["transaction"]["matched_by"];
        assert_eq!(matched, "time", "{answer}");
    }
    for (key, text) in [("2", "SELECT highest()"), ("3", "FROM highs")] {
        let row = ["--table", "b", "--key", key];
        let found = uses_of(&place, &row, "c");
        let (statement, certainty) = found.iter().find(|(one, _)| one.contains(text)).unwrap();
        assert_eq!(certainty, "seen", "{statement}");
    }
    let row = ["of", "--table", "a", "--key", "6"];
    let transaction = place.json(&row)["history"][0]["transaction"].clone();
    assert_eq!(
        transaction["unknown_functions"][0], "shout",
        "{transaction}"
    );
    let text = place.text(&row);
    assert!(
        text.contains("possibly from other tables, through shout"),
        "{text}"
    );
}
