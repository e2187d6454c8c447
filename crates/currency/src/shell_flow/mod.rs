//! The flow through the text of a shell: the children that can depend on what it took in.
//!
//! A shell computes the words of a command from what earlier commands printed. Without its text,
//! each child depends on all that the shell took in before. With the text, a child depends on it
//! only if the child's statement is the same one, or uses state that may come from there.
//!
//! In: the record of a shell, and its text. Out: a [`ShellFlow`].
//!
//! - [`text`] and [`reader`] read the text as [`statements`].
//! - [`flow`] says which statements depend on which.
//! - [`events`] finds the statement of each child.
//!
//! `docs/influence.md` states the rules, under "Statements of a script".
//!
//! Invariant: there is no flow for a text that is not understood, or that may not be the one that
//! the shell executed. Then everything counts.

mod arguments;
mod builtins;
mod events;
mod flow;
mod reader;
mod statements;
mod text;

use std::collections::HashSet;
use std::rc::Rc;

use backstory_eventlog::event::Time;
use backstory_graph::model::{Edge, Entity, EntityId, EntityKind, Interval, Relation};
use backstory_workflow::paths::{base_name, contains, is_system};
use backstory_workflow::recording::{Recording, split};
use backstory_workflow::steps::{is_interpreted, names_shell, program, script};
use rustc_hash::FxHashSet;

use crate::name_patterns::NamePatterns;
use crate::program_texts::ProgramTexts;
use events::Children;
pub use events::Range;
use flow::Flow;
use statements::{Dialect, Statement, option_letters};
use text::parse;

/// The largest text that is read, in bytes.
const MOST: usize = 64 << 10;

/// Variables that make a shell read another text, or change what its text means.
const READ_AT_START: [&str; 3] = ["BASH_ENV", "SHELLOPTS", "BASHOPTS"];

/// Statements that gave something out, by number.
pub type Statements = FxHashSet<usize>;

/// The flow through the text of one shell.
#[derive(Debug)]
pub struct ShellFlow {
    shell: usize,
    /// The script, if the text is not among the words of the shell.
    script: Option<EntityId>,
    statements: Vec<Statement>,
    /// Their texts without quotes.
    plain: Vec<String>,
    flow: Flow,
    children: Children,
}

impl ShellFlow {
    /// The flow of an activity, if it is a shell whose text is understood.
    pub fn of(recording: &Recording, texts: &ProgramTexts, at: usize) -> Option<ShellFlow> {
        let activity = &recording.activities[at];
        let dialect = dialect(recording, at)?;
        if activity.epoch == 0 || !activity.lookups_known {
            return None;
        }
        let environment = environment(recording, at)?;
        let (script, text, letters) = text_of(recording, texts, at)?;
        if text.len() > MOST {
            return None;
        }
        let text = parse(std::str::from_utf8(&text).ok()?, dialect, &letters)?;
        let interprets = text.statements.iter().any(|one| one.interprets);
        if shares_input(recording, at) || interprets && may_define(recording, texts, at, script) {
            return None;
        }
        let children = Children::of(recording, at, &text.statements)?;
        let unquoted = |one: &Statement| one.text.replace(['\'', '"', '\\'], "");
        Some(ShellFlow {
            shell: at,
            plain: text.statements.iter().map(unquoted).collect(),
            script,
            flow: Flow::of(&text, &environment)?,
            statements: text.statements,
            children,
        })
    }

    /// The statements that can have started a child.
    pub fn child(&self, activity: usize) -> Option<Statements> {
        self.children.child(activity).map(numbers)
    }

    /// The statements that the shell can have executed in an interval.
    pub fn during(&self, start: Time, end: Time) -> Statements {
        numbers(self.children.during(start, end))
    }

