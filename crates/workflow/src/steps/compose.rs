//! Writes a pipeline of recorded commands as a [`Line`]: words, variables and redirections.

use std::collections::{BTreeSet, HashSet};

use backstory_eventlog::event::Bytes;
use backstory_graph::model::{EntityId, EntityKind};
use backstory_graph::standard::StandardEnd;
use backstory_redaction as redaction;

use super::launchers::is_compiler_launcher;
use super::line::{Line, Word};
use super::programs::{is_one, names_shell, plain_name, program};
use super::shell_text::{is_for_any_shell, one_line};
use super::units::{Pipeline, Unit};
use crate::paths::{base_name, contains, relative};
use crate::recording::{Recording, split};
use crate::tools::knowledge;

/// A program that is not known, for a reader.
const UNKNOWN_TO_READERS: &str = "(a process whose program is not known)";

/// A program that is not known, for a script: the step fails and says why.
const UNKNOWN_TO_SCRIPTS: &str =
    "(echo 'the program of this step is not known: put it in this place' >&2; exit 127)";

/// Writes a pipeline. `opened`: outputs of the pipelines before it, to which the pipeline's own
/// outputs are added. A command whose output is one of them continues where they ended.
pub fn write(
    recording: &Recording,
    pipeline: &Pipeline,
    outside: &HashSet<EntityId>,
    opened: &mut HashSet<EntityId>,
    notes: &mut BTreeSet<String>,
) -> Line {
    let began: Vec<EntityId> = outputs(recording, pipeline).collect();
    let first = &recording.activities[pipeline.stages[0].root()];
    let cwd = first.cwd.clone();
    let mut words = Vec::new();
    for (stage, unit) in pipeline.stages.iter().enumerate() {
        if stage > 0 {
            words.push(Word::Operator("|"));
        }
        let context = LineContext {
            outside,
            opened,
            piped: stage + 1 < pipeline.stages.len(),
        };
        write_stage(recording, unit, &cwd, &context, notes, &mut words);
    }
    let last = &pipeline.stages[pipeline.stages.len() - 1];
    let exit = status(recording, last);
    opened.extend(began);
    Line { cwd, words, exit }
}

/// Writes commands that are joined by pipes for a reader. It omits the variables in which their
/// environments differ from the run's, and their exit status. It also omits a log of errors that
/// was opened for the program that started them (`make 2> log`). `stages`: the activities of
/// their programs. `outside` and `opened` are as for [`write`].
pub fn call(
    recording: &Recording,
    stages: &[usize],
    outside: &HashSet<EntityId>,
    opened: &mut HashSet<EntityId>,
) -> Line {
    let cwd = stages
        .first()
        .map(|&at| recording.activities[at].cwd.clone());
    let cwd = cwd.unwrap_or_default();
    let mut words = Vec::new();
    for (at, &root) in stages.iter().enumerate() {
        if at > 0 {
            words.push(Word::Operator("|"));
        }
        let mut outside = outside.clone();
        outside.extend(inherited_errors(recording, root));
        let context = LineContext {
            outside: &outside,
            opened,
            piped: at + 1 < stages.len(),
        };
        let mut stage = as_written(words_of(recording, root, UNKNOWN_TO_READERS));
        redirections(recording, root, &context, &mut stage);
        words.extend(stage);
    }
    for &root in stages {
        let standard = recording.standard[root];
        let ends = [standard.output, standard.error].into_iter().flatten();
        opened.extend(ends.map(|end| end.entity));
    }
    Line {
        cwd,
        words,
        exit: 0,
    }
}

/// The versions of the regular file to which a command's errors went. Empty if the errors of the
/// program that started the command went elsewhere.
fn inherited_errors(recording: &Recording, root: usize) -> Vec<EntityId> {
    let path = |end: Option<StandardEnd>| {
        let entity = recording.entity(end?.entity);
        (entity.kind == EntityKind::File).then_some(&entity.path)
    };
    let standard = recording.standard[root];
    let mut above = recording.ancestors(root);
    let starter = above.find(|&at| recording.activities[at].epoch > 0);
    let errors = path(standard.error);
    if errors.is_none() || starter.map(|at| path(recording.standard[at].error)) != Some(errors) {
        return Vec::new();
    }
    let ends = [standard.output, standard.error].into_iter();
    let same = ends.filter(|end| path(*end) == errors);
    same.flatten().map(|end| end.entity).collect()
}

/// The surroundings of a command in a pipeline.
struct LineContext<'k> {
    /// Descriptors that the run's own command began with.
    outside: &'k HashSet<EntityId>,
    /// Outputs of the commands before it.
    opened: &'k HashSet<EntityId>,
    /// Another command of the pipeline follows.
    piped: bool,
}

/// The files and pipes that the commands of a pipeline print to.
fn outputs(recording: &Recording, pipeline: &Pipeline) -> impl Iterator<Item = EntityId> {
    let ends = pipeline.stages.iter().flat_map(|unit| {
        let standard = recording.standard[unit.root()];
        [standard.output, standard.error]
    });
    ends.flatten().map(|end| end.entity)
}

