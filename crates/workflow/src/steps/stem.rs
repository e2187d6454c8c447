//! The part of a name in which steps may differ.
//!
//! In: a step and a stem. Out: the step with [`STEM`] in place of the stem, wherever the stem
//! stands for a file's name.

use backstory_ordering::SmallCollect;
use std::collections::BTreeSet;

use backstory_eventlog::event::Bytes;

use super::{Line, Step, Word};
use crate::paths::{absolute, base_name};
pub use crate::shell::STEM;

/// The possible stems of a step: the parts of its first output's name, cut at `.`, `-` and `_` and
/// between letters and digits.
pub fn stems(step: &Step) -> Vec<String> {
    let Some(Ok(name)) = step
        .outputs
        .first()
        .map(|path| std::str::from_utf8(base_name(path)))
    else {
        return Vec::new();
    };
    let mut cuts: BTreeSet<usize> = [0, name.len()].into();
    let mut before: Option<char> = None;
    for (at, c) in name.char_indices() {
        let mark = |c: char| ".-_".contains(c);
        if mark(c)
            || before.is_some_and(|before| mark(before) || before.is_numeric() != c.is_numeric())
        {
            cuts.insert(at);
        }
        before = Some(c);
    }
    let mut stems = BTreeSet::new();
    for &start in &cuts {
        for &end in cuts.iter().filter(|&&end| end > start) {
            stems.insert(name[start..end].to_owned());
        }
    }
    // Characters that mean nothing in make, ninja, snakemake and nextflow.
    let plain = |stem: &String| {
        stem.starts_with(char::is_alphanumeric)
            && stem.ends_with(char::is_alphanumeric)
            && stem
                .chars()
                .all(|c| c.is_alphanumeric() || "-_.+".contains(c))
    };
    stems.into_iter().filter(plain).take(64).collect()
}

/// The step with its stem replaced; `None` if one of its outputs does not have the stem. Inputs are
/// left out.
pub fn template(step: &Step, stem: &str) -> Option<Step> {
    let replace = |path: &Bytes| replaced(path, stem);
    let outputs: Option<Vec<Bytes>> = step.outputs.iter().map(replace).collect();
    let outputs = outputs?;
    let files: BTreeSet<&[u8]> = step
        .inputs
        .iter()
        .chain(&step.outputs)
        .map(|path| &**path)
        .into_tree();
    let line = |line: &Line| Line {
        cwd: line.cwd.clone(),
        words: line
            .words
            .iter()
            .map(|word| word_of(word, &line.cwd, stem, &files))
            .collect(),
        exit: line.exit,
    };
    Some(Step {
        name: String::new(),
        lines: step.lines.iter().map(line).collect(),
        // Added once all instances are known.
        inputs: Vec::new(),
        tools: Vec::new(),
        outputs,
        directories: step.directories.clone(),
        own_directories: step.own_directories.clone(),
        start: 0,
        end: 0,
        run: 0,
        members: Vec::new(),
    })
}

fn word_of(word: &Word, cwd: &[u8], stem: &str, files: &BTreeSet<&[u8]>) -> Word {
    match word {
        Word::Text(text)
            if names_file(text, cwd, files)
                || is_called(text, stem)
                || **text == *stem.as_bytes() =>
        {
            Word::Text(replaced(text, stem).unwrap_or_else(|| text.clone()))
        }
        Word::Program(name) if names_file(name, cwd, files) => {
            Word::Program(replaced(name, stem).unwrap_or_else(|| name.clone()))
        }
        Word::Shell(text) => Word::Shell(shell_text(text, cwd, stem, files)),
        other => other.clone(),
    }
}

/// True if the word is a file's name, or ends with one, as in `--output=FILE`, `of=FILE`, `-oFILE`.
fn names_file(word: &[u8], cwd: &[u8], files: &BTreeSet<&[u8]>) -> bool {
    let after = |byte: u8| {
        word.iter()
            .position(|&b| b == byte)
            .map(|at| &word[at + 1..])
    };
    let parts = [
        Some(word),
        after(b'='),
        after(b':'),
        word.get(2..).filter(|_| word.starts_with(b"-")),
    ];
    parts
        .into_iter()
        .flatten()
        .any(|part| !part.is_empty() && files.contains(absolute(part, cwd).as_slice()))
}

/// True if the word's file name is the stem and endings, as `.deps/STEM.Tpo`, which is neither
/// input nor output of a step.
fn is_called(word: &[u8], stem: &str) -> bool {
    let name = base_name(word);
    let hidden = name.strip_prefix(b".").unwrap_or(name);
    hidden
        .strip_prefix(stem.as_bytes())
        .is_some_and(|rest| rest.starts_with(b"."))
}

/// Shell language with the stem replaced in each word that names a file.
fn shell_text(text: &[u8], cwd: &[u8], stem: &str, files: &BTreeSet<&[u8]>) -> Bytes {
    let mut out = Vec::new();
    let is_end = |byte: u8| b" \t\n;|&<>()'\"`$=".contains(&byte);
    for part in text.split_inclusive(|&byte| is_end(byte)) {
        let (word, end) = match part.last() {
            Some(&last) if is_end(last) => part.split_at(part.len() - 1),
            _ => (part, &[][..]),
        };
        let named = !word.is_empty() && files.contains(absolute(word, cwd).as_slice())
            || is_called(word, stem);
        match replaced(word, stem).filter(|_| named) {
            Some(new) => out.extend_from_slice(&new),
            None => out.extend_from_slice(word),
        }
        out.extend_from_slice(end);
    }
    out.into()
}

/// `name` with [`STEM`] for a `stem` that stands alone in it.
///
/// A stem stands alone if no letter continues its letters, and no digit its digits.
pub fn replaced(name: &[u8], stem: &str) -> Option<Bytes> {
    let name = std::str::from_utf8(name).ok()?;
    // The 1 of `in1.txt` stands alone, that of `in12.txt` does not.
    let goes_on = |a: Option<char>, b: Option<char>| match (a, b) {
        (Some(a), Some(b)) => {
            a.is_alphabetic() && b.is_alphabetic() || a.is_numeric() && b.is_numeric()
        }
        _ => false,
    };
    let alone = |at: usize| {
        let (before, after) = (&name[..at], &name[at + stem.len()..]);
        !goes_on(before.chars().next_back(), stem.chars().next())
            && !goes_on(stem.chars().next_back(), after.chars().next())
    };
    // The first one in the last component: the stem of `src/c.c` is not its ending.
    let base = name.rfind('/').map_or(0, |at| at + 1);
    let all = || {
        name.match_indices(stem)
            .map(|(at, _)| at)
            .filter(|&at| alone(at))
    };
    let at = all().find(|&at| at >= base).or_else(|| all().last())?;
    let new = format!("{}{STEM}{}", &name[..at], &name[at + stem.len()..]);
    Some(new.into_bytes().into())
}

/// `path` with the stem in place of [`STEM`].
pub fn filled(path: &[u8], stem: &str) -> Bytes {
    let text = String::from_utf8_lossy(path).replace(STEM, stem);
    text.into_bytes().into()
}
