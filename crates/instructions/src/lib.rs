//! Redirects the instructions by which a program reads the time-stamp counter (`rdtsc`, `rdtscp`)
//! or identifies the processor (`cpuid`).
//!
//! In: a process that waits, and the code that is to answer. Out: where it has mapped files as
//! code, its memory has a jump in the place of each such instruction. The files stay as they are.
//!
//! Invariants:
//!
//! - An instruction that cannot be replaced for certain stays as it is, and is counted.
//! - The program goes on as if the instruction had been executed. All registers but those that it
//!   sets, the flags and the memory behind the stack pointer stay.
//!
//! Absent on purpose: code that is in no file, as that of a compiler in the program.

mod functions;
mod plan;
mod process;
mod stubs;

pub use plan::{Jump, Plan, plan};
pub use process::{Redirection, Redirector};
pub use stubs::Answering;
