//! Chains of operations in a run that goes on: a rule's parts one after the other.
//!
//! In: the facts and links that are new or have changed. Out: the chains that they complete. The
//! operations that meet a part, the beginnings of chains, and the nodes that information can have
//! reached from them are kept. So a look costs as much as what is new.
//!
//! The chains are those of [`crate::matching`], if operations come in the order of their time. The
//! first beginnings are followed one by one, and all later ones together. Until each part is met by
//! an operation, nothing is followed. Two chains differ:
//!
//! - Operations that come late can be among the later beginnings, and others of them end a chain.
//! - With a `timespan`, a chain is not looked at again when its first operation ends later than it
//!   did. So chains can be missing.

use std::collections::{BTreeSet, HashMap, HashSet};

use backstory_eventlog::event::Bytes;

use crate::condition::Condition;
use crate::correlation::{Correlation, Group};
use crate::deadline::Deadline;
use crate::fact::{Fact, FactPlace};
use crate::flow::{FlowLink, FlowNode, FlowReached, source_node, target_node};
use crate::match_key::MatchKey;
use crate::matching::{Found, MOST, SINGLE, is_same_file, is_within};
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
    seen: HashSet<MatchKey>,
    /// Each part is met.
    is_awake: bool,
}

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

/// A chain, and the number of the one that it extends.
type LongerChain = (usize, Vec<FactPlace>);

