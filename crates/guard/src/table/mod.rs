//! The system call table: for every call what the guard does with it, and where its arguments lie.
//!
//! The filter and the decoder are both driven by this table, so they cannot disagree.

mod flushes;
mod numbers;
mod row;
mod rows;
mod rows32;
mod shape;
#[cfg(test)]
mod tests;
pub(crate) mod tracer;

pub use flushes::{FLUSHES, FlushRow, HoldRule, held_calls, hold_rule};
pub use numbers::{ARCH_I386, ARCH_X86_64, Abi, ROWS, X32_BIT};
pub use row::{GuardAction, NEW_NAMESPACE, TableRow, When};
pub use shape::{Arg, CWD, CallShape, LookupKind, MetadataKind, NONE, SocketEnd};
