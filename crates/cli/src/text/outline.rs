//! A lineage prepared for a reader: the branches of each node that deserve a line, and what is left
//! out.
//!
//! The graph has all facts. The outline leaves out or joins those that tell a reader nothing:
//!
//! - A pipe is passed through (`piped from`), and so is a socket whose other end was recorded
//!   (`received from`). So is the memory of a process that it has in common with its transactions.
//! - The same version in two runs is one node.
//! - The epoch of a shell between fork and exec belongs to the command that it starts.
//! - A program that only starts another one under its own name belongs to it, as Debian's `psql`.
//! - A client that a watched server's run names is the recorded command.
//! - Of two commands that received from each other, only the one nearer to the root has a branch to
//!   the other.
//! - The former versions of a table are passed through, to those that wrote them.
//! - A possible link is left out if an observed link explains the same. Only an observed writer
//!   hides the possible writers of a file.
//! - Of a watched database, possible links are left out: those between clients, connections,
//!   transactions and tables.
//!
//! Possible links that are left out are counted. With `possible`, none is left out.

use backstory_ordering::SmallSort;
use std::collections::{HashMap, HashSet};

use backstory_eventlog::event::UNNUMBERED;
use backstory_graph::model::{Certainty, EntityKind, Informed, Relation};
use backstory_query::answer::{Flow, Lineage, Link, Node};

use backstory_workflow::paths::base_name;

use super::branches::{Branch, Branches, joined};
use super::conversations::{Conversations, distances, server_of};
use super::paths::is_system;
use super::words::{Direction, step as word};

/// The words for a node behind a pipe, in either direction.
const PIPED: [&str; 2] = ["piped from", "piped to"];

/// The words for a node behind a socket or a memory, in either direction.
const SENT: [&str; 2] = ["received from", "sent to"];

/// If a pipe has more commands than this at its other end, and all are only possible, they are left
/// out.
const CROWD: usize = 3;

/// A lineage, prepared for reading.
pub struct Outline<'a> {
    /// The lineage.
    pub lineage: &'a Lineage,
    direction: Direction,
    possible: bool,
    /// For each node the command that it belongs to: itself, or the program that it executed.
    whole: Vec<usize>,
    /// The programs that only started another one under their names, by that one.
    starters: HashMap<usize, usize>,
    conversations: Conversations,
    /// Indexes of links by the node that they start from in reading direction, in order of time.
    links: Vec<Vec<usize>>,
    /// The number of links from the nearest root to each node.
    far: Vec<Option<usize>>,
}

