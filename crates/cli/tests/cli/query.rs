//! `query` answers questions in SQL, and changes nothing.

use serde_json::{Value, json};

use super::Place;

/// The rows of a question.
#[track_caller]
fn rows(place: &Place, sql: &str) -> Vec<Value> {
    match place.json(&["query", "--json", sql]) {
        Value::Array(rows) => rows,
        other => panic!("{other}"),
    }
}

/// A place with three runs: `sort` and `head` make `out` of `in`, `cp` makes `copy`.
fn recorded() -> Place {
    let place = Place::new();
    place.write("in", "b\na\n");
    place.record("sort in > mid; head -1 mid > out; rm mid");
    place.record("cp out copy");
    place.record("true");
    place
}

#[test]
fn the_tables_have_the_rows_of_the_other_commands() {
    let place = recorded();
    for run in place.runs() {
        let processes = place.json(&["processes", &run, "--json"]);
        let ids = |rows: &[Value], key: &str| {
            let mut ids: Vec<i64> = rows.iter().map(|row| row[key].as_i64().unwrap()).collect();
            ids.sort_unstable();
            ids
        };
        let by_run = rows(
            &place,
            &format!("SELECT * FROM processes WHERE run = '{run}'"),
        );
        assert_eq!(
            ids(&by_run, "process"),
            ids(processes.as_array().unwrap(), "id")
        );
        // The same without a key.
        let all = format!("SELECT * FROM processes WHERE run || '' = '{run}'");
        assert_eq!(rows(&place, &all), by_run);

        let files = place.json(&["files", &run, "--level", "process", "--json"]);
        let mut paths: Vec<&str> = files
            .as_array()
            .unwrap()
            .iter()
            .map(|f| f["path"].as_str().unwrap())
            .collect();
        paths.sort_unstable();
        paths.dedup();
        let sql = format!(
            "SELECT DISTINCT path FROM edges JOIN files USING (file) \
             WHERE edges.run = '{run}' AND path LIKE '/%' ORDER BY path"
        );
        let named = rows(&place, &sql);
        let named: Vec<&str> = named
            .iter()
            .map(|row| row["path"].as_str().unwrap())
            .collect();
        assert!(
            !named.is_empty() && named.iter().all(|path| paths.contains(path)),
            "{named:?} {paths:?}"
        );
    }
    let runs = rows(&place, "SELECT run FROM runs ORDER BY started DESC");
    let ids: Vec<&str> = runs
        .iter()
        .map(|row| row["run"].as_str().unwrap())
        .collect();
    assert_eq!(ids, place.runs());
}

#[test]
fn a_join_finds_the_processes_that_wrote_a_file() {
    let place = recorded();
    let join = |condition: &str| {
        format!(
            "SELECT p.command, e.how, f.size, p.exit FROM files f JOIN edges e USING (file) \
             JOIN processes p USING (process) WHERE {condition} AND e.how = 'write' ORDER BY p.started"
        )
    };
    let path = place.path("copy");
    let by_path = rows(&place, &join(&format!("f.path = '{path}'")));
    assert_eq!(
        by_path,
        [json!({"command": "cp out copy", "how": "write", "size": 2, "exit": 0})]
    );
    assert_eq!(
        rows(&place, &join(&format!("f.path LIKE '{path}'"))),
        by_path
    );
}

#[test]
fn steps_are_the_commands_with_their_files() {
    let place = recorded();
    let sql =
        "SELECT command, json_each.value AS input FROM steps, json_each(inputs) ORDER BY started";
    let (input, out) = (place.path("in"), place.path("out"));
    let found = rows(&place, sql);
    assert_eq!(
        found.first().unwrap(),
        &json!({"command": "sort in > mid", "input": input})
    );
    assert_eq!(
        found.last().unwrap(),
        &json!({"command": "cp out copy", "input": out})
    );
}

#[test]
fn a_question_that_is_no_select_is_refused_and_changes_nothing() {
    let place = recorded();
    for (sql, word) in [
        ("DELETE FROM runs", "only SELECT"),
        ("UPDATE runs SET name = 'x'", "only SELECT"),
        ("CREATE TABLE x (y)", "only SELECT"),
        ("ATTACH 'x' AS y", "only SELECT"),
        ("PRAGMA hard_heap_limit = 0", "only SELECT"),
        ("SELECT load_extension('x')", "only SELECT"),
        ("SELECT 1; SELECT 2", "one SELECT"),
        ("", "one SELECT"),
        ("SELECT *\nFORM runs", "line 2, column 1: FORM runs"),
        ("SELECT * FROM logs", "no such table: logs"),
        ("SELECT * FROM proceses", "did you mean processes?; "),
        ("SELECT f.pth FROM files f", "did you mean path?; "),
    ] {
        place
            .run(&["query", sql])
            .is_error(2, &[word, "query --schema"]);
    }
    assert_eq!(
        rows(&place, "SELECT count(*) AS n FROM runs"),
        [json!({"n": 3})]
    );
    assert!(!place.work().join("x").exists());
}

