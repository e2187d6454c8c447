//! Findings of the fuzzers stay fixed: the logs and messages of `fuzz/corpus` are read.

#[path = "../../../fuzz/src/postgres_log.rs"]
mod postgres_log;
#[path = "../../../fuzz/src/postgres_stream.rs"]
mod postgres_stream;

use backstory_testkit::corpus::replay;

#[test]
fn logs_of_the_corpus_are_read_on_behind_each_damage() {
    replay("postgres_log", postgres_log::run);
}

#[test]
fn messages_of_the_corpus_are_decoded_or_refused() {
    replay("postgres_stream", postgres_stream::run);
}
