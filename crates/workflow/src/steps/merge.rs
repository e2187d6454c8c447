//! From commands to steps: those that cannot stand alone are joined, those that leave nothing are left out.
//!
//! Tools that run workflows know files by their paths and by whether they are there. So commands are one step if they make the same
//! file, if one takes away what another made, if one changes a file after another read it, and if they need each other's files.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use backstory_eventlog::event::{Bytes, Time};

use super::effects::Effects;
use super::refusals::removals;
use super::{Line, Step, Word};
use crate::paths::{base_name, parent};

/// A command with what it did.
#[derive(Debug, Clone)]
pub struct Part {
    /// Which recording it is from.
    pub run: usize,
    /// How it is written.
    pub lines: Vec<Line>,
    /// What it did.
    pub effects: Effects,
    /// When it began.
    pub start: Time,
    /// When it ended.
    pub end: Time,
    /// Its activities.
    pub members: Vec<usize>,
}

/// Who is with whom.
struct Groups {
    leader: Vec<usize>,
}

impl Groups {
    fn of(&mut self, mut at: usize) -> usize {
        while self.leader[at] != at {
            self.leader[at] = self.leader[self.leader[at]];
            at = self.leader[at];
        }
        at
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.of(a), self.of(b));
        let (first, second) = (a.min(b), a.max(b));
        self.leader[second] = first;
    }
}

/// Makes steps of commands, in an order in which they can be run.
/// `in_place` gets the files that one of them reads and then changes.
pub fn steps(
    mut parts: Vec<Part>,
    notes: &mut BTreeSet<String>,
    in_place: &mut BTreeSet<Bytes>,
) -> Vec<Step> {
    parts.sort_by_key(|part| part.start);
    leave_out_superseded(&mut parts, notes);
    let directories: BTreeSet<Bytes> = parts
        .iter()
        .flat_map(|part| part.effects.directories.iter().cloned())
        .collect();
    let lasting = lasting(&parts);
    let printed = leave_out(&mut parts, &lasting);
    if printed > 0 {
        notes.insert(match printed {
            1 => "1 command left no file and is left out".to_owned(),
            many => format!("{many} commands left no file and are left out"),
        });
    }
    let mut groups = Groups {
        leader: (0..parts.len()).collect(),
    };
    join_by_files(&parts, &lasting, &mut groups);
    join_rings(&parts, &lasting, &mut groups);
    let mut steps = Vec::new();
    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for at in 0..parts.len() {
        members.entry(groups.of(at)).or_default().push(at);
    }
    for members in members.into_values() {
        let parts: Vec<&Part> = members.iter().map(|&at| &parts[at]).collect();
        steps.push(step(&parts, &lasting, &directories, in_place));
    }
    let mut steps = ordered(steps);
    name(&mut steps);
    steps
}

/// Leaves out commands whose files were all made anew by commands of later runs: who does the work again does it as it was done last.
fn leave_out_superseded(parts: &mut Vec<Part>, notes: &mut BTreeSet<String>) {
    let anew = |path: &Bytes, before: &Part| {
        parts.iter().any(|later| {
            later.run > before.run
                && later.effects.made.contains_key(path)
                && !later.effects.read.contains_key(path)
        })
    };
    let old = |part: &Part| {
        let made = &part.effects.made;
        !made.is_empty() && made.keys().all(|path| anew(path, part))
    };
    let keep: Vec<bool> = parts.iter().map(|part| !old(part)).collect();
    let gone = keep.iter().filter(|keep| !**keep).count();
    if gone > 0 {
        notes.insert(format!(
            "{gone} commands are left out, because later runs made the same files anew"
        ));
    }
    let mut keep = keep.into_iter();
    parts.retain(|_| keep.next().unwrap_or(true));
}

/// Paths that are there at the end, or that another command than their maker reads.
fn lasting(parts: &[Part]) -> BTreeSet<Bytes> {
    let mut readers: HashMap<&Bytes, Vec<usize>> = HashMap::new();
    for (at, part) in parts.iter().enumerate() {
        part.effects
            .read
            .keys()
            .for_each(|path| readers.entry(path).or_default().push(at));
    }
    let mut lasting = BTreeSet::new();
    for (at, part) in parts.iter().enumerate() {
        for (path, made) in &part.effects.made {
            let read = || {
                readers
                    .get(path)
                    .is_some_and(|readers| readers.iter().any(|&reader| reader != at))
            };
            if made.last || read() || renamed_by_another(parts, at, path) {
                lasting.insert(path.clone());
            }
        }
    }
    lasting
}

