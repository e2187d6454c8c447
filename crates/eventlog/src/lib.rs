//! In: chunks of slots from recorders and the guard. Out: a durable log, and the events in it.
pub mod event;
pub mod run;
