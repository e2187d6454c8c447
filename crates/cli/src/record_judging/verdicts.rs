//! Asks the worker about records, schema by schema.
//!
//! In: the records of a batch. Out: the state and the reason of each that does not conform.
//!
//! Invariant: a record that the worker cannot answer for costs the verdicts of no others, unless
//! the time is over. The worker is asked again about each half of the records.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use backstory_graph::marks::SchemaState;
use backstory_inspection::judging::{JudgeProgram, JudgeTrouble, judge};
use backstory_inspection::worker::printable;
use serde_json::{Value, json};

use super::WaitingRecord;
use crate::schema_registry::{SchemaName, SchemaRegistry};

/// The state and the reason of the records that do not conform, by their place in the batch.
pub type Verdicts = BTreeMap<usize, (SchemaState, String)>;

/// The most times that the worker may fail for one schema and batch. To find one record of 5,000
/// takes 14.
const FAILURES: usize = 20;

/// The time until no more records of a run are compared.
pub struct TimeLeft {
    longest: Duration,
    end: Option<Instant>,
}

impl TimeLeft {
    /// Of the longest time, this has been spent.
    pub fn new(longest: Duration, spent: Duration) -> TimeLeft {
        let end = Instant::now().checked_add(longest.saturating_sub(spent));
        TimeLeft { longest, end }
    }

    fn check(&self) -> Result<(), String> {
        match self.end.is_some_and(|end| Instant::now() >= end) {
            true => Err(format!(
                "the records of the run took more than {} s",
                self.longest.as_secs()
            )),
            false => Ok(()),
        }
    }
}

/// A record's place in the batch, and its payload.
type Payload<'r> = (usize, &'r str);

/// The records that do not conform.
pub fn verdicts(registry: &SchemaRegistry, waiting: &[WaitingRecord], left: &TimeLeft) -> Verdicts {
    let mut found = Verdicts::new();
    let mut by_schema: BTreeMap<&SchemaName, Vec<Payload<'_>>> = BTreeMap::new();
    for (at, record) in waiting.iter().enumerate() {
        let Some(schema) = &record.schema else {
            continue;
        };
        match std::str::from_utf8(&record.payload) {
            Ok(payload) => by_schema.entry(schema).or_default().push((at, payload)),
            Err(_) => {
                let why = "it is not JSON: it is not UTF-8".to_owned();
                found.insert(at, (SchemaState::Violates, why));
            }
        }
    }
    for (name, payloads) in by_schema {
        found.extend(match schema(registry, name) {
            Ok(schema) => Comparison::new(&schema, left).of(&payloads),
            Err(why) => unchecked(&payloads, &why),
        });
    }
    found
}

/// A schema's JSON.
fn schema(registry: &SchemaRegistry, name: &SchemaName) -> Result<Value, String> {
    if !registry.versions(&name.kind).contains(&name.version) {
        return Err(format!("version {} has no schema", name.version));
    }
    let text = registry.text(name).map_err(|error| error.to_string());
    let parsed =
        text.and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string()));
    parsed.map_err(|why| printable(&format!("the schema cannot be read: {why}")))
}

fn unchecked(payloads: &[Payload<'_>], why: &str) -> Verdicts {
    let all = payloads.iter();
    all.map(|&(at, _)| (at, (SchemaState::Unchecked, why.to_owned())))
        .collect()
}

/// The comparison of payloads with one schema.
struct Comparison<'c> {
    schema: &'c Value,
    left: &'c TimeLeft,
    failures: Cell<usize>,
}

impl<'c> Comparison<'c> {
    fn new(schema: &'c Value, left: &'c TimeLeft) -> Comparison<'c> {
        Comparison {
            schema,
            left,
            failures: Cell::new(0),
        }
    }

    /// The payloads that do not conform. Without an answer, each half is asked about.
    fn of(&self, payloads: &[Payload<'_>]) -> Verdicts {
        if let Err(why) = self.left.check() {
            return unchecked(payloads, &why);
        }
        let why = match ask(self.schema, payloads) {
            Ok(found) => return found,
            Err(why) => why,
        };
        self.failures.set(self.failures.get() + 1);
        if payloads.len() == 1 || self.failures.get() > FAILURES {
            return unchecked(payloads, &why);
        }
        let (first, second) = payloads.split_at(payloads.len() / 2);
        let mut found = self.of(first);
        found.extend(self.of(second));
        found
    }
}

/// Asks the worker once.
fn ask(schema: &Value, payloads: &[Payload<'_>]) -> Result<Verdicts, String> {
    let mut lines = format!("{}\n", json!({"schema": schema}));
    for (at, payload) in payloads {
        lines += &format!("{}\n", json!({"id": at, "payload": payload}));
    }
    let answer = judge(&JudgeProgram::Schemas, lines.as_bytes()).map_err(|trouble| {
        printable(&match trouble {
            JudgeTrouble::NoWorker => trouble.to_string(),
            _ => format!("the comparison gave no answer: {trouble}"),
        })
    })?;
    read(&answer, |at| {
        payloads
            .binary_search_by_key(&at, |(asked, _)| *asked)
            .is_ok()
    })
}

/// The verdicts in the worker's answer, which is of hostile origin.
fn read(answer: &[u8], is_asked: impl Fn(usize) -> bool) -> Result<Verdicts, String> {
    let verdict = |line: &[u8]| {
        let line: Value = serde_json::from_slice(line).ok()?;
        let at = usize::try_from(line["id"].as_u64()?).ok()?;
        let state = match line["unchecked"] == true {
            true => SchemaState::Unchecked,
            false => SchemaState::Violates,
        };
        let why = printable(line["error"].as_str()?);
        is_asked(at).then_some((at, (state, why)))
    };
    let lines = answer.split(|&byte| byte == b'\n');
    lines
        .filter(|line| !line.is_empty())
        .map(|line| verdict(line).ok_or_else(|| "the worker's answer is not readable".to_owned()))
        .collect()
}

/// The mistake in a schema, if the worker finds one.
pub fn mistake(schema: &Value) -> Option<String> {
    match ask(schema, &[(0, "null")]) {
        Err(why) => Some(why),
        Ok(found) => found
            .into_values()
            .find_map(|(state, why)| (state == SchemaState::Unchecked).then_some(why)),
    }
}
