//! Proofs from the texts of programs: a script that contains no word for listing lists nothing.
//!
//! In: an activity whose program interprets text. Out: facts about all text that it can have
//! interpreted: the words of `-c` and the own files that it read. A text that has changed proves
//! nothing; the changed file is a reason by itself.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use backstory_eventlog::event::Bytes;
use backstory_files::regular;
use backstory_graph::model::{Edge, Entity, EntityId, EntityKind, Relation};
use backstory_query::try_present_identity;
use backstory_store::RunKey;
use backstory_workflow::paths::{contains, is_tool, to_path};
use backstory_workflow::recording::Recording;
use backstory_workflow::steps::{ShellCall, is_interpreted};

use crate::name_patterns::NamePatterns;

/// The largest text that is searched, in bytes. A larger one proves nothing.
const MOST: u64 = 1 << 20;

/// Words by which programs in scripting languages list a directory.
const LISTING: [&[u8]; 9] = [
    b"glob", b"listdir", b"scandir", b"walk", b"iterdir", b"readdir", b"opendir", b"import(",
    b"exec(",
];

/// The run and the activity whose text is searched, and the words.
type TextQuestion = (RunKey, usize, &'static [&'static [u8]]);

/// Reads texts. Each file is read once.
#[derive(Debug, Default)]
pub struct ProgramTexts {
    files: RefCell<HashMap<Bytes, Option<Rc<Vec<u8>>>>>,
    /// Answers, by run, activity and the words that were searched.
    known: RefCell<HashMap<TextQuestion, bool>>,
}

impl ProgramTexts {
    /// True if the program interprets text that contains no word for listing directories.
    pub fn lists_nothing(&self, recording: &Recording, at: usize) -> bool {
        let Some(texts) = self.of(recording, at) else {
            return false;
        };
        let lists = |text: &Rc<Vec<u8>>| LISTING.iter().any(|word| contains(text, word));
        !texts.is_empty() && !texts.iter().any(lists)
    }

    /// The names that the rules that a builder read may match by a pattern.
    pub fn rules(&self, recording: &Recording, at: usize) -> NamePatterns {
        match self.of(recording, at) {
            Some(texts) => NamePatterns::of_rules(texts),
            None => NamePatterns::all(),
        }
    }

    /// The names that the rules in the files that a builder read certainly may match. `has_rules`:
    /// true for a file with rules.
    pub fn certain_rules(
        &self,
        recording: &Recording,
        at: usize,
        has_rules: impl Fn(&Entity) -> bool,
    ) -> NamePatterns {
        let files = recording.edges[at].iter().filter_map(|edge| {
            let entity = recording.entity(edge.entity);
            let is_text = edge.relation == Relation::Read && entity.kind == EntityKind::File;
            (is_text && has_rules(entity)).then(|| self.file(&entity.path))?
        });
        NamePatterns::of_rules(files.collect())
    }

