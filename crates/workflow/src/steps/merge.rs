//! From commands to steps.
//!
//! In: commands with their effects, as [`Part`]s. Out: [`Step`]s in an order in which they can run.
//! Commands that cannot stand alone are joined ([`groups`]). Commands that leave nothing are left
//! out ([`super::omissions`]).

use backstory_ordering::{SmallCollect, SmallSort};
use std::collections::{BTreeMap, BTreeSet};

use backstory_eventlog::event::Bytes;

use super::grouping::groups;
use super::omissions::{lasting, leave_out, leave_out_superseded};
use super::order::{name, ordered};
use super::part::Part;
use super::refusals::removals;
use super::{Step, Word};
use crate::paths::{base_name, parent};
use crate::tools::knowledge;

/// Makes steps of commands, in an order in which they can run.
///
/// `notes` gets a sentence for each kind of command that is left out. `in_place` gets the files
/// that a step reads and then changes.
pub fn steps(
    mut parts: Vec<Part>,
    notes: &mut BTreeSet<String>,
    in_place: &mut BTreeSet<Bytes>,
) -> Vec<Step> {
    parts.sort_small_by_key(|part| part.start);
    let mut known = lasting(&parts);
    if leave_out_superseded(&mut parts, &known, notes) {
        known = lasting(&parts);
    }
    let directories: BTreeSet<Bytes> = parts
        .iter()
        .flat_map(|part| part.effects.directories.iter().cloned())
        .into_tree();
    let lasting = known;
    let printed = leave_out(&mut parts, &lasting);
    if printed > 0 {
        notes.insert(match printed {
            1 => "1 command left no file and is left out".to_owned(),
            many => format!("{many} commands left no file and are left out"),
        });
    }
    let mut steps = Vec::new();
    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (at, group) in groups(&parts, &lasting).into_iter().enumerate() {
        members.entry(group).or_default().push(at);
    }
    for members in members.into_values() {
        let parts: Vec<&Part> = members.iter().map(|&at| &parts[at]).collect();
        steps.push(step(&parts, &lasting, &directories, in_place));
    }
    let mut steps = ordered(steps);
    name(&mut steps);
    steps
}

/// Joins the commands of one group. `made`: all directories that some command made.
fn step(
    parts: &[&Part],
    lasting: &BTreeSet<Bytes>,
    made: &BTreeSet<Bytes>,
    in_place: &mut BTreeSet<Bytes>,
) -> Step {
    let all = || parts.iter().map(|part| &part.effects);
    let outputs: BTreeSet<Bytes> = all()
        .flat_map(|effects| effects.made.keys())
        .filter(|path| lasting.contains(*path))
        .cloned()
        .into_tree();
    // A file that a later command of the step renamed does not exist after it.
    let gone = |path: &Bytes| {
        all().any(|effects| effects.removed.contains_key(path))
            && !all().any(|e| e.made.get(path).is_some_and(|m| m.last))
    };
    let everything: BTreeSet<&Bytes> = all().flat_map(|effects| effects.made.keys()).into_tree();
    let mut inputs = BTreeSet::new();
    for path in all().flat_map(|effects| effects.read.keys()) {
        if !everything.contains(path) {
            inputs.insert(path.clone());
            continue;
        }
        let first_read = all()
            .filter_map(|e| e.read.get(path))
            .map(|times| times.0)
            .min();
        let first_made = all()
            .filter_map(|e| e.made.get(path))
            .map(|made| made.start)
            .min();
        if first_read < first_made && lasting.contains(path) {
            in_place.insert(path.clone());
        }
    }
    // An output that a later command removes or moves needs its directory, too.
    let directories = outputs
        .iter()
        .map(|path| Bytes::from(parent(path)))
        .filter(|directory| {
            made.contains(directory) && !all().any(|e| e.directories.contains(directory))
        })
        .into_tree::<BTreeSet<Bytes>>();
    let outputs: BTreeSet<Bytes> = outputs.into_iter().filter(|path| !gone(path)).into_tree();
    Step {
        name: String::new(),
        lines: parts
            .iter()
            .filter(|part| !only_named(part, parts))
            .flat_map(|part| removals(part, &outputs).chain(part.lines.iter().cloned()))
            .collect(),
        inputs: inputs.into_iter().collect(),
        tools: all()
            .flat_map(|e| e.tools.iter().cloned())
            .into_tree::<BTreeSet<_>>()
            .into_iter()
            .collect(),
        outputs: outputs.into_iter().collect(),
        directories: directories.into_iter().collect(),
        own_directories: all()
            .flat_map(|e| e.directories.iter().cloned())
            .into_tree::<BTreeSet<_>>()
            .into_iter()
            .collect(),
        start: parts
            .iter()
            .map(|part| part.start)
            .min()
            .unwrap_or_default(),
        end: parts.iter().map(|part| part.end).max().unwrap_or_default(),
        run: parts[0].run,
        members: parts
            .iter()
            .flat_map(|part| part.members.iter().map(|&member| (part.run, member)))
            .collect(),
    }
}

/// True for a `mktemp` whose files later commands make anew: their lines have the names already.
fn only_named(part: &Part, parts: &[&Part]) -> bool {
    let mut words = part.lines.iter().flat_map(|line| &line.words);
    let first = words.find(|word| !matches!(word, Word::Set(..)));
    let known = &knowledge().programs.temporary_names;
    let is_known = |name: &[u8]| {
        known
            .iter()
            .any(|known| known.as_bytes() == base_name(name))
    };
    let names = matches!(first, Some(Word::Program(name)) if is_known(name));
    let made_again = |path: &Bytes| {
        let mut others = parts.iter().filter(|other| other.start > part.start);
        others.any(|other| other.effects.made.contains_key(path))
    };
    names && part.effects.made.keys().all(made_again)
}
