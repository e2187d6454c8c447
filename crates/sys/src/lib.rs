//! The Linux calls that neither std nor rustix offers in the form needed here, each behind a safe
//! function.
//!
//! In: plain arguments. Out: what the kernel returned. A comment at each call says why it is sound.
//!
//! Invariant: this crate keeps no state but what a signal handler needs. Absent: records, runs, and
//! why a call is made.

mod call;
mod child;
mod descriptor;
mod failure;
mod fanotify;
mod file;
mod file_handle;
mod file_maker;
mod futex;
mod landlock;
mod likeness;
mod limits;
mod memory;
mod pidfd;
mod priority;
mod process;
mod rests;
mod seccomp;
mod signal;
mod thread;

pub mod address_space;
pub mod clock;
pub mod heap;
pub mod long_path;
pub mod mappings;
pub mod process_tree;
pub mod truncation;

pub use child::*;
pub use descriptor::*;
pub use failure::*;
pub use fanotify::*;
pub use file::*;
pub use file_handle::*;
pub use file_maker::*;
pub use futex::*;
pub use landlock::*;
pub use likeness::*;
pub use limits::*;
pub use memory::*;
pub use pidfd::*;
pub use priority::*;
pub use process::*;
pub use rests::*;
pub use seccomp::*;
pub use signal::*;
pub use thread::*;
