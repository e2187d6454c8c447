//! Tests of recorded programs, watched servers and mounted directories. `cli` is a program of its
//! own, so that two processors compile both at once.
#![allow(clippy::unwrap_used)]

mod corpora;
mod faults;
mod fidelity;
mod filesystem;
mod identity;
mod import;
mod kill;
mod memory;
mod mount;
mod oracle;
mod reasons_page;
mod security;
mod serve;
mod shell;
mod watch;
