//! Logs of `strace`.
//!
//! | module | what it does |
//! | --- | --- |
//! | `lines` | reads lines in the order of time, of one file or of those of `-ff` |
//! | `line` | splits a line: thread, time, kind |
//! | `moments` | converts times |
//! | `tracer`, `births` | join interrupted calls, and find the parents of processes |
//! | `gaps` | says what the log does not hold, in strace's options |
//!
//! [`calls`](crate::calls) reads arguments and results, and turns calls into records.
//!
//! The tests' oracle has another reader of strace's text (`crates/testkit/src/strace`). It reads
//! one set of options only. It shares no code with this crate, because it judges this one, too.

mod births;
mod gaps;
mod line;
mod lines;
mod moments;
mod open_calls;
mod tracer;

use crate::beginning::has_line;
use crate::calls::TracingTool;
use crate::lines::LogLine;
use crate::{Error, Findings, ImportFormat, ImportJob, RecordLog};
use backstory_eventlog::Reason;
use line::Body;
use lines::LineSource;
use moments::{Moments, TimeKind};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use tracer::Tracer;

/// A log of another format is given up after this many lines.
const PATIENCE: usize = 1_000;
/// strace makes its log and starts the command within this time, in ns.
const START: i64 = 2_000_000_000;
/// A log is complete within this time after its last call, in ns.
const END: i64 = 60_000_000_000;

/// A tool whose lines are those of strace.
pub(crate) struct LineTool {
    /// The tool, and its options.
    pub(crate) tool: TracingTool,
    /// It has no way to leave calls out.
    pub(crate) every_call: bool,
    /// The warning about times that have no date.
    pub(crate) relative: &'static str,
    /// The text that a line should have.
    pub(crate) expected: &'static str,
}

/// The lines of a tool, in the order of time.
pub(crate) trait CallLines {
    /// Reads the next line into `line`. Returns the number of bytes, 0 at the end.
    fn next(&mut self, line: &mut LogLine) -> Result<u64, Error>;

    /// A thread was made.
    fn made(&mut self, _tid: u32) -> Result<(), Error> {
        Ok(())
    }

    /// Gaps of the source itself.
    fn gaps(&self) -> Vec<Reason> {
        Vec::new()
    }
}

/// `strace`
pub(crate) struct StraceFormat;

impl ImportFormat for StraceFormat {
    fn name(&self) -> &'static str {
        "strace"
    }

    fn about(&self) -> &'static str {
        "a log of `strace -f`, or all logs of `strace -ff`; best with -y -ttt -s 4096"
    }

    fn is_like(&self, beginning: &[u8]) -> bool {
        has_line(beginning, |line| {
            match line::body(line::prefix(line).body) {
                Body::Call { rest, open, .. } => open || has_result(rest),
                Body::Resumed { .. } | Body::Exited(_) | Body::Killed(_) => true,
                _ => false,
            }
        })
    }

    fn read(
        &self,
        job: &ImportJob<'_>,
        known: Option<&Findings>,
        records: &mut RecordLog,
    ) -> Result<Findings, Error> {
        let mut source = LineSource::open(job.files)?;
        read_lines(job, known, records, &gaps::STRACE, &mut source)
    }
}

/// True if the text after a call's parenthesis ends with a result: `) = 3`. Lines of a program in
/// some language look like calls, too.
fn has_result(rest: &[u8]) -> bool {
    memchr::memmem::rfind(rest, b" = ")
        .is_some_and(|at| rest[..at].trim_ascii_end().ends_with(b")"))
}

/// Reads the lines of a tool to their end.
pub(crate) fn read_lines(
    job: &ImportJob<'_>,
    known: Option<&Findings>,
    records: &mut RecordLog,
    tool: &LineTool,
    source: &mut dyn CallLines,
) -> Result<Findings, Error> {
    let moments = Moments::from(known.map_or(0, |known| known.time_base));
    let mut tracer = Tracer::new(records, moments, known, root(job));
    tracer.state.gaps.every_call = tool.every_call;
    if known.is_none()
        && let Some(cwd) = &job.cwd
    {
        tracer.state.findings.cwd = cwd.as_os_str().as_bytes().to_vec();
    }
    let mut line = LogLine::default();
    loop {
        let read = source.next(&mut line)?;
        if read == 0 || tracer.state.records.has_failed() {
            break;
        }
        (job.done)(read);
        tracer.state.gaps.cut_lines += usize::from(line.is_cut);
        tracer.state.gaps.is_cut_off |= line.is_last;
        if !line.is_cut {
            tracer.line(&line);
        }
        for made in tracer.take_made() {
            source.made(made)?;
        }
        let is_other = tracer.state.gaps.recognized == 0 && tracer.state.gaps.foreign >= PATIENCE;
        if is_other {
            break;
        }
    }
    tracer.end();
    match known {
        Some(known) => Ok(known.clone()),
        None => found(job, tracer, tool, source.gaps()),
    }
}

fn root(job: &ImportJob<'_>) -> Option<Vec<u8>> {
    job.root
        .as_ref()
        .map(|root| root.as_os_str().as_bytes().to_vec())
}

/// The findings of the first reading.
fn found(
    job: &ImportJob<'_>,
    tracer: Tracer<'_>,
    tool: &LineTool,
    own: Vec<Reason>,
) -> Result<Findings, Error> {
    let gaps = &tracer.state.gaps;
    if gaps.recognized == 0 {
        let (file, line, column) = gaps.first_foreign.unwrap_or((0, 1, 1));
        return Err(Error::OtherFormat {
            path: job
                .files
                .files
                .get(file)
                .map_or_else(PathBuf::new, |file| file.path.clone()),
            tool: tool.tool.name,
            line,
            column,
            expected: tool.expected,
        });
    }
    let mut findings = tracer.state.findings.clone();
    let moments = tracer.moments();
    let changed = job.files.changed();
    findings.time_base = moments.base_before(changed);
    findings.started = findings.started.saturating_add(findings.time_base);
    findings.ended = findings.ended.saturating_add(findings.time_base);
    findings.has_every_call = gaps.has_every_call();
    if !findings.has_every_call {
        // A descriptor may have been opened by a call that was left out.
        findings.descriptors.clear();
    }
    // A later call may have shown the directory.
    let is_guess = findings.cwd.is_empty();
    if findings.cwd.is_empty() {
        findings.cwd = job.files.directory().as_os_str().as_bytes().to_vec();
    }
    let directory = PathBuf::from(std::ffi::OsStr::from_bytes(&findings.cwd));
    findings.gaps = gaps.reasons(&tool.tool, is_guess.then_some(&directory));
    findings.gaps.extend(own);
    findings.warnings = gaps::time_warnings(moments, tool);
    let born_here = |born: i64| born <= findings.started + START;
    let written_here = (findings.ended - START..=findings.ended + END).contains(&changed);
    findings.is_of_this_machine = moments.kind() != TimeKind::Unknown
        && written_here
        && job.files.born().is_some_and(born_here);
    Ok(findings)
}
