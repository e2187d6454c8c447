//! The Linux calls that neither std nor rustix offers in the form needed here, each behind a safe function.
//!
//! In: plain arguments. Out: what the kernel returned. Invariant: nothing here keeps state but what a signal handler needs.
//!
//! Absent: records, runs, and why a call is made.

pub mod address_space;
pub mod clock;
pub mod heap;
pub mod kernel;
pub mod long_path;
pub mod process;
pub mod process_tree;
pub mod truncation;