fn renamed_by_another(parts: &[Part], maker: usize, path: &Bytes) -> bool {
    let takes = |(at, part): (usize, &Part)| {
        at != maker && part.effects.removed.contains_key(path) && !part.effects.made.is_empty()
    };
    parts.iter().enumerate().any(takes)
}

/// Leaves out commands that made nothing that lasts and changed nothing that others made. How many.
fn leave_out(parts: &mut Vec<Part>, lasting: &BTreeSet<Bytes>) -> usize {
    let before = parts.len();
    let silent =
        |part: &Part| part.effects.directories.is_empty() && part.effects.removed.is_empty();
    let made: BTreeSet<Bytes> = parts
        .iter()
        .flat_map(|part| part.effects.made.keys().cloned())
        .collect();
    let makes = |part: &Part| {
        part.effects.made.keys().any(|path| lasting.contains(path))
            || part
                .effects
                .touched
                .keys()
                .any(|path| made.contains(path) && lasting.contains(path))
    };
    let quiet = parts
        .iter()
        .filter(|part| !makes(part) && !silent(part))
        .count();
    parts.retain(makes);
    before - parts.len() - quiet
}

fn join_by_files(parts: &[Part], lasting: &BTreeSet<Bytes>, groups: &mut Groups) {
    let mut makers: HashMap<&Bytes, Vec<usize>> = HashMap::new();
    for (at, part) in parts.iter().enumerate() {
        for path in part
            .effects
            .made
            .keys()
            .filter(|path| lasting.contains(*path))
        {
            makers.entry(path).or_default().push(at);
        }
    }
    for makers in makers.values() {
        makers
            .windows(2)
            .for_each(|pair| groups.join(pair[0], pair[1]));
    }
    for (at, part) in parts.iter().enumerate() {
        let effects = &part.effects;
        for path in effects.removed.keys().chain(effects.touched.keys()) {
            let makers = makers.get(path).into_iter().flatten();
            makers.for_each(|&maker| groups.join(at, maker));
        }
        // What was read before it was changed would be changed first.
        for (path, (_, read)) in &effects.read {
            for &maker in makers.get(path).into_iter().flatten() {
                if maker != at && parts[maker].effects.made[path].start > *read {
                    groups.join(at, maker);
                }
            }
        }
    }
}

/// Which group needs which, by the files between them.
fn needs(parts: &[Part], lasting: &BTreeSet<Bytes>, groups: &mut Groups) -> Vec<BTreeSet<usize>> {
    let mut maker: HashMap<&Bytes, usize> = HashMap::new();
    for (at, part) in parts.iter().enumerate() {
        for path in part
            .effects
            .made
            .keys()
            .filter(|path| lasting.contains(*path))
        {
            maker.insert(path, groups.of(at));
        }
    }
    let mut needs = vec![BTreeSet::new(); parts.len()];
    for (at, part) in parts.iter().enumerate() {
        let group = groups.of(at);
        let makers = part.effects.read.keys().filter_map(|path| maker.get(path));
        needs[group].extend(makers.filter(|maker| **maker != group));
    }
    needs
}

/// Joins groups that need each other: Kosaraju's two passes, without recursion.
fn join_rings(parts: &[Part], lasting: &BTreeSet<Bytes>, groups: &mut Groups) {
    let needs = needs(parts, lasting, groups);
    let mut backwards = vec![BTreeSet::new(); needs.len()];
    for (at, needed) in needs.iter().enumerate() {
        for &other in needed {
            backwards[other].insert(at);
        }
    }
    let mut order = Vec::new();
    let mut seen = vec![false; needs.len()];
    for at in 0..needs.len() {
        visit(at, &needs, &mut seen, &mut |done| order.push(done));
    }
    let mut seen = vec![false; needs.len()];
    for &at in order.iter().rev() {
        let mut ring = Vec::new();
        visit(at, &backwards, &mut seen, &mut |done| ring.push(done));
        ring.windows(2)
            .for_each(|pair| groups.join(pair[0], pair[1]));
    }
}