impl<'a> Outline<'a> {
    /// Prepares a lineage. With `possible`, possible links are not left out.
    pub fn new(lineage: &'a Lineage, direction: Direction, possible: bool) -> Outline<'a> {
        let mut whole: Vec<usize> = (0..lineage.nodes.len()).collect();
        let mut starters = HashMap::new();
        let execs = lineage.links.iter().filter(|link| {
            link.flow == Flow::Informed(Informed::Exec) && link.from >= lineage.roots
        });
        for link in execs {
            let nodes = [link.from, link.to].map(|node| &lineage.nodes[node]);
            if is_forked(nodes[0]) {
                whole[link.from] = link.to;
            } else if is_starter(nodes) {
                whole[link.from] = link.to;
                starters.insert(link.to, link.from);
            }
        }
        for node in 0..whole.len() {
            // A forked process executed a program that starts another one.
            whole[node] = whole[whole[node]];
        }
        let conversations = Conversations::of(lineage);
        for (&client, &recorded) in &conversations.same_clients {
            whole[client] = whole[recorded];
        }
        let mut links = vec![Vec::new(); lineage.nodes.len()];
        for (index, link) in lineage.links.iter().enumerate() {
            let (from, to) = (whole[link.from], whole[link.to]);
            if from != to {
                links[if direction == Direction::Of { to } else { from }].push(index);
            }
        }
        for group in &mut links {
            group.sort_small_by_key(|&link| lineage.links[link].interval.start);
        }
        let mut outline = Outline {
            lineage,
            direction,
            possible,
            whole,
            starters,
            conversations,
            links,
            far: Vec::new(),
        };
        outline.far = distances(lineage.roots, lineage.nodes.len(), |node| {
            outline.around(node).map(|(_, next)| next).collect()
        });
        outline
    }

    /// The links from a node, with the nodes at their other ends.
    fn around(&self, node: usize) -> impl Iterator<Item = (&'a Link, usize)> {
        self.links[node].iter().map(|&index| {
            let link = &self.lineage.links[index];
            (
                link,
                self.whole[if self.direction == Direction::Of {
                    link.from
                } else {
                    link.to
                }],
            )
        })
    }

    /// The node with the command as it was given: of a program that another one started under its
    /// own name, that other one.
    pub fn given(&self, node: usize) -> usize {
        self.starters.get(&node).copied().unwrap_or(node)
    }

    /// True if no link starts at the node.
    pub fn is_leaf(&self, node: usize) -> bool {
        self.links[node].is_empty()
    }

    /// True if the lineage leads through tables of a database.
    pub fn has_tables(&self) -> bool {
        let is_table = |node: &Node| matches!(node, Node::Entity { kind, .. } if *kind == EntityKind::Resource);
        self.lineage.nodes.iter().any(is_table)
    }

    /// True if the node is a system file that no recorded command wrote (or used). These files are
    /// counted.
    pub fn is_system_leaf(&self, node: usize) -> bool {
        match &self.lineage.nodes[node] {
            Node::Entity { path, .. } => is_system(path) && self.is_leaf(node),
            Node::Activity { .. } => false,
        }
    }

    /// The branches of a node, data before starters, each group in order of time. A node has no
    /// branch to itself.
    pub fn steps(&self, node: usize) -> Branches {
        let mut steps = Branches::default();
        let mut seen = HashSet::from([node]);
        let mut through = vec![(node, Certainty::Seen, None)];
        while let Some((at, so_far, way)) = through.pop() {
            for (link, other) in self.around(at) {
                let certainty = link.certainty.min(so_far);
                if self.is_noise(node, link, other) {
                    steps.hidden += usize::from(certainty == Certainty::Possible);
                } else if let Some(way) = self.way(link, other, way) {
                    if seen.insert(other) {
                        through.push((other, certainty, way));
                    }
                } else if !(way.is_some() && other == node
                    || way == Some(self.sent()) && self.is_answered(node, other)
                    || self.is_told(node, link, other))
                {
                    steps.shown.push(Branch {
                        node: other,
                        words: way.unwrap_or(word(&link.flow, self.direction)).to_owned(),
                        certainty,
                        informs: matches!(link.flow, Flow::Informed(_)) && way.is_none(),
                        writes: matches!(link.flow, Flow::Generated(_)) && way.is_none(),
                    });
                }
            }
        }
        self.prefer_seen(node, &mut steps);
        self.leave_out_crowds(&mut steps);
        steps.shown = joined(steps.shown);
        steps
            .shown
            .sort_small_by_key(|step| (step.informs, self.is_leaf(step.node)));
        steps
    }

    /// The words for a node behind a socket.
    fn sent(&self) -> &'static str {
        SENT[usize::from(self.direction == Direction::Uses)]
    }

    /// True if two nodes received from each other, and the other one is nearer to the root: it has
    /// the branch.
    fn is_answered(&self, node: usize, other: usize) -> bool {
        let nearer = match (self.far[node], self.far[other]) {
            (Some(far), Some(other)) => other < far,
            _ => false,
        };
        !self.possible && nearer && self.receives(other, node)
    }

    /// True if only sockets are between a node and the other one.
    fn receives(&self, node: usize, other: usize) -> bool {
        let (mut seen, mut open) = (HashSet::new(), vec![node]);
        while let Some(at) = open.pop() {
            for (link, next) in self.around(at) {
                if next == other && at != node {
                    return true;
                }
                let way = self.way(link, next, None);
                if (way == Some(Some(self.sent())) || link.flow == Flow::Same) && seen.insert(next)
                {
                    open.push(next);
                }
            }
        }
        false
    }

