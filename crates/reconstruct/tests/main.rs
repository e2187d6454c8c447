//! The tests of this crate: one program.
#![allow(clippy::unwrap_used)]

mod child_ends;
mod clients;
mod connections;
mod gaps;
mod handlers;
mod interrupted;
mod message_groups;
mod native_waits;
mod part;
mod positions;
mod sent_bytes;
mod streams;
mod vague;
mod whole;
mod written_log;
