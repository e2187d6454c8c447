//! The event log. In: chunks of records from recorders and the guard. Out: a durable log, and its
//! events.
//!
//! - [`Writer`] appends frames. The kernel has a frame when the call returns.
//! - [`Log`] reads any prefix of a log, with any damage.
//! - [`Log::events`] yields the operations of all threads in one order of time.
//!   [`Log::preserved`] yields only the contents that were preserved.
//! - [`LogTail`] reads a log that grows, each record once.
//!
//! `docs/formats/log.md` draws the format. `backstory_abi.h` defines the records inside chunks.
//!
//! Absent: the meaning of events, which belongs to the graph.

mod births;
pub mod calendar;
mod causes;
pub mod chunk;
mod clock;
mod continued;
mod decode;
mod described;
pub mod dump;
pub mod error;
pub mod event;
mod exec;
pub mod frame;
pub mod identities;
mod index;
pub mod job_rank;
pub mod log;
pub mod map;
mod merge;
mod noted;
mod operation;
pub mod percent;
mod preserved;
mod read_records;
pub mod reason;
pub mod record;
pub mod run;
mod statement;
mod stored_frames;
mod stream;
mod tail;
pub mod tally;
mod value_pointers;
mod walk;
pub mod writer;

pub use dump::dump;
pub use error::Error;
pub use identities::Identities;
pub use log::{Damage, Log};
pub use merge::Events;
pub use preserved::LoggedContent;
pub use reason::Reason;
pub use tail::{LogTail, Patience};
pub use writer::Writer;
