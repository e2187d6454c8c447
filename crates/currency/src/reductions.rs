//! The named rules that make influence precise: each leaves out what carries nothing.
//!
//! | rule | what is left out |
//! | --- | --- |
//! | driver | what a builder looks at to choose which commands run; the statuses of commands that succeeded |
//! | status | the status 0 of a program that ends with another one only after an error, and whose inputs are there |
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

use std::collections::HashSet;
use std::rc::Rc;

use backstory_eventlog::event::Time;
use backstory_graph::model::{Certainty, Edge, EntityId, EntityKind, Informed, Relation};
use backstory_workflow::paths::{base_name, is_system};
use backstory_workflow::steps::is_one;
use backstory_workflow::tools::knowledge;
use rustix::io::Errno;

use crate::loaded_runs::{CountedUse, Heard, LoadedRun};
use crate::present_files::PresentFiles;

/// The uses on which what the activity made or started can depend.
pub fn counted_uses(run: &LoadedRun, at: usize) -> Rc<Vec<CountedUse>> {
    run.uses_once(at, || {
        let replaced = run.replaced(at);
        let edges = run.recording.edges[at].iter();
        let edges = edges.filter(|edge| takes_in(run, at, edge, &replaced));
        let uses = edges.map(|edge| CountedUse {
            edge: *edge,
            taking: run.taking(at, edge),
            names: names(run, at, edge),
        });
        uses.collect()
    })
}

/// The activities that gave or took a name that a listing may have taken, each with the moment.
fn names(run: &LoadedRun, at: usize, edge: &Edge) -> Vec<(usize, Time)> {
    if edge.relation != Relation::List {
        return Vec::new();
    }
    let patterns = run.name_patterns(at, edge);
    let worked = run
        .worked_in(&run.recording.entity(edge.entity).path)
        .iter();
    let worked = worked.filter(|(_, _, file)| {
        let path = &run.recording.entity(*file).path;
        patterns.may_match(base_name(path))
    });
    worked.map(|&(at, time, _)| (at, time)).collect()
}

/// `replaced`: the files that the activity replaces.
fn takes_in(run: &LoadedRun, at: usize, edge: &Edge, replaced: &HashSet<EntityId>) -> bool {
    let relation = edge.relation;
    if !relation.is_use() {
        return false;
    }
    let entity = run.recording.entity(edge.entity);
    if run.is_bookkeeping(at, edge.entity) {
        return false;
    }
    let is_pipe = entity.kind == EntityKind::Pipe;
    if is_pipe && edge.certainty == Certainty::Possible && !run.is_standard_input(at, edge.entity) {
        return false;
    }
    if is_look(relation) && replaced.contains(&edge.entity) {
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
pub fn hears(
    run: &LoadedRun,
    at: usize,
    heard: &Heard,
    until: Time,
    present: &PresentFiles,
) -> bool {
    match heard.why {
        Informed::Wait => {
            let child = &run.recording.activities[heard.from];
            let is_success = child.exit == Some(0);
            let never_fails =
                || fails_only_by_error(run, heard.from) && !lacks_input(run, heard.from, present);
            if is_success && (run.is_driver(at) || never_fails()) {
                return false;
            }
            let ends = until == Time::MAX;
            ends || !run.is_shell(at) || !run.texts.ignores_statuses(&run.recording, at)
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

/// True if a file that the program read is gone: it would fail now.
fn lacks_input(run: &LoadedRun, at: usize, present: &PresentFiles) -> bool {
    let mut edges = run.recording.edges[at].iter();
    edges.any(|edge| {
        let read = run.recording.entity(edge.entity);
        edge.relation == Relation::Read
            && (read.kind, read.version) == (EntityKind::File, 0)
            && !is_system(&read.path)
            && run.left(&read.path).is_none()
            && matches!(present.link(&read.path), Err(Errno::NOENT | Errno::NOTDIR))
    })
}

/// Other activities with which the activity shares memory, or the offset of its standard input.
pub fn sharers(run: &LoadedRun, at: usize) -> Vec<usize> {
    let mut all = run.memory_sharers(at).to_vec();
    all.extend(run.offset_sharers(at));
    all
}
