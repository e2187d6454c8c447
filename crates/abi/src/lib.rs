//! In: `include/backstory_abi.h`, the only definition. Out: the same layout in Rust, and bounded readers of untrusted bytes.
//!
//! A recorder inside a process, the guard's supervisor and the readers of a run's log agree on what stands here. Structures
//! are `repr(C)` and named as in the header without its `bs_`; constants lose their `BS_`. `tests/layout.rs` compiles the
//! header and compares every size, offset, constant and operation, and fails if the header has one that is not mirrored.
//!
//! Absent on purpose: any cast from bytes to structures. What a dying process left behind is read field by field.

pub mod constants;
pub mod ops;
pub mod read;
mod structs;

pub use constants::*;
pub use ops::{LIST, OPS, OpInfo, op, op_info};
pub use structs::{Arena, Chunk, Record, Who};
