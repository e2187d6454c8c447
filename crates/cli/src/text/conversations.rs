//! Connections whose two ends are both in a lineage.
//!
//! In: a lineage. Out: which activities are the same client, and which end of a conversation is
//! nearer to the subject.
//!
//! A run of a watched server names its clients, too, by their processes. A client that was recorded
//! itself is in two runs then, and both activities used the connection. A client sends statements
//! and receives results, so each end receives from the other. A reader wants to know only the end
//! that is farther from the subject.

use std::collections::{HashMap, HashSet, VecDeque};

use backstory_eventlog::event::UNNUMBERED;
use backstory_graph::model::EntityKind;
use backstory_query::answer::{Flow, Lineage, Node};
use backstory_query::{REPLY, is_of_server};

/// The connections to watched servers in a lineage.
#[derive(Debug, Default)]
pub struct Conversations {
    /// The clients that a server's run names, with the same activities of the runs that recorded
    /// them.
    pub same_clients: HashMap<usize, usize>,
    /// The things that the runs of watched servers have, and the processes that they name.
    pub watched: HashSet<usize>,
    /// The names of the servers' connections, without the word for replies.
    pub names: HashSet<Vec<u8>>,
}

impl Conversations {
    /// The conversations in a lineage.
    pub fn of(lineage: &Lineage) -> Conversations {
        let mut users: HashMap<usize, HashSet<usize>> = HashMap::new();
        for link in &lineage.links {
            let (activity, thing) = match link.flow {
                Flow::Used(_) => (link.to, link.from),
                Flow::Generated(_) => (link.from, link.to),
                _ => continue,
            };
            if socket(&lineage.nodes[thing]).is_some() {
                users.entry(thing).or_default().insert(activity);
            }
        }
        let runs = watched_runs(lineage, &users);
        let is_watched = |node: usize| runs.contains(run(&lineage.nodes[node]));
        let mut found = Conversations {
            watched: (0..lineage.nodes.len())
                .filter(|node| is_watched(*node))
                .collect(),
            ..Conversations::default()
        };
        for (thing, together) in &users {
            let name = socket(&lineage.nodes[*thing]).filter(|_| is_watched(*thing));
            found
                .names
                .extend(name.map(|name| server_of(name).to_vec()));
            let recorded = together.iter().filter(|one| !is_watched(**one));
            for (&one, &two) in recorded.flat_map(|one| together.iter().map(move |two| (one, two)))
            {
                let pids = [one, two].map(|node| pid(&lineage.nodes[node]));
                if is_watched(two) && pids[0].is_some() && pids[0] == pids[1] {
                    found.same_clients.insert(two, one);
                }
            }
        }
        found
    }
}

/// The runs of watched servers: an activity that is no process used a connection, and there are
/// tables.
fn watched_runs<'l>(
    lineage: &'l Lineage,
    users: &HashMap<usize, HashSet<usize>>,
) -> HashSet<&'l str> {
    let nodes = || lineage.nodes.iter();
    let tables = nodes().filter(|node| match node {
        Node::Entity { kind, path, .. } => *kind == EntityKind::Resource && is_of_server(path),
        Node::Activity { .. } => false,
    });
    let with_tables: HashSet<&str> = tables.map(run).collect();
    // A source numbers its own activities above those of processes.
    let activities = users.values().flatten().map(|one| &lineage.nodes[*one]);
    let numbered = activities.filter(|node| pid(node).is_some_and(|pid| pid >= UNNUMBERED));
    numbered
        .map(run)
        .filter(|run| with_tables.contains(run))
        .collect()
}

fn run(node: &Node) -> &str {
    match node {
        Node::Entity { run, .. } | Node::Activity { run, .. } => run,
    }
}

fn pid(node: &Node) -> Option<u32> {
    match node {
        Node::Activity { pid, .. } => Some(*pid),
        Node::Entity { .. } => None,
    }
}

/// The name of a connection.
fn socket(node: &Node) -> Option<&[u8]> {
    match node {
        Node::Entity {
            kind: EntityKind::Socket,
            path,
            ..
        } => Some(path),
        _ => None,
    }
}

/// The name of a connection, or of that which its replies come through.
pub fn server_of(name: &[u8]) -> &[u8] {
    name.strip_suffix(REPLY).unwrap_or(name)
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