#[test]
fn a_question_is_bounded_by_time_and_memory() {
    let place = recorded();
    let endless =
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";
    place
        .run(&["query", "--timeout", "1", endless])
        .is_error(1, &["no answer within 1 s", "--timeout"]);
    let large = "SELECT group_concat(hex(zeroblob(4000000))) FROM edges";
    place
        .run(&["query", "--memory", "8", large])
        .is_error(1, &["more than 8 MB", "--memory"]);
    // A failure in the middle is no mistake in the question's text.
    place
        .run(&["query", "SELECT json_extract('{', '$')"])
        .is_error(1, &["malformed JSON"]);
}

#[test]
fn the_forms_of_an_answer_keep_every_value() {
    let place = Place::new();
    place.record("true");
    let sql = "SELECT 'a,\"b' AS t, 7 AS n, 0.5 AS r, NULL AS z, x'ff2f' AS b, 'x' || char(10) || 'y' AS c";
    let csv = place.run(&["query", "--csv", sql]);
    assert_eq!(
        csv.out,
        "t,n,r,z,b,c\n\"a,\"\"b\",7,0.5,,\u{fffd}/,\"x\ny\"\n"
    );
    let table = place.run(&["query", sql]).out;
    assert!(
        table.contains("a,\"b  7  0.5") && table.contains("x\\ny"),
        "{table}"
    );
    let json = place.run(&["query", "--json", sql]).out;
    assert!(
        json.contains(
            r#"{"t": "a,\"b", "n": 7, "r": 0.5, "z": null, "b": "\udcff/", "c": "x\ny"}"#
        ),
        "{json}"
    );
    assert_eq!(place.run(&["query", "SELECT 1 WHERE 0"]).out, "no rows\n");
    assert_eq!(
        place.run(&["query", "--json", "SELECT 1 WHERE 0"]).out,
        "[]\n"
    );
}

#[test]
fn the_list_of_tables_is_the_tables() {
    let place = recorded();
    let listed = place.json(&["query", "--schema", "--json"]);
    let mut tables: Vec<(String, Vec<String>)> = Vec::new();
    let shown = |column: &&Value| column["hidden"] == false;
    for column in listed.as_array().unwrap().iter().filter(shown) {
        let word = |key: &str| column[key].as_str().unwrap().to_owned();
        match tables.last_mut() {
            Some((table, columns)) if *table == word("table") => columns.push(word("column")),
            _ => tables.push((word("table"), vec![word("column")])),
        }
    }
    assert_eq!(tables.len(), 11);
    for (table, columns) in tables {
        let csv = place
            .run(&["query", "--csv", &format!("SELECT * FROM {table} LIMIT 1")])
            .out;
        assert_eq!(csv.lines().next().unwrap(), columns.join(","));
        let text = place.run(&["query", "--schema"]).out;
        assert!(text.contains(&format!("{table}  ")), "{text}");
    }
}

#[test]
fn hidden_columns_have_the_moments_to_the_nanosecond() {
    let place = recorded();
    let listed = place.json(&["query", "--schema", "--json"]);
    let all = listed.as_array().unwrap().iter();
    let hidden: Vec<_> = all.filter(|column| column["hidden"] == true).collect();
    assert!(hidden.len() > 10);
    for column in hidden {
        let (table, column) = (&column["table"], &column["column"]);
        let sql = format!("SELECT (SELECT {column} FROM {table} LIMIT 1) AS value");
        assert!(rows(&place, &sql)[0].get("value").is_some(), "{column}");
    }
    // The shown moment is the hidden one, to the microsecond.
    let sql = "SELECT count(*) AS n FROM edges WHERE substr(started, 21) <> \
        substr(printf('%09d', started_ns % 1000000000), 1, 6)";
    assert_eq!(rows(&place, sql), [json!({"n": 0})]);
}

#[test]
fn derivations_and_informs_are_the_links_that_of_follows() {
    let place = Place::new();
    place.write("in", "b\na\n");
    place.record("cat in > mid; mv mid out");
    let links = place.json(&["of", "out", "--json", "--all"]);
    let count = |flow: &str, how: &[&str]| {
        let links = links["links"].as_array().unwrap().iter();
        let wanted = |link: &&Value| {
            link["flow"] == flow && link["how"].as_str().is_none_or(|word| how.contains(&word))
        };
        links.filter(wanted).count() as i64
    };
    let sql = "SELECT count(*) AS n FROM derivations";
    assert_eq!(rows(&place, sql)[0]["n"], count("derived", &[]));
    assert!(count("derived", &[]) > 0);
    let sql = "SELECT count(*) AS n FROM informs WHERE how IN ('fork', 'exec')";
    assert_eq!(
        rows(&place, sql)[0]["n"],
        count("informed", &["fork", "exec"])
    );
    assert!(count("informed", &["fork", "exec"]) > 0);
}

#[test]
fn a_question_is_read_from_standard_input() {
    let place = recorded();
    let mut command = place.command(&["query", "--csv", "-"]);
    command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    std::io::Write::write_all(
        &mut child.stdin.take().unwrap(),
        b"SELECT exit FROM runs\nORDER BY started DESC LIMIT 1",
    )
    .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "exit\n0\n");
}
