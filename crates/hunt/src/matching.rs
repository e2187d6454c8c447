//! Matches rules against the graph of a run.
//!
//! In: a run's graph and rules. Out: what was found. It is bounded by time and by a number of
//! findings for each rule. [`crate::stream_matching`] looks for the same in a run that goes on.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::time::Duration;

use backstory_eventlog::event::{Pid, Time};
use backstory_graph::model::ActivityId;

use crate::condition::Condition;
use crate::correlation::{Correlation, CorrelationKind, Group};
use crate::deadline::Deadline;
use crate::fact::Fact;
use crate::flow::FlowReached;
use crate::match_key::{self, MatchKey};
use crate::rule::{Rule, Shape};
use crate::run_graph::RunGraph;

/// Most beginnings of chains that are followed one by one. Of all later ones together, each
/// operation ends one chain at most.
pub(crate) const SINGLE: usize = 64;
/// Most chains of operations in memory.
pub(crate) const MOST: usize = 10_000;

/// The bounds of a rule in a run.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The longest time for one rule in one run.
    pub time: Duration,
    /// The most findings of one rule in one run.
    pub findings: usize,
}

/// The operations that a rule found together.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The operations, in the order of the rule. The first of many equal ones.
    pub facts: Vec<Fact>,
    /// How many operations there are.
    pub count: usize,
}

/// The findings of a rule in a run.
#[derive(Debug, Default)]
pub struct RuleFindings {
    /// The findings, in the order of their time.
    pub found: Vec<Found>,
    /// How many more there are.
    pub more: usize,
    /// The rule took longer than allowed, and has not seen the whole run.
    pub is_cut: bool,
}

/// Looks for matches of a rule in a run.
pub fn find(graph: &RunGraph, rule: &Rule, limits: Limits) -> RuleFindings {
    let clock = Deadline::after(limits.time);
    let mut found = match &rule.shape {
        Shape::One(condition) => single(graph, hits(graph, rule, condition, &clock)),
        Shape::Several(several) => match &several.kind {
            CorrelationKind::Ordered { parts, .. } => {
                let of_part = |part| hits(graph, rule, part, &clock);
                let hits: Vec<Vec<Fact>> = parts.iter().map(of_part).collect();
                ordered(graph, several, &hits, &clock)
            }
            CorrelationKind::Count { part, least } => {
                let hits = hits(graph, rule, part, &clock);
                counted(graph, several, *least, hits)
            }
        },
    };
    found.sort_by_key(|one| one.facts.last().map(|fact| fact.start));
    let more = found.len().saturating_sub(limits.findings);
    found.truncate(limits.findings);
    RuleFindings {
        found,
        more,
        is_cut: clock.is_over(),
    }
}

/// The chains, until the time is over.
fn in_time<'f>(chains: &'f [Vec<Fact>], clock: &Deadline) -> impl Iterator<Item = &'f Vec<Fact>> {
    chains.iter().take_while(|_| clock.goes_on())
}

/// The facts that meet a condition, in the order of their time.
fn hits(graph: &RunGraph, rule: &Rule, condition: &Condition, clock: &Deadline) -> Vec<Fact> {
    let facts = graph.facts().take_while(|_| clock.goes_on());
    let mut hits: Vec<Fact> = facts
        .filter(|fact| rule.meets(graph, fact, condition, clock))
        .collect();
    hits.sort_by_key(Fact::order);
    hits
}

/// One finding for each process and thing.
fn single(graph: &RunGraph, hits: Vec<Fact>) -> Vec<Found> {
    let mut known: HashMap<MatchKey, usize> = HashMap::new();
    let mut found: Vec<Found> = Vec::new();
    for fact in hits {
        match known.entry(match_key::of_first(graph, &fact)) {
            Entry::Occupied(one) => found[*one.get()].count += 1,
            Entry::Vacant(new) => {
                new.insert(found.len());
                found.push(Found {
                    facts: vec![fact],
                    count: 1,
                });
            }
        }
    }
    found
}

