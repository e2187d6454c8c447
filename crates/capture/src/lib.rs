//! In: a command. Out: the event log of its run.

pub mod guard;
pub mod sink;
