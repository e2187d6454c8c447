//! In: a command. Out: the event log of its run.

mod error;
pub mod guard;
mod options;
pub mod sink;

pub use error::Error;
pub use options::{GuardMode, IoUring, Lookups, Options, Recorded};
