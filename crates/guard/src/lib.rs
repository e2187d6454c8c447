//! The guard: a seccomp filter and what answers its notifications.
//!
//! In: a listener. Out: records, one or more for every watched call, wherever in a program it was made. The guard observes and
//! lets go on; it emulates nothing. It sees attempts, and concludes their outcome from the file system where that leaves no doubt.
//!
//! The table (`table`, `shape`, `rows`, `rows32`) says for every system call what is done with it. The filter is built from it; so is the way from
//! a notification to a record: `memory` and `decode` read the arguments, `caller` knows who asks and how it sees the file system
//! (`known` forgets who has ended),
//! `resolve` looks without ever waiting, `coming` says what is read or lost, `conclude` and `changes` draw the conclusion, `fields` and `write` make records of it. `holds`
//! asks for the descriptors of who has no recorder (`descriptors`). `preserve`
//! lets calls wait while contents are kept. `uring` reads the entries of rings (`uring_map`) and takes each for the call that does the
//! same (`uring_ops`). `shared` outlives the
//! supervisor in the keeper. `receivers` starts and ends the threads: `receiver` answers, `late` looks at what would have kept it waiting,
//! and `spare` at receivers that wait all the same.

mod ask;
mod caller;
mod changes;
mod coming;
mod conclude;
mod decode;
mod descriptors;
mod exits;
mod fields;
pub mod filter;
pub mod fuzz_entry;
mod holds;
mod hooks;
mod known;
mod late;
mod memory;
mod mounts;
mod over;
mod preserve;
mod receiver;
mod receivers;
mod record_writer;
mod resolve;
mod rows;
mod rows32;
mod rows_arm64;
mod shape;
mod shared;
mod spare;
mod standby;
pub mod table;
mod tracer;
mod uring;
mod uring_map;
mod uring_ops;
mod write;

pub use filter::{Filter, FilterSpec, InstallError};
pub use hooks::{
    Change, ChangeKind, Effort, Find, Found, Hooks, Keep, Kept, TooMuch, Waiting, Watch,
};
pub use receivers::Receivers;
pub use shared::{Notification, Shared, SharedMap, answer_pending, serve_plain, serve_waiting};
pub use spare::Looker;
