//! Imports what other tools recorded.
//!
//! In: the log of another tool. Out: the log of a run, like any other in the store, whose header
//! says from which file it was made.
//!
//! A log is read three times: for its digest, to examine it, and to write the records. So the log
//! of a run is begun only if the file is in the right format. Memory does not grow with the log.
//!
//! Invariants:
//!
//! - Nothing is left in the store if an import fails.
//! - The same files with the same options give the same run id.
//! - Each gap of the other tool's log is a reason why the run is incomplete.
//!
//! Absent: stores, and the meaning of records, which belongs to the graph.

mod audit;
mod beginning;
mod bpftrace;
mod calls;
mod catalogue;
mod description;
mod error;
mod format;
mod importing;
mod inputs;
mod json;
mod lines;
mod nextflow;
mod openlineage;
mod pipe;
mod probe;
mod prov_json;
mod record_log;
mod remedy;
mod reprozip;
mod ro_crate;
mod snakemake;
mod spade;
mod strace;
mod tar;

pub use audit::ProcessIds;
pub use catalogue::{FORMATS, format};
pub use error::Error;
pub use format::{Findings, ImportFormat, ImportJob};
pub use importing::{
    ImportOptions, ImportedRun, MachineMode, import, options_number, unfinished_paths,
};
pub use inputs::{LogFile, LogFiles};
pub use pipe::{LogPipe, PipeEnd, PipeLog};
pub use record_log::{CallingThread, RecordLog};
pub use remedy::remedy;
