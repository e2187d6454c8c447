//! Moves runs between stores.
//!
//! In: two stores, one of them behind a stream of bytes. Out: the receiving store has the runs that
//! it lacked, with the contents of their files, their annotations and their signatures.
//!
//! ```text
//!   StorePeer ── Transfer ── Connection ═══ bytes (ssh, pipe) ═══ serve ── StorePeer
//!   this store   push, pull   requests                            replies   other store
//!        │                                                                     │
//!     outgoing: archives of runs                              incoming: checks, then adds
//! ```
//!
//! - An archive has the form of an exported file ([`backstory_contents::transfer`]), and `store
//!   export` and `store import` use the same code ([`outgoing`], [`Incoming`]).
//! - [`BucketPeer`] is a store in an object storage: a process here serves it.
//! - [`serve`] and [`Connection`] are the two ends of the protocol in `docs/formats/exchange.md`.
//!
//! Invariants:
//!
//! - A run is in the receiving store wholly or not at all: its log gets its name last.
//! - Nothing that comes in is trusted. A name is a run's id or a digest, and never a path. A
//!   content has its digest. A log is of the run that its name says.
//! - A run never replaces another. Two logs with one id and different digests stay apart.
//! - Annotations are merged, so that both stores agree on each value:
//!   [`backstory_store::annotation_history`].
//! - Memory is bounded: lists come in pages, contents and logs pass through files.
//!
//! Absent: the database of the other store, which it makes itself; removals, which stay local.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod archive_stream;
mod bucket;
mod connection;
mod error;
mod far_program;
mod frame;
mod incoming;
mod message;
pub mod outgoing;
mod parcel;
mod peer;
pub mod program_run;
mod remote_address;
mod run_digests;
mod service;
pub mod signature;
mod ssh_command_line;
mod store_peer;
mod temporary_file;
mod transfer;

pub use bucket::{BucketAddress, BucketPeer};
pub use connection::Connection;
pub use error::{Error, Result};
pub use far_program::{FarHost, FarProgram, OwnProgram};
pub use incoming::{Accepted, Incoming};
pub use message::RunEntry;
pub use parcel::Parcel;
pub use peer::{Expected, Peer};
pub use remote_address::{RemoteAddress, RemoteProcess, RemoteProgram};
pub use run_digests::RunDigests;
pub use service::serve;
pub use signature::AllowedSigners;
pub use ssh_command_line::{Purpose, SshCommandLine};
pub use store_peer::{StorePeer, Upkeep};
pub use temporary_file::remove_left_files;
pub use transfer::{Direction, Outcome, Transfer};
