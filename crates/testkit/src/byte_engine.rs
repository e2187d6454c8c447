//! The byte engine, built for a test.

use std::path::Path;
use std::process::Command;

use crate::need::{needs, skipped};

/// Builds the byte engine into a directory. False if this machine lacks what it is built from, or
/// one of the further tools that the test needs.
///
/// # Panics
///
/// The build fails for another reason.
pub fn build(target: &Path, tools: &[&str]) -> bool {
    if !needs("the byte engine", &[&["valgrind", "gcc"], tools].concat()) {
        return false;
    }
    let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bytes/build");
    let made = Command::new(build).arg(target).output();
    let made = made.unwrap_or_else(|error| panic!("bytes/build: {error}"));
    let said = String::from_utf8_lossy(&made.stderr).into_owned();
    if said.contains("has no headers for tools") {
        skipped("the byte engine", &said);
        return false;
    }
    assert!(made.status.success(), "{said}");
    true
}
