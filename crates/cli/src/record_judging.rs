//! Compares the extended records of a run with the schemas of their types, on the run's way into
//! the store.
//!
//! In: what the fold emits. Out: the same, with a judgement after each record whose type has a
//! schema ([`backstory_graph::marks::JUDGEMENT`]). The worker `backstory-inspect` compares, in its
//! sandbox. So a hostile payload costs a limited time.
//!
//! Invariants: no record is lost, whatever it holds and whatever becomes of the worker. Records
//! keep their order: those that follow one with a schema wait in its batch.

mod verdicts;

use std::time::{Duration, Instant};

use backstory_eventlog::event::{Bytes, Time};
use backstory_files::Ident;
use backstory_graph::marks::{JUDGEMENT, Judgement, SchemaState};
use backstory_graph::model::{Activity, ActivityId, Derived, Edge, Entity, Inform, Sink};
use backstory_store::{Appender, Error, Result};

use crate::schema_registry::{SchemaName, SchemaRegistry};

pub use verdicts::mistake;
use verdicts::{TimeLeft, verdicts};

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
    /// `None` if its type has no schema.
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
        let left = TimeLeft::new(LONGEST, self.spent);
        let mut verdicts = verdicts(self.registry, &waiting, &left);
        self.spent += began.elapsed();
        for (at, record) in waiting.iter().enumerate() {
            self.inner
                .extended(record.activity, record.time, &record.kind, &record.payload)?;
            let Some(schema) = &record.schema else {
                continue;
            };
            let verdict = verdicts.remove(&at);
            let (state, why) = verdict.unwrap_or((SchemaState::Conforms, String::new()));
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
        let schema = self.registry.schema_for(kind);
        if schema.is_none() && self.waiting.is_empty() {
            return self.inner.extended(activity, time, kind, payload);
        }
        self.bytes += payload.len();
        self.waiting.push(WaitingRecord {
            activity,
            time,
            kind: kind.into(),
            payload: payload.into(),
            schema,
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