/// The numbers of the chains that are followed together: the first ones singly, the others at once.
/// Where a search through the graph costs most, that for all others comes first. So the searches
/// for the first ones cannot use up the time of all.
fn followed_together(count: usize, is_search: bool) -> Vec<Range<usize>> {
    let first = count.min(SINGLE);
    let mut together: Vec<Range<usize>> = (0..first).map(|number| number..number + 1).collect();
    if first < count {
        let at = if is_search { 0 } else { together.len() };
        together.insert(at, first..count);
    }
    together
}

/// Chains of one fact of each part.
fn ordered(
    graph: &RunGraph,
    several: &Correlation,
    hits: &[Vec<Fact>],
    clock: &Deadline,
) -> Vec<Found> {
    let CorrelationKind::Ordered {
        same_file,
        not_above,
        ..
    } = &several.kind
    else {
        return Vec::new();
    };
    if hits.iter().any(Vec::is_empty) {
        return Vec::new();
    }
    let mut chains: Vec<Vec<Fact>> = hits[0].iter().map(|fact| vec![*fact]).collect();
    if let Some((0, later)) = same_file {
        let path = |fact: &Fact| fact.entity.map(|entity| &graph.entity(entity).path);
        let shared: HashSet<_> = hits[*later].iter().filter_map(path).collect();
        chains.retain(|chain| path(&chain[0]).is_some_and(|path| shared.contains(path)));
    }
    for (number, of_part) in hits.iter().enumerate().skip(1) {
        let same = same_file.filter(|(_, later)| *later == number);
        let is_search = matches!(several.group, Group::Flow | Group::Descendants) && same.is_none();
        let mut longer: Vec<(usize, Vec<Fact>)> = Vec::new();
        for some in followed_together(chains.len(), is_search) {
            if !clock.has_time() {
                break;
            }
            let before = some.start;
            let some = &chains[some];
            let ends: Vec<&Fact> = some.iter().filter_map(|chain| chain.last()).collect();
            let reached = match is_search {
                true => FlowReached::from(graph, several.group, &ends),
                false => FlowReached::default(),
            };
            for fact in of_part {
                if !clock.goes_on() {
                    break;
                }
                let fits = |chain: &Vec<Fact>| {
                    let earlier = chain.last().is_some_and(|last| last.start <= fact.end);
                    let is_same = |first| is_same_file(graph, &chain[first], fact);
                    let is_above = || graph.is_above_process(fact.activity, chain[0].activity);
                    earlier
                        && is_within(several, &chain[0], fact)
                        && same.is_none_or(|(first, _)| is_same(first))
                        && !chain.contains(fact)
                        && !(*not_above && is_above())
                };
                let pid = |fact: &Fact| graph.activity(fact.activity).pid;
                let at = match several.group {
                    _ if is_search => reached.source(several.group, fact),
                    Group::Process => {
                        let is_of_process =
                            |chain: &Vec<Fact>| pid(&chain[0]) == pid(fact) && fits(chain);
                        in_time(some, clock).position(is_of_process)
                    }
                    _ => in_time(some, clock).position(fits),
                };
                if let Some(at) = at.filter(|at| fits(&some[*at])) {
                    let chain = [some[at].as_slice(), &[*fact]].concat();
                    longer.push((before + at, chain));
                }
            }
        }
        // The next part begins with those that end first.
        longer.sort_by_key(|(before, chain)| (chain.last().map(Fact::order), *before));
        longer.truncate(MOST);
        chains = longer.into_iter().map(|(_, chain)| chain).collect();
    }
    let mut seen = HashSet::new();
    let mut found: Vec<Found> = Vec::new();
    for facts in chains {
        if seen.insert(MatchKey::of_chain(graph, &facts)) {
            let count = facts.len();
            found.push(Found { facts, count });
        }
    }
    found
}

