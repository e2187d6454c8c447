//! W3C PROV: the graph as PROV-JSON or PROV-N.
//!
//! A file version is an entity, an exec epoch (or, by level, a step) an activity. PROV wants one moment for each use and generation, and that
//! nothing is used before it was generated; ours are intervals, which may overlap (a pipe). The moment is the interval's first for a use and
//! its last for a generation, moved within the interval where they would contradict each other. The whole interval and the certainty stand
//! beside it as attributes.

use std::collections::{BTreeMap, BTreeSet};

use backstory_eventlog::event::Time;
use backstory_graph::model::{Certainty, Interval, Relation};
use backstory_query::answer::Flow;
use serde_json::{Map, Value, json};

use super::notation::{file_uri, moment, text};
use crate::format::{Family, Format, Target};
use crate::view::{Endpoint, ViewActivity, ViewEntity};
use crate::{Result, View};

/// `prov-json`
pub struct ProvJson;

/// `prov-n`
pub struct ProvN;

/// Prefixes and what they stand for.
const PREFIXES: [(&str, &str); 2] = [
    ("run", "urn:backstory:run:"),
    ("backstory", "urn:backstory:term:"),
];

impl Format for ProvJson {
    fn name(&self) -> &'static str {
        "prov-json"
    }
    fn about(&self) -> &'static str {
        "the graph as W3C PROV-JSON"
    }
    fn family(&self) -> Family {
        Family::Standard
    }
    fn proven_by(&self) -> &'static str {
        "Python's prov"
    }

    fn write(&self, view: &View, target: Target<'_>) -> Result<()> {
        let mut document = Map::new();
        document.insert(
            "prefix".to_owned(),
            PREFIXES.iter().copied().collect::<Value>(),
        );
        for (at, statement) in statements(view).iter().enumerate() {
            let mut record = Map::new();
            for (name, value) in &statement.formal {
                record.insert(format!("prov:{name}"), Value::from(value.as_str()));
            }
            for (name, values) in &statement.attributes {
                let values: Vec<Value> = values.iter().map(Literal::json).collect();
                let value = match <[Value; 1]>::try_from(values) {
                    Ok([one]) => one,
                    Err(many) => Value::from(many),
                };
                record.insert((*name).to_owned(), value);
            }
            let id = statement.id.clone().unwrap_or_else(|| format!("_:r{at}"));
            let records = document.entry(statement.kind).or_insert_with(|| json!({}));
            records[id] = Value::from(record);
        }
        serde_json::to_writer(&mut *target.stream(), &document).map_err(std::io::Error::from)?;
        Ok(())
    }
}

impl Format for ProvN {
    fn name(&self) -> &'static str {
        "prov-n"
    }
    fn about(&self) -> &'static str {
        "the graph as W3C PROV-N"
    }
    fn family(&self) -> Family {
        Family::Standard
    }
    fn proven_by(&self) -> &'static str {
        "Python's prov"
    }

    fn write(&self, view: &View, target: Target<'_>) -> Result<()> {
        let out = target.stream();
        writeln!(out, "document")?;
        for (prefix, meaning) in PREFIXES {
            writeln!(out, "  prefix {prefix} <{meaning}>")?;
        }
        for statement in statements(view) {
            writeln!(out, "  {}", statement.line())?;
        }
        writeln!(out, "endDocument")?;
        Ok(())
    }
}

/// A value of an attribute.
enum Literal {
    Text(String),
    Number(i64),
    Moment(Time),
    Name(String),
    Uri(String),
}

impl Literal {
    fn json(&self) -> Value {
        let typed = |value: &str, sort: &str| json!({"$": value, "type": sort});
        match self {
            Literal::Text(text) => Value::from(text.as_str()),
            Literal::Number(number) => typed(&number.to_string(), "xsd:long"),
            Literal::Moment(time) => typed(&moment(*time), "xsd:dateTime"),
            Literal::Name(name) => typed(name, "prov:QUALIFIED_NAME"),
            Literal::Uri(uri) => typed(uri, "xsd:anyURI"),
        }
    }

    fn line(&self) -> String {
        match self {
            Literal::Text(text) => quoted(text),
            Literal::Number(number) => format!("\"{number}\" %% xsd:long"),
            Literal::Moment(time) => format!("\"{}\" %% xsd:dateTime", moment(*time)),
            Literal::Name(name) => format!("'{name}'"),
            Literal::Uri(uri) => format!("{} %% xsd:anyURI", quoted(uri)),
        }
    }
}

