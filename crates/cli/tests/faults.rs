//! Faults at any moment and at any write. The command is not disturbed, the store opens, earlier
//! runs are whole, and this run is reported truthfully.

// A test stops at a failed expectation. The lint exempts only functions that are marked as tests.
#![allow(clippy::unwrap_used)]

mod full;
mod kills;
mod sizes;
mod soak;
mod starts;

use crate::oracle::{common, corpus};
use backstory_testkit::answer::{self, Show};
use backstory_testkit::oracle::Bench;
use std::path::Path;

/// The store's answer about a run. `None` if it has no such run.
fn told(bench: &Bench, store: &Path, run: &str) -> Option<Show> {
    Some(answer::read(&bench.ask(store, &["show", "--json", run]).ok()?).unwrap())
}

/// True if `text`, an answer in JSON, names a file of this directory.
fn names(text: &[u8], directory: &Path, file: &str) -> bool {
    let path = format!("\"{}\"", directory.join(file).display());
    text.windows(path.len()).any(|w| w == path.as_bytes())
}
