//! The comparison of a run with the rules of its build.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use backstory_eventlog::event::Bytes;
use backstory_workflow::paths::{is_option_file, is_record};
use backstory_workflow::steps::{Step, Word, is_one};
use backstory_workflow::tools::knowledge;

use crate::build_run::BuildRun;
use crate::rules::DeclaredRules;
use crate::systems::Listed;

/// A file that differs, and the targets for which it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The file.
    pub path: Bytes,
    /// The targets, sorted. Empty if the list is for the whole run.
    pub targets: Vec<Bytes>,
}

/// Both directions of the comparison. Files are sorted by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// The user's own files that were read although nothing declares them.
    pub undeclared: Vec<Difference>,
    /// Declared files that were not read.
    pub unread: Vec<Difference>,
}

/// Compares the files that the steps of a run read with those that rules and a list declare.
pub fn compare(run: &BuildRun, rules: &DeclaredRules, listed: Option<&Listed>) -> Comparison {
    let everything = rules.everything();
    let mut undeclared: BTreeMap<Bytes, BTreeSet<Bytes>> = BTreeMap::new();
    let mut unread: BTreeMap<Bytes, BTreeSet<Bytes>> = BTreeMap::new();
    let helpers = read_by_helpers(run, rules);
    // The makefiles of a configured build may exist only while it runs.
    let configurers = run.steps.iter().filter(|step| makes_rules(step));
    let configured: HashSet<&Bytes> = configurers.flat_map(|step| &step.outputs).collect();
    for step in &run.steps {
        let targets: Vec<&Bytes> = step
            .outputs
            .iter()
            .filter(|path| rules.makes(path))
            .collect();
        if targets.is_empty() && is_builders(step) || makes_rules(step) {
            continue;
        }
        let allowed: HashSet<&[u8]> = match targets.is_empty() {
            true => everything.clone(),
            false => targets
                .iter()
                .flat_map(|target| rules.all_inputs(target))
                .collect(),
        };
        let declared = |path: &Bytes| {
            run.names(path).any(|name| allowed.contains(name))
                || listed.is_some_and(|listed| listed.names(path))
                || rules.is_read_by_tool(path)
                || configured.contains(path)
                || run.is_of_package(path)
                // A file that a step without a target made, such as a temporary one.
                || run.made.contains(path) && !rules.makes(path) && !everything.contains(&**path)
                // No rule is known for the reader, and another step made the file.
                || targets.is_empty() && run.made.contains(path)
        };
        let own = step
            .inputs
            .iter()
            .chain(&step.tools)
            .filter(|path| run.own.contains(*path));
        for path in own.filter(|path| !declared(path) && !step.outputs.contains(path)) {
            let named = match targets.is_empty() {
                true => step.outputs.iter().take(1).collect(),
                false => targets.clone(),
            };
            undeclared
                .entry(path.clone())
                .or_default()
                .extend(named.into_iter().cloned());
        }
        // Commands that could not be told apart are one step, which reads what it made.
        let read: HashSet<&[u8]> = reads(step)
            .chain(&step.outputs)
            .flat_map(|path| run.names(path))
            .collect();
        let is_made_of_package =
            |input: &Bytes| run.is_of_package(input) && run.made.contains(input);
        for target in targets {
            let idle = rules.inputs(target).filter(|input| {
                !read.contains(&***input)
                    && !helpers.contains(&***input)
                    && !is_option_file(input)
                    && !is_record(input)
                    && is_file(input)
                    && !is_made_of_package(input)
            });
            for input in idle {
                unread
                    .entry(input.clone())
                    .or_default()
                    .insert(target.clone());
            }
        }
    }
    if let Some(listed) = listed {
        let read = run.own.iter().chain(&run.provided).chain(&run.made);
        for path in listed.unread(read) {
            unread.entry(path).or_default();
        }
    }
    Comparison {
        undeclared: differences(undeclared),
        unread: differences(unread),
    }
}

/// True if a build system's program is the step: `cmake` reads `CMakeLists.txt`, which declares.
fn is_builders(step: &Step) -> bool {
    let builders = &knowledge().programs.builders;
    let mut programs = programs(step);
    programs.next().is_some_and(|name| is_one(name, builders)) && programs.next().is_none()
}

/// True if a configurer is part of the step: `configure`, `autoreconf`. It makes the rules of what
/// it finds.
fn makes_rules(step: &Step) -> bool {
    programs(step).any(|name| is_one(name, &knowledge().programs.configurers))
}

fn programs(step: &Step) -> impl Iterator<Item = &Bytes> {
    let words = step.lines.iter().flat_map(|line| &line.words);
    words.filter_map(|word| match word {
        Word::Program(name) => Some(name),
        _ => None,
    })
}

fn reads(step: &Step) -> impl Iterator<Item = &Bytes> {
    step.inputs.iter().chain(&step.tools)
}

/// The files that steps without a target read. A rule of several commands has such steps.
fn read_by_helpers<'r>(run: &'r BuildRun, rules: &DeclaredRules) -> HashSet<&'r [u8]> {
    let helper = |step: &&Step| !step.outputs.iter().any(|path| rules.makes(path));
    let steps = run.steps.iter().filter(helper);
    let read = steps.flat_map(reads);
    read.flat_map(|path| run.names(path)).collect()
}

/// True for an input that is a regular file. The names of phony targets and directories are not
/// read.
fn is_file(path: &[u8]) -> bool {
    use std::os::unix::ffi::OsStrExt;
    std::path::Path::new(std::ffi::OsStr::from_bytes(path)).is_file()
}

fn differences(found: BTreeMap<Bytes, BTreeSet<Bytes>>) -> Vec<Difference> {
    let found = found.into_iter();
    found
        .map(|(path, targets)| Difference {
            path,
            targets: targets.into_iter().collect(),
        })
        .collect()
}
