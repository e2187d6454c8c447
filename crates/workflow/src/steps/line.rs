//! How a command is written down: words with what they mean, so that each format can quote them its own way.

use std::collections::{BTreeSet, HashSet};

use backstory_eventlog::event::Bytes;
use backstory_graph::model::{EntityId, EntityKind};
use backstory_graph::standard::End;
use backstory_redaction as redaction;

use super::programs::names_shell;
use super::shell_text::{is_for_any_shell, one_line};
use super::units::{Pipeline, Unit};
use crate::paths::{base_name, relative};
use crate::recording::{Recording, split};
use crate::shell::{quote, quote_name};

/// A word of a command line.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Word {
    /// The name of a program.
    Program(Bytes),
    /// An argument, or the file of a redirection.
    Text(Bytes),
    /// `NAME=value` before a program.
    Set(Bytes, Bytes),
    /// Shell language as somebody wrote it.
    Shell(Bytes),
    /// `|`, `<`, `>`, `>>`, `2>`, `2>>`, `2>&1`.
    Operator(&'static str),
}

/// A command or pipeline of commands.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Line {
    /// Where it is run; absolute.
    pub cwd: Bytes,
    /// What is run.
    pub words: Vec<Word>,
    /// The status it ended with; 0 is what one expects.
    pub exit: i32,
}

impl Line {
    /// The line for a shell that stands in `base`.
    pub fn shell(&self, base: &[u8]) -> String {
        let mut text = self.command();
        if *self.cwd != *base {
            // Of several commands none may be run elsewhere, should the directory not be there.
            let several = self.is_shell() && text.contains([';', '&', '|', '\n']);
            let then = if several { "|| exit 1;" } else { "&&" };
            text = format!("cd {} {then} {text}", quote(relative(&self.cwd, base)));
        }
        match self.exit {
            0 => text,
            status => format!("{{ {text}; }} || [ $? -eq {status} ]"),
        }
    }

    /// True if it is shell language as somebody wrote it.
    pub fn is_shell(&self) -> bool {
        matches!(self.words.as_slice(), [Word::Shell(_)])
    }

    /// The line for a shell that stands where it is to be run, whatever it ends with.
    pub fn command(&self) -> String {
        let mut text = String::new();
        for (at, word) in self.words.iter().enumerate() {
            let alone = self.words.len() == 1;
            let word_text = match word {
                Word::Program(name) => quote_name(name),
                Word::Text(text) => quote(text),
                Word::Set(name, value) => {
                    format!("{}={}", String::from_utf8_lossy(name), quote_value(value))
                }
                Word::Shell(text) if alone => String::from_utf8_lossy(text).into_owned(),
                Word::Shell(text) => format!("( {} )", String::from_utf8_lossy(text)),
                Word::Operator(operator) => (*operator).to_owned(),
            };
            if at > 0 {
                text.push(' ');
            }
            text.push_str(&word_text);
        }
        text
    }
}

fn quote_value(value: &[u8]) -> String {
    if value.is_empty() {
        String::new()
    } else {
        quote(value)
    }
}

/// Variables that shells and `make` set for each command they run: they say nothing about it.
const NOISE: [&[u8]; 12] = [
    b"_",
    b"PWD",
    b"OLDPWD",
    b"SHLVL",
    b"LINES",
    b"COLUMNS",
    b"MAKEFLAGS",
    b"MAKELEVEL",
    b"MFLAGS",
    b"MAKE_TERMOUT",
    b"MAKE_TERMERR",
    b"MAKEOVERRIDES",
];

/// Writes a pipeline down. `opened`: outputs of those before it. Who gets one of them as well goes on writing where those ended.
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
        let known = Known {
            outside,
            opened,
            piped: stage + 1 < pipeline.stages.len(),
        };
        write_stage(recording, unit, &cwd, &known, notes, &mut words);
    }
    let last = &pipeline.stages[pipeline.stages.len() - 1];
    let exit = status(recording, last);
    opened.extend(began);
    Line { cwd, words, exit }
}

/// What is known when a command is written down.
struct Known<'k> {
    /// What the run's own command began with.
    outside: &'k HashSet<EntityId>,
    /// Outputs of commands before it.
    opened: &'k HashSet<EntityId>,
    /// Another command of the pipeline follows.
    piped: bool,
}