/// A string of PROV-N.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// One statement of a document.
struct Statement {
    /// `entity`, `used` …
    kind: &'static str,
    /// Of entities and activities.
    id: Option<String>,
    /// What the standard has a place for, by its PROV-JSON names.
    formal: BTreeMap<&'static str, String>,
    attributes: BTreeMap<&'static str, Vec<Literal>>,
}

impl Statement {
    fn new(kind: &'static str) -> Statement {
        Statement {
            kind,
            id: None,
            formal: BTreeMap::new(),
            attributes: BTreeMap::new(),
        }
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Statement {
        self.formal.insert(name, value.into());
        self
    }

    fn and(mut self, name: &'static str, value: Literal) -> Statement {
        self.attributes.entry(name).or_default().push(value);
        self
    }

    /// In PROV-N: the arguments in their order, `-` for those not given.
    fn line(&self) -> String {
        let places: &[&str] = match self.kind {
            "activity" => &["startTime", "endTime"],
            "used" => &["activity", "entity", "time"],
            "wasGeneratedBy" | "wasInvalidatedBy" => &["entity", "activity", "time"],
            "wasStartedBy" => &["activity", "trigger", "starter", "time"],
            "wasInformedBy" => &["informed", "informant"],
            "wasDerivedFrom" => &[
                "generatedEntity",
                "usedEntity",
                "activity",
                "generation",
                "usage",
            ],
            "alternateOf" => &["alternate1", "alternate2"],
            "wasInfluencedBy" => &["influencee", "influencer"],
            _ => &[],
        };
        let place = |name: &&str| {
            self.formal
                .get(name)
                .cloned()
                .unwrap_or_else(|| "-".to_owned())
        };
        let mut arguments: Vec<String> = self
            .id
            .iter()
            .cloned()
            .chain(places.iter().map(place))
            .collect();
        if !self.attributes.is_empty() {
            let each = |(name, values): (&&str, &Vec<Literal>)| {
                let lines = values
                    .iter()
                    .map(|value| format!("{name}={}", value.line()));
                lines.collect::<Vec<_>>().join(", ")
            };
            let attributes: Vec<String> = self.attributes.iter().map(each).collect();
            arguments.push(format!("[{}]", attributes.join(", ")));
        }
        format!("{}({})", self.kind, arguments.join(", "))
    }
}

/// Everything that the view says.
fn statements(view: &View) -> Vec<Statement> {
    let mut all: Vec<Statement> = view
        .entities
        .iter()
        .map(|entity| of_entity(view, entity))
        .collect();
    all.extend(view.activities.iter().map(of_activity));
    all.extend(flows(view));
    all
}

/// `RUN/NAME` as a qualified name: what the grammar does not allow in one is escaped.
fn name(id: &str) -> String {
    format!(
        "run:{}",
        super::notation::escaped(id.as_bytes()).replace('~', "%7E")
    )
}

fn of_entity(view: &View, entity: &ViewEntity) -> Statement {
    let mut statement = Statement::new("entity")
        .and("prov:label", Literal::Text(text(&entity.path)))
        .and(
            "prov:type",
            Literal::Name(format!("backstory:{}", entity.kind.word())),
        )
        .and("backstory:version", Literal::Number(entity.version.into()));
    if entity.path.starts_with(b"/") {
        statement = statement.and("prov:location", Literal::Uri(file_uri(&entity.path)));
    }
    if let Some(ident) = entity.ident {
        statement = statement.and("backstory:size", Literal::Number(ident.size));
    }
    let content = view.contents.of(entity.run, &entity.path, entity.version);
    if let Some(digest) = content.and_then(|content| content.digest) {
        statement = statement.and("backstory:blake3", Literal::Text(digest.to_string()));
    }
    statement.id = Some(name(&entity.id));
    statement
}

fn of_activity(activity: &ViewActivity) -> Statement {
    let mut statement = Statement::new("activity")
        .with("startTime", moment(activity.interval.start))
        .with("endTime", moment(activity.interval.end))
        .and("prov:label", Literal::Text(activity.label.clone()))
        .and("prov:type", Literal::Name("backstory:command".to_owned()))
        .and("backstory:cwd", Literal::Uri(file_uri(&activity.cwd)))
        .and("backstory:pid", Literal::Number(activity.pid.into()));
    if let Some(exit) = activity.exit {
        statement = statement.and("backstory:exit", Literal::Number(exit.into()));
    }
    if let Some(signal) = activity.signal {
        statement = statement.and("backstory:signal", Literal::Number(signal.into()));
    }
    statement.id = Some(name(&activity.id));
    statement
}

/// What is said once of a pair, however many ways there were.
#[derive(Default)]
struct Pair {
    roles: BTreeSet<&'static str>,
    interval: Option<Interval>,
    seen: bool,
}

impl Pair {
    fn add(&mut self, role: &'static str, interval: Interval, certainty: Certainty) {
        self.roles.insert(role);
        let whole = self.interval.get_or_insert(interval);
        whole.start = whole.start.min(interval.start);
        whole.end = whole.end.max(interval.end);
        self.seen |= certainty == Certainty::Seen;
    }

