//! Questions to small stores with known answers.
#![allow(clippy::unwrap_used)]

mod graph;
mod joins;
mod reference;
mod runs;
mod shapes;
