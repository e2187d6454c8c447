//! The tests of this crate: one program.
#![allow(clippy::unwrap_used)]

mod after;
mod broker;
mod connections;
mod crash;
mod daemons;
mod death;
mod deep;
mod harness;
mod overwritten;
mod own_links;
mod preserve;
mod signals;
mod status;
