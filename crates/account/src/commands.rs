//! Which processes are one command of a person.
//!
//! In: a recording. Out: for each activity the activity that is its command's program.
//!
//! A command is a tool with everything that it started. A driver (a shell, `make`, `env`, a
//! packager) is no command, and its children are. The work that a driver does itself is a command
//! of its own: the program with the driver's name. An activity that a program marked inside itself
//! is a command, too.

use std::collections::HashSet;

use backstory_eventlog::event::Bytes;
use backstory_graph::model::{Certainty, EntityId, EntityKind, Relation};
use backstory_workflow::recording::Recording;
use backstory_workflow::steps::{
    ProgramRole, is_builder, is_one, launched, names_shell, program, role,
};
use backstory_workflow::tools::knowledge;

/// An activity with the one above it, the command that it belongs to, and the nearest program.
type Visit = (usize, [Option<usize>; 3]);

/// For each activity the index of its command's program.
///
/// `outside`: what the run's command had as standard input, output and errors.
pub fn commands(recording: &Recording, outside: &HashSet<EntityId>) -> Vec<usize> {
    let mut of: Vec<usize> = (0..recording.activities.len()).collect();
    let mut waiting: Vec<Visit> = recording.roots().map(|root| (root, [None; 3])).collect();
    while let Some((at, [outer, command, above])) = waiting.pop() {
        let epoch = recording.activities[at].epoch;
        // A cell of a notebook, or a test, is a command: the program named it.
        let continues = outer.is_some_and(|outer| continues(recording, outer, at));
        let named = (recording.marked.is_named(at) && !continues).then_some(at);
        let command = named.or(command);
        // Between two activities that a program named, it goes on as before.
        let resumes = named.is_none() && recording.marked.contains(at);
        let begins = !resumes && is_command(recording, at, outside);
        let command = command.or(begins.then_some(at));
        let program = if epoch > 0 && !resumes {
            Some(at)
        } else {
            above
        };
        of[at] = command.or(program).unwrap_or(at);
        waiting.extend(
            recording.children[at]
                .iter()
                .map(|&child| (child, [Some(at), command, program])),
        );
    }
    // A process that redirects its output before it executes a program does so for the program.
    for at in 0..of.len() {
        if recording.activities[at].epoch == 0
            && let Some(next) = recording.became(at)
        {
            of[at] = of[next];
        }
    }
    of
}

/// True if an activity goes on with the one above it, after others inside of that one.
fn continues(recording: &Recording, outer: usize, at: usize) -> bool {
    let (before, own) = (&recording.activities[outer], &recording.activities[at]);
    let is_same = own.pid == before.pid && own.argv == before.argv;
    is_same && own.epoch > before.epoch + 1 && recording.marked.contains(at)
}

/// True if the activity and everything below it are one command.
fn is_command(recording: &Recording, at: usize, outside: &HashSet<EntityId>) -> bool {
    let activity = &recording.activities[at];
    if activity.epoch == 0 {
        return false;
    }
    let known = &knowledge().programs;
    let path = program(recording, at);
    let name = activity.argv.first().map_or(path, |arg| arg);
    let is = |list: &[String]| is_one(path, list) || is_one(name, list);
    if is(&known.configurers) {
        return true;
    }
    if is_builder(recording, at) {
        return false;
    }
    if names_shell(path) || names_shell(name) {
        return recording.children[at].is_empty()
            || is_text(recording, at) && works(recording, at, outside);
    }
    role(recording, at) == ProgramRole::Tool
        || launched(recording, at).is_some_and(|next| is_command(recording, next, outside))
}

/// True for `sh -c TEXT` below another program: the line of a makefile, not the run's own command.
fn is_text(recording: &Recording, at: usize) -> bool {
    let mut arguments = recording.activities[at].argv.iter().skip(1);
    let option = |arg: &Bytes| arg.starts_with(b"-") && arg.ends_with(b"c");
    let above = recording.ancestors(at);
    let mut programs = above.filter(|&at| recording.activities[at].epoch > 0);
    arguments.next().is_some_and(option) && programs.next().is_some()
}

/// True if a shell wrote to a file itself, or a part of it did that executed no program. A file
/// that it only opened for a program does not count, nor do the run's own output and errors. A
/// shell that runs builders is a driver whatever it writes.
fn works(recording: &Recording, at: usize, outside: &HashSet<EntityId>) -> bool {
    let mut below = recording.subtree(at).into_iter();
    if below.any(|below| is_builder(recording, below)) {
        return false;
    }
    let parts = recording.children[at].iter().copied().filter(|&child| {
        let activity = &recording.activities[child];
        activity.epoch == 0 && !activity.execed
    });
    std::iter::once(at).chain(parts).any(|at| {
        recording.edges[at].iter().any(|edge| {
            edge.relation == Relation::Write
                && edge.certainty == Certainty::Seen
                && !outside.contains(&edge.entity)
                && recording.entity(edge.entity).kind == EntityKind::File
                && !recording.given.contains(&(at, edge.entity))
        })
    })
}
