//! The relations of PROV: uses, generations, derivations, starts and communications.

use std::collections::{BTreeMap, BTreeSet};

use backstory_eventlog::event::Time;
use backstory_graph::model::{Certainty, Interval, Relation};
use backstory_query::ByteUse;
use backstory_query::answer::Flow;
use backstory_vocabulary::Word;

use super::name;
use super::statement::{Literal, Statement};
use crate::View;
use crate::formats::notation::moment;
use crate::formats::{starts, word};
use crate::view::{Endpoint, ViewLink};

/// A kind of statement, its two ends, and its certainty. A statement has one certainty for all of
/// its roles, so links of another certainty are another statement.
type PairKey = (&'static str, Endpoint, Endpoint, Certainty);

/// The facts of one statement, which may join several links between the same two ends.
#[derive(Default)]
struct Pair {
    roles: BTreeSet<&'static str>,
    interval: Option<Interval>,
    bytes: Option<ByteUse>,
}

impl Pair {
    fn add(&mut self, role: &'static str, link: &ViewLink) {
        let interval = link.interval;
        self.roles.insert(role);
        self.bytes = self.bytes.or(link.bytes);
        let whole = self.interval.get_or_insert(interval);
        whole.start = whole.start.min(interval.start);
        whole.end = whole.end.max(interval.end);
    }

    fn describe(&self, mut statement: Statement, certainty: Certainty) -> Statement {
        for role in &self.roles {
            let name = format!("backstory:{}", role.replace(' ', "-"));
            // Only uses and generations have roles.
            let attribute = match statement.kind {
                "used" | "wasGeneratedBy" | "wasInvalidatedBy" | "wasStartedBy" => "prov:role",
                _ => "prov:type",
            };
            statement = statement.and(attribute, Literal::Name(name));
        }
        statement = statement.and(
            "backstory:certainty",
            Literal::Text(certainty.word().to_owned()),
        );
        if let Some(bytes) = self.bytes {
            let word = bytes.word().to_owned();
            statement = statement.and("backstory:bytes", Literal::Text(word));
        }
        if let Some(interval) = self.interval {
            statement = statement
                .and("backstory:from", Literal::Moment(interval.start))
                .and("backstory:until", Literal::Moment(interval.end));
        }
        statement
    }
}

/// The kind of statement for a flow.
fn kind_of(flow: Flow) -> &'static str {
    match flow {
        Flow::Used(_) => "used",
        Flow::Generated(Relation::Delete) => "wasInvalidatedBy",
        Flow::Generated(Relation::Meta) => "wasInfluencedBy",
        Flow::Generated(_) => "wasGeneratedBy",
        Flow::Derived | Flow::Same | Flow::Alike => "wasDerivedFrom",
        Flow::Informed(_) => "wasInformedBy",
    }
}

/// The relations between the activities and entities of a view.
pub fn flows(view: &View) -> Vec<Statement> {
    let mut pairs: BTreeMap<PairKey, Pair> = BTreeMap::new();
    for link in &view.links {
        pairs
            .entry((kind_of(link.flow), link.from, link.to, link.certainty))
            .or_default()
            .add(word(link.flow), link);
        if starts(link.flow) {
            pairs
                .entry(("wasStartedBy", link.from, link.to, link.certainty))
                .or_default()
                .add(word(link.flow), link);
        }
        if matches!(link.flow, Flow::Same | Flow::Alike) {
            pairs
                .entry(("alternateOf", link.from, link.to, link.certainty))
                .or_default();
        }
    }
    let first_use = first_uses(&pairs);
    let generated = generations(&pairs, &first_use);
    let name = |end: &Endpoint| match end {
        Endpoint::Activity(at) => name(&view.activities[*at].id),
        Endpoint::Entity(at) => name(&view.entities[*at].id),
    };
    let statements = pairs.iter().map(|((kind, from, to, certainty), pair)| {
        let (source, goal) = (name(from), name(to));
        let interval = pair.interval.unwrap_or(Interval { start: 0, end: 0 });
        let made = Statement::new(kind);
        let made = match *kind {
            "used" => made.with("activity", goal).with("entity", source).with(
                "time",
                moment(generated.get(from).map_or(interval.start, |&after| {
                    interval
                        .start
                        .max(after)
                        .min(interval.end.max(interval.start))
                })),
            ),
            "wasGeneratedBy" => made
                .with("entity", goal)
                .with("activity", source)
                .with("time", moment(generated_at(interval, first_use.get(to)))),
            "wasInvalidatedBy" => made
                .with("entity", goal)
                .with("activity", source)
                .with("time", moment(interval.end)),
            "wasStartedBy" => made
                .with("activity", goal)
                .with("starter", source)
                .with("time", moment(interval.start)),
            "wasInformedBy" => made.with("informed", goal).with("informant", source),
            "wasDerivedFrom" => made
                .with("generatedEntity", goal)
                .with("usedEntity", source),
            "alternateOf" => return made.with("alternate1", goal).with("alternate2", source),
            _ => made.with("influencee", goal).with("influencer", source),
        };
        pair.describe(made, *certainty)
    });
    statements.collect()
}

/// The first use of each entity.
fn first_uses(pairs: &BTreeMap<PairKey, Pair>) -> BTreeMap<Endpoint, Time> {
    let mut first = BTreeMap::new();
    for ((kind, from, ..), pair) in pairs {
        if let (&"used", Some(interval)) = (kind, pair.interval) {
            let time = first.entry(*from).or_insert(interval.start);
            *time = (*time).min(interval.start);
        }
    }
    first
}

/// The time at which each entity counts as generated, as far as its uses are concerned.
fn generations(
    pairs: &BTreeMap<PairKey, Pair>,
    first_use: &BTreeMap<Endpoint, Time>,
) -> BTreeMap<Endpoint, Time> {
    let mut all = BTreeMap::new();
    for ((kind, _, to, _), pair) in pairs {
        if let (&"wasGeneratedBy", Some(interval)) = (kind, pair.interval) {
            let at = generated_at(interval, first_use.get(to));
            let time = all.entry(*to).or_insert(at);
            *time = (*time).min(at);
        }
    }
    all
}

/// The end of the interval, or the first use if that lies earlier within the interval.
fn generated_at(interval: Interval, first_use: Option<&Time>) -> Time {
    first_use.map_or(interval.end, |&used| {
        interval.end.min(interval.start.max(used))
    })
}
