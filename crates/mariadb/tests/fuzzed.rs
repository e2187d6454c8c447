//! Findings of the fuzzers stay fixed: the logs and packets of `fuzz/corpus` are read.

#[path = "../../../fuzz/src/mariadb_log.rs"]
mod mariadb_log;
#[path = "../../../fuzz/src/mariadb_stream.rs"]
mod mariadb_stream;

use backstory_testkit::corpus::replay;

#[test]
fn logs_of_the_corpus_are_read_line_by_line() {
    replay("mariadb_log", mariadb_log::run);
}

#[test]
fn packets_of_the_corpus_are_decoded_or_refused() {
    replay("mariadb_stream", mariadb_stream::run);
}
