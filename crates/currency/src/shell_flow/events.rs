//! Which statement of a shell's text started which child?
//!
//! In: the statements, and the children of a shell in the order of their starts. Out: for each
//! child the first and the last statement that can have started it. A shell executes its statements
//! in order, so the numbers never fall. `None` if a child fits no statement: the text is not what
//! the shell executed.

use backstory_eventlog::event::{Bytes, Time};
use backstory_workflow::recording::Recording;

use rustc_hash::FxHashMap;

use super::statements::Statement;

/// The first and the last statement that something can belong to.
pub type Range = (usize, usize);

/// The children of a shell, in order.
#[derive(Debug, Clone, Default)]
pub struct Children {
    /// Their starts.
    starts: Vec<Time>,
    /// The statements of each, in the same order.
    ranges: Vec<Range>,
    ranges_by_child: FxHashMap<usize, Range>,
    /// True if with the child's start all words of its statement are expanded.
    ends: Vec<bool>,
    /// The number of statements.
    statements: usize,
}

impl Children {
    /// The children of a shell, each with its statements.
    pub fn of(recording: &Recording, shell: usize, statements: &[Statement]) -> Option<Children> {
        let start = |at: &usize| recording.activities[*at].interval.start;
        let mut activities = recording.children[shell].clone();
        activities.sort_by_key(start);
        let last = statements.len().checked_sub(1)?;
        let fits = |child: usize, at: usize| can_start(&statements[at], recording, child);
        let mut ranges = Vec::with_capacity(activities.len());
        let mut first = 0;
        for &child in &activities {
            first = (first..=last).find(|&at| fits(child, at))?;
            ranges.push((first, last));
        }
        let mut behind = last;
        for (&child, range) in activities.iter().zip(&mut ranges).rev() {
            behind = (0..=behind).rev().find(|&at| fits(child, at))?;
            range.1 = behind;
        }
        let ends = activities.iter().zip(&ranges).map(|(&child, range)| {
            let (first, last) = *range;
            first == last && is_program(&statements[first], recording, child)
        });
        Some(Children {
            ends: ends.collect(),
            starts: activities.iter().map(start).collect(),
            ranges_by_child: activities.into_iter().zip(ranges.clone()).collect(),
            ranges,
            statements: statements.len(),
        })
    }

    /// The statements that can have started a child.
    pub fn child(&self, activity: usize) -> Option<Range> {
        self.ranges_by_child.get(&activity).copied()
    }

    /// The statements whose words the shell can have expanded in an interval.
    pub fn expanding(&self, start: Time, end: Time) -> Range {
        let (first, last) = self.during(start, end);
        let before = self.starts.partition_point(|child| *child <= start);
        let is_over = before.checked_sub(1).is_some_and(|at| self.ends[at]);
        (first + usize::from(is_over && first < last), last)
    }

    /// The statements that the shell can have executed in an interval. A child may share the
    /// memory of the shell until it executes its program, and then opens files as the shell.
    pub fn during(&self, start: Time, end: Time) -> Range {
        let before = self.starts.partition_point(|child| *child <= start);
        let behind = self.starts.partition_point(|child| *child <= end);
        let first = before.checked_sub(1).map_or(0, |at| self.ranges[at].0);
        let last = self
            .ranges
            .get(behind)
            .map_or(self.statements - 1, |range| range.1);
        (first, last)
    }
}

/// True if a statement can have started a child.
fn can_start(statement: &Statement, recording: &Recording, child: usize) -> bool {
    if statement.starts_any {
        return true;
    }
    let programs = &statement.programs;
    match words_of(recording, child) {
        Some(words) => programs.iter().any(|program| matches(program, words)),
        None => {
            // A program that was not found.
            let exit = recording.activities[child].exit;
            statement.forks || matches!(exit, Some(126 | 127)) && !programs.is_empty()
        }
    }
}

/// True if a statement is one program, and the child is it.
fn is_program(statement: &Statement, recording: &Recording, child: usize) -> bool {
    let Some((program, others)) = statement.programs.split_last() else {
        return false;
    };
    let words = words_of(recording, child);
    let is = |program: &[Option<String>]| words.is_some_and(|words| matches(program, words));
    statement.is_program && is(program) && !others.iter().any(|other| is(other))
}

/// The words of the first program that a child of a shell executed.
fn words_of(recording: &Recording, child: usize) -> Option<&[Bytes]> {
    let all = &recording.activities;
    if all[child].epoch > 0 {
        return Some(&all[child].argv);
    }
    let program = recording.became(child)?;
    Some(&all[program].argv)
}

/// True if words fit to the words in a text. `None` there stands for any number of words.
fn matches(program: &[Option<String>], words: &[Bytes]) -> bool {
    let (mut at, mut word) = (0, 0);
    // The place behind the last `None`, and the first word that it does not stand for.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        let fits = |literal: &String| {
            let word = words.get(word);
            word.is_some_and(|word| **word == *literal.as_bytes())
        };
        match program.get(at) {
            Some(None) => {
                at += 1;
                retry = Some((at, word));
                continue;
            }
            Some(Some(literal)) if fits(literal) => {
                (at, word) = (at + 1, word + 1);
                continue;
            }
            None if word == words.len() => return true,
            _ => {}
        }
        match retry {
            Some((behind, first)) if first < words.len() => {
                retry = Some((behind, first + 1));
                (at, word) = (behind, first + 1);
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_word_that_is_expanded_stands_for_any_number_of_words() {
        let program = |words: &[&str]| -> Vec<Option<String>> {
            let word = |word: &&str| (*word != "*").then(|| (*word).to_owned());
            words.iter().map(word).collect()
        };
        let words = |words: &str| -> Vec<_> {
            let words = words.split_whitespace();
            words.map(|word| word.as_bytes().into()).collect()
        };
        let fits = |pattern: &[&str], given: &str| matches(&program(pattern), &words(given));
        assert!(fits(&["head", "-n", "*", "data"], "head -n 4 data"));
        assert!(fits(&["head", "*", "data"], "head data"));
        assert!(fits(&["cat", "*"], "cat a b c"));
        assert!(!fits(&["cat", "a"], "cat a b"));
        assert!(!fits(&["cat", "*", "z"], "cat a b"));
        assert!(!fits(&["cat"], "tac"));
    }
}