    /// The words for what lies behind a node that is passed through. `None` if the node itself gets
    /// a line. A socket gets a line if no node of the lineage is at its other end.
    fn way(
        &self,
        link: &Link,
        other: usize,
        way: Option<&'static str>,
    ) -> Option<Option<&'static str>> {
        let of = self.direction == Direction::Of;
        let channel =
            |words: [&'static str; 2]| (!self.possible).then_some(Some(words[usize::from(!of)]));
        match (&link.flow, &self.lineage.nodes[other]) {
            (Flow::Same, _) => Some(way),
            (Flow::Derived, Node::Entity { kind, .. }) if *kind == EntityKind::Resource => {
                (!self.possible).then_some(way)
            }
            (_, Node::Entity { kind, path, .. }) => match kind {
                EntityKind::Pipe => channel(PIPED),
                EntityKind::Socket if !self.is_leaf(other) => channel(SENT),
                EntityKind::Memory if is_of_process(path) => channel(SENT),
                _ => None,
            },
            _ => None,
        }
    }

    /// True for a possible link that is left out unless `possible` is set. Such a link lies on the
    /// way to an exec or at a dead end. It leads to a file that was opened for more than was done
    /// with it, or to a file that existed before. Or it stands beside an observed writer.
    fn is_noise(&self, root: usize, link: &Link, other: usize) -> bool {
        if self.possible || link.certainty == Certainty::Seen {
            return false;
        }
        let file = |node: usize| matches!(&self.lineage.nodes[node], Node::Entity { kind, .. } if !matches!(kind, EntityKind::Pipe | EntityKind::Socket));
        let dead_end = other != root && self.around(other).all(|(_, next)| next == root);
        let watched = &self.conversations.watched;
        if watched.contains(&link.from) || watched.contains(&link.to) {
            return true;
        }
        match link.flow {
            Flow::Used(_) => self.execs(link.to) || file(link.from) || dead_end,
            Flow::Generated(_) if self.direction == Direction::Uses => {
                self.execs(link.from) || dead_end
            }
            Flow::Generated(_) => {
                is_found(&self.lineage.nodes[link.to])
                    || is_forked(&self.lineage.nodes[link.from]) && self.is_told_by_another(link)
            }
            _ => false,
        }
    }

    /// True if the node is the epoch of a process before it executed the command that it belongs
    /// to.
    fn execs(&self, node: usize) -> bool {
        self.whole[node] != node
    }

    /// True if a process without a program of its own is a possible writer, and a better-known
    /// writer exists. That is an observed writer, or any program if the process executed one. A
    /// subshell is a writer like any other.
    fn is_told_by_another(&self, link: &Link) -> bool {
        self.links[link.to].iter().any(|&index| {
            let another = &self.lineage.links[index];
            let program = self.execs(link.from) && !is_forked(&self.lineage.nodes[another.from]);
            matches!(another.flow, Flow::Generated(_))
                && another.from != link.from
                && (program || another.certainty == Certainty::Seen)
        })
    }

    /// True if the outline shows the fact elsewhere. Such facts are the program that a command
    /// runs, its own outputs, and the source of a copy that the command read.
    fn is_told(&self, node: usize, link: &Link, other: usize) -> bool {
        let generated = |flow: &Flow| matches!(flow, Flow::Generated(_));
        match (&link.flow, self.direction) {
            _ if self.possible => false,
            (Flow::Used(Relation::Execute), Direction::Of) if self.is_leaf(other) => true,
            (Flow::Used(_) | Flow::Generated(_), _) if self.is_known_connection(node, other) => {
                true
            }
            (Flow::Used(_), Direction::Of) => self
                .around(other)
                .any(|(made, by)| by == node && generated(&made.flow)),
            (Flow::Derived, Direction::Of) => self.around(node).any(|(made, by)| {
                generated(&made.flow) && self.around(by).any(|(_, used)| used == other)
            }),
            (Flow::Derived, Direction::Uses) => self.around(node).any(|(_, by)| {
                self.around(by)
                    .any(|(made, file)| file == other && generated(&made.flow))
            }),
            _ => false,
        }
    }

