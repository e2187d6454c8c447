//! Which commands must be one step.
//!
//! Tools that run workflows know files by their paths and by their existence. Commands are
//! therefore one step in these cases:
//!
//! - They make the same file.
//! - One removes or renames a file that the other made.
//! - One changes a file after the other read it.
//! - They need each other's files.

use std::collections::{BTreeSet, HashMap};

use backstory_eventlog::event::Bytes;
use petgraph::algo::tarjan_scc;
use petgraph::graph::DiGraph;
use petgraph::unionfind::UnionFind;

use super::part::Part;

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
        // In another order, the maker would change the file before the command reads it.
        for (path, (_, read)) in &effects.read {
            for &maker in makers.get(path).into_iter().flatten() {
                if maker != at && parts[maker].effects.made[path].start > *read {
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

/// Joins groups that need each other's files: the strongly connected components of the graph of
/// needs.
fn join_cycles(parts: &[Part], lasting: &BTreeSet<Bytes>, sets: &mut UnionFind<usize>) {
    let mut maker: HashMap<&Bytes, usize> = HashMap::new();
    for (at, part) in parts.iter().enumerate() {
        for path in lasting_outputs(part, lasting) {
            maker.insert(path, sets.find(at));
        }
    }
    let mut needs: DiGraph<(), (), usize> = DiGraph::default();
    let nodes: Vec<_> = parts.iter().map(|_| needs.add_node(())).collect();
    for (at, part) in parts.iter().enumerate() {
        let group = sets.find(at);
        let makers = part.effects.read.keys().filter_map(|path| maker.get(path));
        for &other in makers.filter(|maker| **maker != group) {
            needs.update_edge(nodes[group], nodes[other], ());
        }
    }
    for cycle in tarjan_scc(&needs) {
        for pair in cycle.windows(2) {
            sets.union(pair[0].index(), pair[1].index());
        }
    }
}