    /// The statements that can have made a file in an interval: those with a redirection to it. Any
    /// statement may write to a file that the shell inherited, or opened by `exec`.
    pub fn made(&self, recording: &Recording, file: &Entity, start: Time, end: Time) -> Statements {
        let all = self.during(start, end);
        let standard = recording.standard[self.shell].all();
        let mut inherited = standard.iter().flatten();
        if inherited.any(|end| recording.entity(end.entity).path == file.path) {
            return all;
        }
        let names = names_of(file);
        let may_be = |target: &Option<String>| {
            let target = target.as_ref();
            target.is_none_or(|target| names.contains(&base_name(target.as_bytes())))
        };
        let opens = |one: &Statement| one.opens && one.targets.iter().any(may_be);
        if self.statements.iter().any(opens) {
            return all;
        }
        let makes = |at: &&usize| self.statements[**at].targets.iter().any(may_be);
        let some: Statements = all.iter().filter(makes).copied().collect();
        match some.is_empty() {
            true => all,
            false => some,
        }
    }

    /// The statements that can have taken something in. `None`: it counts for all. `makers`: the
    /// activities that made it.
    pub fn taking(
        &self,
        recording: &Recording,
        edge: &Edge,
        makers: &[(usize, Interval)],
    ) -> Option<Range> {
        let entity = recording.entity(edge.entity);
        let during = || self.children.during(edge.interval.start, edge.interval.end);
        if edge.relation == Relation::Execute || Some(edge.entity) == self.script {
            return None;
        }
        if edge.relation == Relation::List {
            let interval = edge.interval;
            return self.listing(self.children.expanding(interval.start, interval.end));
        }
        match entity.kind {
            EntityKind::Pipe => self.pipe(recording, makers, during()),
            EntityKind::File
            | EntityKind::Directory
            | EntityKind::Symlink
            | EntityKind::Missing => {
                let is_search = self.is_command(&entity.path)
                    && matches!(edge.relation, Relation::Missing | Relation::Stat);
                if is_system(&entity.path) || is_search {
                    return None;
                }
                self.named(&names_of(entity), during())
            }
            _ => None,
        }
    }

    /// The statements that can have heard of an activity. `None`: all.
    pub fn heard(&self, recording: &Recording, from: usize) -> Option<Range> {
        self.children.child(self.child_above(recording, from)?)
    }

    /// The names that the shell may have taken from a directory for some of its statements.
    pub fn patterns(&self, by: Option<Range>) -> NamePatterns {
        let texts = by.map(|(first, last)| self.statements[first..=last].iter());
        let patterns = texts.and_then(|texts| {
            let all: Option<Vec<Vec<&str>>> = texts.map(|one| patterns(&one.text)).collect();
            all.map(|all| all.concat())
        });
        match patterns {
            Some(patterns) if !patterns.is_empty() => NamePatterns::of(patterns),
            _ => NamePatterns::all(),
        }
    }

    /// True if what one of the statements `to` gave out can depend on what one of `from` took in.
    pub fn leads(&self, from: Option<Range>, to: &Statements, is_status: bool) -> bool {
        from.is_none_or(|from| self.flow.leads(from, to, is_status))
    }

    /// The statements that can have read from a pipe: those whose children wrote to it.
    fn pipe(
        &self,
        recording: &Recording,
        writers: &[(usize, Interval)],
        during: Range,
    ) -> Option<Range> {
        let mut found: Option<Range> = None;
        for (writer, _) in writers {
            let one = match *writer == self.shell {
                true => during,
                false => self.heard(recording, *writer)?,
            };
            found = Some(found.map_or(one, |(first, last)| (first.min(one.0), last.max(one.1))));
        }
        found
    }

    /// Of some statements, the first and the last one that can have a pattern of names.
    fn listing(&self, (first, last): Range) -> Option<Range> {
        let expands = |at: &usize| self.plain[*at].contains(['$', '`', '*', '?', '[', '(']);
        let some: Vec<usize> = (first..=last).filter(expands).collect();
        Some((*some.first()?, *some.last()?))
    }

    /// Of some statements, the first and the last one whose text may have led to a file. `None`: no
    /// text names the file.
    fn named(&self, known: &[&[u8]], (first, last): Range) -> Option<Range> {
        let names = |at: &usize| {
            let text = self.plain[*at].as_bytes();
            known.iter().any(|name| contains(text, name))
        };
        let is_empty = known.iter().any(|name| name.is_empty());
        if is_empty || !(0..self.plain.len()).any(|at| names(&at)) {
            return None;
        }
        let expands = |at: &usize| self.plain[*at].contains(['$', '`', '*', '?', '[', '{', '~']);
        let some = (first..=last).filter(|at| names(at) || expands(at));
        let some: Vec<usize> = some.collect();
        Some(match (some.first(), some.last()) {
            (Some(first), Some(last)) => (*first, *last),
            _ => (first, last),
        })
    }

