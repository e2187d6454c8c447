//! Compares the extended records of a run with the schemas of their types, on the run's way into
//! the store.
//!
//! In: what the fold emits. Out: the same, with a judgement after each record whose type has a
//! schema ([`backstory_graph::marks::JUDGEMENT`]). The worker `backstory-inspect` compares, in its
//! sandbox. So a hostile payload costs a limited time.
//!
//! Invariants: no record is lost, whatever it holds and whatever becomes of the worker. Records
//! with a schema wait in a batch; those of one activity keep their order.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use backstory_eventlog::event::{Bytes, Time};
use backstory_files::Ident;
use backstory_graph::marks::{JUDGEMENT, Judgement, SchemaState, is_record_type};
use backstory_graph::model::{Activity, ActivityId, Derived, Edge, Entity, Inform, Sink};
use backstory_inspection::judging::{JudgeProgram, judge};
use backstory_inspection::worker::printable;
use backstory_store::{Appender, Error, Result};
use serde_json::{Value, json};

use crate::schema_registry::{SchemaName, SchemaRegistry};

/// The most records of one batch, and the most bytes of their payloads.
const BATCH: usize = 5_000;
const BATCH_BYTES: usize = 4 << 20;

/// The longest time that the comparisons may take for one run.
const LONGEST: Duration = Duration::from_secs(60);

/// A record that waits for its judgement.
struct WaitingRecord {
    activity: ActivityId,
    time: Time,
    kind: Bytes,
    payload: Bytes,
    /// `None` if the type has no schema. The record waits for those before it.
    schema: Option<SchemaName>,
}

/// A sink that judges what passes.
pub struct JudgingSink<'s, 'a> {
    inner: &'s mut Appender<'a>,
    registry: &'s SchemaRegistry,
    waiting: Vec<WaitingRecord>,
    bytes: usize,
    spent: Duration,
}

impl<'s, 'a> JudgingSink<'s, 'a> {
    /// Judges by the schemas of the registry.
    pub fn new(inner: &'s mut Appender<'a>, registry: &'s SchemaRegistry) -> JudgingSink<'s, 'a> {
        JudgingSink {
            inner,
            registry,
            waiting: Vec::new(),
            bytes: 0,
            spent: Duration::ZERO,
        }
    }

    /// Judges and passes on the records that wait.
    ///
    /// # Errors
    /// Those of the store.
    pub fn finish(&mut self) -> Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        self.bytes = 0;
        if waiting.is_empty() {
            return Ok(());
        }
        let began = Instant::now();
        let mut verdicts = match self.spent > LONGEST {
            true => Err(format!(
                "the records of the run took more than {} s",
                LONGEST.as_secs()
            )),
            false => verdicts(self.registry, &waiting),
        };
        self.spent += began.elapsed();
        for (at, record) in waiting.iter().enumerate() {
            self.inner
                .extended(record.activity, record.time, &record.kind, &record.payload)?;
            let Some(schema) = &record.schema else {
                continue;
            };
            let (state, why) = match &mut verdicts {
                Ok(found) => found
                    .remove(&at)
                    .unwrap_or((SchemaState::Conforms, String::new())),
                Err(why) => (SchemaState::Unchecked, why.clone()),
            };
            let judgement = Judgement {
                schema: schema.to_string().as_bytes().into(),
                state,
                why: why.as_bytes().into(),
            };
            let payload = judgement.encode();
            self.inner
                .extended(record.activity, record.time, JUDGEMENT, &payload)?;
        }
        Ok(())
    }
}

