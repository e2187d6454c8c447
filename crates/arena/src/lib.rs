//! The arena of a run: shared memory, cut into chunks that records are written into, and the supply of free chunks.
//!
//! Absent: what records mean, and when a chunk is drained.

mod arena;
mod chunk_supply;
mod error;
mod record_sink;

pub use arena::{Arena, CHUNK};
pub use chunk_supply::{ChunkSupply, ChunkWriter};
pub use error::Error;
pub use record_sink::RecordSink;
