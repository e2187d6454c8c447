//! The order and the names of steps.

use std::collections::{BTreeSet, HashMap};

use backstory_eventlog::event::{Bytes, Time};

use super::Step;
use crate::paths::base_name;

/// Sorts the steps: makers before users; of several that could be next, the one that began first.
pub fn ordered(steps: Vec<Step>) -> Vec<Step> {
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

/// Names the steps after their first outputs: letters, digits and `_`, beginning with a letter,
/// unique.
pub fn name(steps: &mut [Step]) {
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
