//! Matches rules against a run that goes on.
//!
//! In: the facts and links of its graph that are new or have changed. Out: the matches that they
//! complete, each once. Partial matches are kept, so a look costs as much as the changes.
//!
//! The matches are those of [`crate::find`] at that moment, with the two exceptions that
//! [`crate::chains`] names. Some of them may not hold any more at the end: a file that gave way to
//! another one may be made again. Operations that were many within a time may be fewer when more is
//! known of them.

use std::collections::HashSet;

use crate::bursts::BurstSearch;
use crate::chains::{ChainSearch, ChangedFact};
use crate::condition::Condition;
use crate::correlation::CorrelationKind;
use crate::deadline::Deadline;
use crate::growing_graph::GraphNews;
use crate::match_key::{self, MatchKey};
use crate::matching::{Found, Limits, MOST, RuleFindings};
use crate::rule::{Rule, Shape};
use crate::run_graph::RunGraph;

/// The rules, and what has been met of them.
#[derive(Debug)]
pub(crate) struct StreamMatcher<'r> {
    rules: Vec<RuleProgress<'r>>,
    limits: Limits,
}

#[derive(Debug)]
struct RuleProgress<'r> {
    rule: &'r Rule,
    search: Search<'r>,
    /// How many matches there were.
    matches: usize,
    /// It took longer than allowed, and sees no more of the run.
    is_cut: bool,
}

