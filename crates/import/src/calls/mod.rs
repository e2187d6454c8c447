//! System calls that another tool recorded, whichever its format.
//!
//! In: calls with their arguments and results, one after the other. Out: records as the recorder
//! writes them.
//!
//! | module | what it does |
//! | --- | --- |
//! | `system_call`, `text` | a call, its arguments and its result, from strace's text |
//! | `constants`, `address` | the numbers of names, and the bytes of socket addresses |
//! | `processes`, `trace_state` | the processes of a trace, with their descriptors |
//! | `translation` | turns calls into records |
//! | `gaps` | says what a trace does not hold |
//!
//! Absent: the order of lines, the parents of processes, and times, which each format tells in its
//! own words.

mod address;
mod constants;
mod gaps;
mod processes;
mod system_call;
mod text;
mod trace_state;
mod translation;

pub(crate) use constants::flags;
pub(crate) use gaps::TracingTool;
pub(crate) use system_call::SystemCall;
pub(crate) use text::{Arg, Returned, TextReader, quoted};
pub(crate) use trace_state::TraceState;
pub(crate) use translation::translate;
