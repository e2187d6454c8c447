//! Mere callers: shells and launchers that only started commands of a history.
//!
//! In: two sides, and the commands that one side alone has. Out: those of them that give way to the
//! commands that they started.
//!
//! `bash /dev/fd/3` started the `sed` that changed a file. A user looks for the `sed`. A shell that
//! read its script is no mere caller. Neither is `make`. They stand for all that they started.
//!
//! Invariant: a mere caller read and changed no file of the user's own that is compared.

use std::collections::{HashMap, HashSet};

use backstory_eventlog::event::Bytes;
use backstory_graph::model::Activity;
use backstory_store::ActivityKey;
use backstory_workflow::ownership::Ownership;
use backstory_workflow::paths::{absolute, is_of_kernel};
use backstory_workflow::steps::{ShellCall, names_shell};

use super::callers_work::{may_only_call, program};
use super::{DiffSide, SideCommand};

/// The mere callers among the commands that one side alone has.
///
/// Such a caller started one command. A shell whose line names neither commands nor a script may
/// have started more.
///
/// `callers`: the next command above each activity.
pub(super) fn of(
    sides: [&DiffSide; 2],
    alone: &HashSet<ActivityKey>,
    callers: &HashMap<ActivityKey, ActivityKey>,
    ownership: &mut Ownership,
) -> HashSet<ActivityKey> {
    let mut found = HashSet::new();
    for side in sides {
        let mut started: HashMap<ActivityKey, usize> = HashMap::new();
        for command in &side.commands {
            if let Some(caller) = callers.get(&command.key) {
                *started.entry(*caller).or_default() += 1;
            }
        }
        let paths = paths_of_commands(side, callers);
        for command in side.commands.iter().filter(|one| alone.contains(&one.key)) {
            let gives_way = match started.get(&command.key) {
                None => false,
                Some(1) => may_only_call(&command.activity),
                Some(_) => is_shell_without_text(&command.activity),
            };
            let mut paths = paths.get(&command.key).into_iter().flatten();
            if gives_way && !paths.any(|path| is_users(command, path, ownership)) {
                found.insert(command.key);
            }
        }
    }
    found
}

/// The things that commands worked on. Those of a process without a program of its own, such as a
/// subshell, belong to the command above it.
fn paths_of_commands<'s>(
    side: &'s DiffSide,
    callers: &HashMap<ActivityKey, ActivityKey>,
) -> HashMap<ActivityKey, Vec<&'s Bytes>> {
    let commands: HashSet<ActivityKey> = side.commands.iter().map(|one| one.key).collect();
    let mut found: HashMap<ActivityKey, Vec<&Bytes>> = HashMap::new();
    for (activity, paths) in &side.worked_on {
        let command = match commands.contains(activity) {
            true => Some(activity),
            false => callers.get(activity),
        };
        if let Some(command) = command {
            found.entry(*command).or_default().extend(paths);
        }
    }
    found
}

/// True for a file of the user's own, and for a script that the command's line names.
fn is_users(command: &SideCommand, path: &[u8], ownership: &mut Ownership) -> bool {
    let activity = &command.activity;
    let mut arguments = activity.argv.iter().skip(1);
    ownership.is_own(path) || arguments.any(|word| absolute(word, &activity.cwd) == path)
}

/// True for a shell that reads its commands from a descriptor: `bash`, `bash /dev/fd/3`.
fn is_shell_without_text(activity: &Activity) -> bool {
    let arguments = activity.argv.iter().skip(1).map(|word| &**word);
    names_shell(program(activity))
        && match ShellCall::of(arguments) {
            ShellCall::Input => true,
            ShellCall::Script(script) => is_of_kernel(script),
            ShellCall::Text => false,
        }
}
