//! The recorder at work in real programs, without a supervisor: what it logs, and that it changes nothing.

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
