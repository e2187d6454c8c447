//! What every store promises, asked of each of them; and what the SQLite store promises of its files.
#![allow(clippy::unwrap_used)]

mod files;
mod graph;
mod processes;
mod promises;
mod random;
