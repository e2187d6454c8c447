//! In: a run's events. Out: its graph, through a [`model::Sink`]. Pure: no I/O, no clock, deterministic.
pub mod model;
