//! The record of a generated workload of MariaDB, whose true lineage is known.

use std::fs;

use crate::accuracy::{Accuracy, Dialect, SESSIONS, TABLES, Workload, assert_exact, compare};
use crate::place::DatabasePlace;

/// Records a workload in sessions at the same time, and compares the record with the truth.
fn measured(what: &str, transactions: u64, seed: u64) -> Option<(Accuracy, Accuracy)> {
    let place = DatabasePlace::of_mariadb(what, &[])?;
    for name in TABLES {
        place.query(&format!(
            "CREATE TABLE {name} (id int PRIMARY KEY, mark varchar(20)) ENGINE=InnoDB; \
             CREATE VIEW {name}_view AS SELECT * FROM {name}"
        ));
    }
    let watch = place.server.watched(&place.stage, &[]).unwrap();
    let workloads: Vec<Workload> = (0..SESSIONS)
        .map(|session| Workload::of(session, transactions, seed, Dialect::MariaDb))
        .collect();
    let mut clients = Vec::new();
    for (session, work) in workloads.iter().enumerate() {
        let script = place.work.join(format!("{session}.sql"));
        fs::write(&script, &work.script).unwrap();
        let line = format!("{} <{}", place.server.mariadb(), script.display());
        let client = place.stage.command("sh").args(["-c", &line]).spawn();
        clients.push(client.unwrap());
    }
    for mut client in clients {
        assert!(client.wait().unwrap().success());
    }
    let said = watch.end().unwrap();
    assert!(!said.contains("not complete"), "{said} {}", place.reasons());
    Some(compare(&place, &workloads))
}

#[test]
fn the_rows_of_a_generated_workload_of_mariadb_have_their_true_transactions() {
    let measured = measured("the accuracy of rows of MariaDB", 12, 1);
    measured.iter().for_each(assert_exact);
}

#[test]
#[ignore = "a long workload"]
fn the_rows_of_a_long_generated_workload_of_mariadb_have_their_true_transactions() {
    for seed in 2..5 {
        let measured = measured("the accuracy of many rows of MariaDB", 150, seed);
        measured.iter().for_each(assert_exact);
    }
}
