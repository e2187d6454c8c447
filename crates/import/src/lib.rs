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
//! Each format is a feature of this crate. The lines of bpftrace and perf are read as those of
//! strace. Some documents have terms of PROV. These formats need the modules of others.
//!
//! Absent: stores, and the meaning of records, which belongs to the graph.

// A format alone does not use all of what formats share.
#![cfg_attr(not(feature = "all-formats"), allow(dead_code, unused_imports))]

#[cfg(feature = "auditd")]
mod audit;
mod beginning;
#[cfg(feature = "bpftrace")]
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
#[cfg(feature = "nextflow")]
mod nextflow;
#[cfg(feature = "openlineage")]
mod openlineage;
#[cfg(feature = "perf")]
mod perf;
mod pipe;
#[cfg(feature = "probe")]
mod probe;
mod process_ids;
#[cfg(any(
    feature = "openlineage",
    feature = "prov-json",
    feature = "ro-crate",
    feature = "spade"
))]
mod prov_json;
mod record_log;
mod remedy;
#[cfg(feature = "reprozip")]
mod reprozip;
#[cfg(feature = "ro-crate")]
mod ro_crate;
#[cfg(feature = "snakemake")]
mod snakemake;
#[cfg(feature = "spade")]
mod spade;
#[cfg(any(feature = "bpftrace", feature = "perf", feature = "strace"))]
mod strace;
mod tar;

pub use catalogue::{FORMATS, format};
pub use error::Error;
pub use format::{Findings, ImportFormat, ImportJob};
pub use importing::{
    ImportOptions, ImportedRun, MachineMode, import, options_number, unfinished_paths,
};
pub use inputs::{LogFile, LogFiles};
pub use pipe::{LogPipe, PipeEnd, PipeLimits, PipeLog};
pub use process_ids::ProcessIds;
pub use record_log::{CallingThread, RecordLog};
pub use remedy::remedy;
