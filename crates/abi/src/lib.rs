//! The binary interface between the recorder, the supervisor and the readers of a run's log.
//!
//! In: `include/backstory_abi.h`, the only definition. Out: the same layout in Rust, and bounded
//! readers of untrusted bytes.
//!
//! Structures are `repr(C)` and named as in the header without its `bs_`. Constants lose their
//! `BS_`. `tests/layout.rs` compiles the header and compares every size, offset, constant and
//! operation. It fails if the header has one that is not mirrored.
//!
//! Absent on purpose: any cast from bytes to structures. The bytes that a dying process left are
//! read field by field.

pub mod constants;
pub mod deep;
mod function_structs;
pub mod ops;
pub mod read;
pub mod simulator_calls;
mod structs;

pub use constants::*;
pub use function_structs::{FunctionTable, Place, Signature, Sled, Target, Value};
pub use ops::{LIST, OPS, OpInfo, op, op_info};
pub use structs::{
    Arena, BrokerMessage, CallerIds, Chunk, DeepRecord, DeepSection, FilterCode, GuardRequest,
    LibrarySet, Programs, Record, Start, Verdict, Verdicts,
};
