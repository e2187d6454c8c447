//! Steps that differ only in a name, written as one rule.
//!
//! A step's stem is a part of the name of its first output. Where it stands in its files' names and in the words that name them, it is
//! replaced by [`STEM`]; steps of which nothing else differs are instances of one rule. Putting the stem back gives each step as it was.

use std::collections::{BTreeMap, BTreeSet};

use backstory_eventlog::event::Bytes;

use super::{Line, Step, Word};
use crate::paths::{absolute, base_name};

/// Stands for the stem: a character that no recorded name is likely to have, and that no quoting changes.
pub const STEM: char = '\u{e000}';

/// One step, or several that differ only in a stem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Which steps.
    pub steps: Vec<usize>,
    /// For more than one: the step with [`STEM`] in place of each stem. Its inputs are only those that all instances have alike.
    pub template: Option<Step>,
    /// The stems, in the order of the steps.
    pub stems: Vec<String>,
}

/// Joins steps into rules; without `generalise` each step is one.
pub fn rules(steps: &[Step], generalise: bool) -> Vec<Rule> {
    let mut candidates: BTreeMap<Step, BTreeMap<usize, String>> = BTreeMap::new();
    if generalise {
        for (at, step) in steps.iter().enumerate() {
            for stem in stems(step) {
                if let Some(template) = template(step, &stem) {
                    candidates.entry(template).or_default().insert(at, stem);
                }
            }
        }
    }
    // The rule with the most instances first; of those alike, the one that leaves endings alone, then the one with the longest stems.
    let mut candidates: Vec<(Step, BTreeMap<usize, String>)> = candidates
        .into_iter()
        .filter(|(_, all)| all.len() > 1)
        .collect();
    candidates.sort_by_key(|(_, all)| {
        let plain = !all.values().any(|stem| stem.contains('.'));
        let length: usize = all.values().map(String::len).sum();
        std::cmp::Reverse((all.len(), plain, length))
    });
    let mut taken = BTreeSet::new();
    let mut rules = Vec::new();
    for (mut template, mut instances) in candidates {
        instances.retain(|at, _| !taken.contains(at));
        let distinct: BTreeSet<&String> = instances.values().collect();
        if instances.len() < 2 || distinct.len() < instances.len() {
            continue;
        }
        taken.extend(instances.keys().copied());
        template.inputs = shared_inputs(steps, &instances);
        template.name = rule_name(&template);
        rules.push(Rule {
            steps: instances.keys().copied().collect(),
            template: Some(template),
            stems: instances.into_values().collect(),
        });
    }
    for at in (0..steps.len()).filter(|at| !taken.contains(at)) {
        rules.push(Rule {
            steps: vec![at],
            template: None,
            stems: Vec::new(),
        });
    }
    rules.sort_by_key(|rule| rule.steps.first().copied());
    unique_names(steps, &mut rules);
    rules
}

/// What may be the stem of a step: any part of its first output's name, cut at marks and between letters and digits.
fn stems(step: &Step) -> Vec<String> {
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
    // What every tool takes for itself, whatever its language.
    let plain = |stem: &String| {
        stem.starts_with(char::is_alphanumeric)
            && stem.ends_with(char::is_alphanumeric)
            && stem
                .chars()
                .all(|c| c.is_alphanumeric() || "-_.+".contains(c))
    };
    stems.into_iter().filter(plain).take(64).collect()
}

