//! Many operations within a time, in a run that goes on.
//!
//! In: the facts that are new or have changed. Out: the groups of operations that have become large
//! enough. An operation costs as much as the processes above its own, and the least number.

use std::collections::{BTreeSet, HashMap, HashSet};

use backstory_eventlog::event::{Pid, Time};

use crate::chains::ChangedFact;
use crate::condition::Condition;
use crate::correlation::{Correlation, Group};
use crate::deadline::Deadline;
use crate::fact::FactPlace;
use crate::matching::{Found, nanoseconds, pids_above};
use crate::rule::Rule;
use crate::run_graph::RunGraph;

/// The operations of a rule so far.
#[derive(Debug)]
pub(crate) struct BurstSearch<'r> {
    several: &'r Correlation,
    part: &'r Condition,
    least: usize,
    /// The operations that count, with their times and groups.
    hits: HashMap<FactPlace, (Time, Vec<Option<Pid>>)>,
    /// The operations of each group, in the order of their time.
    groups: HashMap<Option<Pid>, BTreeSet<(Time, FactPlace)>>,
    /// Of each process, itself and those above it.
    above: HashMap<Pid, Vec<Pid>>,
    /// The groups that have had so many within the time.
    bursts: HashSet<Option<Pid>>,
    told: HashSet<Option<Pid>>,
}

impl<'r> BurstSearch<'r> {
    /// A search that has seen nothing.
    pub fn new(several: &'r Correlation, part: &'r Condition, least: usize) -> BurstSearch<'r> {
        BurstSearch {
            several,
            part,
            least,
            hits: HashMap::new(),
            groups: HashMap::new(),
            above: HashMap::new(),
            bursts: HashSet::new(),
            told: HashSet::new(),
        }
    }

    /// Takes what is new. Returns the groups that are large enough now. Of groups that contain each
    /// other, the smallest.
    pub fn take(
        &mut self,
        rule: &Rule,
        graph: &RunGraph,
        facts: &[ChangedFact],
        clock: &Deadline,
    ) -> Vec<Found> {
        for changed in facts {
            let known = self.hits.get(&changed.place);
            let is_hit = match changed.has_fields {
                true => rule.meets(graph, &changed.fact, self.part, clock),
                false => known.is_some(),
            };
            let is_same = known.is_some_and(|(time, _)| *time == changed.fact.start);
            if is_hit && !is_same || !is_hit && known.is_some() {
                self.remove(changed.place);
            }
            if is_hit && !is_same {
                self.insert(graph, changed);
            }
            if !clock.goes_on() {
                break;
            }
        }
        let is_new = |group: &&Option<Pid>| !self.told.contains(group) && self.is_inner(**group);
        let mut new: Vec<Option<Pid>> = self.bursts.iter().filter(is_new).copied().collect();
        new.sort_unstable();
        let mut found = Vec::new();
        for group in new {
            self.told.insert(group);
            if let Some(facts) = self.groups.get(&group)
                && let (Some((_, first)), Some((_, last))) = (facts.first(), facts.last())
            {
                found.push(Found {
                    facts: vec![graph.fact_at(*first), graph.fact_at(*last)],
                    count: facts.len(),
                });
            }
        }
        found
    }

    fn insert(&mut self, graph: &RunGraph, changed: &ChangedFact) {
        let pid = graph.activity(changed.fact.activity).pid;
        pids_above(graph, changed.fact.activity, &mut self.above);
        let groups = match self.several.group {
            Group::Run | Group::Flow => vec![None],
            Group::Process => vec![Some(pid)],
            Group::Descendants => self.above[&pid].iter().copied().map(Some).collect(),
        };
        let one = (changed.fact.start, changed.place);
        for group in &groups {
            let facts = self.groups.entry(*group).or_default();
            facts.insert(one);
            if !self.bursts.contains(group) && self.is_burst(*group, one) {
                self.bursts.insert(*group);
            }
        }
        self.hits.insert(changed.place, (one.0, groups));
    }

    fn remove(&mut self, place: FactPlace) {
        let Some((time, groups)) = self.hits.remove(&place) else {
            return;
        };
        for group in groups {
            if let Some(facts) = self.groups.get_mut(&group) {
                facts.remove(&(time, place));
            }
        }
    }

    /// Whether so many operations of a group, with this one among them, are within the time.
    fn is_burst(&self, group: Option<Pid>, one: (Time, FactPlace)) -> bool {
        let Some(facts) = self.groups.get(&group) else {
            return false;
        };
        let span = self.several.timespan.map_or(Time::MAX, nanoseconds);
        let others = self.least.saturating_sub(1);
        let before = facts.range(..one).rev().take(others);
        let mut near: Vec<Time> = before.map(|(time, _)| *time).collect();
        near.reverse();
        near.extend(facts.range(one..).take(self.least).map(|(time, _)| *time));
        let mut windows = near.windows(self.least.max(1));
        windows.any(|some| some[some.len() - 1].saturating_sub(some[0]) <= span)
    }

    /// True if no other large group is inside of this one.
    fn is_inner(&self, group: Option<Pid>) -> bool {
        let inside = |other: &Option<Pid>| {
            let above = other.and_then(|other| self.above.get(&other));
            *other != group
                && above.is_some_and(|above| group.is_some_and(|pid| above.contains(&pid)))
        };
        !self.bursts.iter().any(inside)
    }
}
