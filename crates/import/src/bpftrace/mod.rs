//! Logs of `calls.bt`, a script of bpftrace that backstory prints (`--print-script`).
//!
//! | module | what it does |
//! | --- | --- |
//! | `records` | splits the log into records, orders them, and turns them into lines of strace |
//!
//! The script prints each call with its numbers as the kernel has them. It follows the command and
//! all its children from the beginning, and leaves no call out that a run is made of.

mod records;

use crate::calls::TracingTool;
use crate::strace::{LineTool, read_lines};
use crate::{Error, Findings, ImportFormat, ImportJob, RecordLog};
use records::RecordSource;

/// The script.
const SCRIPT: &str = include_str!("calls.bt");
const EXPECTED: &str = "the first record of the script (backstory import bpftrace --print-script)";

/// bpftrace, and its options.
const BPFTRACE: LineTool = LineTool {
    tool: TracingTool {
        name: "bpftrace",
        selection: "",
        children: "",
        descriptors: "",
        strings: " (BPFTRACE_STRLEN=200)",
    },
    every_call: true,
    relative: "",
    expected: EXPECTED,
};

/// `bpftrace`
pub(crate) struct BpftraceFormat;

impl ImportFormat for BpftraceFormat {
    fn name(&self) -> &'static str {
        "bpftrace"
    }

    fn about(&self) -> &'static str {
        "a log of the script of bpftrace that --print-script prints"
    }

    fn script(&self) -> Option<&'static str> {
        Some(SCRIPT)
    }

    fn is_like(&self, beginning: &[u8]) -> bool {
        memchr::memmem::find(beginning, b"\x1ebackstory ").is_some()
    }

    fn read(
        &self,
        job: &ImportJob<'_>,
        known: Option<&Findings>,
        records: &mut RecordLog,
    ) -> Result<Findings, Error> {
        let file = job.only_file("a log of bpftrace is one file: import each by itself")?;
        let mut source = RecordSource::open(job.files)?;
        if !source.has_header()? {
            return Err(Error::OtherFormat {
                path: file.path.clone(),
                tool: "bpftrace",
                line: 1,
                column: 1,
                expected: EXPECTED,
            });
        }
        read_lines(job, known, records, &BPFTRACE, &mut source)
    }
}
