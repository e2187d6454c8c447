//! Judgements of stores in memory, on files in temporary directories.

#![allow(clippy::unwrap_used)]

#[path = "../../../query/tests/questions/graph.rs"]
#[allow(dead_code)] // The other tests use the rest.
mod graph;
#[path = "../../../workflow/tests/literal/scene.rs"]
mod scene;
mod state;
mod steps;
mod used;
mod views;
