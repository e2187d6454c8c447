//! Logs of `perf trace`.
//!
//! | module | what it does |
//! | --- | --- |
//! | `line` | splits a line: time, thread, call or event |
//! | `survey` | finds out, before the reading, which kinds of lines a log has |
//! | `ordered` | reads whole lines, in the order of time |
//! | `source` | follows the command, and turns calls into lines of strace |
//! | `threads` | the threads of the command, and how they end |
//! | `signatures` | the arguments of each call |
//! | `arguments` | turns the arguments of a call into those of strace |
//! | `descriptors` | concludes the descriptors of pipes, which perf does not print |
//!
//! perf prints names only if it was built with BPF skeletons and runs as root. Of the children of a
//! command, it prints them only with `-a`. Then the log has the whole machine, and the events of
//! the script tell which threads are the command's.

mod arguments;
mod descriptors;
mod line;
mod ordered;
mod signatures;
mod source;
mod survey;
mod threads;

use crate::beginning::has_line;
use crate::calls::TracingTool;
use crate::strace::{LineTool, read_lines};
use crate::{Error, Findings, ImportFormat, ImportJob, RecordLog};
use source::PerfSource;
use survey::Survey;

/// The script.
const SCRIPT: &str = include_str!("trace.sh");
const EXPECTED: &str =
    "a system call such as `0.045 ( 0.012 ms): cat/7 openat(dfd: CWD, filename: \"file\") = 3`";

/// perf, and its options.
const PERF: LineTool = LineTool {
    tool: TracingTool {
        name: "perf",
        selection: " (-e)",
        children: " (-a)",
        descriptors: "",
        strings: "",
    },
    every_call: false,
    relative: "the log has times since its beginning only; they are counted back from the time of the \
               log's file",
    expected: EXPECTED,
};

/// `perf`
pub(crate) struct PerfFormat;

impl ImportFormat for PerfFormat {
    fn name(&self) -> &'static str {
        "perf"
    }

    fn about(&self) -> &'static str {
        "a log of `perf trace` with names, best of the script that --print-script prints"
    }

    fn script(&self) -> Option<&'static str> {
        Some(SCRIPT)
    }

    fn is_like(&self, beginning: &[u8]) -> bool {
        has_line(beginning, |line| line::start(line).is_some())
    }

    fn read(
        &self,
        job: &ImportJob<'_>,
        known: Option<&Findings>,
        records: &mut RecordLog,
    ) -> Result<Findings, Error> {
        let file = job.only_file("a log of perf is one file: import each by itself")?;
        let survey = Survey::of(job.files)?;
        if !survey.has_lines {
            return Err(Error::OtherFormat {
                path: file.path.clone(),
                tool: "perf trace",
                line: 1,
                column: 1,
                expected: EXPECTED,
            });
        }
        if !survey.has_names {
            return Err(Error::WithoutNames {
                path: file.path.clone(),
            });
        }
        let mut source = PerfSource::open(job.files, survey)?;
        read_lines(job, known, records, &PERF, &mut source)
    }
}
