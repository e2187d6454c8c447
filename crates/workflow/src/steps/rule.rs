//! Steps that differ only in a name, written as one rule.
//!
//! A step's stem is a part of the name of its first output. In the step's files and in the words
//! that name them, [`STEM`] replaces it. Steps that are then equal are instances of one rule.
//! Invariant: with its stem put back, each instance is the step as it was.

use backstory_ordering::{SmallCollect, SmallSort};
use std::collections::{BTreeMap, BTreeSet};

use backstory_eventlog::event::Bytes;

use super::Step;
use super::stem::{STEM, filled, replaced, stems, template};
use crate::paths::base_name;

/// One step, or several that differ only in a stem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The numbers of its steps.
    pub steps: Vec<usize>,
    /// For several steps: the step with [`STEM`] in place of the stem. Its inputs are those that
    /// all instances share.
    pub template: Option<Step>,
    /// The stems, in the order of the steps.
    pub stems: Vec<String>,
}

/// Joins steps into rules. Without `generalise` each step is a rule of its own.
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
    // The rule with the most instances first; then one whose stems have no ending, then the one
    // with the longest stems.
    let mut candidates: Vec<(Step, BTreeMap<usize, String>)> = candidates
        .into_iter()
        .filter(|(_, all)| all.len() > 1)
        .collect();
    candidates.sort_small_by_key(|(_, all)| {
        let plain = !all.values().any(|stem| stem.contains('.'));
        let length: usize = all.values().map(String::len).sum();
        std::cmp::Reverse((all.len(), plain, length))
    });
    let mut taken = BTreeSet::new();
    let mut rules = Vec::new();
    for (mut template, mut instances) in candidates {
        instances.retain(|at, _| !taken.contains(at));
        let distinct: BTreeSet<&String> = instances.values().into_tree();
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
    rules.sort_small_by_key(|rule| rule.steps.first().copied());
    unique_names(steps, &mut rules);
    rules
}

/// Inputs that every instance has: with its own stem, or the same file.
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
        .into_tree();
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
    /// Its name: the template's, or that of its only step.
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
            .into_tree();
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
    use super::super::{Line, Word};
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
    fn steps_that_differ_in_a_name_are_one_rule_from_which_each_step_is_restored() {
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
