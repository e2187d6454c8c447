//! `backstory watch postgres`, with a real server of the test's own.

#![allow(clippy::unwrap_used)]

mod gaps;
mod lineage;
mod place;