/// The step with the stem replaced; none if the stem does not stand in each of its outputs.
fn template(step: &Step, stem: &str) -> Option<Step> {
    let replace = |path: &Bytes| replaced(path, stem);
    let outputs: Option<Vec<Bytes>> = step.outputs.iter().map(replace).collect();
    let outputs = outputs?;
    let files: BTreeSet<&[u8]> = step
        .inputs
        .iter()
        .chain(&step.outputs)
        .map(|path| &**path)
        .collect();
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
        // Kept apart until it is known which of them all instances have.
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

/// True if the word ends with a name that is the stem and endings: a file that is nobody's input or output, as `.deps/STEM.Tpo`.
fn is_called(word: &[u8], stem: &str) -> bool {
    let name = base_name(word);
    let hidden = name.strip_prefix(b".").unwrap_or(name);
    hidden
        .strip_prefix(stem.as_bytes())
        .is_some_and(|rest| rest.starts_with(b"."))
}

/// Shell language with the stem replaced in every word that names a file.
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

/// `name` with [`STEM`] for a `stem` that stands alone in it: between its ends, or what is no letter or digit.
fn replaced(name: &[u8], stem: &str) -> Option<Bytes> {
    let name = std::str::from_utf8(name).ok()?;
    // Letters go on with letters, digits with digits: the 1 of `in1.txt` stands alone, that of `in12.txt` does not.
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
    // In the last component, and there the first: the stem of `src/c.c` is not its ending.
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

/// Inputs that every instance has: with its own stem, or alike.
fn shared_inputs(steps: &[Step], instances: &BTreeMap<usize, String>) -> Vec<Bytes> {
    let forms = |(&at, stem): (&usize, &String)| -> BTreeSet<Bytes> {
        let inputs = steps[at].inputs.iter();
        inputs
            .flat_map(|path| [Some(path.clone()), replaced(path, stem)])
            .flatten()
            .collect()
    };
    let mut all = instances.iter().map(forms);
    let first = all.next().unwrap_or_default();
    all.fold(first, |shared, next| {
        shared.intersection(&next).cloned().collect()
    })
    .into_iter()
    .collect()
}

/// `path` with a stem put in.
pub fn filled(path: &[u8], stem: &str) -> Bytes {
    let text = String::from_utf8_lossy(path).replace(STEM, stem);
    text.into_bytes().into()
}

fn rule_name(template: &Step) -> String {
    let name = template
        .outputs
        .first()
        .map_or(&b""[..], |path| base_name(path));
    let name: String = String::from_utf8_lossy(name)
        .replace(STEM, "any")
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    match name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        true => name,
        false => format!("file_{name}"),
    }
}

fn unique_names(steps: &[Step], rules: &mut [Rule]) {
    let mut taken: BTreeSet<String> = rules
        .iter()
        .filter(|rule| rule.template.is_none())
        .flat_map(|rule| rule.steps.iter().map(|&at| steps[at].name.clone()))
        .collect();
    for template in rules.iter_mut().filter_map(|rule| rule.template.as_mut()) {
        let plain = template.name.clone();
        let mut number = 1;
        while !taken.insert(template.name.clone()) {
            number += 1;
            template.name = format!("{plain}_{number}");
        }
    }
}

impl Rule {
    /// Its name: the step's, or that of what the steps have in common.
    pub fn name<'r>(&'r self, steps: &'r [Step]) -> &'r str {
        match &self.template {
            Some(template) => &template.name,
            None => &steps[self.steps[0]].name,
        }
    }

    /// Inputs of an instance that the rule does not name.
    pub fn further_inputs(&self, steps: &[Step], instance: usize) -> Vec<Bytes> {
        let Some(template) = &self.template else {
            return Vec::new();
        };
        let named: BTreeSet<Bytes> = template
            .inputs
            .iter()
            .map(|path| filled(path, &self.stems[instance]))
            .collect();
        let inputs = &steps[self.steps[instance]].inputs;
        inputs
            .iter()
            .filter(|path| !named.contains(*path))
            .cloned()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(input: &str, output: &str, extra: &[&str]) -> Step {
        let bytes = |text: &str| Bytes::from(format!("/w/{text}").into_bytes());
        let word = |text: &str| Word::Text(text.as_bytes().into());
        let words = vec![
            Word::Program(b"cc".as_slice().into()),
            word("-c"),
            word(input),
            word("-o"),
            word(output),
        ];
        let mut inputs: Vec<Bytes> = extra
            .iter()
            .map(|name| bytes(name))
            .chain([bytes(input)])
            .collect();
        inputs.sort();
        Step {
            name: output.replace('.', "_"),
            lines: vec![Line {
                cwd: b"/w".as_slice().into(),
                words,
                exit: 0,
            }],
            inputs,
            tools: Vec::new(),
            outputs: vec![bytes(output)],
            directories: Vec::new(),
            own_directories: Vec::new(),
            start: 0,
            end: 0,
            run: 0,
            members: Vec::new(),
        }
    }

    #[test]
    fn steps_that_differ_in_a_name_are_one_rule_and_each_is_got_back() {
        let steps = [
            step("src/a.c", "a.o", &["all.h", "a.h"]),
            step("src/c.c", "c.o", &["all.h"]),
            step("other.c", "x.o", &[]),
        ];
        let rules = rules(&steps, true);
        assert_eq!(
            rules
                .iter()
                .map(|rule| rule.steps.clone())
                .collect::<Vec<_>>(),
            [vec![0, 1], vec![2]]
        );
        let template = rules[0].template.as_ref().unwrap();
        assert_eq!(
            template.lines[0].command(),
            format!("cc -c src/{STEM}.c -o {STEM}.o"),
            "the c of -c is no stem"
        );
        assert_eq!(template.inputs.len(), 2, "all.h and src/%.c");
        assert_eq!(
            rules[0].further_inputs(&steps, 0),
            [Bytes::from(b"/w/a.h".as_slice())]
        );
        let stem = &rules[0].stems[1];
        assert_eq!(filled(&template.outputs[0], stem), steps[1].outputs[0]);
        assert_eq!(
            template.lines[0].command().replace(STEM, stem),
            steps[1].lines[0].command()
        );
        assert!(
            super::rules(&steps, false)
                .iter()
                .all(|rule| rule.template.is_none())
        );
    }
}
