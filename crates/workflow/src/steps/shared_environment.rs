//! Variables that all commands share: the user's script exported them once, before it started the
//! commands.
//!
//! Invariant: with the variables exported before it, a step does what it does with the variables in
//! front of its commands.

use std::collections::BTreeMap;

use backstory_eventlog::event::Bytes;

use super::compose::as_written;
use super::line::is_plain_value;
use super::{Line, Step, Word};
use crate::shell::quote;

/// Steps without the variables that all of their commands share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SharedEnvironment {
    /// Variables to be exported before the steps, by name. Their values have no line breaks, quotes
    /// or dollars.
    pub variables: BTreeMap<String, String>,
    /// The steps, whose commands do not set these variables.
    pub steps: Vec<Step>,
}

impl SharedEnvironment {
    /// Removes from the commands of `steps` the variables that every command sets to the same
    /// value.
    pub fn of(steps: &[Step]) -> SharedEnvironment {
        let mut steps = steps.to_vec();
        let variables = common(&steps);
        for line in steps.iter_mut().flat_map(|step| &mut step.lines) {
            *line = without(line, &variables);
        }
        SharedEnvironment { variables, steps }
    }

    /// `NAME=value` of each, for a shell.
    pub fn assignments(&self) -> Vec<String> {
        let pair =
            |(name, value): (&String, &String)| format!("{name}={}", quote(value.as_bytes()));
        self.variables.iter().map(pair).collect()
    }

    /// The shell command that exports the variables; `None` without variables.
    pub fn export(&self) -> Option<String> {
        let all = self.assignments();
        (!all.is_empty()).then(|| format!("export {}", all.join(" ")))
    }
}

/// The commands of a line's pipeline.
fn stages(line: &Line) -> impl Iterator<Item = &[Word]> {
    line.words.split(|word| *word == Word::Operator("|"))
}

/// The variables that one command sets, if their values mean the same in every language.
fn given(stage: &[Word]) -> BTreeMap<String, String> {
    let mut given = BTreeMap::new();
    for word in stage {
        let Word::Set(name, value) = word else { break };
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        if is_plain_value(value) {
            given.insert(text(name), text(value));
        }
    }
    given
}

fn common(steps: &[Step]) -> BTreeMap<String, String> {
    let lines = || steps.iter().flat_map(|step| &step.lines);
    // A person would write the variable in front of a single command.
    if lines().count() < 2 {
        return BTreeMap::new();
    }
    let mut all = lines().flat_map(stages).map(given);
    let first = all.next().unwrap_or_default();
    all.fold(first, |mut common, given| {
        common.retain(|name, value| given.get(name) == Some(value));
        common
    })
}

fn without(line: &Line, variables: &BTreeMap<String, String>) -> Line {
    let is_common = |word: &Word| match word {
        Word::Set(name, _) => {
            std::str::from_utf8(name).is_ok_and(|name| variables.contains_key(name))
        }
        _ => false,
    };
    let mut words = Vec::new();
    for (at, stage) in stages(line).enumerate() {
        if at > 0 {
            words.push(Word::Operator("|"));
        }
        let rest: Vec<Word> = stage
            .iter()
            .filter(|word| !is_common(word))
            .cloned()
            .collect();
        words.extend(as_written(rest));
    }
    Line {
        words,
        ..line.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &[Word]) -> Step {
        Step {
            lines: vec![Line {
                cwd: b"/w".as_slice().into(),
                words: words.to_vec(),
                exit: 0,
            }],
            ..Step::default()
        }
    }

    fn set(name: &str, value: &str) -> Word {
        Word::Set(name.as_bytes().into(), value.as_bytes().into())
    }

    fn program(name: &str) -> Word {
        Word::Program(name.as_bytes().into())
    }

    #[test]
    fn a_variable_of_all_commands_is_exported_once_and_any_other_is_set_with_its_commands() {
        let shell = [
            program("sh"),
            Word::Text(b"-c".as_slice().into()),
            Word::Text(b"a && b".as_slice().into()),
        ];
        let first = [
            &[set("A", "1"), set("B", "2"), program("x")][..],
            &[
                Word::Operator("|"),
                set("A", "1"),
                set("B", "3"),
                program("y"),
            ],
        ]
        .concat();
        let second = [&[set("A", "1"), set("C", "$x"), set("B", "2")][..], &shell].concat();
        let third = [&[set("A", "1")][..], &shell].concat();
        let shared = SharedEnvironment::of(&[line(&first), line(&second), line(&third)]);
        assert_eq!(shared.assignments(), ["A=1"]);
        let lines: Vec<String> = shared
            .steps
            .iter()
            .map(|step| step.lines[0].command())
            .collect();
        assert_eq!(
            lines,
            ["B=2 x | B=3 y", "C='$x' B=2 sh -c 'a && b'", "a && b"]
        );
        let none = SharedEnvironment::of(&[line(&first), line(&[program("z")])]);
        assert!(none.variables.is_empty() && none.steps[0].lines[0].words == first);
    }
}
