//! Figures as a table, for `bench/runs`.

use std::fs::OpenOptions;
use std::io::Write;

/// Adds a row to the file that `BACKSTORY_MEASURE_OUT` names. A new file begins with the names of
/// the columns.
pub fn add(columns: &str, row: &str) {
    let Some(path) = std::env::var_os("BACKSTORY_MEASURE_OUT") else {
        return;
    };
    let present = std::fs::read_to_string(&path).unwrap_or_default();
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .unwrap();
    match present.lines().next() {
        None => writeln!(file, "{columns}").unwrap(),
        Some(first) => assert_eq!(first, columns, "the file is of another measurement"),
    }
    writeln!(file, "{row}").unwrap();
}