/// One look at the graph.
struct ChainLook<'g> {
    graph: &'g RunGraph,
    clock: &'g Deadline,
    links: &'g [FlowLink],
    /// Of each part, the operations that meet it and are new or have changed.
    touched: Vec<Vec<FactPlace>>,
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
            links,
            touched: self.learn(rule, graph, facts, clock),
        };
        if !self.is_awake {
            if self.hits.iter().any(|hits| hits.all.is_empty()) {
                return Vec::new();
            }
            self.is_awake = true;
            look.touched = vec![Vec::new(); self.parts.len()];
            look.touched[0] = self.hits[0].all.iter().copied().collect();
        }
        let mut longer = self.beginnings(&look);
        for level in 0..self.levels.len() {
            let changed = self.add(level, longer, &look);
            longer = self.longer(level, &changed, &look);
        }
        self.end(longer, &look)
    }

    /// Takes in which operations meet the parts. Returns those of each part that are new or have
    /// changed.
    fn learn(
        &mut self,
        rule: &Rule,
        graph: &RunGraph,
        facts: &[ChangedFact],
        clock: &Deadline,
    ) -> Vec<Vec<FactPlace>> {
        let mut touched = vec![Vec::new(); self.parts.len()];
        for changed in facts {
            for (part, condition) in self.parts.iter().enumerate() {
                let hits = &mut self.hits[part];
                let is_hit = match changed.has_fields {
                    true => rule.meets(graph, &changed.fact, condition, clock),
                    false => hits.all.contains(&changed.place),
                };
                if is_hit {
                    let node = target_node(self.several.group, &changed.fact);
                    let path = path(graph, &changed.fact).filter(|_| self.same_file.is_some());
                    hits.insert(changed.place, node, path);
                    touched[part].push(changed.place);
                } else if changed.has_fields {
                    hits.all.remove(&changed.place);
                }
            }
            if !clock.goes_on() {
                break;
            }
        }
        touched
    }

    /// The chains that begin. If a later part must be about the same file, there must be one.
    fn beginnings(&self, look: &ChainLook<'_>) -> Vec<LongerChain> {
        let mut begun: Vec<FactPlace> = look.touched[0].clone();
        let path = |place: &FactPlace| path(look.graph, &look.graph.fact_at(*place));
        if let Some((0, later)) = self.same_file {
            for place in &look.touched[later] {
                let first = path(place).and_then(|path| self.hits[0].at_path.get(path));
                begun.extend(first.into_iter().flatten());
            }
            let same = &self.hits[later].at_path;
            begun.retain(|place| path(place).is_some_and(|path| same.contains_key(path)));
        }
        begun.into_iter().map(|place| (0, vec![place])).collect()
    }

    /// Adds chains that end with the part of this number, in the order of their last operations.
    /// Returns the numbers of all that are new or have changed.
    fn add(&mut self, part: usize, mut new: Vec<LongerChain>, look: &ChainLook<'_>) -> Vec<usize> {
        let level = &mut self.levels[part];
        let known = look.touched[part].iter();
        let known = known.filter_map(|place| level.by_last.get(place)).flatten();
        let mut changed: BTreeSet<usize> = known.copied().collect();
        new.sort_by_key(|(before, chain)| (last_of(look.graph, chain), *before));
        for (_, chain) in new {
            if level.chains.len() >= MOST || !level.known.insert(chain.clone()) {
                continue;
            }
            let number = level.chains.len();
            if let Some(last) = chain.last() {
                level.by_last.entry(*last).or_default().push(number);
            }
            level.chains.push(chain);
            changed.insert(number);
        }
        changed.into_iter().collect()
    }

    /// The chains that operations of the next part make of those of a level. `changed`: those that
    /// are new or have changed.
    fn longer(
        &mut self,
        level: usize,
        changed: &[usize],
        look: &ChainLook<'_>,
    ) -> Vec<LongerChain> {
        if self.is_reached(level + 1) {
            return self.longer_along_links(level, changed, look);
        }
        let mut longer = Vec::new();
        for place in &look.touched[level + 1] {
            for number in 0..self.levels[level].chains.len() {
                let is_ended = number >= SINGLE && self.levels[level].ended.contains(place);
                if is_ended || !look.clock.goes_on() {
                    break;
                }
                longer.extend(self.extended(level, number, *place, look));
            }
        }
        for number in changed {
            for place in self.possible_next(level, *number, look) {
                if !look.clock.goes_on() {
                    return longer;
                }
                longer.extend(self.extended(level, *number, place, look));
            }
        }
        longer
    }

    /// The operations of the next part that can extend a chain, where no information must have
    /// reached them.
    fn possible_next(&self, level: usize, number: usize, look: &ChainLook<'_>) -> Vec<FactPlace> {
        let hits = &self.hits[level + 1];
        match self.same_file {
            Some((one, later)) if later == level + 1 => {
                let one = self.levels[level].chains[number].get(one);
                let one = one.map(|one| look.graph.fact_at(*one));
                let path = one.and_then(|one| path(look.graph, &one));
                let same = path.and_then(|path| hits.at_path.get(path));
                same.cloned().unwrap_or_default()
            }
            _ => hits.all.iter().copied().collect(),
        }
    }

    /// Whether a part must be reached by information. The second of two about the same file must
    /// not.
    fn is_reached(&self, part: usize) -> bool {
        let is_flow = matches!(self.several.group, Group::Flow | Group::Descendants);
        is_flow && self.same_file.is_none_or(|(_, later)| later != part)
    }

    /// Follows information from the chains of a level to operations of the next part.
    fn longer_along_links(
        &mut self,
        level: usize,
        changed: &[usize],
        look: &ChainLook<'_>,
    ) -> Vec<LongerChain> {
        let (group, graph) = (self.several.group, look.graph);
        let ChainLevel {
            chains, reached, ..
        } = &mut self.levels[level];
        let mut nodes: BTreeSet<(usize, FlowNode)> = BTreeSet::new();
        for link in look.links.iter().filter(|link| link.is_of(group)) {
            if !look.clock.has_time() {
                break;
            }
            for (at, reached) in reached.iter_mut().enumerate() {
                let found = reached.follow(graph, group, link);
                nodes.extend(found.into_iter().map(|node| (at, node)));
            }
        }
        // One search for all others comes first, as in the finished run.
        let (first, others) = changed.split_at(changed.partition_point(|number| *number < SINGLE));
        for number in others.iter().chain(first) {
            let Some(last) = chains[*number].last().filter(|_| look.clock.has_time()) else {
                break;
            };
            let last = graph.fact_at(*last);
            let at = (*number).min(SINGLE);
            reached.resize_with(reached.len().max(at + 1), FlowReached::default);
            let begin = (last.start, source_node(group, &last), *number);
            let found = reached[at].search(graph, group, std::iter::once(begin), usize::MAX);
            nodes.extend(found.into_iter().map(|node| (at, node)));
        }
        let mut met: BTreeSet<(usize, FactPlace)> = BTreeSet::new();
        for (at, node) in nodes {
            let places = self.hits[level + 1].at_node.get(&node);
            met.extend(places.into_iter().flatten().map(|place| (at, *place)));
        }
        let reached = 0..self.levels[level].reached.len();
        for place in &look.touched[level + 1] {
            met.extend(reached.clone().map(|at| (at, *place)));
        }
        let longer = met.into_iter().filter_map(|(at, place)| {
            let fact = graph.fact_at(place);
            let number = self.levels[level].reached[at].source(group, &fact)?;
            self.extended(level, number, place, look)
        });
        longer.collect()
    }

    /// A chain with another operation, if they belong together. An operation ends one chain of the
    /// others at most.
    fn extended(
        &mut self,
        level: usize,
        number: usize,
        place: FactPlace,
        look: &ChainLook<'_>,
    ) -> Option<LongerChain> {
        let graph = look.graph;
        let chain = &self.levels[level].chains[number];
        let (first, last) = (chain.first()?, chain.last()?);
        if !self.hits[level + 1].all.contains(&place) || chain.contains(&place) {
            return None;
        }
        let (first, last) = (graph.fact_at(*first), graph.fact_at(*last));
        let fact = graph.fact_at(place);
        let pid = |fact: &Fact| graph.activity(fact.activity).pid;
        let is_same = match self.same_file {
            Some((one, later)) if later == level + 1 => {
                is_same_file(graph, &graph.fact_at(*chain.get(one)?), &fact)
            }
            _ => true,
        };
        let fits = is_same
            && last.start <= fact.end
            && is_within(self.several, &first, &fact)
            && (self.several.group != Group::Process || pid(&first) == pid(&fact))
            && !(self.not_above && graph.is_above_process(fact.activity, first.activity));
        let longer = [chain.as_slice(), &[place]].concat();
        if !fits || number >= SINGLE && !self.levels[level].ended.insert(place) {
            return None;
        }
        Some((number, longer))
    }

    /// Takes complete chains.
    fn end(&mut self, mut complete: Vec<LongerChain>, look: &ChainLook<'_>) -> Vec<Found> {
        complete.sort_by_key(|(before, chain)| (last_of(look.graph, chain), *before));
        let mut found = Vec::new();
        for (_, chain) in complete {
            let facts = chain.iter().map(|place| look.graph.fact_at(*place));
            let facts: Vec<Fact> = facts.collect();
            let Some(key) = MatchKey::of_chain(look.graph, &facts) else {
                continue;
            };
            if self.seen.len() < MOST && self.seen.insert(key) {
                let count = facts.len();
                found.push(Found { facts, count });
            }
        }
        found
    }
}

/// The place of a chain's last operation in the order of time.
fn last_of(graph: &RunGraph, chain: &[FactPlace]) -> impl Ord + use<> {
    chain.last().map(|last| graph.fact_at(*last).order())
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