    /// True if one of the words is in the text that a shell interprets, or if that is not known.
    pub fn may_contain(
        &self,
        recording: &Recording,
        at: usize,
        words: &'static [&'static [u8]],
    ) -> bool {
        self.once((recording.key, at, words), || {
            let has = |text: &Rc<Vec<u8>>| words.iter().any(|word| contains(text, word));
            let texts = self.shell(recording, at);
            texts.is_none_or(|texts| texts.iter().any(has))
        })
    }

    /// True if one of the words certainly is in the text that a shell interprets.
    pub fn mentions(
        &self,
        recording: &Recording,
        at: usize,
        words: &'static [&'static [u8]],
    ) -> bool {
        let has = |text: &Rc<Vec<u8>>| words.iter().any(|word| contains(text, word));
        let texts = self.shell(recording, at);
        texts.is_some_and(|texts| texts.iter().any(has))
    }

    /// The answer to a question that is asked for each use of a file.
    fn once(&self, key: TextQuestion, find: impl FnOnce() -> bool) -> bool {
        if let Some(known) = self.known.borrow().get(&key) {
            return *known;
        }
        let found = find();
        self.known.borrow_mut().insert(key, found);
        found
    }

    /// True if the text of a shell uses the status of no command that it starts: the next command
    /// runs whatever the status is.
    pub fn ignores_statuses(&self, recording: &Recording, at: usize) -> bool {
        self.once((recording.key, at, &DECIDING), || {
            let options = recording.activities[at].argv.iter().skip(1);
            let mut options = options.take_while(|word| word.starts_with(b"-"));
            if options.any(|option| !option.starts_with(b"--") && option.contains(&b'e')) {
                return false;
            }
            let texts = self.shell(recording, at);
            texts.is_some_and(|texts| texts.iter().all(|text| !uses_status(text)))
        })
    }

    /// True if the text of a shell uses a status only to end after an error: `set -e`.
    pub fn only_ends_by_status(&self, recording: &Recording, at: usize) -> bool {
        let texts = self.shell(recording, at);
        texts.is_some_and(|texts| {
            texts
                .iter()
                .all(|text| !uses_status(&without_options(&unquoted(text))))
        })
    }

    /// The script of an activity and its text, if the file is still as it was read.
    pub fn script(
        &self,
        recording: &Recording,
        at: usize,
        path: &[u8],
    ) -> Option<(EntityId, Rc<Vec<u8>>)> {
        let read = recording.edges[at].iter().find_map(|edge| {
            let entity = recording.entity(edge.entity);
            let mut names = std::iter::once(&entity.path).chain(&entity.aliases);
            let is_read = matches!(edge.relation, Relation::Read | Relation::Execute);
            (is_read && names.any(|name| **name == *path)).then_some(entity)
        })?;
        Some((read.id, self.unchanged(read)?))
    }

    /// The text of a file that is still as it was read.
    pub fn unchanged(&self, read: &Entity) -> Option<Rc<Vec<u8>>> {
        let now = try_present_identity(to_path(&read.path), true).ok()?;
        let is_same = read.ident?.version_id() == now.version_id();
        is_same.then(|| self.file(&read.path))?
    }

    /// The text of a shell: its script or the word of `-c`, and the own files that it read. A file
    /// that it opened as the standard input of a program is data. `None`
    /// if its commands come from standard input, or a text cannot be read now.
    fn shell(&self, recording: &Recording, at: usize) -> Option<Vec<Rc<Vec<u8>>>> {
        let argv = &recording.activities[at].argv;
        let arguments = argv.iter().skip(1).map(|word| &**word);
        if matches!(ShellCall::of(arguments), ShellCall::Input) && !is_interpreted(recording, at) {
            return None;
        }
        let words = argv.iter().map(|word| word.to_vec());
        let mut texts = vec![Rc::new(words.collect::<Vec<_>>().join(&b'\n'))];
        for at in forked_from(recording, at) {
            let inputs = inputs_of_children(recording, at);
            for edge in &recording.edges[at] {
                let entity = recording.entity(edge.entity);
                let is_text = edge.relation == Relation::Read && entity.kind == EntityKind::File;
                if is_text && !is_tool(&entity.path) && !inputs.contains(&edge.entity) {
                    texts.push(self.file(&entity.path)?);
                }
            }
        }
        Some(texts)
    }

    /// All text that the activity can have interpreted: its words, and the own files that it read.
    /// `None` if it read a channel, or a file that cannot be read now.
    fn of(&self, recording: &Recording, at: usize) -> Option<Vec<Rc<Vec<u8>>>> {
        let argv = &recording.activities[at].argv;
        let words = argv.iter().map(|word| word.to_vec());
        let words = words.collect::<Vec<_>>().join(&b'\n');
        let mut texts = vec![Rc::new(words)];
        let all = forked_from(recording, at).flat_map(|at| &recording.edges[at]);
        for edge in all {
            let entity = recording.entity(edge.entity);
            if edge.relation != Relation::Read || is_tool(&entity.path) {
                continue;
            }
            match entity.kind {
                EntityKind::File => texts.push(self.file(&entity.path)?),
                EntityKind::Pipe | EntityKind::Socket => return None,
                _ => {}
            }
        }
        Some(texts)
    }

    fn file(&self, path: &Bytes) -> Option<Rc<Vec<u8>>> {
        if let Some(known) = self.files.borrow().get(path) {
            return known.clone();
        }
        let is_small = std::fs::metadata(to_path(path)).is_ok_and(|found| found.len() <= MOST);
        let text = is_small
            .then(|| regular::read(to_path(path)).ok())
            .flatten();
        let text = text.map(Rc::new);
        self.files.borrow_mut().insert(path.clone(), text.clone());
        text
    }
}

/// The activity and those that it was forked from, back to the one that executed its program. A
/// subshell has the text that its shell read.
fn forked_from(recording: &Recording, at: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(at), |&at| {
        let activity = &recording.activities[at];
        let parent = activity.parent.filter(|_| activity.epoch == 0)?;
        Some(parent.0 as usize)
    })
}

/// The standard inputs of the programs that an activity started and that read them.
pub fn inputs_of_children(recording: &Recording, at: usize) -> HashSet<EntityId> {
    let input = |at: usize| recording.standard[at].input.map(|end| end.entity);
    let mut found = HashSet::new();
    let mut waiting: Vec<(usize, EntityId)> = Vec::new();
    for &child in &recording.children[at] {
        waiting.extend(input(child).map(|entity| (child, entity)));
    }
    while let Some((at, entity)) = waiting.pop() {
        let reads = |edge: &Edge| edge.entity == entity && edge.relation == Relation::Read;
        if found.contains(&entity) {
            continue;
        }
        if recording.edges[at].iter().any(reads) {
            found.insert(entity);
            continue;
        }
        let below = recording.children[at].iter();
        waiting.extend(
            below
                .filter(|child| input(**child) == Some(entity))
                .map(|child| (*child, entity)),
        );
    }
    found
}

