//! Variables that all commands share: the user's script exported them once, before it started the
//! commands.
//!
//! Invariant: with the variables exported before it, a step does what it does with the variables in
//! front of its commands.

use std::collections::{BTreeMap, BTreeSet};

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
    /// Removes shared variables from the commands of `steps`. A shared variable has one value in
    /// all commands, or in most commands of a long workflow. A command without such a variable
    /// gets `env -u NAME`.
    ///
    /// `inherited`: variables of the environment in which the steps run. A command that does not
    /// set one of them has that environment's value. Only all commands together can share it.
    pub fn of(steps: &[Step], inherited: &BTreeSet<Bytes>) -> SharedEnvironment {
        let mut steps = steps.to_vec();
        let variables = common(&steps, inherited);
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

/// The variables that one command sets.
fn given(stage: &[Word]) -> impl Iterator<Item = (&Bytes, &Bytes)> {
    stage.iter().map_while(|word| match word {
        Word::Set(name, value) => Some((name, value)),
        _ => None,
    })
}

/// True if `env -u` can stand before the command: it is a program, not shell language.
fn takes_prefix(stage: &[Word]) -> bool {
    let first = stage.iter().find(|word| !matches!(word, Word::Set(..)));
    matches!(first, Some(Word::Program(_)))
}

/// So many commands must set a variable before it is shared with commands that do not set it.
const MANY: usize = 8;
/// For each command that does not set a variable, so many must set it.
const SHARE: usize = 4;

fn common(steps: &[Step], inherited: &BTreeSet<Bytes>) -> BTreeMap<String, String> {
    let lines = || steps.iter().flat_map(|step| &step.lines);
    // A person would write the variable in front of a single command.
    if lines().count() < 2 {
        return BTreeMap::new();
    }
    let all: Vec<&[Word]> = lines().flat_map(stages).collect();
    let mut counts: BTreeMap<&Bytes, BTreeMap<&Bytes, usize>> = BTreeMap::new();
    for (name, value) in all.iter().flat_map(|stage| given(stage)) {
        *counts.entry(name).or_default().entry(value).or_default() += 1;
    }
    let mut common = BTreeMap::new();
    for (name, values) in counts {
        let set: usize = values.values().sum();
        let most = values.into_iter().max_by_key(|(_, count)| *count);
        let Some((value, count)) = most.filter(|(value, _)| is_plain_value(value)) else {
            continue;
        };
        let lacking = all.len() - set;
        let prefixed = || {
            let mut lacking = all.iter().filter(|stage| !sets(stage, name));
            lacking.all(|stage| takes_prefix(stage))
        };
        let mostly =
            || count >= MANY && count >= SHARE * lacking && !inherited.contains(name) && prefixed();
        if count == all.len() || mostly() {
            let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
            common.insert(text(name), text(value));
        }
    }
    common
}

/// True if a command sets the variable.
fn sets(stage: &[Word], variable: &[u8]) -> bool {
    given(stage).any(|(name, _)| **name == *variable)
}

fn without(line: &Line, variables: &BTreeMap<String, String>) -> Line {
    let is_common = |word: &Word| match word {
        Word::Set(name, value) => {
            let shared = std::str::from_utf8(name)
                .ok()
                .and_then(|name| variables.get(name));
            shared.is_some_and(|shared| shared.as_bytes() == &**value)
        }
        _ => false,
    };
    let mut words = Vec::new();
    for (at, stage) in stages(line).enumerate() {
        if at > 0 {
            words.push(Word::Operator("|"));
        }
        let lacking = variables
            .keys()
            .filter(|name| !sets(stage, name.as_bytes()));
        let mut rest: Vec<Word> = removal(lacking).collect();
        let own = stage.iter().filter(|word| !is_common(word));
        rest.splice(0..0, own.clone().take_while(|word| is_set(word)).cloned());
        rest.extend(own.skip_while(|word| is_set(word)).cloned());
        words.extend(as_written(rest));
    }
    Line {
        words,
        ..line.clone()
    }
}

fn is_set(word: &Word) -> bool {
    matches!(word, Word::Set(..))
}

/// `env -u NAME` for each of the variables; nothing without variables.
fn removal<'n>(names: impl Iterator<Item = &'n String>) -> impl Iterator<Item = Word> {
    let text = |text: &[u8]| Word::Text(text.into());
    let mut names = names.peekable();
    let env = names.peek().map(|_| Word::Program(b"env"[..].into()));
    let options: Vec<Word> = names
        .flat_map(|name| [text(b"-u"), text(name.as_bytes())])
        .collect();
    env.into_iter().chain(options)
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
        let shared = SharedEnvironment::of(
            &[line(&first), line(&second), line(&third)],
            &BTreeSet::new(),
        );
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
        let none = SharedEnvironment::of(&[line(&first), line(&[program("z")])], &BTreeSet::new());
        assert!(none.variables.is_empty() && none.steps[0].lines[0].words == first);
    }

    #[test]
    fn a_variable_of_most_commands_is_exported_and_removed_for_the_others() {
        let cc = || line(&[set("A", "1"), set("H", "/b"), program("cc")]);
        let mut steps: Vec<Step> = (0..8).map(|_| cc()).collect();
        steps.push(line(&[
            set("B", "2"),
            program("ld"),
            Word::Operator("|"),
            set("A", "3"),
            program("x"),
        ]));
        let inherited = BTreeSet::from([b"H"[..].into()]);
        let shared = SharedEnvironment::of(&steps, &inherited);
        assert_eq!(shared.assignments(), ["A=1"]);
        let last = |steps: &[Step]| steps[steps.len() - 1].lines[0].command();
        assert_eq!(shared.steps[0].lines[0].command(), "H=/b cc");
        assert_eq!(last(&shared.steps), "B=2 env -u A ld | A=3 x");
        // Shell language takes no prefix.
        steps.push(line(&[Word::Shell(b"a && b"[..].into())]));
        let shared = SharedEnvironment::of(&steps, &inherited);
        assert!(shared.variables.is_empty(), "{:?}", shared.variables);
    }
}