/// The records that do not conform, by their place in the batch, each with the reason.
fn verdicts(
    registry: &SchemaRegistry,
    waiting: &[WaitingRecord],
) -> std::result::Result<BTreeMap<usize, (SchemaState, String)>, String> {
    let mut by_schema: BTreeMap<&SchemaName, Vec<usize>> = BTreeMap::new();
    for (at, record) in waiting.iter().enumerate() {
        if let Some(schema) = &record.schema {
            by_schema.entry(schema).or_default().push(at);
        }
    }
    let mut found = BTreeMap::new();
    let mut lines = String::new();
    for (name, places) in by_schema {
        let schema = schema(registry, name);
        if let Err(why) = &schema {
            let unchecked = places
                .iter()
                .map(|&at| (at, (SchemaState::Unchecked, why.clone())));
            found.extend(unchecked);
            continue;
        }
        lines += &format!("{}\n", json!({"schema": schema.unwrap_or_default()}));
        for at in places {
            match std::str::from_utf8(&waiting[at].payload) {
                Ok(payload) => lines += &format!("{}\n", json!({"id": at, "payload": payload})),
                Err(_) => {
                    let why = "it is not JSON: it is not UTF-8".to_owned();
                    found.insert(at, (SchemaState::Violates, why));
                }
            }
        }
    }
    if lines.is_empty() {
        return Ok(found);
    }
    let answer = judge(&JudgeProgram::Schemas, lines.as_bytes());
    let answer = answer.map_err(|trouble| printable(&trouble.to_string()))?;
    found.extend(read(&answer, waiting.len())?);
    Ok(found)
}

/// A schema's JSON.
fn schema(registry: &SchemaRegistry, name: &SchemaName) -> std::result::Result<Value, String> {
    if !registry.versions(&name.kind).contains(&name.version) {
        return Err(format!(
            "version {} of the type has no schema",
            name.version
        ));
    }
    let text = registry.text(name).map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

/// The verdicts in the worker's answer, which is of hostile origin.
fn read(
    answer: &[u8],
    asked: usize,
) -> std::result::Result<Vec<(usize, (SchemaState, String))>, String> {
    let lines = answer.split(|&byte| byte == b'\n');
    let lines = lines.filter(|line| !line.is_empty());
    let verdict = |line: &[u8]| {
        let line: Value = serde_json::from_slice(line).ok()?;
        let at = usize::try_from(line["id"].as_u64()?).ok()?;
        let state = match line["unchecked"] == true {
            true => SchemaState::Unchecked,
            false => SchemaState::Violates,
        };
        let why = printable(line["error"].as_str()?);
        (at < asked).then_some((at, (state, why)))
    };
    lines
        .map(|line| verdict(line).ok_or_else(|| "the worker's answer is not readable".to_owned()))
        .collect()
}

/// The mistake in a schema, if the worker finds one.
pub fn mistake(schema: &Value) -> Option<String> {
    let lines = format!(
        "{}\n{}\n",
        json!({"schema": schema}),
        json!({"id": 0, "payload": "null"})
    );
    let answer = match judge(&JudgeProgram::Schemas, lines.as_bytes()) {
        Ok(answer) => answer,
        Err(trouble) => return Some(trouble.to_string()),
    };
    match read(&answer, 1) {
        Err(why) => Some(why),
        Ok(found) => found
            .into_iter()
            .find_map(|(_, (state, why))| (state == SchemaState::Unchecked).then_some(why)),
    }
}

impl Sink for JudgingSink<'_, '_> {
    type Error = Error;

    fn activity(&mut self, activity: &Activity) -> Result<()> {
        self.inner.activity(activity)
    }

    fn entity(&mut self, entity: &Entity) -> Result<()> {
        self.inner.entity(entity)
    }

    fn edge(&mut self, edge: &Edge) -> Result<()> {
        self.inner.edge(edge)
    }

    fn inform(&mut self, inform: &Inform) -> Result<()> {
        self.inner.inform(inform)
    }

    fn derived(&mut self, derived: &Derived) -> Result<()> {
        self.inner.derived(derived)
    }

    fn extended(
        &mut self,
        activity: ActivityId,
        time: Time,
        kind: &[u8],
        payload: &[u8],
    ) -> Result<()> {
        if self.registry.is_empty() || !is_record_type(kind) {
            return self.inner.extended(activity, time, kind, payload);
        }
        self.bytes += payload.len();
        self.waiting.push(WaitingRecord {
            activity,
            time,
            kind: kind.into(),
            payload: payload.into(),
            schema: self.registry.schema_for(kind),
        });
        match self.waiting.len() >= BATCH || self.bytes >= BATCH_BYTES {
            true => self.finish(),
            false => Ok(()),
        }
    }

    fn unknown(&mut self, reason: &str) -> Result<()> {
        self.inner.unknown(reason)
    }

    fn made_before(&self, ident: &Ident) -> bool {
        self.inner.made_before(ident)
    }
}
