//! Chains of operations in a run that goes on: a rule's parts one after the other.
//!
//! In: the facts and links that are new or have changed. Out: the chains that they complete. The
//! operations that meet a part, the beginnings of chains, and the nodes that information can have
//! reached from them are kept. So a look costs as much as what is new.
//!
//! The chains are those of [`crate::matching`], where few beginnings are followed one by one, and
//! many together. Until each part is met by an operation, nothing is followed. Two chains differ:
//!
//! - The first beginnings are followed one by one, even if there are many later, and only the
//!   others together. So there can be more chains.
//! - With a `timespan`, a chain is not looked at again when its first operation ends later than it
//!   did. So chains can be missing.

use std::collections::{BTreeSet, HashMap, HashSet};

use backstory_eventlog::event::{Bytes, Pid};
use backstory_graph::model::EntityId;

use crate::condition::Condition;
use crate::correlation::{Correlation, Group};
use crate::fact::{Fact, FactPlace, Operation};
use crate::flow::{FlowLink, FlowNode, FlowReached, source_node, target_node};
use crate::matching::{Deadline, Found, MOST, SINGLE, is_same_file, is_within};
use crate::rule::Rule;
use crate::run_graph::RunGraph;

/// A fact that is new or has changed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChangedFact {
    pub place: FactPlace,
    pub fact: Fact,
    /// False if only its first or last time has changed.
    pub has_fields: bool,
}

/// The chains of a rule so far.
#[derive(Debug)]
pub(crate) struct ChainSearch<'r> {
    several: &'r Correlation,
    parts: &'r [Condition],
    same_file: Option<(usize, usize)>,
    not_above: bool,
    /// Of each part, the operations that meet it.
    hits: Vec<PartHits>,
    /// Of each part but the last one, the chains that end with it.
    levels: Vec<ChainLevel>,
    seen: HashSet<ChainEnds>,
    /// Each part is met.
    is_awake: bool,
}

/// The first thing, and the last one or else the last process, with the last operation.
type ChainEnds = (Option<EntityId>, Result<Pid, Bytes>, Operation);

#[derive(Debug, Default)]
struct PartHits {
    all: BTreeSet<FactPlace>,
    /// By the node that information must have reached.
    at_node: HashMap<FlowNode, Vec<FactPlace>>,
    /// By the path of the thing, if two parts are about the same file.
    at_path: HashMap<Bytes, Vec<FactPlace>>,
}

#[derive(Debug, Default)]
struct ChainLevel {
    chains: Vec<Vec<FactPlace>>,
    known: HashSet<Vec<FactPlace>>,
    /// The chains that end with a fact.
    by_last: HashMap<FactPlace, Vec<usize>>,
    /// The nodes that each of the first chains reached, and those that the others reached.
    reached: Vec<FlowReached>,
    /// The facts that end a chain of the others.
    ended: HashSet<FactPlace>,
}

/// One look at the graph.
struct ChainLook<'g> {
    graph: &'g RunGraph,
    clock: &'g Deadline,
    found: Vec<Found>,
}

