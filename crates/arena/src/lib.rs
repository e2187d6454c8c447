//! The arena of a run: shared memory, cut into chunks for records, and the supply of free chunks.
//!
//! Absent: the meaning of records, and the moment at which a chunk is drained.

mod arena;
mod chunk_supply;
mod error;
mod mapping;
mod record_sink;

pub use arena::Arena;
pub use chunk_supply::{ChunkSupply, ChunkWriter};
pub use error::Error;
pub use mapping::{
    ArenaMapping, CHUNK, keeper_socket_path, log_of_arena, remove_sockets, socket_path,
};
pub use record_sink::RecordSink;
