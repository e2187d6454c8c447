//! Runs real programs with the recorder, without a supervisor. The tests check the records, and
//! that the recorder changes nothing in the program.

// A failed step of a test is a panic.
#![allow(clippy::unwrap_used)]

mod children;
mod files;
mod harness;
mod library;
mod sanitized;
mod sanitizers;
mod threads;
mod unchanged;
