//! What every store promises, asked of each of them.

#![allow(clippy::unwrap_used)]

mod graph;
mod promises;
mod random;
