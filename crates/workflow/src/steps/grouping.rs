//! Which commands must be one step.
//!
//! Tools that run workflows know files by their paths and by their existence. Commands are
//! therefore one step in these cases:
//!
//! - They make the same file.
//! - One removes or renames a file that the other made.
//! - One changes a file after the other read it.
//! - They need each other's files.
//! - One lists a directory before the other adds a file to it, and needs that file's step.

use std::collections::{BTreeSet, HashMap, HashSet};

use backstory_eventlog::event::{Bytes, Time};
use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::unionfind::UnionFind;
use petgraph::visit::Dfs;

use super::part::Part;
use crate::paths::parent;

/// The group of each command: the index of the group's first command. `lasting`: files that count.
pub fn groups(parts: &[Part], lasting: &BTreeSet<Bytes>) -> Vec<usize> {
    let mut sets = UnionFind::new(parts.len());
    join_by_files(parts, lasting, &mut sets);
    join_cycles(parts, lasting, &mut sets);
    let mut first: HashMap<usize, usize> = HashMap::new();
    (0..parts.len())
        .map(|at| *first.entry(sets.find(at)).or_insert(at))
        .collect()
}

/// Joins commands that make, change or remove the same file.
fn join_by_files(parts: &[Part], lasting: &BTreeSet<Bytes>, sets: &mut UnionFind<usize>) {
    let mut makers: HashMap<&Bytes, Vec<usize>> = HashMap::new();
    for (at, part) in parts.iter().enumerate() {
        for path in lasting_outputs(part, lasting) {
            makers.entry(path).or_default().push(at);
        }
    }
    for makers in makers.values() {
        for pair in makers.windows(2) {
            sets.union(pair[0], pair[1]);
        }
    }
    for (at, part) in parts.iter().enumerate() {
        let effects = &part.effects;
        for path in effects.removed.keys().chain(effects.touched.keys()) {
            for &maker in makers.get(path).into_iter().flatten() {
                sets.union(at, maker);
            }
        }
        // In another order, the maker would change the file before the command reads it. A command
        // of a later run that makes the file anew took the place of the one that made it before.
        let replaces =
            |maker: &Part, path: &Bytes| maker.run > part.run && maker.effects.makes_anew(path);
        for (path, (_, read)) in &effects.read {
            for &maker in makers.get(path).into_iter().flatten() {
                let later = parts[maker].effects.made[path].start > *read;
                if maker != at && later && !replaces(&parts[maker], path) {
                    sets.union(at, maker);
                }
            }
        }
    }
}

fn lasting_outputs<'p>(
    part: &'p Part,
    lasting: &BTreeSet<Bytes>,
) -> impl Iterator<Item = &'p Bytes> {
    let made = part.effects.made.keys();
    made.filter(|path| lasting.contains(*path))
}

/// Groups of commands as nodes, at the index of each group's first command. An edge leads from a
/// group to one that it needs.
type Needs = DiGraph<(), (), usize>;

/// Joins groups that need each other: the strongly connected components of the graph of needs.
fn join_cycles(parts: &[Part], lasting: &BTreeSet<Bytes>, sets: &mut UnionFind<usize>) {
    let mut maker: HashMap<&Bytes, usize> = HashMap::new();
    for (at, part) in parts.iter().enumerate() {
        for path in lasting_outputs(part, lasting) {
            maker.insert(path, sets.find(at));
        }
    }
    let mut needs = Needs::default();
    let nodes: Vec<_> = parts.iter().map(|_| needs.add_node(())).collect();
    for (at, part) in parts.iter().enumerate() {
        let group = sets.find(at);
        let makers = part.effects.read.keys().filter_map(|path| maker.get(path));
        for &other in makers.filter(|maker| **maker != group) {
            needs.update_edge(nodes[group], nodes[other], ());
        }
    }
    for (maker, lister) in additions_to_listed(parts, lasting, sets, &needs) {
        needs.update_edge(nodes[maker], nodes[lister], ());
    }
    for cycle in tarjan_scc(&needs) {
        for pair in cycle.windows(2) {
            sets.union(pair[0].index(), pair[1].index());
        }
    }
}

/// Pairs of groups: the second listed a directory, and the first added a file to it later, although
/// the second needs the first. The list would be another one if the first ran as a whole before the
/// second.
fn additions_to_listed(
    parts: &[Part],
    lasting: &BTreeSet<Bytes>,
    sets: &UnionFind<usize>,
    needs: &Needs,
) -> BTreeSet<(usize, usize)> {
    let mut listers: HashMap<&[u8], Vec<(usize, Time)>> = HashMap::new();
    for (at, part) in parts.iter().enumerate() {
        for (directory, first) in &part.effects.listed {
            let all = listers.entry(directory).or_default();
            all.push((sets.find(at), *first));
        }
    }
    let mut needed: HashMap<usize, HashSet<usize>> = HashMap::new();
    let mut pairs = BTreeSet::new();
    for (at, part) in parts.iter().enumerate() {
        let maker = sets.find(at);
        for path in lasting_outputs(part, lasting) {
            let start = part.effects.made[path].start;
            let listers = listers.get(parent(path)).into_iter().flatten();
            let before = listers.filter(|(group, first)| *group != maker && *first < start);
            for &(lister, _) in before {
                let needed = needed
                    .entry(lister)
                    .or_insert_with(|| all_needed(needs, lister));
                if needed.contains(&maker) {
                    pairs.insert((maker, lister));
                }
            }
        }
    }
    pairs
}

/// The groups that a group needs, directly or through others.
fn all_needed(needs: &Needs, group: usize) -> HashSet<usize> {
    let mut walk = Dfs::new(needs, NodeIndex::new(group));
    let mut all = HashSet::new();
    while let Some(node) = walk.next(needs) {
        all.insert(node.index());
    }
    all
}
