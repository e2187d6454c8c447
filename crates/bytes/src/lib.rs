//! Byte-level provenance: which bytes of which files the bytes of a file came from, within a run.
//!
//! - [`ByteFlow`] reads the files that the byte engine wrote for a run, and follows bytes backwards
//!   through all processes, pipes and files of it.
//! - [`RangeSet`] is a set of bytes.
//!
//! `docs/formats/bytes.md` is the definition. In: unchecked files. Invariant: no content of a file
//! makes reading it panic, loop, or take more memory than a small multiple of the file.
//!
//! Absent: the engine itself (`bytes/`, another licence), and how several runs are joined, which is
//! the program's.
#![forbid(unsafe_code)]

mod error;
mod flow;
mod image;
mod numbers;
mod ranges;

pub use error::Error;
pub use flow::{ByteFlow, FlowKind, Origins, SourceBytes};
pub use image::{ActiveFunction, EntityFacts, EntityKind};
pub use ranges::RangeSet;
