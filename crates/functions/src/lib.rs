//! Which functions of a program are recorded.
//!
//! In: the patterns of `record --functions`, and the executable files and libraries that recorded
//! processes run. Out: for each file the functions that match, with the file and line of their
//! source. The recorder tests each call with a table of them (`bs_function_table`). If arguments
//! are recorded, the table also has the places and types of the parameters.
//!
//! Invariants:
//!
//! - A file is never trusted: a damaged one has fewer functions.
//! - Functions of different files have different numbers, for the whole run.
//!
//! Calls of a library that was compiled without hooks are redirected, if a pattern names its file.
//!
//! Absent: capture of calls (`recorder`), and the passing of tables to processes (`guard`,
//! `session`).

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod catalogue;
mod dwarf;
mod elf;
mod exports;
mod llvm_types;
mod mangled;
mod patterns;
mod ran_programs;
mod shapes;
mod signatures;
mod sources;
mod table;
mod unmatched;
mod value_table;

pub use catalogue::{FileTable, FunctionCatalogue};
pub use elf::{CodeFile, Function};
pub use exports::{PatternFinding, UnredirectedReason};
pub use patterns::{BadPattern, FunctionPatterns};
pub use ran_programs::RanPrograms;
pub use unmatched::UnmatchedPattern;