    /// True if a path has the name of a command. A shell searches a command once only.
    fn is_command(&self, path: &[u8]) -> bool {
        let name = base_name(path);
        let mut programs = self.statements.iter().flat_map(|one| &one.programs);
        programs.any(|program| {
            let first = program.first().and_then(Option::as_deref);
            first.is_none_or(|first| base_name(first.as_bytes()) == name)
        })
    }

    /// The child of the shell from which an activity comes.
    fn child_above(&self, recording: &Recording, activity: usize) -> Option<usize> {
        let parent = |at: &usize| {
            let parent = recording.activities[*at].parent?.0 as usize;
            (parent != *at).then_some(parent)
        };
        let mut line = std::iter::successors(Some(activity), parent);
        line.find(|at| parent(at) == Some(self.shell))
    }
}

/// Later gives of a shell, and the flow to them.
#[derive(Debug, Clone)]
pub struct Given {
    /// The flow.
    pub flow: Rc<ShellFlow>,
    /// The statements that gave something out.
    pub by: Statements,
}

/// The names of a file, without directories: also those of links that led to it.
fn names_of(file: &Entity) -> Vec<&[u8]> {
    let all = std::iter::once(&file.path).chain(&file.aliases);
    all.map(|path| base_name(path)).collect()
}

/// True if the shell's standard input has an offset that its statements share: one of them may
/// have read from it.
fn shares_input(recording: &Recording, at: usize) -> bool {
    let Some(input) = recording.standard[at].input else {
        return false;
    };
    let kind = recording.entity(input.entity).kind;
    let reads = |edge: &Edge| edge.entity == input.entity && edge.relation == Relation::Read;
    kind != EntityKind::Device && recording.edges.iter().flatten().any(reads)
}

/// True if a file that the shell read may define functions or other names of commands, or set
/// options or what is exported.
fn may_define(
    recording: &Recording,
    texts: &ProgramTexts,
    at: usize,
    script: Option<EntityId>,
) -> bool {
    let signs: [&[u8]; 12] = [
        b"()",
        b"function",
        b"alias",
        b"eval",
        b"trap",
        b"set ",
        b"export",
        b"declare",
        b"typeset",
        b"shopt",
        b"exec",
        b"builtin",
    ];
    let files = recording.edges[at].iter().filter(|edge| {
        let entity = recording.entity(edge.entity);
        let is_text = edge.relation == Relation::Read && entity.kind == EntityKind::File;
        is_text && Some(edge.entity) != script && !is_library(&entity.path)
    });
    let mut files = files.map(|edge| recording.entity(edge.entity));
    files.any(|file| {
        let text = texts.unchanged(file);
        text.is_none_or(|text| signs.iter().any(|sign| contains(&text, sign)))
    })
}

/// True for a file that the loader or libc reads into each program.
fn is_library(path: &[u8]) -> bool {
    let name = base_name(path);
    contains(name, b".so") || contains(path, b"/locale") || name == b"ld.so.cache"
}

fn numbers((first, last): Range) -> Statements {
    (first..=last).collect()
}

/// The patterns of names in a text. `None`: a pattern may be in a value.
fn patterns(text: &str) -> Option<Vec<&str>> {
    let mut found = Vec::new();
    for word in text.split([' ', '\t', '\n', ';', '|', '&', '<', '>']) {
        let word = word.trim_start_matches("$?").trim_end_matches(')');
        let is_quoted = word.len() > 1
            && (word.starts_with('"') && word.ends_with('"') || word.starts_with('\''))
            && !word[1..word.len() - 1].contains(['"', '\'']);
        if is_quoted || word == "[" || word == "[[" {
            continue;
        }
        let signs = ['*', '?', '['];
        if word.contains(['$', '`']) || word.contains(signs) && word.contains(['[', '{', '(', '\\'])
        {
            return None;
        }
        let parts = word.split('/').filter(|part| part.contains(signs));
        for part in parts {
            if part.contains("**") {
                return None;
            }
            found.push(part.trim_matches(['"', '\'']));
        }
    }
    Some(found)
}

