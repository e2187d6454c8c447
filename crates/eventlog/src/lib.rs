//! In: chunks of records from recorders and the guard. Out: a durable log, and the events in it.
//!
//! [`Writer`] appends frames: each is in the kernel's hands when the call returns. [`Log`] reads any prefix of a log and any
//! damage to it, and [`Log::events`] yields what all threads did in one order of time. The format is drawn in
//! `docs/formats/log.md`; the records inside chunks are defined by `backstory_abi.h`.
//!
//! Absent on purpose: what events mean. That is the graph's.

mod births;
mod causes;
pub mod chunk;
mod clock;
mod decode;
pub mod dump;
pub mod error;
pub mod event;
mod exec;
pub mod frame;
pub mod identities;
mod index;
pub mod log;
mod map;
mod merge;
pub mod reason;
pub mod record;
pub mod run;
mod stored_frames;
mod stream;
mod walk;
pub mod writer;

pub use dump::dump;
pub use error::Error;
pub use identities::Identities;
pub use log::{Damage, Log};
pub use merge::Events;
pub use reason::Reason;
pub use writer::Writer;
