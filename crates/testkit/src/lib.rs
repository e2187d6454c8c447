//! What the tests share.
//!
//! In: the path of a built `backstory`. Out: temporary homes and stores, runs as an ordinary user, compiled fixture programs, and an
//! independent tracer (`strace`) with what is needed to compare its account with backstory's. Nothing here is part of the
//! product, and nothing here shares code with what it tests.

pub mod answer;
pub mod busybox;
pub mod fixtures;
pub mod need;
pub mod oracle;
pub mod page;
pub mod procs;
pub mod snapshot;
pub mod stage;
pub mod strace;
pub mod user;
