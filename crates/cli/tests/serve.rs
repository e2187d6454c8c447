//! `serve`: real servers over stores of real runs. Their client also sends requests that no browser
//! sends.
#![cfg(feature = "serve")]
#![allow(clippy::unwrap_used)]

mod byte_marks;
mod crowd;
mod documented;
mod engines;
mod failures;
mod hostile_contents;
mod run_facts;
mod running;
mod scenes;
mod security;
mod server;
mod views;
