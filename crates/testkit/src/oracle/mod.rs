//! The oracle: a command is run once under `strace` and once under `backstory record`, from the same state of the same directory, and the
//! two accounts are compared.
//!
//! Invariant: whatever the two runs may differ in without either being wrong is listed in `normal`, and nowhere else.

pub mod case;
pub mod drops;
pub mod files;
pub mod normal;
pub mod processes;
pub mod verdict;

pub use case::{Bench, Case, How, Outcome, bash, program, sh, watch};
pub use verdict::{Account, Verdict};
