//! `backstory`: records how every file came to be, and answers for it.
#![allow(dead_code)]
mod args;
mod error;
mod json;
mod text;
fn main() {}
