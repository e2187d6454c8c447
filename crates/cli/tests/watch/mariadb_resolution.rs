//! Names in statements of MariaDB lead to the tables behind them.

use crate::watch::place::MariadbPlace;
use crate::watch::resolution::TABLES;

/// Statement by statement: definitions, and the statement that makes row 1 of `target`.
#[track_caller]
fn leads_to_base(what: &str, definitions: &str, statement: &str, possible: bool) {
    let Some(place) = MariadbPlace::new(what, &[]) else {
        return;
    };
    place.query(TABLES);
    place.query(definitions);
    let watch = place.watched();
    place.query("INSERT INTO base VALUES (1, 10); INSERT INTO aside VALUES (1)");
    place.query(statement);
    watch.end().unwrap();
    let row = ["--table", "target", "--key", "1"];
    let nodes = match possible {
        true => place.lineage(&[&row[..], &["--possible"]].concat()),
        false => place.lineage(&row),
    };
    let has = |name: &str| nodes.iter().any(|node| node.ends_with(name));
    assert!(has("/bank/target?id=1") && has("/bank/base"), "{nodes:?}");
    assert!(!has("/bank/aside"), "{nodes:?}");
}

#[test]
#[ignore = "a server of its own"]
fn a_view_of_a_view_of_mariadb_leads_to_its_table() {
    leads_to_base(
        "views of MariaDB",
        "CREATE VIEW low AS SELECT * FROM base; CREATE VIEW high AS SELECT id, x FROM low",
        "INSERT INTO target SELECT id, x FROM high",
        false,
    );
}

#[test]
#[ignore = "a server of its own"]
fn a_common_table_expression_of_mariadb_leads_to_its_table() {
    leads_to_base(
        "common table expressions of MariaDB",
        "SELECT 1",
        "INSERT INTO target WITH aside AS (SELECT id, x FROM base) SELECT id, x FROM aside",
        false,
    );
}

#[test]
#[ignore = "a server of its own"]
fn a_function_of_mariadb_leads_to_its_table() {
    leads_to_base(
        "functions of MariaDB",
        "CREATE FUNCTION top() RETURNS int READS SQL DATA RETURN (SELECT max(x) FROM base)",
        "INSERT INTO target VALUES (1, top())",
        false,
    );
}

#[test]
#[ignore = "a server of its own"]
fn the_branch_that_a_procedure_of_mariadb_took_leads_to_its_table() {
    leads_to_base(
        "procedures of MariaDB",
        "DELIMITER //\nCREATE PROCEDURE fill(way int) BEGIN DECLARE n int; \
           IF way = 1 THEN SELECT max(x) INTO n FROM base; \
           ELSE SELECT max(id) INTO n FROM aside; END IF; \
           INSERT INTO target VALUES (1, n); END//\nDELIMITER ;",
        "CALL fill(1)",
        false,
    );
}

#[test]
#[ignore = "a server of its own"]
fn a_row_that_a_trigger_of_mariadb_writes_leads_to_the_tables_that_it_read() {
    leads_to_base(
        "triggers of MariaDB",
        "CREATE TABLE event (id int PRIMARY KEY); \
         CREATE TRIGGER copies AFTER INSERT ON event FOR EACH ROW \
           INSERT INTO target SELECT id, x FROM base WHERE id = NEW.id",
        "INSERT INTO event VALUES (1)",
        false,
    );
}

#[test]
#[ignore = "a server of its own"]
fn prepared_statements_and_locked_tables_of_mariadb_lead_to_their_tables() {
    leads_to_base(
        "prepared statements of MariaDB",
        "SELECT 1",
        "PREPARE p FROM 'INSERT INTO target SELECT ?, x FROM base WHERE id = ?'; \
         SET @a = 1; LOCK TABLES target WRITE, base READ; EXECUTE p USING @a, @a; UNLOCK TABLES",
        false,
    );
}
