//! The tests of this crate: one program.
#![allow(clippy::unwrap_used)]

mod damage;
mod golden;
mod log_parts;
mod loop_turns;
