//! In: a command. Out: the event log of its run.
//!
//! Three processes stand beside the command. The *launcher* (`launcher`) is the one the shell started; it stands for the command and
//! exits with it. The *keeper* (`keeper`) is its child and outlives the supervisor. The *supervisor* (`supervisor`), the keeper's
//! child, starts the command (`launch`), drains the arena (`arena`, `stock`, `drain`) into the log, answers the guard (`guarding`,
//! `guard`) and ends the log (`watch`).
//!
//! Absent: what records mean, and everything about graphs and stores.

mod aftermath;
mod answering;
mod arena;
pub mod clock;
mod control;
mod deep;
#[doc(hidden)]
pub mod doors;
mod drain;
mod error;
pub mod guard;
mod guarding;
mod header;
mod heap;
mod identity_resolver;
mod keeper;
mod launch;
mod launcher;
mod library;
mod options;
mod origin;
mod preserve;
mod quiet;
mod record;
mod recover;
mod redact;
mod report;
mod room;
mod setting;
pub mod sink;
mod stock;
mod supervisor;
mod sweep;
mod sys;
mod tree;
mod truncated;
mod watch;

pub use aftermath::spawn as spawn_in_background;
pub use clock::Moment;
pub use error::Error;
pub use heap::prepare_for_an_answer;
pub use identity_resolver::IdentityResolver;
pub use library::library_path;
pub use options::{Contents, GuardMode, IoUring, Lookups, Options, Recorded};
pub use record::{end_by_signal, record};
pub use recover::{is_recording, recover};
pub use sweep::sweep;
pub use sys::{outlive_interrupts, when_asked_to_end};
