//! Findings of the fuzzers stay fixed: every file of `fuzz/corpus` is fed to its target, with the
//! compiler that builds the program.

// A test stops at a failed expectation. The lint exempts only functions that are marked as tests.
#![allow(clippy::unwrap_used)]

#[path = "../../../fuzz/src/lib.rs"]
mod targets;

use std::fs;
use std::path::Path;

/// Feeds a target its corpus, and beginnings of the files in it that were made by hand, which have
/// names.
fn replay(target: &str, run: impl Fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let mut files = 0;
    for entry in fs::read_dir(&corpus).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&bytes)));
        assert!(done.is_ok(), "{target} breaks on {}", path.display());
        let named = path.file_name().is_some_and(|name| name.len() < 40);
        for end in (0..bytes.len().min(400)).step_by(7).filter(|_| named) {
            run(&bytes[..end]);
        }
        files += 1;
    }
    assert!(files > 0, "{} is empty", corpus.display());
}

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
