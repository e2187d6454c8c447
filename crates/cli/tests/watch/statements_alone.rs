//! `watch --rows off`: statements, clients and tables, from the log alone.

use backstory_testkit::database_server::DatabaseServer;
use backstory_testkit::mariadb::MariadbServer;
use backstory_testkit::postgres::PostgresServer;

use crate::watch::lineage::write_scripts;
use crate::watch::place::{DatabasePlace, MariadbPlace, PostgresPlace, has, succeeded};

const TABLES: &str = "CREATE TABLE accounts (id int PRIMARY KEY, sum int); \
    CREATE TABLE other (id int PRIMARY KEY)";
const WITHOUT_ROWS: [&str; 4] = ["--rows", "off", "--name", "blind"];
/// A server with this setting streams no row changes.
const NO_STREAM: &str = "wal_level = replica";
const NO_BINLOG: [&str; 2] = ["--skip-log-bin", "--binlog-format=STATEMENT"];
/// Any publication, slot or connection of replication.
const STREAMS: &str = "SELECT (SELECT count(*) FROM pg_publication) \
    + (SELECT count(*) FROM pg_replication_slots) + (SELECT count(*) FROM pg_stat_replication)";

/// The messages of a question that has no answer.
fn refused<S: DatabaseServer>(place: &DatabasePlace<S>, args: &[&str]) -> String {
    let mut command = place.stage.backstory(args);
    let output = command.current_dir(&place.work).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Records the scripts of two tables and an export, on a server that streams nothing.
fn record_scripts<S: DatabaseServer>(place: &DatabasePlace<S>, export: &str) {
    write_scripts(place);
    // These clients last until the watch has seen them, however busy the machine is.
    let line = |of: &str, client: &str| format!("{{ {of}; echo; eval \"$GATE\"; }} | {client}");
    let record = |line: &str, statement: &str| place.record_gated(line, statement, || ());
    record(&line("cat fill.sql", "$SQL"), "INSERT INTO accounts");
    place.record("$SQL <elsewhere.sql");
    record(&line("cat raise.sql", "$LOCAL"), "UPDATE accounts");
    let export_line = line(&format!("echo '{export};'"), "$SQL >report.csv");
    record(&export_line, export);
}

fn statements_lead_to_their_scripts<S: DatabaseServer>(place: &DatabasePlace<S>) {
    for question in [&["--table", "accounts"][..], &["report.csv"]] {
        let nodes = place.lineage(question);
        let scripts = ["fill.sql", "raise.sql", "elsewhere.sql"].map(|name| has(&nodes, name));
        assert_eq!(scripts, [true, true, false], "{nodes:?}");
        assert!(!nodes.iter().any(|node| node.contains('?')), "{nodes:?}");
    }
    let text = place.text(&["of", "--table", "accounts"]);
    for part in ["UPDATE accounts SET sum", "INSERT INTO accounts"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

fn the_record_says_that_it_has_no_rows<S: DatabaseServer>(place: &DatabasePlace<S>, said: &str) {
    assert!(!said.contains("not complete"), "{said} {}", place.reasons());
    let show = place.json(&["show", "blind"]);
    let id = show["run"].as_str().unwrap();
    assert_eq!(show["modes"]["rows"], "off", "{show}");
    assert_eq!(show["complete"], true, "{show}");
    let has_transactions = show["database"]["transactions"].as_u64() > Some(0);
    assert!(has_transactions, "{show}");
    let text = place.text(&["show", "blind"]);
    assert!(
        text.contains("--rows off") && !text.contains("what the peer did"),
        "{text}"
    );
    let row = ["of", "--table", "accounts", "--key", "42"];
    let error = refused(place, &row);
    for part in [id, "did not record rows", "--rows on"] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn without_rows_a_table_of_postgresql_leads_to_its_scripts_and_nothing_is_streamed() {
    let settings = [NO_STREAM, "max_wal_senders = 0"];
    let Some(place) = PostgresPlace::new("statements of PostgreSQL alone", &settings) else {
        return;
    };
    place.query(TABLES);
    let error = place.server.watched(&place.stage, &[]).err().unwrap();
    let error = error.to_string();
    assert!(
        error.contains("wal_level") && error.contains("--rows off"),
        "{error}"
    );
    let watch = place.server.watched(&place.stage, &WITHOUT_ROWS).unwrap();
    record_scripts(&place, "COPY accounts TO STDOUT");
    assert_eq!(place.query(STREAMS), "0\n");
    let said = watch.end().unwrap();
    statements_lead_to_their_scripts(&place);
    the_record_says_that_it_has_no_rows(&place, &said);
}

#[test]
fn without_rows_a_table_of_mariadb_leads_to_its_scripts_and_no_binlog_is_read() {
    let Some(place) = MariadbPlace::new("statements of MariaDB alone", &NO_BINLOG) else {
        return;
    };
    place.query(TABLES);
    let error = place.server.watched(&place.stage, &[]).err().unwrap();
    let error = error.to_string();
    assert!(
        error.contains("log_bin") && error.contains("--rows off"),
        "{error}"
    );
    let watch = place.server.watched(&place.stage, &WITHOUT_ROWS).unwrap();
    record_scripts(&place, "SELECT * FROM accounts");
    let dumps = "SELECT count(*) FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog%'";
    assert_eq!(place.query(dumps), "0\n");
    let said = watch.end().unwrap();
    statements_lead_to_their_scripts(&place);
    the_record_says_that_it_has_no_rows(&place, &said);
}

#[test]
fn without_rows_a_transaction_is_recorded_before_the_watch_ends() {
    let Some(place) = PostgresPlace::new("a watch without rows that is killed", &[NO_STREAM])
    else {
        return;
    };
    place.query(TABLES);
    let watch = place.server.watched(&place.stage, &WITHOUT_ROWS).unwrap();
    place.query("INSERT INTO accounts VALUES (1, 2)");
    place.wait_for_record("\"text\":\"INSERT INTO accounts");
    watch.kill().unwrap();
    let text = place.text(&["of", "--table", "accounts"]);
    assert!(text.contains("INSERT INTO accounts"), "{text}");
}

/// The end of a watch without rows after its server stopped.
fn stopped<S: DatabaseServer>(what: &str, settings: &[&str], stop: fn(&mut DatabasePlace<S>)) {
    let Some(mut place) = DatabasePlace::<S>::new(what, settings) else {
        return;
    };
    let mut watch = place.server.watched(&place.stage, &WITHOUT_ROWS).unwrap();
    stop(&mut place);
    watch.ended().unwrap();
    let because = place.reasons();
    assert!(because.contains("has a gap: statements"), "{because}");
    assert!(!because.contains("row changes"), "{because}");
}

#[test]
fn without_rows_the_end_of_a_postgresql_server_ends_the_watch() {
    stopped::<PostgresServer>("the end of PostgreSQL", &[NO_STREAM], |place| {
        let stop = ["-m", "fast", "-w", "stop"];
        place.server.control(&place.stage, &stop).unwrap();
    });
}

#[test]
fn without_rows_the_end_of_a_mariadb_server_ends_the_watch() {
    stopped::<MariadbServer>("the end of MariaDB", &NO_BINLOG, |place| {
        place.server.stop().unwrap();
    });
}

#[test]
fn functions_and_triggers_of_postgresql_possibly_change_their_tables_without_rows() {
    let Some(place) = PostgresPlace::new("functions without rows", &[NO_STREAM]) else {
        return;
    };
    place.query(TABLES);
    place.query(
        "CREATE FUNCTION add() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN INSERT INTO other VALUES (NEW.id); RETURN NEW; END $$; \
         CREATE TRIGGER fired AFTER INSERT ON accounts FOR EACH ROW EXECUTE FUNCTION add(); \
         CREATE FUNCTION pay(int) RETURNS void LANGUAGE sql AS \
         'UPDATE accounts SET sum = sum + 1 WHERE id = $1'",
    );
    let watch = place.server.watched(&place.stage, &WITHOUT_ROWS).unwrap();
    place.query("INSERT INTO accounts VALUES (1, 2)");
    place.query("SELECT pay(1)");
    watch.end().unwrap();
    for (table, statement) in [
        ("other", "INSERT INTO accounts"),
        ("accounts", "SELECT pay(1)"),
    ] {
        let text = place.text(&["of", "--possible", "--table", table]);
        let mut lines = text
            .lines()
            .filter(|line| line.contains("possibly written"));
        assert!(lines.any(|line| line.contains(statement)), "{text}");
    }
}

#[test]
fn the_history_of_a_row_names_the_runs_that_did_not_record_rows() {
    let Some(place) = PostgresPlace::new("runs with and without rows", &[]) else {
        return;
    };
    place.query(TABLES);
    let watch = place.watched();
    place.query("INSERT INTO accounts VALUES (42, 2)");
    watch.end().unwrap();
    let watch = place.server.watched(&place.stage, &WITHOUT_ROWS).unwrap();
    place.query("UPDATE accounts SET sum = 3 WHERE id = 42");
    watch.end().unwrap();
    let row = ["of", "--table", "accounts", "--key", "42", "--json"];
    let output = place.stage.backstory(&row).output().unwrap();
    succeeded(&output);
    let said = String::from_utf8_lossy(&output.stderr);
    let blind = place.json(&["show", "blind"])["run"].clone();
    let blind = blind.as_str().unwrap();
    assert!(
        said.contains(blind) && said.contains("--rows off"),
        "{said}"
    );
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let history = answer["history"].as_array().unwrap();
    assert_eq!(history.len(), 1, "{history:?}");
}