/// Which shell an activity is.
fn dialect(recording: &Recording, at: usize) -> Option<Dialect> {
    let executed = recording.edges[at].iter();
    let executed = executed.filter(|edge| edge.relation == Relation::Execute);
    let executed = executed.map(|edge| &*recording.entity(edge.entity).path);
    let names = executed.chain([program(recording, at)]).map(base_name);
    let names: HashSet<&[u8]> = names.collect();
    let has = |name: &str| names.contains(name.as_bytes());
    match (has("bash"), has("dash") || has("sh")) {
        (true, _) => Some(Dialect::Bash),
        (false, true) => Some(Dialect::Sh),
        (false, false) => None,
    }
}

/// The names of the variables with which a shell began. `None`: they are not known, or one of them
/// makes the shell read another text.
fn environment(recording: &Recording, at: usize) -> Option<HashSet<String>> {
    let line = std::iter::once(at).chain(recording.ancestors(at));
    let set = line.flat_map(|at| &recording.activities[at].env_set);
    let all = recording.details.environment.iter().chain(set);
    let names = all.filter_map(|pair| split(pair));
    let names = names.map(|(name, _)| String::from_utf8_lossy(name).into_owned());
    let names: HashSet<String> = names.collect();
    let has_function = names.iter().any(|name| name.starts_with("BASH_FUNC_"));
    let is_known = !recording.details.environment.is_empty();
    let reads = READ_AT_START.iter().any(|name| names.contains(*name));
    (is_known && !has_function && !reads).then_some(names)
}

/// The text of a shell: its script, if it is one, the text, and the letters of its options.
fn text_of(
    recording: &Recording,
    texts: &ProgramTexts,
    at: usize,
) -> Option<(Option<EntityId>, Vec<u8>, String)> {
    let argv = &recording.activities[at].argv;
    let words = argv.iter().map(|word| std::str::from_utf8(word).ok());
    let words: Vec<&str> = words.collect::<Option<_>>()?;
    // `sh` is a link to dash, and no script of dash.
    if is_interpreted(recording, at) && !names_shell(program(recording, at)) {
        let (script, text) = texts.script(recording, at, &script(recording, at)?)?;
        let first = text.split(|byte| *byte == b'\n').next()?;
        let first = std::str::from_utf8(first.strip_prefix(b"#!")?).ok()?;
        let mut options = first.trim().splitn(2, [' ', '\t']).skip(1);
        let letters = match options.next().map(str::trim) {
            None => String::new(),
            Some(option) => option_letters(std::iter::once(option))?,
        };
        return Some((Some(script), text.to_vec(), letters));
    }
    let arguments = words.get(1..)?;
    let (options, rest) = arguments.split_at(options_end(arguments));
    let options = options.iter().copied();
    let options = options.filter(|word| !["--norc", "--noprofile", "--posix", "--"].contains(word));
    let without_c = |word: &str| word.replace('c', "");
    let has_c = options
        .clone()
        .any(|word| word.starts_with('-') && word.contains('c'));
    let options: Vec<String> = options.map(without_c).filter(|word| word != "-").collect();
    let letters = match options.is_empty() {
        true => String::new(),
        false => option_letters(options.iter().map(String::as_str))?,
    };
    let first = *rest.first()?;
    if has_c {
        return Some((None, first.as_bytes().to_vec(), letters));
    }
    let (script, text) = texts.script(recording, at, &script(recording, at)?)?;
    Some((Some(script), text.to_vec(), letters))
}

/// The number of words of a shell that are options, or belong to one.
fn options_end(arguments: &[&str]) -> usize {
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        match *word {
            "--" => return at + 1,
            "-o" | "+o" => at += 2,
            word if word.starts_with(['-', '+']) => at += 1,
            _ => break,
        }
    }
    at.min(arguments.len())
}
