//! Redirects the instructions by which a program reads the time-stamp counter (`rdtsc`, `rdtscp`)
//! or identifies the processor (`cpuid`).
//!
//! In: a process that waits at its beginning, and the code that is to answer. Out: the files that
//! it has mapped have a jump in the place of each such instruction.
//!
//! Invariants:
//!
//! - An instruction whose place is not certain stays as it is, and is counted.
//! - The program goes on as if the instruction had been executed. All registers but those that it
//!   sets, the flags and the memory behind the stack pointer stay.
//!
//! Absent on purpose: code that is no file of the program's beginning, as that of a compiler in the
//! program.

mod functions;
mod plan;
mod process;
mod stubs;

pub use plan::{Jump, Plan, plan};
pub use process::Redirector;
pub use stubs::Answering;
