//! Connections whose two ends are both in a lineage.
//!
//! In: a lineage. Out: which activities are the same client, and which end of a conversation is
//! nearer to the subject.
//!
//! A run of a watched server names its clients, too, by their processes. A client that was recorded
//! itself is in two runs then. A client sends statements and receives results, so each end receives
//! from the other. A reader wants to know only the end that is farther from the subject.

use std::collections::{HashMap, HashSet, VecDeque};

use backstory_eventlog::event::UNNUMBERED;
use backstory_graph::model::EntityKind;
use backstory_query::answer::{Flow, Lineage, Node};

/// The activities that a watched server's run knows as its clients, with the same activities of the
/// runs that recorded them.
pub fn same_clients(lineage: &Lineage) -> HashMap<usize, usize> {
    let is_socket = |node: usize| matches!(&lineage.nodes[node], Node::Entity { kind, .. } if *kind == EntityKind::Socket);
    let mut users: HashMap<usize, HashSet<usize>> = HashMap::new();
    for link in &lineage.links {
        let (activity, thing) = match link.flow {
            Flow::Used(_) => (link.to, link.from),
            Flow::Generated(_) => (link.from, link.to),
            _ => continue,
        };
        if is_socket(thing) {
            users.entry(thing).or_default().insert(activity);
        }
    }
    let activity = |node: usize| match &lineage.nodes[node] {
        Node::Activity { pid, run, .. } => Some((*pid, run)),
        Node::Entity { .. } => None,
    };
    // A source numbers its own activities above those of processes.
    let watched: HashSet<&String> = (0..lineage.nodes.len())
        .filter_map(activity)
        .filter_map(|(pid, run)| (pid >= UNNUMBERED).then_some(run))
        .collect();
    let mut same = HashMap::new();
    for link in lineage.links.iter().filter(|link| link.flow == Flow::Same) {
        let at = |node: usize| users.get(&node).into_iter().flatten().copied();
        for (one, two) in at(link.from).flat_map(|one| at(link.to).map(move |two| (one, two))) {
            let (Some((one_pid, one_run)), Some((two_pid, two_run))) =
                (activity(one), activity(two))
            else {
                continue;
            };
            match (watched.contains(one_run), watched.contains(two_run)) {
                _ if one_pid != two_pid => (),
                (false, true) => drop(same.insert(two, one)),
                (true, false) => drop(same.insert(one, two)),
                _ => (),
            }
        }
    }
    same
}

/// The number of links from the nearest root to each node. `around` gives the nodes that are one
/// link farther.
pub fn distances(
    roots: usize,
    nodes: usize,
    around: impl Fn(usize) -> Vec<usize>,
) -> Vec<Option<usize>> {
    let mut far = vec![None; nodes];
    let mut queue: VecDeque<usize> = (0..roots).collect();
    queue.iter().for_each(|&root| far[root] = Some(0));
    while let Some(node) = queue.pop_front() {
        for next in around(node) {
            if far[next].is_none() {
                far[next] = far[node].map(|links: usize| links + 1);
                queue.push_back(next);
            }
        }
    }
    far
}
