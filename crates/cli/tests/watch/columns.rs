//! The columns that statements read and write, in a generated set of statements whose true columns
//! are known.

use std::collections::BTreeSet;

use backstory_testkit::database_server::DatabaseServer;
use backstory_testkit::mariadb::MariadbServer;
use backstory_testkit::postgres::PostgresServer;
use serde_json::{Value, json};

use crate::watch::accuracy::{Accuracy, Dialect, Dice, assert_exact_columns};
use crate::watch::column_truths::{DEFINITIONS, Generator, TABLES, Truth};
use crate::watch::place::{DatabasePlace, MariadbPlace, PostgresPlace};

/// The uses of columns in the record: the text of a statement, `read` or `written`, and the column.
type Use = (String, &'static str, String);

/// The certain uses of columns by the statements of all transactions.
fn recorded(schema: &str, facts: &[Value]) -> BTreeSet<Use> {
    let mut found = BTreeSet::new();
    let statements = facts
        .iter()
        .flat_map(|fact| fact["statements"].as_array().unwrap());
    for statement in statements {
        let text = statement["text"].as_str().unwrap().trim_end_matches(';');
        for list in ["read", "written"] {
            let names = statement["columns"][list].as_array().into_iter().flatten();
            for name in names {
                let name = name.as_str().unwrap();
                let name = name.strip_prefix(&format!("{schema}.")).unwrap_or(name);
                found.insert((text.to_owned(), list, name.to_owned()));
            }
        }
        let doubts = ["possibly_read", "possibly_written", "unresolved"];
        assert!(
            doubts
                .iter()
                .all(|list| statement["columns"][*list].is_null()),
            "{statement}"
        );
    }
    found
}

/// The facts about the transactions that read or changed the tables.
fn facts<S: DatabaseServer>(place: &DatabasePlace<S>) -> Vec<Value> {
    let mut found = Vec::new();
    for (table, columns) in TABLES {
        for (word, column) in columns.iter().flat_map(|one| [("of", one), ("uses", one)]) {
            let question = [word, "--table", table, "--column", column];
            let output = place
                .stage
                .backstory(&question)
                .arg("--json")
                .output()
                .unwrap();
            if output.status.success() {
                let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
                let events = answer["history"].as_array().unwrap().iter();
                found.extend(events.map(|event| event["transaction"].clone()));
            }
        }
    }
    found
}

fn columns_are_exact<S: DatabaseServer>(what: &str, dialect: Dialect, schema: &str, rows: &[&str]) {
    let Some(place) = DatabasePlace::<S>::new(what, &[]) else {
        return;
    };
    place.query(DEFINITIONS);
    let mut generator = Generator {
        dice: Dice(7),
        dialect,
        next: 0,
    };
    let truths: Vec<Truth> = (0..150)
        .map(|at| generator.truth(&format!("s{at}n{at}")))
        .collect();
    let script: Vec<String> = truths.iter().map(|one| format!("{};", one.text)).collect();
    let file = place.work.join("all.sql");
    std::fs::write(&file, script.join("\n")).unwrap();
    let watch = place.server.watched(&place.stage, rows).unwrap();
    let line = place.server.executes_file(&file);
    let done = place.stage.command("sh").args(["-c", &line]).status();
    assert!(done.unwrap().success());
    place.ends_complete(watch);
    let mut wanted = BTreeSet::new();
    for one in &truths {
        let read = one.read.iter().map(|column| ("read", column));
        let written = one.written.iter().map(|column| ("written", column));
        let uses = read.chain(written);
        wanted.extend(uses.map(|(how, column)| (one.text.clone(), how, column.clone())));
    }
    let found = recorded(schema, &facts(&place));
    assert_exact_columns(&Accuracy::of(&wanted, &found));
}

#[test]
fn the_columns_of_generated_statements_of_postgresql_are_exact() {
    let what = "the accuracy of columns";
    columns_are_exact::<PostgresServer>(what, Dialect::Postgres, "public", &["--rows", "off"]);
}

#[test]
fn the_columns_of_generated_statements_of_mariadb_are_exact() {
    let what = "the accuracy of columns of MariaDB";
    columns_are_exact::<MariadbServer>(what, Dialect::MariaDb, "bank", &["--rows", "off"]);
}

/// The columns of the statement of the first transaction in the history of a table.
fn columns<S: DatabaseServer>(place: &DatabasePlace<S>, table: &str, part: &str) -> Value {
    let answer = place.json(&["of", "--table", table]);
    let events = answer["history"].as_array().unwrap().iter();
    let mut statements =
        events.flat_map(|event| event["transaction"]["statements"].as_array().unwrap());
    let found = statements.find(|one| one["text"].as_str().unwrap().contains(part));
    found.unwrap_or_else(|| panic!("{part}: {answer}"))["columns"].clone()
}

/// The columns of the statement with this text, in the list of processes of a watch.
fn listed_columns(list: &Value, part: &str) -> Value {
    let transactions = list.as_array().unwrap().iter();
    let transactions = transactions.map(|one| &one["transaction"]);
    let statements = transactions.filter_map(|one| one["statements"].as_array());
    let mut statements = statements.flatten();
    let found = statements.find(|one| one["text"].as_str().unwrap().contains(part));
    found.unwrap_or_else(|| panic!("{part}: {list}"))["columns"].clone()
}

#[test]
fn a_name_means_the_table_in_the_search_path_of_its_session() {
    let Some(place) = PostgresPlace::new("search paths", &[]) else {
        return;
    };
    place.query(
        "CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE target (id int PRIMARY KEY); \
         CREATE SCHEMA sales; CREATE TABLE sales.a (id int PRIMARY KEY); \
         CREATE SCHEMA lab; CREATE TABLE lab.a (id int PRIMARY KEY); \
         INSERT INTO a VALUES (1); INSERT INTO sales.a VALUES (2); INSERT INTO lab.a VALUES (3)",
    );
    place.query("ALTER DATABASE bank SET search_path = lab, public");
    let watch = place.watched();
    let fill = |what: &str| format!("INSERT INTO public.target SELECT id + {what} FROM a;\n");
    // Each statement is sent alone.
    let script = [
        fill("10"),
        "SET search_path TO sales;\n".to_owned(),
        fill("20"),
        "BEGIN;\nSET search_path TO public;\nROLLBACK;\n".to_owned(),
        fill("30"),
        "BEGIN;\nSET LOCAL search_path TO public;\n".to_owned(),
        fill("40"),
        "COMMIT;\nRESET search_path;\n".to_owned(),
        fill("50"),
    ];
    let file = place.work.join("paths.sql");
    std::fs::write(&file, script.concat()).unwrap();
    let line = place.server.executes_file(&file);
    let done = place.stage.command("sh").args(["-c", &line]).status();
    assert!(done.unwrap().success());
    watch.end().unwrap();
    let list = place.json(&["processes"]);
    for (what, schema) in [
        ("10", "lab"),
        ("20", "sales"),
        ("30", "sales"),
        ("40", "public"),
        ("50", "lab"),
    ] {
        let columns = listed_columns(&list, &format!("id + {what}"));
        let wanted = json!([format!("{schema}.a.id")]);
        assert_eq!(columns["read"], wanted, "{what}: {columns}");
    }
}

#[test]
fn the_list_of_processes_has_the_columns_of_each_statement() {
    let Some(place) = PostgresPlace::new("columns in the list of processes", &[]) else {
        return;
    };
    place.query("CREATE TABLE a (id int PRIMARY KEY, x int)");
    let watch = place.watched();
    place.query("INSERT INTO a (id, x) VALUES (1, 2)");
    place.query("UPDATE a SET x = id + 1");
    watch.end().unwrap();
    let list = place.json(&["processes"]);
    let columns = |part: &str| listed_columns(&list, part);
    let inserted = columns("INSERT INTO a");
    assert_eq!(inserted["written"], json!(["public.a.id", "public.a.x"]));
    let updated = columns("UPDATE a");
    assert_eq!(updated["read"], json!(["public.a.id"]), "{updated}");
    assert_eq!(updated["written"], json!(["public.a.x"]), "{updated}");
}

#[test]
fn a_statement_before_a_change_of_its_table_has_no_column_of_it_for_certain() {
    let Some(place) = PostgresPlace::new("columns that change", &[]) else {
        return;
    };
    place.query("CREATE TABLE a (id int PRIMARY KEY, old int)");
    let watch = place.watched();
    let mut session = place.server.session(&place.stage).unwrap();
    // The insertion is recorded after its transaction, which has the change.
    for text in [
        "BEGIN;",
        "INSERT INTO a VALUES (1, 1);",
        "ALTER TABLE a ADD COLUMN late int;",
        "COMMIT;",
        "INSERT INTO a VALUES (2, 2, 2);",
        "CREATE TABLE c (id int PRIMARY KEY, y int);",
        "INSERT INTO c VALUES (3, 3);",
    ] {
        session.query(text).unwrap();
    }
    drop(session);
    watch.end().unwrap();
    let before = columns(&place, "a", "(1, 1)");
    assert!(before["written"].is_null(), "{before}");
    assert!(!before["possibly_written"].is_null(), "{before}");
    for (table, part, written) in [
        ("a", "(2, 2, 2)", &["a.id", "a.late", "a.old"][..]),
        ("c", "(3, 3)", &["c.id", "c.y"]),
    ] {
        let written: Value = written
            .iter()
            .map(|name| format!("public.{name}"))
            .collect();
        assert_eq!(columns(&place, table, part)["written"], written);
    }
}

/// The log has times to the millisecond.
#[test]
fn a_statement_of_the_same_millisecond_before_a_change_has_no_column_for_certain() {
    let Some(place) = PostgresPlace::new("columns that change at once", &[]) else {
        return;
    };
    let tables = 1..=20;
    let made = tables
        .clone()
        .map(|at| format!("CREATE TABLE a{at} (id int PRIMARY KEY, old int);"));
    place.query(&made.collect::<String>());
    let watch = place.watched();
    let mut session = place.server.session(&place.stage).unwrap();
    for at in tables.clone() {
        let insert = format!("INSERT INTO a{at} VALUES (1, 1)");
        let alter = format!("ALTER TABLE a{at} ADD COLUMN late int");
        session
            .query(&format!("BEGIN; {insert}; {alter}; COMMIT;"))
            .unwrap();
    }
    drop(session);
    watch.end().unwrap();
    for at in tables {
        let before = columns(&place, &format!("a{at}"), "(1, 1)");
        assert!(before["written"].is_null(), "{at}: {before}");
    }
}

#[test]
fn a_text_that_alters_its_own_table_has_no_column_of_it_for_certain() {
    let Some(place) = PostgresPlace::new("a text that alters its table", &[]) else {
        return;
    };
    place.query("CREATE TABLE a (id int PRIMARY KEY, old int)");
    let watch = place.watched();
    place.query("INSERT INTO a VALUES (1, 1); ALTER TABLE a RENAME old TO new");
    watch.end().unwrap();
    let found = columns(&place, "a", "(1, 1)");
    assert!(
        found["written"].is_null() && !found["possibly_written"].is_null(),
        "{found}"
    );
}

#[test]
fn a_table_and_a_column_lead_to_the_statements_that_changed_them() {
    let Some(place) = PostgresPlace::new("the statements of a column", &[]) else {
        return;
    };
    place.query(
        "CREATE TABLE accounts (id int PRIMARY KEY, sum int, note text); \
         CREATE TABLE rates (id int PRIMARY KEY, factor int); INSERT INTO rates VALUES (1, 2)",
    );
    let watch = place.watched();
    place.query("INSERT INTO accounts VALUES (1, 10, 'x')");
    place.query("UPDATE accounts SET sum = sum * factor FROM rates WHERE rates.id = accounts.id");
    place.query("UPDATE accounts SET note = 'y' WHERE id = 1");
    watch.end().unwrap();
    let text = place.text(&["of", "--table", "accounts", "--column", "sum"]);
    for part in [
        "2 transactions wrote sum of public.accounts",
        "UPDATE accounts SET sum = sum * factor",
        "wrote sum; read id, sum, rates.factor, rates.id",
        "wrote id, note, sum",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("'y'"), "{text}");
    let text = place.text(&["uses", "--table", "rates", "--column", "factor"]);
    assert!(
        text.contains("1 transaction read factor of public.rates"),
        "{text}"
    );
    let text = place.text(&["of", "--table", "accounts"]);
    assert!(
        text.contains("3 transactions changed public.accounts"),
        "{text}"
    );
    let text = place.text(&["of", "--table", "accounts", "--key", "1"]);
    assert!(
        text.contains("      read rates.factor, rates.id\n"),
        "{text}"
    );
    let nothing = place
        .stage
        .backstory(&["of", "--table", "rates", "--column", "factor"]);
    let output = { nothing }.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("no recorded statement wrote column factor of public.rates"),
        "{said}"
    );
}

#[test]
fn files_that_mariadb_loads_and_writes_have_their_columns() {
    let Some(place) = MariadbPlace::new("columns of files", &[]) else {
        return;
    };
    place.query("CREATE TABLE accounts (id int PRIMARY KEY, sum int, note varchar(20))");
    place.write("in.csv", "1,10\n");
    place.write("all.csv", "2\t20\tx\n");
    let watch = place.watched();
    let work = place.work.display();
    place.query(&format!(
        "LOAD DATA LOCAL INFILE '{work}/in.csv' INTO TABLE accounts FIELDS TERMINATED BY ',' \
         (id, @x) SET sum = @x + 1; \
         LOAD DATA LOCAL INFILE '{work}/all.csv' INTO TABLE bank.accounts; \
         SELECT note FROM accounts"
    ));
    watch.end().unwrap();
    let list = |names: &[&str]| -> Value {
        names
            .iter()
            .map(|name| format!("bank.accounts.{name}"))
            .collect()
    };
    assert_eq!(
        columns(&place, "accounts", "in.csv")["written"],
        list(&["id", "sum"])
    );
    assert_eq!(
        columns(&place, "accounts", "all.csv")["written"],
        list(&["id", "note", "sum"])
    );
}
