//! The one path from this program to a worker: every question about a file of foreign origin takes
//! it.
//!
//! In: a request and its parts. Out: the bytes that the worker wrote, unchecked. The question lies
//! in a memory file that is the worker's standard input.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::Duration;

use crate::question::Request;
use crate::worker_process::{End, PROCESSOR_SECONDS, WorkerProcess, how, memory_file};

/// The limits of an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerLimits {
    /// The most bytes.
    pub longest: usize,
    /// The time after which the worker is killed, also if it waits for a processor.
    pub patience: Option<Duration>,
}

/// Why a worker gave no answer.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// It could not be started.
    NotStarted(io::Error),
    /// It took more than this many seconds.
    TooSlow(u64),
    /// Its answer was too long.
    TooLong,
    /// It ended in another way than by `exit(0)`: how.
    Crashed(String),
}

/// Asks a worker, and waits for its answer. A worker that leads a group ends with its children.
pub(crate) fn ask(
    program: &Path,
    request: &Request,
    parts: &[&[u8]],
    limits: AnswerLimits,
) -> Result<Vec<u8>, NoAnswer> {
    let line = request.line(parts).map_err(NoAnswer::NotStarted)?;
    let bytes: Vec<&[u8]> = std::iter::once(&line[..])
        .chain(parts.iter().copied())
        .collect();
    let input = memory_file(&bytes).map_err(NoAnswer::NotStarted)?;
    let leads_group = matches!(request, Request::Judge(_));
    let mut running =
        WorkerProcess::start(program, input, leads_group).map_err(NoAnswer::NotStarted)?;
    let wrote = running
        .written(limits.longest, limits.patience)
        .map_err(NoAnswer::NotStarted)?;
    let status = match wrote.end {
        End::Late(seconds) => return Err(NoAnswer::TooSlow(seconds)),
        End::Long => return Err(NoAnswer::TooLong),
        End::Ended(status) => status,
    };
    match (status.success(), status.signal()) {
        (true, _) => Ok(wrote.answer),
        (_, Some(libc::SIGXCPU)) => Err(NoAnswer::TooSlow(PROCESSOR_SECONDS)),
        _ => Err(NoAnswer::Crashed(how(status, &wrote.errors))),
    }
}
