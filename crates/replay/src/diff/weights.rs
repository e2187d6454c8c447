//! The weight of a difference: how likely it is the cause that a user looks for.
//!
//! A changed source weighs more than a changed library, and a library more than the terminal's
//! variables. A command whose caller differs already is a consequence of the caller. A command that
//! both sides ran is no consequence of callers that the other side lacks. Such callers only
//! launched it, as `make` and `rerun` launch the same compiler. A shell that only started a command
//! of its side gives way to that command.

use std::path::Path;

use backstory_ordering::SmallSort;
use backstory_workflow::ownership::Ownership;
use backstory_workflow::tools::knowledge;

use super::command_callers::CommandCallers;
use super::{DiffSide, Difference, DifferenceKind, UnknownFile};

/// How likely a difference is the cause that a user looks for. The order is that of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DifferenceWeight {
    /// A file or parameter of the user's own, or the recorded command itself.
    Own,
    /// A command below the recorded one, a variable, a listed directory.
    Command,
    /// A file of a package or of the system, the machine.
    System,
    /// Caches, variables of the terminal or the session, launchers of a command that both sides
    /// ran, and shells that only started another command.
    Noise,
    /// It follows from another difference: a part of a differing command.
    Consequence,
    /// It is an output or an end, and the cause of nothing.
    Result,
}

impl DifferenceWeight {
    /// The word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            DifferenceWeight::Own => "own",
            DifferenceWeight::Command => "command",
            DifferenceWeight::System => "system",
            DifferenceWeight::Noise => "noise",
            DifferenceWeight::Consequence => "consequence",
            DifferenceWeight::Result => "result",
        }
    }
}

/// The names of the inputs of the user's own among files that could not be compared, the first used
/// one first.
pub(super) fn own_inputs(a: &DiffSide, b: &DiffSide, unknown: &[UnknownFile]) -> Vec<Vec<u8>> {
    let projects = a.runs.iter().chain(&b.runs).map(|run| &*run.summary.cwd);
    let mut ownership = Ownership::new(Path::new("/"), projects);
    let inputs = unknown.iter().filter(|file| !file.is_output);
    let mut own: Vec<&UnknownFile> = inputs
        .filter(|file| file.paths.iter().any(|path| ownership.is_own(path)))
        .collect();
    own.sort_small_by_key(|file| file.at);
    own.into_iter().map(|file| file.name.clone()).collect()
}

/// Weighs all differences between two sides.
pub(super) fn weigh(a: &DiffSide, b: &DiffSide, differences: &mut [Difference]) {
    let projects = a.runs.iter().chain(&b.runs).map(|run| &*run.summary.cwd);
    let mut ownership = Ownership::new(Path::new("/"), projects);
    let callers = CommandCallers::of(a, b, differences, &mut ownership);
    let weights: Vec<DifferenceWeight> = differences
        .iter()
        .map(|difference| match difference.kind {
            DifferenceKind::Output | DifferenceKind::Exit | DifferenceKind::Metric => {
                DifferenceWeight::Result
            }
            DifferenceKind::Parameter => DifferenceWeight::Own,
            DifferenceKind::Machine => DifferenceWeight::System,
            DifferenceKind::Environment if is_of_session(&difference.of) => DifferenceWeight::Noise,
            DifferenceKind::Environment => DifferenceWeight::Command,
            DifferenceKind::Arguments
            | DifferenceKind::Command
            | DifferenceKind::Directory
            | DifferenceKind::Variable => match () {
                () if callers.is_mere_caller(difference) => DifferenceWeight::Noise,
                () if callers.is_of_command(difference) => DifferenceWeight::Own,
                () if callers.has_other_caller(difference) => DifferenceWeight::Consequence,
                () if is_session_variable_of_program(difference) => DifferenceWeight::Noise,
                () => DifferenceWeight::Command,
            },
            DifferenceKind::Program | DifferenceKind::Library | DifferenceKind::Input => {
                let own = difference.paths.iter().any(|path| ownership.is_own(path));
                let is_made = |side: &DiffSide| side.outputs.contains_key(&difference.of);
                match own {
                    // A file that only commands of one side use differs because they do.
                    _ if difference.is_of_one_side()
                        && callers.is_of_commands_alone(difference) =>
                    {
                        DifferenceWeight::Consequence
                    }
                    // A result of an earlier run, which one side made again.
                    true if is_made(a) || is_made(b) => DifferenceWeight::Command,
                    true => DifferenceWeight::Own,
                    false => DifferenceWeight::System,
                }
            }
            DifferenceKind::Listing => match ownership.is_own(&difference.of) {
                true => DifferenceWeight::Command,
                false => DifferenceWeight::Noise,
            },
        })
        .collect();
    for (difference, weight) in differences.iter_mut().zip(weights) {
        difference.weight = weight;
        // Caches, and records that a builder keeps of its own work, are no results.
        let is_own = difference.paths.iter().any(|path| ownership.is_own(path));
        if difference.kind == DifferenceKind::Output && !is_own {
            difference.is_intermediate = true;
        }
    }
}

/// True for a variable that the terminal or the session sets, and programs hardly look at.
fn is_of_session(variable: &[u8]) -> bool {
    let mut names = knowledge().shell.session_variables.iter();
    names.any(|name| match name.strip_suffix('*') {
        Some(start) => variable.starts_with(start.as_bytes()),
        None => variable == name.as_bytes(),
    })
}

/// The subject of a [`DifferenceKind::Variable`] is `NAME of PROGRAM`.
fn is_session_variable_of_program(difference: &Difference) -> bool {
    let end = difference.of.windows(4).position(|part| part == b" of ");
    difference.kind == DifferenceKind::Variable
        && end.is_some_and(|end| is_of_session(&difference.of[..end]))
}