/// What the commands of a pipeline print to.
fn outputs(recording: &Recording, pipeline: &Pipeline) -> impl Iterator<Item = EntityId> {
    let ends = pipeline
        .stages
        .iter()
        .flat_map(|unit| [1, 2].map(|fd| recording.standard[unit.root()][fd]));
    ends.flatten().map(|end| end.entity)
}

/// How the process of a command ended, whichever of its programs it was by then.
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
    known: &Known<'_>,
    notes: &mut BTreeSet<String>,
    words: &mut Vec<Word>,
) {
    let root = unit.root();
    let activity = &recording.activities[root];
    let mut stage = environment(recording, root, notes);
    let name = activity
        .argv
        .first()
        .filter(|name| !name.is_empty() && !name.starts_with(b"-"));
    let program = name.or(activity.exec_path.as_ref());
    stage.push(Word::Program(
        program
            .cloned()
            .unwrap_or_else(|| b"true".as_slice().into()),
    ));
    stage.extend(
        activity
            .argv
            .iter()
            .skip(1)
            .map(|arg| Word::Text(arg.clone())),
    );
    if activity
        .argv
        .iter()
        .any(|argument| redaction::has_mark(argument))
    {
        let name = program.map(|name| String::from_utf8_lossy(base_name(name)).into_owned());
        notes.insert(format!(
            "an argument of {} was redacted: put yours in its place",
            name.unwrap_or_default()
        ));
    }
    stage = as_written(stage);
    redirections(recording, root, known, &mut stage);
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

/// A command as somebody wrote it: what a shell was given with `-c`, without that shell, where any other says the same by it.
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
        b"sh" | b"dash" => Word::Shell(line.into()),
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

/// Snakemake puts this before every command; it says nothing of one that has no variables and nothing that comes after it.
fn without_strictness(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"set -euo pipefail;")?.trim_ascii();
    (!rest.is_empty() && !rest.iter().any(|byte| b";$`".contains(byte))).then_some(rest)
}

/// True if a value means the same in every language that sets variables: no quotes, dollars or comments, no blanks at its ends.
pub fn is_plain_value(value: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b" %+,-./:=@_".contains(byte);
    value.iter().all(plain) && !value.starts_with(b" ") && !value.ends_with(b" ")
}

fn environment(recording: &Recording, root: usize, notes: &mut BTreeSet<String>) -> Vec<Word> {
    let (set, gone) = recording.environment(root);
    let mut words = Vec::new();
    let gone: Vec<Bytes> = gone
        .into_iter()
        .filter(|name| !NOISE.contains(&&**name))
        .collect();
    let mut odd = !gone.is_empty();
    for (name, value) in set.iter().filter_map(|pair| split(pair)) {
        if NOISE.contains(&name) {
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
    // A name the shell cannot assign to, or one to be taken away, is for env(1).
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

fn redirections(recording: &Recording, root: usize, known: &Known<'_>, words: &mut Vec<Word>) {
    let Known {
        outside,
        opened,
        piped,
    } = known;
    let cwd = &recording.activities[root].cwd;
    let [input, output, errors] = recording.standard[root];
    let file = |id: EntityId| {
        let entity = recording.entity(id);
        let named = entity.kind == EntityKind::File || *entity.path == *b"/dev/null";
        (named && !outside.contains(&id)).then(|| Bytes::from(relative(&entity.path, cwd)))
    };
    // What was appended to a file that was not there is what made it.
    let appends = |end: End| {
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
    // What a builder takes in by a pipe, it only shows.
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
    fn of_several_commands_none_is_run_elsewhere_where_the_directory_is_missing() {
        let line = |words: Vec<Word>| Line {
            cwd: b"/w/x".as_slice().into(),
            words,
            exit: 0,
        };
        let shell = |text: &str| line(vec![Word::Shell(text.as_bytes().into())]).shell(b"/w");
        assert_eq!(shell("a; b"), "cd x || exit 1; a; b");
        assert_eq!(shell("a || b"), "cd x || exit 1; a || b");
        assert_eq!(shell("a b"), "cd x && a b");
        let plain = vec![
            Word::Program(b"a".as_slice().into()),
            Word::Text(b"b;c".as_slice().into()),
        ];
        assert_eq!(line(plain).shell(b"/w"), "cd x && a 'b;c'");
    }
}
