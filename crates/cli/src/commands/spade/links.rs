//! Neighbours of vertices, and the undirected links between them.

use std::collections::{BTreeMap, BTreeSet};

use super::graph::{BaseGraph, Part};

/// The edges of a part that lead from these vertices to their causes, or from their effects to
/// them, with both ends.
pub(super) fn neighbours(
    base: &BaseGraph,
    part: &Part,
    from: &BTreeSet<usize>,
    (causes, effects): (bool, bool),
) -> Part {
    let leads = |edge: &usize| {
        let ends = base.ends[*edge];
        causes && from.contains(&ends.effect) || effects && from.contains(&ends.cause)
    };
    with_ends(base, part.edges.iter().copied().filter(leads).collect())
}

/// The edges on walks of at most `depth` edges between two sets of vertices, in whichever direction
/// the edges lead.
pub(super) fn between(
    base: &BaseGraph,
    part: &Part,
    (one, other): (&BTreeSet<usize>, &BTreeSet<usize>),
    depth: usize,
) -> Part {
    let [near, far] = [one, other].map(|from| distances(base, part, from, depth));
    let fits = |edge: &usize| {
        let ends = base.ends[*edge];
        let walk = |from: &usize, to: &usize| {
            let steps = near.get(from).zip(far.get(to));
            steps.is_some_and(|(before, after)| before + 1 + after <= depth)
        };
        walk(&ends.effect, &ends.cause) || walk(&ends.cause, &ends.effect)
    };
    with_ends(base, part.edges.iter().copied().filter(fits).collect())
}

/// These edges and their ends.
pub(super) fn with_ends(base: &BaseGraph, edges: BTreeSet<usize>) -> Part {
    let ends = edges.iter().map(|&edge| base.ends[edge]);
    Part {
        vertices: ends.flat_map(|ends| [ends.effect, ends.cause]).collect(),
        edges,
    }
}

/// The least number of edges from a set to each vertex.
fn distances(
    base: &BaseGraph,
    part: &Part,
    from: &BTreeSet<usize>,
    depth: usize,
) -> BTreeMap<usize, usize> {
    let mut known: BTreeMap<usize, usize> = from.iter().map(|&at| (at, 0)).collect();
    for step in 1..=depth {
        let before = known.len();
        for &edge in &part.edges {
            let ends = base.ends[edge];
            for (here, there) in [(ends.effect, ends.cause), (ends.cause, ends.effect)] {
                if known.get(&here).is_some_and(|&steps| steps < step) {
                    known.entry(there).or_insert(step);
                }
            }
        }
        if known.len() == before {
            break;
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::spade::graph::Ends;

    /// 0 → 1 → 2 ← 3, and 4 without an edge.
    fn base() -> BaseGraph {
        let ends = |effect, cause| Ends {
            effect,
            cause,
            start: 0,
            end: 0,
        };
        BaseGraph {
            ends: vec![ends(0, 1), ends(1, 2), ends(3, 2)],
            ..BaseGraph::default()
        }
    }

    fn whole() -> Part {
        Part {
            vertices: (0..5).collect(),
            edges: (0..3).collect(),
        }
    }

    #[test]
    fn a_neighbour_is_one_edge_away_in_the_direction_asked_for() {
        let of = |at, way| neighbours(&base(), &whole(), &BTreeSet::from([at]), way).edges;
        assert_eq!(of(1, (true, false)), BTreeSet::from([1]));
        assert_eq!(of(1, (false, true)), BTreeSet::from([0]));
        assert_eq!(of(2, (true, true)), BTreeSet::from([1, 2]));
        assert_eq!(of(4, (true, true)), BTreeSet::new());
    }

    #[test]
    fn links_lead_through_edges_of_both_directions_up_to_a_length() {
        let sets = (BTreeSet::from([0]), BTreeSet::from([3]));
        let of = |depth| between(&base(), &whole(), (&sets.0, &sets.1), depth).edges;
        assert_eq!(of(2), BTreeSet::new());
        assert_eq!(of(3), BTreeSet::from([0, 1, 2]));
    }
}