/// True if the second fact can have happened within the time after the first.
pub(crate) fn is_within(several: &Correlation, first: &Fact, fact: &Fact) -> bool {
    (several.timespan).is_none_or(|span| fact.start.saturating_sub(first.end) <= nanoseconds(span))
}

pub(crate) fn nanoseconds(span: Duration) -> Time {
    Time::try_from(span.as_nanos()).unwrap_or(Time::MAX)
}

pub(crate) fn is_same_file(graph: &RunGraph, first: &Fact, fact: &Fact) -> bool {
    let path = |fact: &Fact| fact.entity.map(|entity| &graph.entity(entity).path);
    path(first).is_some() && path(first) == path(fact)
}

/// Adds the process of an activity, with itself and those above it, if it is not known.
pub(crate) fn pids_above(graph: &RunGraph, id: ActivityId, above: &mut HashMap<Pid, Vec<Pid>>) {
    if above.contains_key(&graph.activity(id).pid) {
        return;
    }
    let mut pids: Vec<Pid> = graph.up(id).map(|up| graph.activity(up).pid).collect();
    pids.dedup();
    for (at, one) in pids.iter().enumerate() {
        above.entry(*one).or_insert_with(|| pids[at..].to_vec());
    }
}

/// Groups of facts that have so many within the time. Of groups that contain each other, the
/// smallest.
fn counted(graph: &RunGraph, several: &Correlation, least: usize, hits: Vec<Fact>) -> Vec<Found> {
    let mut groups: BTreeMap<Option<Pid>, Vec<Fact>> = BTreeMap::new();
    let mut above: HashMap<Pid, Vec<Pid>> = HashMap::new();
    for fact in hits {
        let pid = graph.activity(fact.activity).pid;
        pids_above(graph, fact.activity, &mut above);
        let keys: Vec<Option<Pid>> = match several.group {
            Group::Run | Group::Flow => vec![None],
            Group::Process => vec![Some(pid)],
            Group::Descendants => above[&pid].iter().copied().map(Some).collect(),
        };
        for key in keys {
            groups.entry(key).or_default().push(fact);
        }
    }
    let span = several.timespan.map_or(Time::MAX, nanoseconds);
    let burst = |facts: &[Fact]| {
        let mut windows = facts.windows(least);
        windows.any(|some| some[least - 1].start.saturating_sub(some[0].start) <= span)
    };
    groups.retain(|_, facts| burst(facts));
    let is_inner = |pid: &Option<Pid>| {
        let inside = |other: &Option<Pid>| {
            let above = other.and_then(|other| above.get(&other));
            other != pid && above.is_some_and(|above| pid.is_some_and(|pid| above.contains(&pid)))
        };
        !groups.keys().any(inside)
    };
    let inner = groups.iter().filter(|(pid, _)| is_inner(pid));
    let found = inner.map(|(_, facts)| Found {
        facts: vec![facts[0], facts[facts.len() - 1]],
        count: facts.len(),
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use backstory_eventlog::event::Via;
    use backstory_graph::model::{
        Activity, Certainty, Edge, Entity, EntityId, EntityKind, Interval, Relation,
    };

    use super::*;
    use crate::yaml;

    /// A clock that was never set begins here.
    const SECOND: Time = 1_000_000_000;

    /// A run of one program that reads so many files, one a second from 1970 on.
    fn reads(count: u32) -> RunGraph {
        let at = |time| Interval {
            start: time,
            end: time,
        };
        let mut graph = RunGraph::default();
        graph.activities.push(Activity {
            id: ActivityId(0),
            parent: None,
            pid: 1,
            epoch: 1,
            exec_path: Some((*b"/bin/cat").into()),
            argv: vec![(*b"cat").into()],
            env_set: Vec::new(),
            env_unset: Vec::new(),
            cwd: (*b"/").into(),
            interval: at(0),
            exit: Some(0),
            signal: None,
            execed: false,
            lookups_known: true,
            via: Via::Library,
        });
        for number in 0..count {
            graph.entities.push(Entity {
                id: EntityId(number),
                kind: EntityKind::File,
                path: format!("/data/{number}").into_bytes().into(),
                aliases: Vec::new(),
                by_name: Vec::new(),
                version: 0,
                previous: None,
                ident: None,
                last: true,
            });
            graph.edges.push(Edge {
                activity: ActivityId(0),
                entity: EntityId(number),
                relation: Relation::Read,
                interval: at(Time::from(number) * SECOND),
                certainty: Certainty::Seen,
                via: Via::Library,
            });
        }
        graph.complete();
        graph
    }

    /// Two files are read within `timespan`, by the same `group`.
    fn two_reads(group: &str, timespan: &str) -> Rule {
        let text = format!(
            "title: t\nid: t\ndetection: {{a: {{Operation: read}}, b: {{Operation: read}}}}\n\
             correlation: {{type: temporal_ordered, rules: [a, b], group-by: {group}, timespan: {timespan}}}\n"
        );
        Rule::parse(&yaml::documents(&text).unwrap()[0], "t.yml").unwrap()
    }

    #[test]
    fn of_many_chains_a_search_follows_the_later_ones_first() {
        let later = SINGLE..SINGLE + 2;
        assert_eq!(followed_together(2, true), [0..1, 1..2]);
        assert_eq!(followed_together(later.end, true).first(), Some(&later));
        assert_eq!(followed_together(later.end, false).last(), Some(&later));
        assert_eq!(followed_together(later.end, true).len(), SINGLE + 1);
    }

    #[test]
    fn a_rule_that_compares_everything_with_everything_ends_in_time() {
        let graph = reads(60_000);
        let limits = Limits {
            time: Duration::from_millis(500),
            findings: 100,
        };
        for group in ["process", "run"] {
            let findings = find(&graph, &two_reads(group, "0s"), limits);
            assert!(findings.is_cut, "{group}");
        }
    }

    #[test]
    fn a_rule_that_compares_many_values_with_one_text_ends_in_time_and_finds_nothing() {
        let mut graph = reads(1);
        graph.activities[0].argv = vec!["a".repeat(100_000).into_bytes().into()];
        graph.complete();
        let values = vec!["aaab"; 10_000].join(", ");
        let text = format!(
            "title: t\nid: t\ndetection: {{a: {{Operation: read}}, \
             b: {{CommandLine|contains: [{values}]}}, condition: a and not b}}\n"
        );
        let rule = Rule::parse(&yaml::documents(&text).unwrap()[0], "t.yml").unwrap();
        let limits = Limits {
            time: Duration::ZERO,
            findings: 100,
        };
        let findings = find(&graph, &rule, limits);
        assert!(findings.is_cut && findings.found.is_empty());
    }

    #[test]
    fn what_no_inspector_was_asked_about_meets_no_negation() {
        let text = "title: t\nid: t\ndetection: {a: {Operation: read}, \
                    b: {ContentChange|exists: true}, condition: a and not b}\n";
        let rule = Rule::parse(&yaml::documents(text).unwrap()[0], "t.yml").unwrap();
        let limits = Limits {
            time: Duration::from_secs(60),
            findings: 100,
        };
        let mut graph = reads(2);
        assert!(find(&graph, &rule, limits).found.is_empty());
        graph.set_content(EntityId(1), crate::ContentAnswers::default());
        assert_eq!(find(&graph, &rule, limits).found.len(), 1);
    }

    #[test]
    fn operations_in_1970_are_in_order() {
        let graph = reads(3);
        let limits = Limits {
            time: Duration::from_secs(60),
            findings: 100,
        };
        let findings = find(&graph, &two_reads("run", "1s"), limits);
        let starts = |found: &Found| found.facts.iter().map(|fact| fact.start).collect();
        let starts: Vec<Vec<Time>> = findings.found.iter().map(starts).collect();
        assert_eq!(starts, [vec![0, SECOND], vec![SECOND, 2 * SECOND]]);
        assert!(!findings.is_cut);
    }
}