/// Words of shells by which a status can decide, or by which other text is interpreted.
const DECIDING: [&[u8]; 13] = [
    b"if",
    b"elif",
    b"while",
    b"until",
    b"eval",
    b"source",
    b"trap",
    b"set",
    b"shopt",
    b"wait",
    b"PIPESTATUS",
    b"return",
    b"alias",
];

/// A shell's text without comments and what is between single quotes: no sign there is one of the
/// shell. A text with a here-document or `$'…'` is not understood, and stays as it is.
fn unquoted(text: &[u8]) -> Vec<u8> {
    if contains(text, b"<<") || contains(text, b"$'") {
        return text.to_vec();
    }
    let mut out: Vec<u8> = Vec::new();
    let mut bytes = text.iter().copied();
    let mut is_double = false;
    while let Some(byte) = bytes.next() {
        let begins_word = out.last().is_none_or(|last| b" \t\n;&|()".contains(last));
        match byte {
            b'\\' => drop(bytes.next()),
            b'"' => is_double = !is_double,
            b'\'' if !is_double => bytes
                .by_ref()
                .take_while(|byte| *byte != b'\'')
                .for_each(drop),
            b'#' if !is_double && begins_word => {
                bytes
                    .by_ref()
                    .take_while(|byte| *byte != b'\n')
                    .for_each(drop);
                out.push(b'\n');
            }
            byte => out.push(byte),
        }
    }
    out
}

/// A shell's text without the commands that set options (`set -eu`) or read a script. The text of
/// such a script counts for itself.
fn without_options(text: &[u8]) -> Vec<u8> {
    let commands = text.split(|byte| matches!(byte, b'\n' | b';'));
    let others = commands.filter(|command| {
        let words = command.trim_ascii().strip_prefix(b"set ");
        let mut words = words
            .into_iter()
            .flat_map(|words| words.split(|byte| *byte == b' '));
        let is_option = |word: &[u8]| word.starts_with(b"-") || word.starts_with(b"+");
        !words.next().is_some_and(is_option) && !command.trim_ascii().starts_with(b". ")
    });
    others.collect::<Vec<_>>().join(&b'\n')
}

/// True if a shell's text may use the status of a command. The search is by words and characters,
/// so it may take a quoted text for a command, and never the other way round.
fn uses_status(text: &[u8]) -> bool {
    let mut rest = text;
    // `cd DIRECTORY && …` at the begin of a command tests a builtin.
    for line in text.split(|byte| matches!(byte, b'\n' | b';')) {
        let line = line.trim_ascii();
        if line.starts_with(b". ") {
            return true;
        }
        let ands = memchr::memmem::find_iter(line, b"&&").count();
        if ands > usize::from(line.starts_with(b"cd ")) {
            return true;
        }
    }
    if contains(text, b"||")
        || contains(text, b"$?")
        || contains(text, b"${?")
        || has_negation(text)
    {
        return true;
    }
    while !rest.is_empty() {
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let end = rest.iter().position(|byte| !is_word(byte));
        let word = &rest[..end.unwrap_or(rest.len())];
        if DECIDING.contains(&word) {
            return true;
        }
        rest = &rest[end.map_or(rest.len(), |end| end + 1)..];
    }
    false
}

/// True for a `!` that may be the reserved word. The `#!` of the first line does not count.
fn has_negation(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"#!").unwrap_or(text);
    memchr::memchr(b'!', text).is_some()
}

#[cfg(test)]
mod tests {
    use super::{unquoted, uses_status, without_options};

    #[test]
    fn an_option_and_a_quoted_sign_use_no_status() {
        for text in [
            "set -e\nsed 's/$/!/' a > b",
            "#!/bin/sh\n# Don't go on if a fails!\nset -eu\na\nb \"it's\"",
        ] {
            let text = without_options(&unquoted(text.as_bytes()));
            assert!(!uses_status(&text), "{}", String::from_utf8_lossy(&text));
        }
        for text in ["set -e; a 'x' && b", "a \"'\" || b \"'\"", "a \\' || b '"] {
            let rest = without_options(&unquoted(text.as_bytes()));
            assert!(uses_status(&rest), "{text}");
        }
    }

    #[test]
    fn a_text_with_a_condition_uses_statuses() {
        for text in [
            "grep -q a f && b",
            "a || b",
            "if a; then b; fi",
            "while a; do b; done",
            "a; echo $?",
            "a; case $? in 1) b;; esac",
            "set -e; a",
            "! a",
            "eval b",
            ". lib.sh",
            "a; trap b EXIT",
            "cd d && a && b",
            "until a; do b; done",
            "x=$(a) && b",
        ] {
            assert!(uses_status(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn a_text_of_plain_commands_uses_no_status() {
        for text in [
            "grep . one > a; grep . two > b; cat a b > c",
            "diff a b > d\nsort d > e",
            "for i in 1 2; do ./own $i > o$i; done",
            "cd sub && sort ../in > out; uniq out out2",
            "x=$(cat n); head -n $x data > out",
        ] {
            assert!(!uses_status(text.as_bytes()), "{text}");
        }
    }
}
