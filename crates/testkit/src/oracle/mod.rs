//! The oracle: a command is run once under `strace` and once under `backstory record`, from the
//! same state of the same directory. The two accounts are compared.
//!
//! Invariant: `normal` is the only list of permitted differences between two right accounts.

pub mod case;
pub mod drops;
pub mod files;
pub mod normal;
pub mod processes;
pub mod verdict;

pub use case::{Bench, Case, How, Outcome, bash, program, sh, watch};
pub use verdict::{Account, Verdict};
