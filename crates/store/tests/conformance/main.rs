//! The conformance suite. Every engine keeps the promises of [`promises`], [`directories`],
//! [`facts`] and [`random`]. Every engine with files also keeps those of [`damage`] and
//! [`processes`]. [`postgresql_store`] has those of a store that a group shares. [`files`] has the promises of the SQLite store about its files.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod damage;
mod directories;
mod engines;
mod facts;
mod files;
mod graph;
#[cfg(feature = "postgresql")]
mod postgresql_server;
#[cfg(feature = "postgresql")]
mod postgresql_store;
mod processes;
mod promises;
mod random;