/// The exit status of a command's process, whichever program it was by then; 128 and the signal's
/// number if a signal ended it.
fn status(recording: &Recording, unit: &Unit) -> i32 {
    let pid = recording.activities[unit.root()].pid;
    let mut own = unit
        .members
        .iter()
        .map(|&at| &recording.activities[at])
        .filter(|a| a.pid == pid && !a.execed);
    own.next().map_or(0, |a| {
        a.exit.or(a.signal.map(|signal| 128 + signal)).unwrap_or(0)
    })
}

fn write_stage(
    recording: &Recording,
    unit: &Unit,
    cwd: &[u8],
    context: &LineContext<'_>,
    notes: &mut BTreeSet<String>,
    words: &mut Vec<Word>,
) {
    let root = unit.root();
    let activity = &recording.activities[root];
    let mut stage = environment(recording, root, notes);
    let called = words_of(recording, root, UNKNOWN_TO_SCRIPTS);
    let program = match called.first() {
        Some(Word::Program(name)) => Some(name.clone()),
        _ => None,
    };
    stage.extend(called);
    if activity
        .argv
        .iter()
        .any(|argument| redaction::has_mark(argument))
    {
        let name = program.map(|name| String::from_utf8_lossy(base_name(&name)).into_owned());
        notes.insert(format!(
            "an argument of {} was redacted: put yours in its place",
            name.unwrap_or_default()
        ));
    }
    if let Some(launcher) = privilege(recording, root) {
        notes.insert(format!(
            "commands ran under {launcher}, which is left out: run the steps under it if they need it"
        ));
    }
    stage = as_written(stage);
    redirections(recording, root, context, &mut stage);
    if *activity.cwd != *cwd {
        let inner = Line {
            cwd: activity.cwd.clone(),
            words: stage,
            exit: 0,
        };
        words.push(Word::Shell(inner.shell(cwd).into_bytes().into()));
        return;
    }
    words.extend(stage);
}

/// The program of an activity and its arguments, or `unknown`.
fn words_of(recording: &Recording, root: usize, unknown: &'static str) -> Vec<Word> {
    let activity = &recording.activities[root];
    if recording.marked.is_function(root) {
        // No shell can run it, and no shell's quotes help a reader.
        return activity.argv.iter().cloned().map(Word::Shell).collect();
    }
    program_words(&activity.argv, activity.exec_path.as_ref(), unknown)
}

/// A program, by its name or its file, and its arguments. `unknown` if it has neither.
fn program_words(argv: &[Bytes], file: Option<&Bytes>, unknown: &'static str) -> Vec<Word> {
    let argv = without_compiler_launcher(argv);
    let name = argv.first();
    let name = name.filter(|name| !name.is_empty() && !name.starts_with(b"-"));
    let Some(program) = name.or(file) else {
        return vec![Word::Shell(unknown.as_bytes().into())];
    };
    let arguments = argv.iter().skip(1);
    std::iter::once(Word::Program(program.clone()))
        .chain(arguments.map(|arg| Word::Text(arg.clone())))
        .collect()
}

/// The launcher that gave a command more rights than its user has, or pretended to.
fn privilege(recording: &Recording, root: usize) -> Option<String> {
    let known = &knowledge().programs.privileged;
    let mut above = recording.ancestors(root);
    let found = above.find(|&at| is_one(program(recording, at), known))?;
    Some(plain_name(program(recording, found)))
}

/// The command line of the compiler behind `ccache` and its like, which wrote the output itself.
fn without_compiler_launcher(argv: &[Bytes]) -> &[Bytes] {
    match argv {
        [launcher, rest @ ..]
            if is_compiler_launcher(launcher)
                && rest.first().is_some_and(|next| !next.starts_with(b"-")) =>
        {
            without_compiler_launcher(rest)
        }
        argv => argv,
    }
}

/// A command as the user wrote it: the text of `sh -c TEXT` without the shell, if every shell
/// understands it alike.
pub fn as_written(stage: Vec<Word>) -> Vec<Word> {
    let [
        Word::Program(shell),
        Word::Text(option),
        Word::Text(text),
        rest @ ..,
    ] = stage.as_slice()
    else {
        return stage;
    };
    let redirected = rest.iter().all(|word| !matches!(word, Word::Shell(_)));
    let only = rest.is_empty() || matches!(rest[0], Word::Operator(_));
    let Some(line) = one_line(text).filter(|_| **option == *b"-c" && only && redirected) else {
        return stage;
    };
    let line = without_strictness(&line).map_or(line.clone(), <[u8]>::to_vec);
    let word = match base_name(shell) {
        name if is_posix_shell(name) => Word::Shell(line.into()),
        b"bash" if is_for_any_shell(&line) => Word::Shell(line.into()),
        name if names_shell(name) => {
            let mut same = stage.clone();
            same[2] = Word::Text(line.into());
            return same;
        }
        _ => return stage,
    };
    std::iter::once(word).chain(rest.iter().cloned()).collect()
}

