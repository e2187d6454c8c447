//! The tests of this crate: one program.
#![allow(clippy::unwrap_used)]

#[cfg(feature = "all-formats")]
mod cut;
mod importing;
#[cfg(feature = "perf")]
mod perf;
#[cfg(feature = "probe")]
mod probe;
