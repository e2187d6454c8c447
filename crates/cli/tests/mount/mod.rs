//! `backstory mount`: a mounted directory behaves as the directory itself, and what any process
//! does there is recorded.
//!
//! All tests need root: only root may mount for several users. They mount below temporary
//! directories.
#![allow(clippy::unwrap_used)]

mod behind;
mod descriptors;
mod ending;
mod extended_attributes;
mod failed_changes;
mod handles;
mod kept_contents;
mod locks;
mod mapped;
mod mapped_origins;
mod messages;
mod mounted;
mod nfs_clients;
mod operations;
mod ordinary_users;
mod owners_and_modes;
mod passthrough;
mod programs;
mod recorded;
mod sparse;
