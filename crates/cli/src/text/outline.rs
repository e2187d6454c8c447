//! A lineage as one reads it: from each node the steps worth a line, and where each node is
//! unfolded.
//!
//! A graph says everything; a reader wants the story. So a pipe is not a stop but a way (`piped
//! from`), a socket whose other end was recorded, too (`received from`), the same version in two
//! runs is one, what a shell does between fork and exec belongs to the command it starts, and what
//! only could have happened is told where nothing that was seen tells it already: only a writer
//! that was seen hides those that could have written the same. What is left out for being only
//! possible is counted; with `possible`, nothing is.

use std::collections::{HashMap, HashSet};

use backstory_graph::model::{Certainty, EntityKind, Informed, Relation};
use backstory_query::answer::{Flow, Lineage, Link, Node};

use super::paths::is_system;
use super::words::{Direction, step as word};

/// What is said of what lies behind a pipe, in either direction.
const PIPED: [&str; 2] = ["piped from", "piped to"];

/// What is said of what lies behind a socket.
const SENT: [&str; 2] = ["received from", "sent to"];

/// More commands than this at the other end of a pipe, all of them only possible, are left out.
const CROWD: usize = 3;

/// One step to another node.
#[derive(Debug, Clone, PartialEq)]
pub struct Branch {
    /// Where it leads.
    pub node: usize,
    /// What precedes its name: `read`, `ran and read`.
    pub words: String,
    /// The strongest of the links. What is weaker says so in `words`.
    pub certainty: Certainty,
    /// True if it leads to who started it (or whom it started), not to data.
    pub informs: bool,
    /// True if it tells who wrote (or is written by) the node, itself and not through a pipe.
    pub writes: bool,
}

/// The steps from a node, and what was left out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Branches {
    /// Worth a line each.
    pub shown: Vec<Branch>,
    /// How many were left out because they only could have happened.
    pub hidden: usize,
}

/// A lineage, prepared for reading.
pub struct Outline<'a> {
    /// The lineage.
    pub lineage: &'a Lineage,
    direction: Direction,
    possible: bool,
    /// The command that each node belongs to: itself, or what it went on to exec.
    whole: Vec<usize>,
    /// Link indexes by the node they start from in reading direction, in order of time.
    links: Vec<Vec<usize>>,
}

impl<'a> Outline<'a> {
    /// Prepares a lineage. `possible`: leave out nothing that only could have happened.
    pub fn new(lineage: &'a Lineage, direction: Direction, possible: bool) -> Outline<'a> {
        let mut whole: Vec<usize> = (0..lineage.nodes.len()).collect();
        let execs = lineage
            .links
            .iter()
            .filter(|link| link.flow == Flow::Informed(Informed::Exec));
        for link in
            execs.filter(|link| is_forked(&lineage.nodes[link.from]) && link.from >= lineage.roots)
        {
            whole[link.from] = link.to;
        }
        let mut links = vec![Vec::new(); lineage.nodes.len()];
        for (index, link) in lineage.links.iter().enumerate() {
            let (from, to) = (whole[link.from], whole[link.to]);
            if from != to {
                links[if direction == Direction::Of { to } else { from }].push(index);
            }
        }
        for group in &mut links {
            group.sort_by_key(|&link| lineage.links[link].interval.start);
        }
        Outline {
            lineage,
            direction,
            possible,
            whole,
            links,
        }
    }

    /// The links from a node with the nodes they lead to.
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

    /// True if nothing leads on from the node.
    pub fn is_leaf(&self, node: usize) -> bool {
        self.links[node].is_empty()
    }

    /// True if the node is a system file that nothing recorded made (or used): one of the many that
    /// are better counted.
    pub fn is_system_leaf(&self, node: usize) -> bool {
        match &self.lineage.nodes[node] {
            Node::Entity { path, .. } => is_system(path) && self.is_leaf(node),
            Node::Activity { .. } => false,
        }
    }

    /// The steps from a node, data before starters, each group in order of time. What it sent to
    /// itself is no step.
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
                } else if !(way.is_some() && other == node || self.is_told(node, link, other)) {
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
            .sort_by_key(|step| (step.informs, self.is_leaf(step.node)));
        steps
    }

