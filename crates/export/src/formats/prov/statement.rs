//! A statement of PROV, written as PROV-JSON or PROV-N.

use std::borrow::Cow;
use std::collections::BTreeMap;

use backstory_eventlog::event::Time;
use serde_json::{Value, json};

use crate::formats::notation::moment;

/// A value of an attribute.
pub enum Literal {
    Text(String),
    Number(i64),
    Moment(Time),
    Name(String),
    Uri(String),
}

impl Literal {
    pub fn json(&self) -> Value {
        let typed = |value: &str, sort: &str| json!({"$": value, "type": sort});
        match self {
            Literal::Text(text) => Value::from(text.as_str()),
            Literal::Number(number) => typed(&number.to_string(), "xsd:long"),
            Literal::Moment(time) => typed(&moment(*time), "xsd:dateTime"),
            Literal::Name(name) => typed(name, "prov:QUALIFIED_NAME"),
            Literal::Uri(uri) => typed(uri, "xsd:anyURI"),
        }
    }

    pub fn line(&self) -> String {
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
pub struct Statement {
    /// The relation or element: `entity`, `used` and so on.
    pub kind: &'static str,
    /// The id of an entity or activity; `None` for a relation.
    pub id: Option<String>,
    /// The standard's own attributes, by their PROV-JSON names.
    pub formal: BTreeMap<&'static str, String>,
    pub attributes: BTreeMap<Cow<'static, str>, Vec<Literal>>,
}

impl Statement {
    pub fn new(kind: &'static str) -> Statement {
        Statement {
            kind,
            id: None,
            formal: BTreeMap::new(),
            attributes: BTreeMap::new(),
        }
    }

    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Statement {
        self.formal.insert(name, value.into());
        self
    }

    pub fn and(mut self, name: impl Into<Cow<'static, str>>, value: Literal) -> Statement {
        self.attributes.entry(name.into()).or_default().push(value);
        self
    }

    /// The statement in PROV-N: arguments in their order, `-` for a missing one.
    pub fn line(&self) -> String {
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
            let each = |(name, values): (&Cow<'static, str>, &Vec<Literal>)| {
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