/// True for the name of a shell that understands POSIX shell language and nothing else.
fn is_posix_shell(name: &[u8]) -> bool {
    let mut shells = knowledge().programs.posix_shells.iter();
    shells.any(|shell| shell.as_bytes() == name)
}

/// A command without the options that snakemake sets before each command. They change nothing for a
/// single command without variables.
fn without_strictness(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"set -euo pipefail;")?.trim_ascii();
    (!rest.is_empty() && !rest.iter().any(|byte| b";$`".contains(byte))).then_some(rest)
}

/// True for variables that shells and `make` set for every command.
fn is_noise(name: &[u8]) -> bool {
    let mut variables = knowledge().shell.noise_variables.iter();
    variables.any(|variable| variable.as_bytes() == name)
}

/// True for a variable through which a launcher loaded its library into the command.
fn is_of_launcher(name: &[u8], value: &[u8]) -> bool {
    let mut libraries = knowledge().shell.launcher_libraries.iter();
    matches!(name, b"LD_PRELOAD" | b"LD_LIBRARY_PATH")
        && libraries.any(|library| contains(value, library.as_bytes()))
}

/// The variables in which a command's environment differs from the run's.
fn environment(recording: &Recording, root: usize, notes: &mut BTreeSet<String>) -> Vec<Word> {
    let (set, gone) = recording.environment(root);
    let mut words = Vec::new();
    let gone: Vec<Bytes> = gone.into_iter().filter(|name| !is_noise(name)).collect();
    let mut odd = !gone.is_empty();
    for (name, value) in set.iter().filter_map(|pair| split(pair)) {
        if is_noise(name) || is_of_launcher(name, value) {
            continue;
        }
        if redaction::is_value_mark(value) {
            let name = String::from_utf8_lossy(name);
            notes.insert(format!(
                "{name} was set, but its value was redacted: set it yourself"
            ));
            continue;
        }
        odd |= !name
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        words.push(Word::Set(name.into(), value.into()));
    }
    if !odd {
        return words;
    }
    // The shell cannot assign to such a name, nor remove a variable for one command: env(1) does.
    let mut through = vec![Word::Program(b"env".as_slice().into())];
    for name in gone {
        through.extend([Word::Text(b"-u".as_slice().into()), Word::Text(name)]);
    }
    through.extend(words.into_iter().filter_map(|word| match word {
        Word::Set(name, value) => Some(Word::Text([&*name, b"=", &*value].concat().into())),
        _ => None,
    }));
    through
}

fn redirections(
    recording: &Recording,
    root: usize,
    context: &LineContext<'_>,
    words: &mut Vec<Word>,
) {
    let LineContext {
        outside,
        opened,
        piped,
    } = context;
    let cwd = &recording.activities[root].cwd;
    let [input, output, errors] = recording.standard[root].all();
    let file = |id: EntityId| {
        let entity = recording.entity(id);
        let named = entity.kind == EntityKind::File || *entity.path == *b"/dev/null";
        (named && !outside.contains(&id)).then(|| Bytes::from(relative(&entity.path, cwd)))
    };
    // Appending to a file that did not exist creates it, as `>` does.
    let appends = |end: StandardEnd| {
        opened.contains(&end.entity) || end.keeps && recording.entity(end.entity).previous.is_some()
    };
    if let Some(path) = input.and_then(|end| file(end.entity)) {
        words.extend([Word::Operator("<"), Word::Text(path)]);
    }
    if let Some((end, path)) = output.and_then(|end| Some((end, file(end.entity)?))) {
        words.extend([
            Word::Operator(if appends(end) { ">>" } else { ">" }),
            Word::Text(path),
        ]);
    }
    let Some(end) = errors else { return };
    // A builder reads its command's errors through a pipe only to show them.
    let piped = *piped
        && recording.entity(end.entity).kind == EntityKind::Pipe
        && !outside.contains(&end.entity);
    if output.is_some_and(|output| output.entity == end.entity)
        && (piped || file(end.entity).is_some())
    {
        words.push(Word::Operator("2>&1"));
    } else if let Some(path) = file(end.entity) {
        words.extend([
            Word::Operator(if appends(end) { "2>>" } else { "2>" }),
            Word::Text(path),
        ]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_known_is_named_so_and_makes_a_script_fail() {
        let text = |unknown| Line {
            cwd: b"/".as_slice().into(),
            words: program_words(&[], None, unknown),
            exit: 0,
        };
        let shown = text(UNKNOWN_TO_READERS).shell(b"/");
        assert_eq!(shown, "(a process whose program is not known)");
        let step = text(UNKNOWN_TO_SCRIPTS).shell(b"/");
        let ran = std::process::Command::new("sh")
            .args(["-c", &step])
            .output();
        let ran = ran.unwrap();
        assert_eq!(ran.status.code(), Some(127));
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(said.contains("program of this step is not known"), "{said}");
    }
}