    fn describe(&self, mut statement: Statement) -> Statement {
        for role in &self.roles {
            let name = format!("backstory:{}", role.replace(' ', "-"));
            // Only uses and generations have roles.
            let attribute = match statement.kind {
                "used" | "wasGeneratedBy" | "wasInvalidatedBy" | "wasStartedBy" => "prov:role",
                _ => "prov:type",
            };
            statement = statement.and(attribute, Literal::Name(name));
        }
        let certainty = if self.seen { "seen" } else { "possible" };
        statement = statement.and("backstory:certainty", Literal::Text(certainty.to_owned()));
        if let Some(interval) = self.interval {
            statement = statement
                .and("backstory:from", Literal::Moment(interval.start))
                .and("backstory:until", Literal::Moment(interval.end));
        }
        statement
    }
}

/// The statement that an arrow becomes.
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

fn flows(view: &View) -> Vec<Statement> {
    let mut pairs: BTreeMap<(&'static str, Endpoint, Endpoint), Pair> = BTreeMap::new();
    for link in &view.links {
        pairs
            .entry((kind_of(link.flow), link.from, link.to))
            .or_default()
            .add(super::word(link.flow), link.interval, link.certainty);
        if super::starts(link.flow) {
            pairs
                .entry(("wasStartedBy", link.from, link.to))
                .or_default()
                .add(super::word(link.flow), link.interval, link.certainty);
        }
        if matches!(link.flow, Flow::Same | Flow::Alike) {
            pairs
                .entry(("alternateOf", link.from, link.to))
                .or_default();
        }
    }
    let first_use = first_uses(&pairs);
    let generated = generations(&pairs, &first_use);
    let name = |end: &Endpoint| match end {
        Endpoint::Activity(at) => name(&view.activities[*at].id),
        Endpoint::Entity(at) => name(&view.entities[*at].id),
    };
    let statements = pairs.iter().map(|((kind, from, to), pair)| {
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
        pair.describe(made)
    });
    statements.collect()
}

/// When each entity was first used.
fn first_uses(
    pairs: &BTreeMap<(&'static str, Endpoint, Endpoint), Pair>,
) -> BTreeMap<Endpoint, Time> {
    let mut first = BTreeMap::new();
    for ((kind, from, _), pair) in pairs {
        if let (&"used", Some(interval)) = (kind, pair.interval) {
            let time = first.entry(*from).or_insert(interval.start);
            *time = (*time).min(interval.start);
        }
    }
    first
}

/// When each entity was there, as far as uses are concerned.
fn generations(
    pairs: &BTreeMap<(&'static str, Endpoint, Endpoint), Pair>,
    first_use: &BTreeMap<Endpoint, Time>,
) -> BTreeMap<Endpoint, Time> {
    let mut all = BTreeMap::new();
    for ((kind, _, to), pair) in pairs {
        if let (&"wasGeneratedBy", Some(interval)) = (kind, pair.interval) {
            let at = generated_at(interval, first_use.get(to));
            let time = all.entry(*to).or_insert(at);
            *time = (*time).min(at);
        }
    }
    all
}

/// The end of the interval, or before the first use, if that lies within it.
fn generated_at(interval: Interval, first_use: Option<&Time>) -> Time {
    first_use.map_or(interval.end, |&used| {
        interval.end.min(interval.start.max(used))
    })
}
