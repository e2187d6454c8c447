//! The tests of this crate: one program.
#![allow(clippy::unwrap_used)]

mod corpus;
mod linting;
mod structure;
mod witness;
