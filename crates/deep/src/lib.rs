//! The deep log: everything that entered and left the processes of a run.
//!
//! - [`DeepWriter`] appends chunks of deep records, as they lay in the arena.
//! - [`DeepLog`] reads any prefix of a deep log, with any damage. It yields the calls of one thread
//!   ([`DeepLog::thread_calls`]), or of one process by time ([`DeepLog::process_calls`]).
//!
//! `docs/formats/deep.md` is the definition. In: unchecked bytes. Invariant: no bytes
//! lead out of bounds, and a decompressed chunk is never larger than a chunk of the arena.
//!
//! Absent: what a call means, and the moment of writing, which belongs to `session`.

pub mod address;
pub mod call;
pub mod call_numbers;
mod clocks;
mod compact;
mod connections;
pub mod coverage;
pub mod damage;
pub mod digest;
pub mod error;
pub mod facts;
mod last_part;
pub mod log;
mod log_parts;
mod loop_turns;
mod merged;
mod read_meter;
mod record_sizes;
mod request_walk;
pub mod requests;
mod search;
pub mod shared_code;
mod starter;
mod stream;
mod stream_tail;
mod volume;
pub mod writer;

pub use call::{Call, Content, Section};
pub use coverage::DeepProgram;
pub use damage::DeepDamage;
pub use error::Error;
pub use facts::{DeepEnd, DeepHeader};
pub use last_part::last_part;
pub use log::{DeepLog, DeepProcess};
pub use log_parts::{LogPart, LogParts};
pub use loop_turns::{LoopTurn, MOST_TURNS};
pub use merged::ProcessCalls;
pub use read_meter::ReadMeter;
pub use requests::{Part, Request, Role};
pub use stream::ThreadCalls;
pub use stream_tail::StreamTail;
pub use volume::Volume;
pub use writer::{Compression, DeepWriter, leaves_room};
