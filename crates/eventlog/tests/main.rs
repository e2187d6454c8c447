//! The tests of this crate: one program.
#![allow(clippy::unwrap_used)]

mod common;
mod damage;
mod decode;
mod golden;
mod growing;
mod history;
mod hostile;
mod order;
mod properties;
mod speed;
