//! The conformance suite: what every engine promises ([`promises`], [`directories`], [`facts`],
//! [`random`]), and what the SQLite store promises of its files ([`files`], [`processes`]).
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod directories;
mod engines;
mod facts;
mod files;
mod graph;
mod processes;
mod promises;
mod random;