    /// How a node that is no stop is passed: with which words for what lies behind it. None: it is
    /// a stop. A socket is one where nobody of the lineage is at its other end.
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
            (_, Node::Entity { kind, .. }) => match kind {
                EntityKind::Pipe => channel(PIPED),
                EntityKind::Socket if !self.is_leaf(other) => channel(SENT),
                _ => None,
            },
            _ => None,
        }
    }

    /// Links that a reader is spared unless asked for: what only could have happened on the way to
    /// an exec, to a file that was opened for more than was done with it, at a dead end, beside a
    /// writer who was seen, or to what was there before.
    fn is_noise(&self, root: usize, link: &Link, other: usize) -> bool {
        if self.possible || link.certainty == Certainty::Seen {
            return false;
        }
        let file = |node: usize| matches!(&self.lineage.nodes[node], Node::Entity { kind, .. } if !matches!(kind, EntityKind::Pipe | EntityKind::Socket));
        let dead_end = other != root && self.around(other).all(|(_, next)| next == root);
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

    /// True if it is what a process was before it executed the command that it belongs to.
    fn execs(&self, node: usize) -> bool {
        self.whole[node] != node
    }

    /// True if what a process without a program of its own could have written has a better-known
    /// writer: one who was seen or, if it went on to exec, any program. A subshell is a writer like
    /// others.
    fn is_told_by_another(&self, link: &Link) -> bool {
        self.links[link.to].iter().any(|&index| {
            let another = &self.lineage.links[index];
            let program = self.execs(link.from) && !is_forked(&self.lineage.nodes[another.from]);
            matches!(another.flow, Flow::Generated(_))
                && another.from != link.from
                && (program || another.certainty == Certainty::Seen)
        })
    }

    /// True if the reader knows it already: the program that a command runs, what it wrote itself,
    /// or the source of a copy that its command read.
    fn is_told(&self, node: usize, link: &Link, other: usize) -> bool {
        let generated = |flow: &Flow| matches!(flow, Flow::Generated(_));
        match (&link.flow, self.direction) {
            _ if self.possible => false,
            (Flow::Used(Relation::Execute), Direction::Of) if self.is_leaf(other) => true,
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

    /// Where somebody was seen to write a file, who else could have is left out.
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

    /// A pipe that a whole build inherits (its output, a jobserver's) connects everything with
    /// everything, possibly. That many possibilities tell a reader nothing.
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

    /// The nodes that steps lead to, from these.
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

/// True if it is a file as its run found it: who only opened it to write (a lock file's way) did
/// not, or it would have another version.
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

/// True if nothing was executed in it yet.
fn is_forked(node: &Node) -> bool {
    matches!(node, Node::Activity { epoch: 0, .. })
}

/// Branches to one node become one. What of it was seen comes first; the rest is called possible.
fn joined(steps: Vec<Branch>) -> Vec<Branch> {
    let mut places: HashMap<usize, usize> = HashMap::new();
    let mut groups: Vec<Vec<Branch>> = Vec::new();
    for step in steps {
        let place = *places.entry(step.node).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(step),
            None => groups.push(vec![step]),
        }
    }
    groups.into_iter().filter_map(one).collect()
}

/// One step for several to the same node.
fn one(group: Vec<Branch>) -> Option<Branch> {
    let words = |certainty: Certainty| -> Vec<&str> {
        let mut words = Vec::new();
        for step in group.iter().filter(|step| step.certainty == certainty) {
            if !words.contains(&step.words.as_str()) {
                words.push(&step.words);
            }
        }
        words
    };
    let seen = words(Certainty::Seen);
    let mut possible = words(Certainty::Possible);
    possible.retain(|word| !seen.contains(word));
    let text = match (seen.is_empty(), possible.is_empty()) {
        (true, _) => possible.join(" and "),
        (false, true) => seen.join(" and "),
        (false, false) => format!(
            "{} and possibly {}",
            seen.join(" and "),
            possible.join(" and ")
        ),
    };
    Some(Branch {
        node: group.first()?.node,
        words: text,
        certainty: group.iter().map(|step| step.certainty).max()?,
        informs: group.iter().all(|step| step.informs),
        writes: group.iter().any(|step| step.writes),
    })
}
