//! Filters and the lineage of random graphs.

#![allow(clippy::unwrap_used)]

mod filtering;
mod graphs;
mod reachability;
