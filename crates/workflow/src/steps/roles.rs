//! Which programs only start others, and which do the work.
//!
//! In: an activity of a recording. Out: its [`ProgramRole`], and the programs behind launchers and
//! builders' shells.

use backstory_graph::model::{Edge, EntityId, EntityKind, Relation};

use super::launchers::wrapper;
use super::programs::{is_builder, is_interpreted, is_one, names_shell, program};
use super::shell_call::ShellCall;
use crate::paths::{absolute, base_name, is_tool};
use crate::recording::Recording;
use crate::tools::knowledge;

/// The role of a program towards the programs that it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramRole {
    /// It starts programs that a script, a rule or its arguments name: a script's shell, `make`,
    /// `env`. Its children are commands of their own.
    Driver,
    /// It does work. The programs that it starts are part of its command.
    Tool,
}

/// The arguments of an activity, without the program's name.
fn arguments(recording: &Recording, at: usize) -> impl Iterator<Item = &[u8]> {
    let argv = recording.activities[at].argv.iter();
    argv.skip(1).map(|arg| &**arg)
}

/// The role of an activity's program.
pub fn role(recording: &Recording, at: usize) -> ProgramRole {
    let activity = &recording.activities[at];
    if activity.epoch == 0 {
        return ProgramRole::Driver;
    }
    let starts = recording.children[at]
        .iter()
        .flat_map(|&child| recording.subtree(child))
        .any(|below| recording.activities[below].epoch > 0 && !recording.marked.contains(below));
    if !starts {
        return ProgramRole::Tool;
    }
    let known = &knowledge().programs;
    let path = program(recording, at);
    let name = activity.argv.first().map_or(path, |arg| arg);
    let either = |of: &[String]| is_one(path, of) || is_one(name, of);
    if wrapper(recording, at).is_some() || either(&known.builders) || is_builder(recording, at) {
        return ProgramRole::Driver;
    }
    if let Some(next) = launched(recording, at) {
        return role(recording, next);
    }
    if is_tools_script(recording, at) {
        return ProgramRole::Tool;
    }
    let of_script = |script: &[u8]| match is_tool(&absolute(script, &activity.cwd)) {
        true => became(recording, at).map_or(ProgramRole::Tool, |next| role(recording, next)),
        false => ProgramRole::Driver,
    };
    if either(&known.shells) {
        return match ShellCall::of(arguments(recording, at)) {
            // A text that a person or `make` gave to a shell is one command. The run's own command
            // is a script.
            ShellCall::Text if is_run_command(recording, at) || calls_builders(recording, at) => {
                ProgramRole::Driver
            }
            ShellCall::Text => ProgramRole::Tool,
            ShellCall::Script(script) => of_script(script),
            ShellCall::Input => ProgramRole::Driver,
        };
    }
    if either(&known.interpreters) {
        let script = arguments(recording, at).find(|arg| !arg.starts_with(b"-"));
        return script.map_or(ProgramRole::Driver, of_script);
    }
    if is_interpreted(recording, at) {
        of_script(path)
    } else {
        ProgramRole::Tool
    }
}

/// True if the program is a script that belongs to a tool, as pyenv's `python`, which becomes the
/// Python that was meant.
fn is_tools_script(recording: &Recording, at: usize) -> bool {
    let path = absolute(program(recording, at), &recording.activities[at].cwd);
    // `sh` is a link to dash, not a script.
    is_tool(&path) && !names_shell(&path) && is_interpreted(recording, at)
}

/// The program that a launcher became: pyenv's `python` finds the Python that was meant, `Rscript`
/// becomes `R`, which becomes another program. The first of them is the one that the user wrote.
pub fn launched(recording: &Recording, at: usize) -> Option<usize> {
    let activity = &recording.activities[at];
    let path = program(recording, at);
    let name = activity.argv.first().map_or(path, |arg| arg);
    let interpreters = &knowledge().programs.interpreters;
    let language = is_one(path, interpreters) || is_one(name, interpreters);
    let launches = activity.epoch > 0 && (language || is_tools_script(recording, at));
    launches.then(|| became(recording, at)).flatten()
}

