//! The tests of this crate: one program.
#![allow(clippy::unwrap_used)]

mod tones;