/// Depth first, telling of each node when everything behind it is done.
fn visit(from: usize, edges: &[BTreeSet<usize>], seen: &mut [bool], done: &mut impl FnMut(usize)) {
    if std::mem::replace(&mut seen[from], true) {
        return;
    }
    let mut stack = vec![(from, edges[from].iter())];
    while let Some((at, rest)) = stack.last_mut() {
        match rest.find(|&&next| !seen[next]) {
            Some(&next) => {
                seen[next] = true;
                stack.push((next, edges[next].iter()));
            }
            None => {
                done(*at);
                stack.pop();
            }
        }
    }
}

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
        .collect();
    // What one command made and a later one renamed is not there after the step.
    let gone = |path: &Bytes| {
        all().any(|effects| effects.removed.contains_key(path))
            && !all().any(|e| e.made.get(path).is_some_and(|m| m.last))
    };
    let outputs: BTreeSet<Bytes> = outputs.into_iter().filter(|path| !gone(path)).collect();
    let everything: BTreeSet<&Bytes> = all().flat_map(|effects| effects.made.keys()).collect();
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
    let directories = outputs
        .iter()
        .map(|path| Bytes::from(parent(path)))
        .filter(|directory| {
            made.contains(directory) && !all().any(|e| e.directories.contains(directory))
        })
        .collect::<BTreeSet<Bytes>>();
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
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect(),
        outputs: outputs.into_iter().collect(),
        directories: directories.into_iter().collect(),
        own_directories: all()
            .flat_map(|e| e.directories.iter().cloned())
            .collect::<BTreeSet<_>>()
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

/// True for a `mktemp` whose files others make anew by the names that it found: who reads the step knows these already.
fn only_named(part: &Part, parts: &[&Part]) -> bool {
    let mut words = part.lines.iter().flat_map(|line| &line.words);
    let first = words.find(|word| !matches!(word, Word::Set(..)));
    let names = matches!(first, Some(Word::Program(name)) if matches!(base_name(name), b"mktemp" | b"tempfile"));
    let made_again = |path: &Bytes| {
        let mut others = parts.iter().filter(|other| other.start > part.start);
        others.any(|other| other.effects.made.contains_key(path))
    };
    names && part.effects.made.keys().all(made_again)
}

/// Makers before users; among those that could be next, the one that ran first.
fn ordered(steps: Vec<Step>) -> Vec<Step> {
    let mut maker: HashMap<&Bytes, usize> = HashMap::new();
    for (at, step) in steps.iter().enumerate() {
        maker.extend(step.outputs.iter().map(|path| (path, at)));
    }
    let mut missing: Vec<BTreeSet<usize>> = steps
        .iter()
        .map(|step| {
            step.inputs
                .iter()
                .filter_map(|path| maker.get(path).copied())
                .collect()
        })
        .collect();
    let mut waits: Vec<Vec<usize>> = vec![Vec::new(); steps.len()];
    for (at, needed) in missing.iter().enumerate() {
        needed.iter().for_each(|&other| waits[other].push(at));
    }
    let mut ready: BTreeSet<(Time, usize)> = BTreeSet::new();
    for (at, needed) in missing
        .iter()
        .enumerate()
        .filter(|(_, needed)| needed.is_empty())
    {
        debug_assert!(needed.is_empty());
        ready.insert((steps[at].start, at));
    }
    let mut order = Vec::new();
    while let Some((_, at)) = ready.pop_first() {
        order.push(at);
        for &next in &waits[at] {
            missing[next].remove(&at);
            if missing[next].is_empty() {
                ready.insert((steps[next].start, next));
            }
        }
    }
    let mut steps: Vec<Option<Step>> = steps.into_iter().map(Some).collect();
    order
        .into_iter()
        .filter_map(|at| steps[at].take())
        .collect()
}

/// Names steps after their first outputs: letters, digits and `_`, beginning with a letter.
fn name(steps: &mut [Step]) {
    let mut taken: HashMap<String, usize> = HashMap::new();
    for step in steps {
        let first = step
            .outputs
            .first()
            .map_or(&b"step"[..], |path| base_name(path));
        let plain: String = String::from_utf8_lossy(first)
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        let mut name = match plain.starts_with(|c: char| c.is_ascii_alphabetic()) {
            true => plain,
            false => format!("file_{plain}"),
        };
        let count = taken.entry(name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            name = format!("{name}_{count}");
            taken.insert(name.clone(), 1);
        }
        step.name = name;
    }
}
