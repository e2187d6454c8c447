//! The claims of `docs/security.md`, each with a test that is named after it.

// A test stops at a failed expectation. The lint exempts only functions that are marked as tests.
#![allow(clippy::unwrap_used)]

#[path = "oracle/common.rs"]
mod common;
#[path = "security/hostile.rs"]
mod hostile;
#[path = "security/imports.rs"]
mod imports;
#[path = "security/others.rs"]
mod others;
#[path = "security/own_record.rs"]
mod own_record;
#[path = "security/page.rs"]
mod page;
#[path = "security/places.rs"]
mod places;
#[path = "security/terminal.rs"]
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