#[derive(Debug)]
enum Search<'r> {
    /// A finding for each process and thing.
    One(&'r Condition, HashSet<MatchKey>),
    Chain(ChainSearch<'r>),
    Burst(BurstSearch<'r>),
}

impl<'r> StreamMatcher<'r> {
    /// A matcher that has seen nothing.
    pub fn new(rules: &'r [Rule], limits: Limits) -> StreamMatcher<'r> {
        let rules = rules.iter().map(|rule| RuleProgress {
            rule,
            search: Search::of(rule),
            matches: 0,
            is_cut: false,
        });
        StreamMatcher {
            rules: rules.collect(),
            limits,
        }
    }

    /// Takes what is new. Tells of each rule what it has found.
    pub fn take(
        &mut self,
        graph: &RunGraph,
        news: &GraphNews,
        mut tell: impl FnMut(&RunGraph, &Rule, RuleFindings),
    ) {
        let facts = news.facts.iter().map(|(place, has_fields)| ChangedFact {
            place: *place,
            fact: graph.fact_at(*place),
            has_fields: *has_fields,
        });
        let mut facts: Vec<ChangedFact> = facts.collect();
        facts.sort_by_key(|changed| changed.fact.order());
        for one in self.rules.iter_mut().filter(|one| !one.is_cut) {
            let clock = Deadline::after(self.limits.time);
            let mut found = match &mut one.search {
                Search::One(condition, known) => {
                    single(one.rule, condition, known, graph, &facts, &clock)
                }
                Search::Chain(chain) => chain.take(one.rule, graph, &facts, &news.links, &clock),
                Search::Burst(burst) => burst.take(one.rule, graph, &facts, &clock),
            };
            one.is_cut = clock.is_over();
            found.sort_by_key(|one| one.facts.last().map(|fact| fact.start));
            let room = self.limits.findings.saturating_sub(one.matches);
            one.matches += found.len();
            let more = found.len().saturating_sub(room);
            found.truncate(room);
            let findings = RuleFindings {
                found,
                more,
                is_cut: one.is_cut,
            };
            tell(graph, one.rule, findings);
        }
    }
}

impl<'r> Search<'r> {
    fn of(rule: &'r Rule) -> Search<'r> {
        match &rule.shape {
            Shape::One(condition) => Search::One(condition, HashSet::new()),
            Shape::Several(several) => match &several.kind {
                CorrelationKind::Ordered {
                    parts,
                    same_file,
                    not_above,
                } => Search::Chain(ChainSearch::new(several, parts, *same_file, *not_above)),
                CorrelationKind::Count { part, least } => {
                    Search::Burst(BurstSearch::new(several, part, *least))
                }
            },
        }
    }
}

fn single(
    rule: &Rule,
    condition: &Condition,
    known: &mut HashSet<MatchKey>,
    graph: &RunGraph,
    facts: &[ChangedFact],
    clock: &Deadline,
) -> Vec<Found> {
    let mut found = Vec::new();
    for changed in facts.iter().filter(|changed| changed.has_fields) {
        if !clock.goes_on() {
            break;
        }
        let fact = changed.fact;
        if known.len() < MOST
            && rule.meets(graph, &fact, condition, clock)
            && known.insert(match_key::of_first(graph, &fact))
        {
            found.push(Found {
                facts: vec![fact],
                count: 1,
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use backstory_eventlog::event::{Time, Via};
    use backstory_graph::model::{
        Activity, ActivityId, Certainty, Derived, Edge, Entity, EntityId, Inform, Informed,
        Interval, Relation, Sink,
    };

    use super::*;
    use crate::growing_graph::GrowingGraph;
    use crate::matching::SINGLE;
    use crate::run_graph::tests::version;
    use crate::yaml;

    const LIMITS: Limits = Limits {
        time: Duration::from_secs(600),
        findings: 10_000,
    };

    /// Numbers that look random.
    struct Random(u64);

    impl Random {
        fn below(&mut self, end: u64) -> u64 {
            let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
            self.0 = next.wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % end
        }
    }

    /// A change of a graph, as a fold tells it.
    #[derive(Clone)]
    enum Change {
        Edge(Edge),
        Inform(Inform),
        Derived(Derived),
    }

    fn activity(number: u32) -> Activity {
        Activity {
            id: ActivityId(number),
            parent: number.checked_sub(1).map(|before| ActivityId(before / 2)),
            pid: number,
            epoch: 1,
            exec_path: Some(format!("/bin/p{number}").into_bytes().into()),
            argv: vec![format!("p{number}").into_bytes().into()],
            env_set: Vec::new(),
            env_unset: Vec::new(),
            cwd: (*b"/").into(),
            interval: Interval {
                start: Time::from(number),
                end: 100,
            },
            exit: None,
            signal: None,
            execed: false,
            lookups_known: true,
            via: Via::Library,
        }
    }

    const PROGRAMS: u32 = 10;
    const FILES: u32 = 14;

    /// Changes in any order. Some edges come again, with a longer time.
    fn changes(random: &mut Random) -> Vec<Change> {
        let relations = [Relation::Read, Relation::Write, Relation::Delete];
        let mut changes = Vec::new();
        for child in 1..PROGRAMS {
            changes.push(Change::Inform(Inform {
                from: ActivityId((child - 1) / 2),
                to: ActivityId(child),
                why: Informed::Fork,
                time: Time::from(child),
            }));
        }
        for _ in 0..40 {
            let start = random.below(60) as Time;
            changes.push(Change::Edge(Edge {
                activity: ActivityId(random.below(PROGRAMS.into()) as u32),
                entity: EntityId(random.below(FILES.into()) as u32),
                relation: relations[random.below(3) as usize],
                interval: Interval {
                    start,
                    end: start + random.below(30) as Time,
                },
                certainty: Certainty::Seen,
                via: Via::Library,
            }));
        }
        for _ in 0..3 {
            let entity = 1 + random.below(u64::from(FILES) - 1) as u32;
            changes.push(Change::Derived(Derived {
                entity: EntityId(entity),
                from: EntityId(entity - 1),
                activity: ActivityId(0),
                time: random.below(60) as Time,
            }));
        }
        for at in (1..changes.len()).rev() {
            changes.swap(at, random.below(at as u64 + 1) as usize);
        }
        join(changes)
    }

    const MORE_PROGRAMS: u32 = 24;

    /// Different operations, each at a moment of its own, in the order of time.
    fn changes_in_order(random: &mut Random) -> Vec<Change> {
        let relations = [Relation::Read, Relation::Write, Relation::Delete];
        let mut known = BTreeSet::new();
        let mut changes = Vec::new();
        for time in 1..1500 {
            let activity = random.below(MORE_PROGRAMS.into()) as u32;
            let entity = random.below(FILES.into()) as u32;
            let relation = random.below(3) as usize;
            if time % 30 == 0 && (time / 30) < i64::from(MORE_PROGRAMS) {
                let to = (time / 30) as u32;
                changes.push(Change::Inform(Inform {
                    from: ActivityId((to - 1) / 2),
                    to: ActivityId(to),
                    why: Informed::Fork,
                    time,
                }));
            } else if known.insert((activity, entity, relation)) {
                changes.push(Change::Edge(Edge {
                    activity: ActivityId(activity),
                    entity: EntityId(entity),
                    relation: relations[relation],
                    interval: Interval {
                        start: time,
                        end: time,
                    },
                    certainty: Certainty::Seen,
                    via: Via::Library,
                }));
            }
        }
        changes
    }

    /// Joins each edge with the former ones of its program, file and relation.
    fn join(mut changes: Vec<Change>) -> Vec<Change> {
        for at in 0..changes.len() {
            let (former, rest) = changes.split_at_mut(at);
            let Change::Edge(edge) = &mut rest[0] else {
                continue;
            };
            for one in former {
                if let Change::Edge(known) = one
                    && (known.activity, known.entity, known.relation)
                        == (edge.activity, edge.entity, edge.relation)
                {
                    let (one, other) = (known.interval, edge.interval);
                    edge.interval = Interval {
                        start: one.start.min(other.start),
                        end: one.end.max(other.end),
                    };
                }
            }
        }
        changes
    }

    fn apply(graph: &mut GrowingGraph, change: &Change) {
        let Ok(()) = match change {
            Change::Edge(edge) => graph.edge(edge),
            Change::Inform(inform) => graph.inform(inform),
            Change::Derived(derived) => graph.derived(derived),
        };
    }

    /// The fields that distinguish the matches of a rule.
    fn keys(graph: &RunGraph, rule: &Rule, found: &[Found]) -> Vec<String> {
        let keys = found.iter().map(|one| {
            let (first, last) = (one.facts[0], one.facts[one.facts.len() - 1]);
            match one.count > one.facts.len() {
                // The first and the last one are those so far.
                true => rule.id.clone(),
                false => {
                    let pid = graph.activity(first.activity).pid;
                    let pid = (one.count == 1).then_some(pid);
                    let ends = (first.entity, last.operation, last.entity);
                    format!("{} {pid:?} {ends:?}", rule.id)
                }
            }
        });
        keys.collect()
    }

    /// Rules of each kind. `chains`: the parts of those about operations in order.
    fn rules(chains: &[&str]) -> Vec<Rule> {
        let ordered = |group: &str, more: &str| {
            format!(
                "title: t\nid: {group}{}\ndetection: {{a: {{Operation: read, TargetFilename|endswith: ['0', '1', '2']}}, b: {{Operation: write}}, c: {{Operation: delete}}}}\n\
                 correlation: {{type: temporal_ordered, group-by: {group}, {more}}}\n",
                more.len()
            )
        };
        let mut texts = vec![
            "title: t\nid: one\ndetection: {a: {Operation: write, TargetFilename|endswith: '3'}, condition: a}\n".to_owned(),
            "title: t\nid: source\ndetection: {a: {Operation: read, SourceFilename|exists: true}, condition: a}\n".to_owned(),
            "title: t\nid: many\ndetection: {a: {Operation: write}}\n\
             correlation: {type: event_count, rules: a, group-by: process, timespan: 30s, condition: {gte: 3}}\n".to_owned(),
        ];
        for group in ["process", "descendants", "flow", "run"] {
            texts.extend(chains.iter().map(|chain| ordered(group, chain)));
            // A process is above itself.
            if group != "process" {
                texts.push(ordered(group, "rules: [a, b], not-above: true"));
            }
            texts.push(ordered(group, "rules: [a, c], same-file: [a, c]"));
        }
        let rules = texts.iter().enumerate().map(|(number, text)| {
            let documents = yaml::documents(text).unwrap();
            let mut rule = Rule::parse(&documents[0], "t.yml").unwrap();
            rule.id.push_str(&number.to_string());
            rule
        });
        rules.collect()
    }

    /// Matches the rules against a graph that grows by these changes, and once against the whole.
    /// Returns the matches.
    fn compared(
        rules: &[Rule],
        programs: u32,
        changes: &[Change],
        random: &mut Random,
    ) -> BTreeSet<String> {
        let mut growing = GrowingGraph::new(rules);
        for number in 0..programs {
            let Ok(()) = growing.activity(&activity(number));
        }
        for number in 0..FILES {
            let path = format!("/f/{number}");
            let Ok(()) = growing.entity(&Entity {
                previous: None,
                ..version(number, &path, number % 2)
            });
        }
        let mut matcher = StreamMatcher::new(rules, LIMITS);
        let mut found = BTreeSet::new();
        for (number, change) in changes.iter().enumerate() {
            apply(&mut growing, change);
            if number + 1 == changes.len() || random.below(4) == 0 {
                let news = growing.take_news();
                matcher.take(&growing.graph, &news, |graph, rule, new| {
                    found.extend(keys(graph, rule, &new.found));
                });
            }
        }
        let mut whole = growing.graph;
        whole.complete();
        let at_once = rules
            .iter()
            .flat_map(|rule| keys(&whole, rule, &crate::find(&whole, rule, LIMITS).found));
        let at_once: BTreeSet<String> = at_once.collect();
        // An edge that comes again can begin earlier, and then be no more among many.
        found.retain(|key| at_once.contains(key) || !key.starts_with("many"));
        assert_eq!(found, at_once);
        at_once
    }

    #[test]
    fn what_is_found_bit_by_bit_is_what_is_found_at_once() {
        let rules = rules(&["rules: [a, b]"]);
        let mut matched = BTreeSet::new();
        for seed in 0..400 {
            let mut random = Random(seed);
            let changes = changes(&mut random);
            matched.extend(compared(&rules, PROGRAMS, &changes, &mut random));
        }
        let ids = |rule: &Rule| matched.iter().any(|key| key.starts_with(&rule.id));
        assert!(rules.iter().all(ids), "each rule matches");
    }

    #[test]
    fn of_very_many_beginnings_in_order_of_time_both_find_the_same() {
        let rules = rules(&["rules: [a, b]", "rules: [a, b, c]"]);
        for seed in 0..5 {
            let mut random = Random(seed);
            let changes = changes_in_order(&mut random);
            let begins = |change: &&Change| match change {
                Change::Edge(edge) => edge.relation == Relation::Read && edge.entity.0 % 10 <= 2,
                _ => false,
            };
            assert!(changes.iter().filter(begins).count() > SINGLE);
            compared(&rules, MORE_PROGRAMS, &changes, &mut random);
        }
    }
}