/// The program that a shim leads to, through the launchers behind it. pyenv's `python` runs `pyenv
/// exec python`, which becomes the Python that was meant.
pub fn launched_at_last(recording: &Recording, at: usize) -> Option<usize> {
    // A launcher that the user wrote is no shim.
    if wrapper(recording, at).is_some() {
        return None;
    }
    let mut next = launched(recording, at)?;
    while wrapper(recording, next).is_some() || runs_script_of(recording, next, at) {
        next = became(recording, next)?;
    }
    Some(next)
}

/// True if an activity is the shell that runs a shim: the kernel started the shim, and its first
/// line named the shell.
fn runs_script_of(recording: &Recording, shell: usize, shim: usize) -> bool {
    let name = base_name(program(recording, shim));
    names_shell(program(recording, shell))
        && match ShellCall::of(arguments(recording, shell)) {
            ShellCall::Script(script) => base_name(script) == name,
            _ => false,
        }
}

/// The next program of the same process.
fn became(recording: &Recording, at: usize) -> Option<usize> {
    let activity = &recording.activities[at];
    let same = |&&child: &&usize| {
        let next = &recording.activities[child];
        next.pid == activity.pid && next.epoch > 0 && !recording.marked.contains(child)
    };
    recording.children[at]
        .iter()
        .find(same)
        .copied()
        .filter(|_| activity.execed)
}

/// True if nothing but wrappers stands between the run's command and this activity.
fn is_run_command(recording: &Recording, at: usize) -> bool {
    recording
        .ancestors(at)
        .all(|above| recording.activities[above].epoch == 0 || wrapper(recording, above).is_some())
}

/// True for the shell of a rule that runs `make` in other directories: `sh -c TEXT` that is not the
/// run's own command.
pub fn calls_builders(recording: &Recording, at: usize) -> bool {
    let shell = names_shell(program(recording, at)) && !is_run_command(recording, at);
    shell
        && ShellCall::of(arguments(recording, at)) == ShellCall::Text
        && !builders(recording, at).is_empty()
}

/// The builders that a builder's shell runs: `make` in other directories.
///
/// The shell may also run programs that help to find out how; Automake's rules use `sed` to get a
/// target's name. Empty if the shell runs no builder, or if another program leaves a file.
pub fn builders(recording: &Recording, at: usize) -> Vec<usize> {
    let (mut waiting, mut builders, mut others) =
        (recording.children[at].clone(), Vec::new(), Vec::new());
    while let Some(child) = waiting.pop() {
        match recording.activities[child].epoch {
            0 => waiting.extend(&recording.children[child]),
            _ if is_builder(recording, child) => builders.push(child),
            _ => others.push(child),
        }
    }
    if !builders.is_empty() && others.into_iter().any(|other| leaves(recording, other, at)) {
        return Vec::new();
    }
    builders
}

/// True if a program, or one that it started, changed a file other than the files that `shell`
/// prints to.
fn leaves(recording: &Recording, at: usize, shell: usize) -> bool {
    let ends: Vec<EntityId> = recording.standard[shell]
        .all()
        .into_iter()
        .flatten()
        .map(|end| end.entity)
        .collect();
    let changes = |edge: &Edge| {
        let kind = recording.entity(edge.entity).kind;
        let lasts = matches!(
            kind,
            EntityKind::File | EntityKind::Directory | EntityKind::Symlink
        );
        let printed = edge.relation == Relation::Write && ends.contains(&edge.entity);
        !edge.relation.is_use() && lasts && !printed
    };
    let mut all = recording.subtree(at).into_iter();
    all.any(|at| recording.edges[at].iter().any(changes))
}
