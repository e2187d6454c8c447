//! `serve`: real servers over stores of real runs. Their client also sends requests that no browser
//! sends.
#![cfg(feature = "serve")]
#![allow(clippy::unwrap_used)]

#[path = "serve/byte_marks.rs"]
mod byte_marks;
#[path = "serve/crowd.rs"]
mod crowd;
#[path = "serve/documented.rs"]
mod documented;
#[path = "serve/engines.rs"]
mod engines;
#[path = "serve/failures.rs"]
mod failures;
#[path = "serve/hostile_contents.rs"]
mod hostile_contents;
#[path = "serve/run_facts.rs"]
mod run_facts;
#[path = "serve/running.rs"]
mod running;
#[path = "serve/scenes.rs"]
mod scenes;
#[path = "serve/security.rs"]
mod security;
#[path = "serve/server.rs"]
mod server;
#[path = "serve/views.rs"]
mod views;
