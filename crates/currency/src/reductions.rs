//! The named rules that make influence precise: each leaves out what carries nothing.
//!
//! | rule | what is left out |
//! | --- | --- |
//! | driver | what a builder looks at to choose which commands run; the statuses of commands that succeeded |
//! | status | the status 0 of a program that ends with another one only after an error |
//! | script | statuses of a shell's children, if its text uses none |
//! | passed on | a file that a shell opened as the standard input of a program only |
//! | attribute | a look-up of a file whose bytes the same activity had begun to read |
//! | replaced | a look-up of a file by the program that replaces it |
//! | inherited | a pipe that a program inherited and was not seen to read, if it is not its standard input |
//! | record | a builder's own records of its work |
//! | output | pipes of a builder that only prints what its commands print |
//! | tokens | pipes from which a builder reads what it wrote itself (the jobserver of make) |
//!
//! `docs/influence.md` has the justification of each rule. Without a rule, everything counts.

use backstory_eventlog::event::Time;
use backstory_graph::model::{Certainty, Edge, EntityKind, Informed, Relation};
use backstory_workflow::steps::{is_bookkeeping, is_one, is_shell};
use backstory_workflow::tools::knowledge;

use crate::loaded_runs::{Heard, LoadedRun};

/// True if what the activity made or started can depend on this use.
pub fn takes_in(run: &LoadedRun, at: usize, edge: &Edge) -> bool {
    let relation = edge.relation;
    if !relation.is_use() {
        return false;
    }
    let entity = run.recording.entity(edge.entity);
    if is_bookkeeping(&run.recording, at, &entity.path) {
        return false;
    }
    let is_pipe = entity.kind == EntityKind::Pipe;
    if is_pipe && edge.certainty == Certainty::Possible && !run.is_standard_input(at, edge.entity) {
        return false;
    }
    if is_look(relation) && run.replaces(at, edge.entity) {
        return false;
    }
    if relation == Relation::Read && run.passes_on(at, edge.entity) {
        return false;
    }
    if !run.is_driver(at) {
        return true;
    }
    match relation {
        Relation::Read | Relation::Execute => {
            let is_printed = || is_program(run, at, &knowledge().programs.printing_builders);
            !(is_pipe && (run.has_written(at, edge.entity) || is_printed()))
        }
        Relation::Missing | Relation::List => true,
        _ => false,
    }
}

/// The moment from which on a look-up of a file carries nothing: the activity begins to read its
/// bytes. Programs that use times go on using what they looked at.
pub fn end_of_look(run: &LoadedRun, at: usize, edge: &Edge) -> Option<Time> {
    if edge.relation != Relation::Stat || is_program(run, at, &knowledge().programs.uses_times) {
        return None;
    }
    let edges = run.recording.edges[at].iter();
    let reads = edges.filter(|other| {
        let is_read = matches!(other.relation, Relation::Read | Relation::Execute);
        is_read && other.entity == edge.entity
    });
    reads.map(|read| read.interval.start).min()
}

fn is_look(relation: Relation) -> bool {
    matches!(
        relation,
        Relation::Stat | Relation::Link | Relation::List | Relation::Missing
    )
}

/// True if what the activity made or started until a moment can depend on what it heard.
/// [`Time::MAX`]: its own exit status counts, too.
pub fn hears(run: &LoadedRun, at: usize, heard: &Heard, until: Time) -> bool {
    match heard.why {
        Informed::Wait => {
            let child = &run.recording.activities[heard.from];
            let is_success = child.exit == Some(0);
            if is_success && (run.is_driver(at) || fails_only_by_error(run, heard.from)) {
                return false;
            }
            let ends = until == Time::MAX;
            ends || !is_shell(&run.recording, at) || !run.texts.ignores_statuses(&run.recording, at)
        }
        Informed::Signal => true,
        // The search follows the parent.
        Informed::Fork | Informed::Exec => false,
    }
}

fn is_program(run: &LoadedRun, at: usize, known: &[String]) -> bool {
    let program = run.recording.activities[at].exec_path.as_deref();
    program.is_some_and(|program| is_one(program, known))
}

/// True if the program ends with status 0 unless an error occurred.
fn fails_only_by_error(run: &LoadedRun, at: usize) -> bool {
    let is_executed = run.recording.activities[at].epoch > 0;
    is_executed && is_program(run, at, &knowledge().programs.fails_by_error)
}

/// Other activities with which the activity shares memory, or the offset of its standard input.
pub fn sharers(run: &LoadedRun, at: usize) -> Vec<usize> {
    let mut all = run.memory_sharers(at).to_vec();
    all.extend(run.offset_sharers(at));
    all
}