    /// True for a connection to a watched server of which the answer has all that matters. It is
    /// the thing that all connections to the server share, or a client's own one that the server
    /// used at another time.
    fn is_known_connection(&self, node: usize, other: usize) -> bool {
        let name = match &self.lineage.nodes[other] {
            Node::Entity {
                kind: EntityKind::Socket,
                path,
                ..
            } => path,
            _ => return false,
        };
        let is_own = self.conversations.watched.contains(&other);
        let is_client = || match &self.lineage.nodes[node] {
            Node::Activity { pid, .. } => *pid < UNNUMBERED,
            Node::Entity { .. } => false,
        };
        let is_of_server = || self.conversations.names.contains(server_of(name));
        self.is_leaf(other) && is_of_server() && (!is_own || is_client())
    }

    /// Possible writers of a file are left out if a writer was observed.
    fn prefer_seen(&self, node: usize, steps: &mut Branches) {
        let entity = matches!(self.lineage.nodes[node], Node::Entity { .. });
        let seen = |step: &Branch| step.writes && step.certainty == Certainty::Seen;
        if self.possible
            || self.direction == Direction::Uses
            || !entity
            || !steps.shown.iter().any(seen)
        {
            return;
        }
        let before = steps.shown.len();
        steps
            .shown
            .retain(|step| !step.writes || step.certainty == Certainty::Seen);
        steps.hidden += before - steps.shown.len();
    }

    /// A pipe that a whole build inherits (its output, the pipe of a jobserver) possibly connects
    /// every command with every other. Such a number of possible links tells a reader nothing.
    fn leave_out_crowds(&self, steps: &mut Branches) {
        let crowd = |step: &Branch| {
            step.certainty == Certainty::Possible && PIPED.contains(&step.words.as_str())
        };
        if self.possible || steps.shown.iter().filter(|step| crowd(step)).count() <= CROWD {
            return;
        }
        let before = steps.shown.len();
        steps.shown.retain(|step| !crowd(step));
        steps.hidden += before - steps.shown.len();
    }

    /// The nodes that the branches of these nodes lead to.
    pub fn reached<'s>(&self, roots: usize, steps: impl Fn(usize) -> &'s Branches) -> Vec<usize> {
        let mut seen = vec![false; self.lineage.nodes.len()];
        let mut found: Vec<usize> = (0..roots).collect();
        let mut next = 0;
        while let Some(&node) = found.get(next) {
            next += 1;
            for step in &steps(node).shown {
                if !std::mem::replace(&mut seen[step.node], true) {
                    found.push(step.node);
                }
            }
        }
        found
    }
}

/// True if the node is a file as its run found it. A command that only opened the file for writing
/// (as for a lock) has not changed it, or the file would have another version.
fn is_found(node: &Node) -> bool {
    matches!(
        node,
        Node::Entity {
            kind: EntityKind::File,
            version: 0,
            ..
        }
    )
}

/// True if the entity is the memory of a process, which its activities have in common.
fn is_of_process(path: &[u8]) -> bool {
    path.starts_with(b"memory:")
}

/// True if the epoch has executed no program yet.
fn is_forked(node: &Node) -> bool {
    matches!(node, Node::Activity { epoch: 0, .. })
}

/// True if the first program executed the second one under its own name, with its own arguments. A
/// script that finds the right version of a program is an example.
fn is_starter(nodes: [&Node; 2]) -> bool {
    let [
        Node::Activity {
            pid: one_pid,
            argv: one,
            ..
        },
        Node::Activity {
            pid: two_pid,
            argv: two,
            ..
        },
    ] = nodes
    else {
        return false;
    };
    let (Some((one, first)), Some((two, second))) = (one.split_first(), two.split_first()) else {
        return false;
    };
    one_pid == two_pid && base_name(one) == base_name(two) && one != two && first == second
}
