//! The record of a generated workload of MariaDB, whose true lineage is known.

use backstory_testkit::mariadb::MariadbServer;

use crate::watch::accuracy::{Accuracy, Dialect, assert_exact, measured};

fn mariadb(what: &str, transactions: u64, seed: u64) -> Option<(Accuracy, Accuracy)> {
    measured::<MariadbServer>(what, Dialect::MariaDb, transactions, seed)
}

#[test]
fn the_rows_of_a_generated_workload_of_mariadb_have_their_true_transactions() {
    let measured = mariadb("the accuracy of rows of MariaDB", 12, 1);
    measured.iter().for_each(assert_exact);
}

#[test]
#[ignore = "a long workload"]
fn the_rows_of_a_long_generated_workload_of_mariadb_have_their_true_transactions() {
    for seed in 2..5 {
        let measured = mariadb("the accuracy of many rows of MariaDB", 150, seed);
        measured.iter().for_each(assert_exact);
    }
}
