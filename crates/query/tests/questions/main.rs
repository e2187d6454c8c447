//! Questions asked of small stores whose answers are known.
#![allow(clippy::unwrap_used)]

mod graph;
mod joins;
mod reference;
mod runs;
mod shapes;
mod state;