impl<'r> ChainSearch<'r> {
    /// A search that has seen nothing.
    pub fn new(
        several: &'r Correlation,
        parts: &'r [Condition],
        same_file: Option<(usize, usize)>,
        not_above: bool,
    ) -> ChainSearch<'r> {
        let mut search = ChainSearch {
            several,
            parts,
            same_file,
            not_above,
            hits: Vec::new(),
            levels: Vec::new(),
            seen: HashSet::new(),
            is_awake: false,
        };
        search.hits.resize_with(parts.len(), PartHits::default);
        let levels = parts.len().saturating_sub(1);
        search.levels.resize_with(levels, ChainLevel::default);
        search
    }

    /// Takes what is new. Returns the chains that are complete now.
    pub fn take(
        &mut self,
        rule: &Rule,
        graph: &RunGraph,
        facts: &[ChangedFact],
        links: &[FlowLink],
        clock: &Deadline,
    ) -> Vec<Found> {
        let mut look = ChainLook {
            graph,
            clock,
            found: Vec::new(),
        };
        let (parts, mut touched) = (self.parts, Vec::new());
        for changed in facts {
            for (part, condition) in parts.iter().enumerate() {
                let hits = &mut self.hits[part];
                let is_hit = match changed.has_fields {
                    true => rule.meets(graph, &changed.fact, condition),
                    false => hits.all.contains(&changed.place),
                };
                if is_hit {
                    let node = target_node(self.several.group, &changed.fact);
                    let path = path(graph, &changed.fact).filter(|_| self.same_file.is_some());
                    hits.insert(changed.place, node, path);
                    touched.push((part, changed.place));
                } else if changed.has_fields {
                    hits.all.remove(&changed.place);
                }
            }
            if !clock.goes_on() {
                break;
            }
        }
        let is_first = !self.is_awake;
        if is_first {
            if self.hits.iter().any(|hits| hits.all.is_empty()) {
                return Vec::new();
            }
            self.is_awake = true;
            let mut all: Vec<FactPlace> = self.hits[0].all.iter().copied().collect();
            all.sort_by_key(|place| graph.fact_at(*place).order());
            touched = all.into_iter().map(|place| (0, place)).collect();
        } else {
            for link in links.iter().filter(|link| link.is_of(self.several.group)) {
                self.follow(link, &mut look);
            }
        }
        for (part, place) in touched {
            self.touch(part, place, &mut look);
        }
        look.found
    }

    /// Whether a part must be reached by information. The second of two about the same file must
    /// not.
    fn is_reached(&self, part: usize) -> bool {
        let is_flow = matches!(self.several.group, Group::Flow | Group::Descendants);
        is_flow && self.same_file.is_none_or(|(_, later)| later != part)
    }

    /// Goes on along a link.
    fn follow(&mut self, link: &FlowLink, look: &mut ChainLook<'_>) {
        let group = self.several.group;
        for level in 0..self.levels.len() {
            if !self.is_reached(level + 1) {
                continue;
            }
            for number in 0..self.levels[level].reached.len() {
                let reached = &mut self.levels[level].reached[number];
                let nodes = reached.follow(look.graph, group, link);
                self.arrive(level, number, &nodes, look);
            }
        }
    }

    /// Looks at an operation that meets a part, and is new or has changed.
    fn touch(&mut self, part: usize, place: FactPlace, look: &mut ChainLook<'_>) {
        match part {
            0 => self.begin(place, look),
            _ => self.join(part - 1, place, look),
        }
        if self.same_file == Some((0, part)) {
            let path = path(look.graph, &look.graph.fact_at(place));
            let first = path.and_then(|path| self.hits[0].at_path.get(path));
            for first in first.cloned().unwrap_or_default() {
                self.begin(first, look);
            }
        }
        let level = self.levels.get(part);
        let chains = level.and_then(|level| level.by_last.get(&place));
        for chain in chains.cloned().unwrap_or_default() {
            self.lead(part, chain, look);
        }
    }

    /// Begins a chain. If a later part must be about the same file, there must be one.
    fn begin(&mut self, place: FactPlace, look: &mut ChainLook<'_>) {
        if let Some((0, later)) = self.same_file {
            let path = path(look.graph, &look.graph.fact_at(place));
            if !path.is_some_and(|path| self.hits[later].at_path.contains_key(path)) {
                return;
            }
        }
        self.push(0, vec![place], look);
    }

    /// Adds a chain that ends with the part of this number.
    fn push(&mut self, part: usize, chain: Vec<FactPlace>, look: &mut ChainLook<'_>) {
        let Some(level) = self.levels.get_mut(part) else {
            self.end(&chain, look);
            return;
        };
        if level.chains.len() >= MOST || !level.known.insert(chain.clone()) {
            return;
        }
        let number = level.chains.len();
        if let Some(last) = chain.last() {
            level.by_last.entry(*last).or_default().push(number);
        }
        level.chains.push(chain);
        self.lead(part, number, look);
    }

    /// Looks for operations of the next part behind a chain.
    fn lead(&mut self, level: usize, number: usize, look: &mut ChainLook<'_>) {
        let chain = &self.levels[level].chains[number];
        let Some(last) = chain.last().map(|last| look.graph.fact_at(*last)) else {
            return;
        };
        if self.is_reached(level + 1) {
            let group = self.several.group;
            let at = number.min(SINGLE);
            let reached = &mut self.levels[level].reached;
            let size = reached.len().max(at + 1);
            reached.resize_with(size, FlowReached::default);
            let begin = (last.start, source_node(group, &last), number);
            let nodes = reached[at].search(look.graph, group, std::iter::once(begin), usize::MAX);
            self.arrive(level, at, &nodes, look);
            return;
        }
        let hits = &self.hits[level + 1];
        let next: Vec<FactPlace> = match self.same_file {
            Some((one, later)) if later == level + 1 => {
                let one = chain.get(one).map(|one| look.graph.fact_at(*one));
                let path = one.and_then(|one| path(look.graph, &one));
                let same = path.and_then(|path| hits.at_path.get(path));
                same.cloned().unwrap_or_default()
            }
            _ => hits.all.iter().copied().collect(),
        };
        for place in next {
            if !look.clock.goes_on() {
                return;
            }
            self.extend(level, number, place, look);
        }
    }

    /// Looks at the operations of the next part at nodes that were reached.
    fn arrive(&mut self, level: usize, at: usize, nodes: &[FlowNode], look: &mut ChainLook<'_>) {
        for node in nodes {
            let places = self.hits[level + 1].at_node.get(node);
            for place in places.cloned().unwrap_or_default() {
                self.reach(level, at, place, look);
            }
        }
    }

    /// Extends the chain from which information can have reached an operation.
    fn reach(&mut self, level: usize, at: usize, place: FactPlace, look: &mut ChainLook<'_>) {
        let fact = look.graph.fact_at(place);
        let reached = &self.levels[level].reached[at];
        if let Some(number) = reached.source(self.several.group, &fact) {
            self.extend(level, number, place, look);
        }
    }

    /// Extends the known chains by an operation of the next part.
    fn join(&mut self, level: usize, place: FactPlace, look: &mut ChainLook<'_>) {
        if self.is_reached(level + 1) {
            for at in 0..self.levels[level].reached.len() {
                self.reach(level, at, place, look);
            }
            return;
        }
        for number in 0..self.levels[level].chains.len() {
            let is_ended = number >= SINGLE && self.levels[level].ended.contains(&place);
            if is_ended || !look.clock.goes_on() {
                return;
            }
            self.extend(level, number, place, look);
        }
    }

    /// Extends a chain by an operation, if they belong together.
    fn extend(&mut self, level: usize, number: usize, place: FactPlace, look: &mut ChainLook<'_>) {
        let graph = look.graph;
        let chain = self.levels[level].chains[number].clone();
        let (Some(first), Some(last)) = (chain.first(), chain.last()) else {
            return;
        };
        if !self.hits[level + 1].all.contains(&place) || chain.contains(&place) {
            return;
        }
        let (first, last) = (graph.fact_at(*first), graph.fact_at(*last));
        let fact = graph.fact_at(place);
        let pid = |fact: &Fact| graph.activity(fact.activity).pid;
        let is_same = match self.same_file {
            Some((one, later)) if later == level + 1 => chain
                .get(one)
                .is_some_and(|one| is_same_file(graph, &graph.fact_at(*one), &fact)),
            _ => true,
        };
        let fits = is_same
            && last.start <= fact.end
            && is_within(self.several, &first, &fact)
            && (self.several.group != Group::Process || pid(&first) == pid(&fact))
            && !(self.not_above && graph.is_above_process(fact.activity, first.activity));
        if fits && (number < SINGLE || self.levels[level].ended.insert(place)) {
            self.push(level + 1, [chain.as_slice(), &[place]].concat(), look);
        }
    }

    /// Takes a complete chain.
    fn end(&mut self, chain: &[FactPlace], look: &mut ChainLook<'_>) {
        let facts: Vec<Fact> = chain
            .iter()
            .map(|place| look.graph.fact_at(*place))
            .collect();
        let (Some(first), Some(last)) = (facts.first(), facts.last()) else {
            return;
        };
        let end = match path(look.graph, last) {
            Some(path) => Err(path.clone()),
            None => Ok(look.graph.activity(last.activity).pid),
        };
        if self.seen.len() < MOST && self.seen.insert((first.entity, end, last.operation)) {
            let count = facts.len();
            look.found.push(Found { facts, count });
        }
    }
}

impl PartHits {
    fn insert(&mut self, place: FactPlace, node: FlowNode, path: Option<&Bytes>) {
        if !self.all.insert(place) {
            return;
        }
        self.at_node.entry(node).or_default().push(place);
        if let Some(path) = path {
            self.at_path.entry(path.clone()).or_default().push(place);
        }
    }
}

/// The path of the thing that an operation used.
fn path<'g>(graph: &'g RunGraph, fact: &Fact) -> Option<&'g Bytes> {
    fact.entity.map(|entity| &graph.entity(entity).path)
}
