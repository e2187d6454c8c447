//! Which programs only start others, and which do the work.

use crate::paths::{absolute, base_name, is_tool};
use crate::recording::Recording;
use backstory_graph::model::{Edge, EntityId, EntityKind, Relation};

/// What a program is to those that it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It starts what somebody told it to: a script's shell, `make`, `env`. Its children are commands in their own right.
    Driver,
    /// It does something: whatever it starts is its own affair.
    Tool,
}

const SHELLS: [&str; 10] = [
    "sh", "bash", "dash", "zsh", "ksh", "ksh93", "mksh", "ash", "yash", "busybox",
];

/// Programs that run others as they are told, and nothing more.
const WRAPPERS: [&str; 24] = [
    "env",
    "nice",
    "ionice",
    "nohup",
    "time",
    "timeout",
    "setsid",
    "stdbuf",
    "xargs",
    "parallel",
    "find",
    "sudo",
    "doas",
    "strace",
    "taskset",
    "numactl",
    "flock",
    "chronic",
    "chrt",
    "unbuffer",
    "prlimit",
    "setarch",
    "catchsegv",
    "fakeroot",
];

const BUILDERS: [&str; 20] = [
    "make",
    "gmake",
    "bmake",
    "ninja",
    "samu",
    "cmake",
    "ctest",
    "meson",
    "snakemake",
    "nextflow",
    "cwltool",
    "just",
    "task",
    "redo",
    "waf",
    "scons",
    "doit",
    "tup",
    "rake",
    "dvc",
];

/// Languages whose programs may be somebody's pipeline.
const LANGUAGES: [&str; 12] = [
    "python", "perl", "ruby", "node", "Rscript", "R", "lua", "php", "tclsh", "guile", "julia",
    "awk",
];

/// The name without a version: `python3.11` is `python`.
fn plain(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(base_name(name));
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
        .to_owned()
}

fn is_one(name: &[u8], of: &[&str]) -> bool {
    let whole = String::from_utf8_lossy(base_name(name)).into_owned();
    let plain = plain(name);
    of.iter().any(|known| *known == whole || *known == plain)
}

/// How a shell was called.
#[derive(Debug, PartialEq, Eq)]
enum Called<'a> {
    /// `sh -c TEXT …`
    Text,
    /// `sh SCRIPT …`
    Script(&'a [u8]),
    /// Commands from standard input.
    Input,
}

fn called<'a>(args: impl Iterator<Item = &'a [u8]>) -> Called<'a> {
    let mut args = args;
    while let Some(arg) = args.next() {
        match arg {
            b"-" | b"--" => {}
            b"-o" | b"+o" | b"-O" | b"--rcfile" | b"--init-file" => drop(args.next()),
            long if long.starts_with(b"--") => {}
            short if short.starts_with(b"-") || short.starts_with(b"+") => {
                if short.contains(&b'c') {
                    return Called::Text;
                }
            }
            script => return Called::Script(script),
        }
    }
    Called::Input
}

/// The program of an activity: what was executed, else what it was called.
fn program(recording: &Recording, at: usize) -> &[u8] {
    let activity = &recording.activities[at];
    let name = activity.exec_path.as_deref();
    name.or(activity.argv.first().map(|arg| &**arg))
        .unwrap_or_default()
}

/// True if an activity's program is a shell, or a script of one.
pub fn is_shell(recording: &Recording, at: usize) -> bool {
    let executed = recording.edges[at]
        .iter()
        .filter(|edge| edge.relation == Relation::Execute);
    let mut paths = executed.map(|edge| &*recording.entity(edge.entity).path);
    is_one(program(recording, at), &SHELLS) || paths.any(|path| is_one(path, &SHELLS))
}

/// What an activity's program is.
pub fn role(recording: &Recording, at: usize) -> Role {
    let activity = &recording.activities[at];
    if activity.epoch == 0 {
        return Role::Driver;
    }
    let starts = recording.children[at]
        .iter()
        .flat_map(|&child| recording.subtree(child))
        .any(|below| recording.activities[below].epoch > 0);
    if !starts {
        return Role::Tool;
    }
    let path = program(recording, at);
    let name = activity.argv.first().map_or(path, |arg| arg);
    let either = |of: &[&str]| is_one(path, of) || is_one(name, of);
    if either(&WRAPPERS) || either(&BUILDERS) {
        return Role::Driver;
    }
    if let Some(next) = launched(recording, at) {
        return role(recording, next);
    }
    if is_tools_script(recording, at) {
        return Role::Tool;
    }
    let args = || activity.argv.iter().skip(1).map(|arg| &**arg);
    let own = |script: &[u8]| match is_tool(&absolute(script, &activity.cwd)) {
        true => became(recording, at).map_or(Role::Tool, |next| role(recording, next)),
        false => Role::Driver,
    };
    if either(&SHELLS) {
        return match called(args()) {
            // What a person or `make` gave a shell to do in one line is one command; the run's own command is a script.
            Called::Text if commanded(recording, at) || calls_builders(recording, at) => {
                Role::Driver
            }
            Called::Text => Role::Tool,
            Called::Script(script) => own(script),
            Called::Input => Role::Driver,
        };
    }
    if either(&LANGUAGES) {
        let script = args().find(|arg| !arg.starts_with(b"-"));
        return script.map_or(Role::Driver, own);
    }
    if is_interpreted(recording, at) {
        own(path)
    } else {
        Role::Tool
    }
}

