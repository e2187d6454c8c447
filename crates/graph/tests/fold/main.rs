//! The graph of many small runs.
//!
//! One program, because the optimizer works on each test program of this crate.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod common;
mod connections;
mod cut_off;
mod described;
mod descriptor_lists;
mod directories;
mod disclosed;
mod function_buffers;
mod functions;
mod looks;
mod mounts;
mod names;
mod removed_links;
mod resources;
mod scenes;
mod sharing;
mod speed;
mod taint;
