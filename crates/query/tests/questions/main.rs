//! Questions to small stores with known answers.
#![allow(clippy::unwrap_used)]

mod connections;
mod directory_renames;
mod graph;
mod joins;
mod newest;
mod reference;
mod runs;
mod shapes;
mod watch_gaps;
mod watched_clients;