/// True if it is a script by its own name: the kernel runs the interpreter that its first line names.
fn is_interpreted(recording: &Recording, at: usize) -> bool {
    let path = program(recording, at);
    let mut executed = recording.edges[at]
        .iter()
        .filter(|edge| edge.relation == Relation::Execute);
    executed.any(|edge| {
        let other = &recording.entity(edge.entity).path;
        plain(other) != plain(path)
            && (is_one(other, &SHELLS) || is_one(other, &LANGUAGES) || is_one(other, &WRAPPERS))
    })
}

/// True if it is a script of a tool, whatever it is called: pyenv's `python` is one, and becomes the program that was meant.
fn is_tools_script(recording: &Recording, at: usize) -> bool {
    let path = absolute(program(recording, at), &recording.activities[at].cwd);
    // `sh` is dash, and no script of it.
    is_tool(&path) && !names_shell(&path) && is_interpreted(recording, at)
}

/// What a program that only finds out which one is meant became: pyenv's `python`, `Rscript`, which becomes `R`, which becomes another. The
/// first of them is what somebody wrote.
pub fn launched(recording: &Recording, at: usize) -> Option<usize> {
    let activity = &recording.activities[at];
    let path = program(recording, at);
    let name = activity.argv.first().map_or(path, |arg| arg);
    let language = is_one(path, &LANGUAGES) || is_one(name, &LANGUAGES);
    let launches = activity.epoch > 0 && (language || is_tools_script(recording, at));
    launches.then(|| became(recording, at)).flatten()
}

/// The program that the same process became.
fn became(recording: &Recording, at: usize) -> Option<usize> {
    let activity = &recording.activities[at];
    let same = |&&child: &&usize| {
        let next = &recording.activities[child];
        next.pid == activity.pid && next.epoch > 0
    };
    recording.children[at]
        .iter()
        .find(same)
        .copied()
        .filter(|_| activity.execed)
}

/// True if the program does what somebody's rules say: `make`, `snakemake`.
pub fn is_builder(recording: &Recording, at: usize) -> bool {
    is_one(program(recording, at), &BUILDERS)
}

/// Programs whose own output goes straight to `write`, where the recorder sees it, and not through libc's buffers, where it does not.
const UNBUFFERED: [&str; 8] = [
    "dash", "mksh", "python", "perl", "ruby", "node", "make", "ninja",
];

/// Libraries of shells that edit lines (bash, zsh), whose builtins print through libc. `sh` without them is dash or its like.
const EDITING: [&str; 3] = ["libtinfo", "libncurses", "libreadline"];

/// True if a program that was not seen to write to a file it opened has certainly not done so.
pub fn is_unbuffered(recording: &Recording, at: usize) -> bool {
    let line = std::iter::once(at).chain(recording.ancestors(at));
    let mut programs = line.filter(|&at| recording.activities[at].epoch > 0);
    let Some(at) = programs.next() else {
        return false;
    };
    let paths = |relation| {
        let edges = recording.edges[at]
            .iter()
            .filter(move |edge| edge.relation == relation);
        edges.map(|edge| base_name(&recording.entity(edge.entity).path))
    };
    let edits = || {
        paths(Relation::Read).any(|name| {
            EDITING
                .iter()
                .any(|library| name.starts_with(library.as_bytes()))
        })
    };
    paths(Relation::Execute).any(|name| is_one(name, &UNBUFFERED) || name == b"sh" && !edits())
}

/// True if nothing but wrappers stands between the run's command and this activity.
fn commanded(recording: &Recording, at: usize) -> bool {
    recording.ancestors(at).all(|above| {
        recording.activities[above].epoch == 0 || is_one(program(recording, above), &WRAPPERS)
    })
}

/// True for the shell of a rule that runs `make` in other directories: `sh -c TEXT` that is not the run's own command.
pub fn calls_builders(recording: &Recording, at: usize) -> bool {
    let activity = &recording.activities[at];
    let shell = names_shell(program(recording, at)) && !commanded(recording, at);
    let args = || activity.argv.iter().skip(1).map(|arg| &**arg);
    shell && called(args()) == Called::Text && !builders(recording, at).is_empty()
}

/// The builders that a shell of `make`'s runs: `make` in other directories, and beside it only programs that help to find out how (Automake's
/// rules ask `sed` for a target's name). None if there is no builder, or another program leaves something.
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

/// True if a program or one that it started changed any file but what `shell`, too, prints to.
fn leaves(recording: &Recording, at: usize, shell: usize) -> bool {
    let ends: Vec<EntityId> = recording.standard[shell]
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

/// True if this is the name of a shell.
pub fn names_shell(name: &[u8]) -> bool {
    is_one(name, &SHELLS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shells_script_is_found_behind_its_options() {
        let called = |line: &'static str| called(line.split_whitespace().map(str::as_bytes));
        assert_eq!(called("-eu run.sh -c x"), Called::Script(b"run.sh"));
        assert_eq!(called("-o pipefail run.sh"), Called::Script(b"run.sh"));
        assert_eq!(called("-euc x"), Called::Text);
        assert_eq!(called("--norc -s"), Called::Input);
    }

    #[test]
    fn a_version_is_not_part_of_a_name() {
        assert!(
            is_one(b"/usr/bin/python3.11", &LANGUAGES)
                && is_one(b"ksh93", &SHELLS)
                && !is_one(b"shuf", &SHELLS)
        );
    }
}
