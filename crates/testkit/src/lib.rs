//! Shared parts of the tests.
//!
//! In: the path of a built `backstory`. Out: temporary homes and stores, runs as an ordinary user,
//! and compiled fixture programs. An independent tracer (`strace`) is included, with the means to
//! compare its account with backstory's. Records of deep logs are written here byte by byte.
//!
//! Absent: product code. This crate shares no code with the crates that it tests, but for the
//! binary interface (`backstory-abi`) and the granularity of clocks (`backstory-files`).

pub mod answer;
pub mod busybox;
pub mod byte_engine;
pub mod corpus;
pub mod database_directory;
pub mod database_server;
pub mod database_watcher;
pub mod deep_records;
pub mod fixtures;
pub mod http;
pub mod mariadb;
pub mod need;
pub mod nfs_server;
pub mod oracle;
pub mod page;
pub mod ports;
pub mod postgres;
pub mod private_mounts;
pub mod procs;
pub mod program;
pub mod second_root;
pub mod snapshot;
pub mod ssh_server;
pub mod stage;
pub mod strace;
pub mod unfinished_run;
pub mod user;
