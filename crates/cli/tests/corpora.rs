//! Findings of the fuzzers stay fixed: every file of `fuzz/corpus` is fed to its target, with the
//! compiler that builds the program.

#[path = "../../../fuzz/src/lib.rs"]
mod targets;

use backstory_testkit::corpus::replay;

#[test]
fn logs_of_the_corpus_are_read_or_refused() {
    replay("log", targets::log::run);
}

#[test]
fn deep_logs_of_the_corpus_are_read_or_refused() {
    replay("deep", targets::deep::run);
}

#[test]
fn graphs_of_the_corpus_are_folded_and_answer() {
    replay("fold", targets::fold::run);
}

#[test]
fn arenas_of_the_corpus_are_drained() {
    replay("arena", targets::arena::run);
}

#[test]
fn calls_of_the_corpus_are_read() {
    replay("call", targets::call::run);
}

#[test]
fn databases_of_the_corpus_are_opened_and_queried() {
    replay("database", targets::database::run);
}

#[test]
fn exports_of_the_corpus_are_read_or_refused() {
    replay("import", targets::import::run);
}

#[test]
fn logs_of_other_tools_in_the_corpus_are_imported_or_refused() {
    replay("foreign", targets::foreign::run);
}

#[test]
fn patterns_of_the_corpus_are_matched() {
    replay("text", targets::text::run);
}
