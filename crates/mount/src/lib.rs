//! A file system that passes everything through to a directory. It records what any process does
//! below the mount: daemons, containers, other users, programs that `record` did not start.
//!
//! In: a directory, a mount point, the options of a run. Out: a run like any other.
//!
//! ```text
//! kernel ── request ──> filesystem ──> names, contents, metadata, listing
//!                            │             │ (inode_table, open_files, file_maker)
//!                            │             └──> the directory, by descriptors
//!                            ├──> exported ──> known_places      where is the file of a handle?
//!                            ├──> preserving ──> SourcePreserver  contents before they change
//!                            ├──> CallerTable      who calls? (crate callers)
//!                            └──> OperationLog ──> arena ──> log   (session: SourceRun)
//! ```
//!
//! Invariants:
//!
//! - An operation is in the arena before its caller continues.
//! - A thread that serves requests never waits for another process: an observer looks at callers,
//!   with a time limit. A caller that it does not see in time is unknown.
//! - Every operation goes to the directory by descriptors, so that none can leave it.
//! - In a run that stores contents, a content is preserved and recorded before it changes.
//! - The file system keeps no data of its own: after an answer, the data are where a program
//!   without the mount would have put them.
//!
//! Absent: what a process does outside of the mount, its pipes and sockets, and where its arguments
//! come from.

mod attachment;
mod attributes;
mod contents;
mod descriptor_budget;
mod error;
mod exported;
mod file_maker;
mod filesystem;
mod inode_table;
mod known_places;
mod listing;
mod metadata;
mod mount_table;
mod names;
mod open_files;
mod passthrough;
mod preserving;
mod pruning;
mod recorded_tree;
mod replies;
mod session_watch;
mod writer_count;

pub use error::Error;
pub use passthrough::PassthroughRefusal;
pub use session_watch::{MountNews, MountOptions, mount};
