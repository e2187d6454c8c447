//! `backstory watch postgres`, with a real server of the test's own.

#![allow(clippy::unwrap_used)]

mod accuracy;
mod gaps;
mod lineage;
mod place;
mod resolution;
