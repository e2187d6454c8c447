//! Plans which nodes of a lineage are unfolded in its tree, and below which other node. The nearest
//! nodes come first, as many as fit a page.
//!
//! The lineage of a build has tens of thousands of lines, and a person reads a hundred. The inputs
//! of a command are nearer to it than the process that started it. Data says how a file was made,
//! while the ancestors of processes are mostly shells and makes.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::branches::Branch;

/// Lines that fit a page.
pub const PAGE: usize = 150;

/// If a lineage does not fit the page, each node has at most this many lines below it.
pub const FEW_LINES: usize = 10;

/// The length of a branch to the process that started a command, where a branch along data has
/// length 1.
const STARTED: u32 = 6;

/// A line below a node.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// A branch to another node.
    Branch(Branch),
    /// Files that are only counted.
    Note(String),
}

/// Where each node is unfolded.
#[derive(Debug, Default)]
pub struct Plan {
    /// For each node, the node below which it is unfolded.
    homes: HashMap<usize, usize>,
    /// True if all nodes are unfolded.
    whole: bool,
}

impl Plan {
    /// Unfolds the nodes nearest to `root`, until the lines of the next node would exceed `most` in
    /// all. Among equally near nodes, the first come first.
    pub fn nearest(root: usize, most: usize, below: impl Fn(usize) -> Vec<Line>) -> Plan {
        let mut plan = Plan {
            homes: HashMap::new(),
            whole: true,
        };
        let (mut lines, mut order) = (1, 0u64);
        let mut queue = BinaryHeap::from([Reverse((0, order, root, root))]);
        while let Some(Reverse((distance, _, node, parent))) = queue.pop() {
            if plan.homes.contains_key(&node) {
                continue;
            }
            let under = below(node);
            lines += under.len();
            if lines > most && node != root {
                plan.whole = false;
                break;
            }
            plan.homes.insert(node, parent);
            for line in under {
                if let Line::Branch(step) = line {
                    order += 1;
                    let far = distance + if step.informs { STARTED } else { 1 };
                    queue.push(Reverse((far, order, step.node, node)));
                }
            }
        }
        plan
    }

    /// True if all nodes are unfolded.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// True if the node is unfolded somewhere.
    pub fn unfolds(&self, node: usize) -> bool {
        self.homes.contains_key(&node)
    }

    /// True if the node is unfolded below `parent`.
    pub fn is_home(&self, node: usize, parent: usize) -> bool {
        self.homes.get(&node) == Some(&parent)
    }
}

/// The branches of a node that are shown. Data comes first, but a branch to the starter is always
/// among them.
pub fn first_few(steps: &[Branch], most: usize) -> (Vec<Branch>, &[Branch]) {
    if steps.len() <= most {
        return (steps.to_vec(), &[]);
    }
    let informs = steps.iter().filter(|step| step.informs).count();
    let data = steps.len() - informs;
    let kept = data.min(most - informs.min(2));
    let mut shown = steps[..kept].to_vec();
    shown.extend(steps[data..].iter().take(most - kept).cloned());
    (shown, &steps[kept..data])
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstory_graph::model::Certainty;

    fn step(node: usize, informs: bool) -> Branch {
        Branch {
            node,
            words: String::new(),
            certainty: Certainty::Seen,
            informs,
            writes: false,
        }
    }

    /// 0 read 1 and was started by 2; both lead to 3; 1 to 4.
    fn below(node: usize) -> Vec<Line> {
        let steps: &[(usize, bool)] = match node {
            0 => &[(1, false), (2, true)],
            1 => &[(4, false), (3, true)],
            2 => &[(3, false)],
            _ => &[],
        };
        steps
            .iter()
            .map(|&(node, informs)| Line::Branch(step(node, informs)))
            .collect()
    }

    #[test]
    fn a_node_is_unfolded_where_it_is_nearest() {
        let plan = Plan::nearest(0, usize::MAX, below);
        assert!(plan.is_whole() && plan.unfolds(4));
        assert!(plan.is_home(3, 1) != plan.is_home(3, 2));
    }

    #[test]
    fn a_page_holds_the_nearest_nodes_and_the_root_in_any_case() {
        let plan = Plan::nearest(0, 5, below);
        assert!(!plan.is_whole() && plan.unfolds(1) && !plan.unfolds(2));
        let plan = Plan::nearest(0, 1, below);
        assert!(plan.unfolds(0) && !plan.unfolds(1));
    }

    #[test]
    fn the_starter_of_a_command_is_always_shown() {
        let mut steps: Vec<Branch> = (0..20).map(|node| step(node, false)).collect();
        steps.push(step(20, true));
        let (shown, rest) = first_few(&steps, 12);
        assert_eq!((shown.len(), rest.len()), (12, 9));
        assert!(shown[11].informs && rest.iter().all(|step| !step.informs));
        let (shown, rest) = first_few(&steps[18..], 12);
        assert_eq!((shown.len(), rest.len()), (3, 0));
    }
}
