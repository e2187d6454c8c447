//! The claims of `docs/security.md`, each with a test that is named after it.

// A test stops at a failed expectation. The lint exempts only functions that are marked as tests.
#![allow(clippy::unwrap_used)]

mod hostile;
mod imports;
mod others;
mod own_record;
mod page;
mod places;
mod terminal;

/// The id of the one run that a store holds.
fn only_run(bench: &backstory_testkit::oracle::Bench, store: &std::path::Path) -> String {
    let log = String::from_utf8(bench.ask(store, &["log", "--json"]).unwrap()).unwrap();
    let id = log
        .split("\"run\":")
        .nth(1)
        .unwrap()
        .split('"')
        .nth(1)
        .unwrap();
    id.to_owned()
}
