//! The extended records of a run that were compared with a schema, for `show` and for JSON.

use std::io::{self, Write};

use backstory_graph::marks::{JUDGEMENT, SchemaState, StatedRecord};
use backstory_query as query;
use backstory_workflow::shell;

use crate::current_store::CurrentStore;
use crate::error::Failure;
use crate::json::Value;
use crate::text::line::printable;

/// The most violations that the text names.
const NAMED: usize = 5;

/// A record, and the process that stated it.
#[derive(Debug)]
pub struct JudgedRecord {
    process: u64,
    argv: Vec<backstory_eventlog::event::Bytes>,
    record: StatedRecord,
}

/// The records of a run whose types have a schema.
pub fn judged_records(current: &CurrentStore, run: &str) -> Result<Vec<JudgedRecord>, Failure> {
    let Some(record) = current.store.run(run)? else {
        return Ok(Vec::new());
    };
    let records = current.store.extended(record.key)?;
    if records.iter().all(|(_, _, kind, _)| **kind != *JUDGEMENT) {
        return Ok(Vec::new());
    }
    let lines = query::processes(&current.store, run)?;
    let all = lines.into_iter().flat_map(|line| {
        let argv = line.activity.argv;
        let judged = line.notes.records.into_iter();
        let judged = judged.filter(|record| record.judgement.is_some());
        judged.map(move |record| JudgedRecord {
            process: line.id,
            argv: argv.clone(),
            record,
        })
    });
    Ok(all.collect())
}

/// The records as JSON.
pub fn json(records: &[JudgedRecord]) -> Value {
    let object = |one: &JudgedRecord| {
        let mut fields = vec![
            ("process", one.process.into()),
            ("argv", Value::array(&one.argv)),
        ];
        fields.extend(fields_of(&one.record));
        Value::Object(fields)
    };
    Value::Array(records.iter().map(object).collect())
}

/// The fields of a record.
pub fn record_fields(record: &StatedRecord) -> Value {
    Value::Object(fields_of(record))
}

fn fields_of(record: &StatedRecord) -> Vec<(&'static str, Value)> {
    let judged = record.judgement.as_ref();
    let judged = judged.map_or(Value::Null, |judged| {
        Value::Object(vec![
            ("name", (&judged.schema).into()),
            ("state", judged.state.word().into()),
            ("why", (&judged.why).into()),
        ])
    });
    vec![
        ("type", (&record.kind).into()),
        ("payload", (&record.payload).into()),
        ("schema", judged),
    ]
}

/// One line that counts, and a line for each of the first records that do not conform.
pub fn text(records: &[JudgedRecord], name: &str, out: &mut impl Write) -> io::Result<()> {
    let in_state = |state: SchemaState| {
        records.iter().filter(move |one| {
            let judged = one.record.judgement.as_ref();
            judged.is_some_and(|judged| judged.state == state)
        })
    };
    let counts = [
        (SchemaState::Conforms, "valid"),
        (SchemaState::Violates, "not valid"),
        (SchemaState::Unchecked, "not checked"),
    ];
    let counts = counts.map(|(state, word)| (in_state(state).count(), word));
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    writeln!(
        out,
        "{name} {} with a schema: {}",
        records.len(),
        counts.join(", ")
    )?;
    let named = in_state(SchemaState::Violates).chain(in_state(SchemaState::Unchecked));
    for one in named.take(NAMED) {
        let Some(judged) = &one.record.judgement else {
            continue;
        };
        let program = printable(shell::line(&one.argv).as_bytes());
        let (schema, why) = (printable(&judged.schema), printable(&judged.why));
        writeln!(out, "{:<12} {schema}: {why} ({program})", "")?;
    }
    Ok(())
}
