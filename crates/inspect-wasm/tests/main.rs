//! The tests of this crate: one program.
#![allow(clippy::unwrap_used)]

mod components;
mod filters;
