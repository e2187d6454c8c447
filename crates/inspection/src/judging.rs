//! Asks a user's filter about nodes of a graph, in a worker process with limits.
//!
//! In: lines of JSON (crate `pipeline`, `judge.rs`). Out: the lines that the worker wrote. They are
//! of hostile origin. The filter is an expression, a command or a WebAssembly component. The worker
//! takes its own rights away, and then evaluates the filter or becomes it.
//!
//! Invariant: a filter that crashes, hangs or floods costs the caller a [`JudgeTrouble`] and a
//! limited time. The processes that a command started are ended with it.

use std::io;
use std::path::PathBuf;

use crate::asking::{self, AnswerLimits, NoAnswer};
use crate::question::{JudgeHead, Request};
use crate::{InspectionWorker, component};

/// The most bytes that a filter may answer about one batch of nodes.
pub const LONGEST_ANSWER: usize = 16 << 20;

/// The program that decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JudgeProgram {
    /// An expression in CEL.
    Expression(String),
    /// A command with its arguments.
    Command(Vec<String>),
    /// A file with a WebAssembly component.
    Component(PathBuf),
    /// The JSON schemas among the lines, each for the payloads after it.
    Schemas,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum JudgeTrouble {
    /// The worker is not installed.
    #[error(
        "{} is not installed beside this program: install it to use filters with expressions and plug-ins, and schemas",
        crate::WORKER
    )]
    NoWorker,
    /// A component could not be read.
    #[error("cannot read the component {}: {cause}", .path.display())]
    NoComponent {
        /// The component's file.
        path: PathBuf,
        /// The kernel's reason, or that the file is too large.
        cause: io::Error,
    },
    /// The worker could not be started.
    #[error("cannot start {}: {cause}", .program.display())]
    NotStarted {
        /// The worker.
        program: PathBuf,
        /// The kernel's reason.
        cause: io::Error,
    },
    /// The filter ended in another way than by `exit(0)`.
    #[error("it failed: {0}")]
    Crashed(String),
    /// The filter took too long.
    #[error("it took more than {0} s and was ended")]
    TooSlow(u64),
    /// The answer is too long.
    #[error("its answer has more than {} MiB, and it was ended", LONGEST_ANSWER >> 20)]
    TooLong,
}

/// Asks a filter, and waits for its answer.
///
/// # Errors
/// The filter gave no answer within its limits.
pub fn judge(program: &JudgeProgram, lines: &[u8]) -> Result<Vec<u8>, JudgeTrouble> {
    let worker = InspectionWorker::find().map_err(|_| JudgeTrouble::NoWorker)?;
    judge_by(&worker, program, lines)
}

/// Asks a filter in this worker, and waits for its answer.
///
/// # Errors
/// As [`judge`].
pub fn judge_by(
    worker: &InspectionWorker,
    program: &JudgeProgram,
    lines: &[u8],
) -> Result<Vec<u8>, JudgeTrouble> {
    let worker = worker.program();
    let mut head = JudgeHead::default();
    let mut module = None;
    match program {
        JudgeProgram::Expression(text) => head.expression = Some(text.clone()),
        JudgeProgram::Schemas => head.schemas = true,
        JudgeProgram::Command(command) => head.command.clone_from(command),
        JudgeProgram::Component(path) => {
            let cause = |cause| JudgeTrouble::NoComponent {
                path: path.clone(),
                cause,
            };
            module = Some(component::read_file(path).map_err(cause)?);
            head.component = true;
        }
    }
    let parts: Vec<&[u8]> = module.as_deref().into_iter().chain([lines]).collect();
    let limits = AnswerLimits {
        longest: LONGEST_ANSWER,
        patience: None,
    };
    asking::ask(worker, &Request::Judge(head), &parts, limits).map_err(|why| match why {
        NoAnswer::NotStarted(cause) => JudgeTrouble::NotStarted {
            program: worker.to_owned(),
            cause,
        },
        NoAnswer::TooSlow(seconds) => JudgeTrouble::TooSlow(seconds),
        NoAnswer::TooLong => JudgeTrouble::TooLong,
        NoAnswer::Crashed(how) => JudgeTrouble::Crashed(how),
    })
}
