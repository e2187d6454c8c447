//! W3C PROV: the graph as PROV-JSON or PROV-N.
//!
//! A file version is an entity. An activity is an exec epoch or, at the level of commands, a step.
//!
//! PROV wants one time for each use and generation, and no use before the generation. Recorded uses
//! and generations are intervals, which may overlap, as at a pipe. A use therefore has the begin of
//! its interval, a generation the end of its. If these contradict each other, they are moved within
//! their intervals. The whole interval and the certainty are attributes.

mod flows;
mod statement;

use backstory_eventlog::job_rank::JobRank;
use backstory_graph::marks::SchemaState;
use backstory_graph::model::EntityKind;
use backstory_graph::parts;
use serde_json::{Map, Value, json};

use super::no_byte_of;
use super::notation::{EVIDENCE, TERMS, escaped, file_uri, moment, text};
use crate::family::Family;
use crate::format::{Format, Target};
use crate::view::{ViewActivity, ViewEntity};
use crate::{Result, View};
use flows::flows;
use statement::{Literal, Statement};

/// `prov-json`
pub struct ProvJson;

/// `prov-n`
pub struct ProvN;

/// Prefixes of names, and the URIs they stand for.
const PREFIXES: [(&str, &str); 4] = [
    ("run", "urn:backstory:run:"),
    ("backstory", TERMS),
    // Attributes and extended records, which programs named.
    ("note", "urn:backstory:note:"),
    ("record", "urn:backstory:record:"),
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
    fn marks_bytes(&self) -> bool {
        true
    }
    fn proven_by(&self) -> &'static str {
        "Python's prov"
    }
    fn carries_evidence(&self) -> bool {
        true
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
                record.insert(name.to_string(), value);
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
    fn marks_bytes(&self) -> bool {
        true
    }
    fn proven_by(&self) -> &'static str {
        "Python's prov"
    }
    fn carries_evidence(&self) -> bool {
        true
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

/// All statements of a view.
fn statements(view: &View) -> Vec<Statement> {
    let mut all: Vec<Statement> = view
        .entities
        .iter()
        .map(|entity| of_entity(view, entity))
        .collect();
    all.extend(view.activities.iter().map(of_activity));
    all.extend(flows(view));
    all.extend(view.evidence.as_ref().map(of_evidence));
    all
}

/// The seals of the runs, as an entity with one text.
fn of_evidence(evidence: &Value) -> Statement {
    let mut statement = Statement::new("entity").and(
        qualified("backstory", EVIDENCE.as_bytes()),
        Literal::Text(evidence.to_string()),
    );
    statement.id = Some("backstory:evidence".to_owned());
    statement
}

/// `RUN/NAME` as a qualified name.
fn name(id: &str) -> String {
    qualified("run", id.as_bytes())
}

/// A qualified name; characters that the grammar forbids are escaped.
fn qualified(prefix: &str, local: &[u8]) -> String {
    format!("{prefix}:{}", escaped(local).replace('~', "%7E"))
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
    } else if entity.kind == EntityKind::Resource {
        statement = statement.and("prov:location", Literal::Uri(text(&entity.path)));
        if let Some((thing, part)) = parts::of_name(&entity.path) {
            let kind = Literal::Name(format!("backstory:{}", part.kind()));
            statement = statement
                .and("backstory:partOf", Literal::Uri(text(thing)))
                .and("backstory:partKind", kind)
                .and(
                    "backstory:partValue",
                    Literal::Text(part.value().to_owned()),
                );
        }
    }
    if let Some(ident) = entity.ident {
        statement = statement.and("backstory:size", Literal::Number(ident.size));
    }
    let content = view.contents.of(entity.run, &entity.path, entity.version);
    if let Some(digest) = content.and_then(|content| content.digest) {
        statement = statement.and("backstory:blake3", Literal::Text(digest.to_string()));
    }
    for path in no_byte_of(view, entity) {
        statement = statement.and("backstory:noByteOf", Literal::Uri(file_uri(path)));
    }
    statement.id = Some(name(&entity.id));
    statement
}

fn of_activity(activity: &ViewActivity) -> Statement {
    let sort = match activity.is_part {
        true => "backstory:part",
        false => "backstory:command",
    };
    let mut statement = Statement::new("activity")
        .with("startTime", moment(activity.interval.start))
        .with("endTime", moment(activity.interval.end))
        .and("prov:label", Literal::Text(activity.label.clone()))
        .and("prov:type", Literal::Name(sort.to_owned()))
        .and("backstory:cwd", Literal::Uri(file_uri(&activity.cwd)))
        .and("backstory:pid", Literal::Number(activity.pid.into()));
    if let Some(exit) = activity.exit {
        statement = statement.and("backstory:exit", Literal::Number(exit.into()));
    }
    if let Some(signal) = activity.signal {
        statement = statement.and("backstory:signal", Literal::Number(signal.into()));
    }
    for (name, value) in activity.job_rank.iter().flat_map(JobRank::terms) {
        let value = match value.as_i64() {
            Some(number) => Literal::Number(number),
            None => Literal::Text(value.as_str().unwrap_or_default().to_owned()),
        };
        statement = statement.and(qualified("backstory", name.as_bytes()), value);
    }
    for (key, value) in &activity.notes.attributes {
        statement = statement.and(qualified("note", key), Literal::Text(text(value)));
    }
    for record in &activity.notes.records {
        let name = qualified("record", &record.kind);
        statement = statement.and(name, Literal::Text(text(&record.payload)));
        let judged = record.judgement.iter();
        for judged in judged.filter(|judged| judged.state == SchemaState::Violates) {
            let violation = format!("{}: {}", text(&judged.schema), text(&judged.why));
            statement = statement.and("backstory:violation", Literal::Text(violation));
        }
    }
    statement.id = Some(name(&activity.id));
    statement
}
