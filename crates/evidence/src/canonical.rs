//! The canonical form of a run's rows, version 1. The digests of a seal are made of it.
//!
//! In: the rows of a run, as any storage engine returns them. Out: one digest for each kind of row.
//! The form does not depend on the engine, the schema, the machine or the version of the program.
//!
//! ```text
//! number   8 bytes, little-endian; a signed number is extended to 8 bytes
//! bytes    length as a number, then the bytes
//! list     count as a number, then the elements
//! option   0 as a number, or 1 and the value
//! word     bytes
//! json     bytes of the JSON text with sorted keys, without fields that have their default
//! ```
//!
//! Invariant: every field of a row is in the form. A new field of a row does not compile here.

use std::collections::BTreeMap;

use backstory_eventlog::event::{Bytes, Time};
use backstory_files::{Digest, Ident};
use backstory_graph::marks::JUDGEMENT;
use backstory_graph::model::{
    Activity, ActivityId, ByName, Derived, Edge, Entity, EntityKind, Inform, Interval,
};
use backstory_store::{ActivityKey, Result, RunRecord, Store, Stream};
use backstory_vocabulary::Word;
use serde_json::Value;

/// Takes the canonical form of rows.
#[derive(Default)]
struct RowHasher(blake3::Hasher);

impl RowHasher {
    fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }

    fn signed(&mut self, number: i64) {
        self.0.update(&number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }

    fn list(&mut self, list: &[Bytes]) {
        self.number(list.len() as u64);
        list.iter().for_each(|one| self.bytes(one));
    }

    fn option(&mut self, number: Option<i64>) {
        self.number(u64::from(number.is_some()));
        if let Some(number) = number {
            self.signed(number);
        }
    }

    fn interval(&mut self, interval: Interval) {
        self.signed(interval.start);
        self.signed(interval.end);
    }

    fn digest(&self) -> Digest {
        Digest(*self.0.finalize().as_bytes())
    }
}

/// The digest of the run's row: header, end, gaps and counts. The size of the log is left out: the
/// row has the size at the time of indexing, and `store rebuild` updates it.
pub fn record(run: &RunRecord) -> Result<Digest> {
    let mut hasher = RowHasher::default();
    for value in [
        serde_json::to_value(&run.header),
        serde_json::to_value(&run.end),
    ] {
        let value = value.map_err(backstory_store::Error::source_failed)?;
        let text = without_defaults(value).unwrap_or_default().to_string();
        hasher.bytes(text.as_bytes());
    }
    hasher.number(run.unknown.len() as u64);
    run.unknown
        .iter()
        .for_each(|reason| hasher.bytes(reason.as_bytes()));
    let counts = run.counts;
    for count in [
        counts.activities,
        counts.entities,
        counts.edges,
        counts.files_read,
        counts.files_written,
    ] {
        hasher.number(count);
    }
    Ok(hasher.digest())
}

/// The value without what a reader of an older log would add: fields with their default.
fn without_defaults(value: Value) -> Option<Value> {
    match value {
        Value::Null | Value::Bool(false) => None,
        Value::Number(number) if number.as_i64() == Some(0) => None,
        Value::String(text) if text.is_empty() => None,
        Value::Array(list) if list.is_empty() => None,
        Value::Object(fields) => {
            let fields = fields
                .into_iter()
                .filter_map(|(name, value)| Some((name, without_defaults(value)?)));
            // The order of a map of `serde_json` depends on its features.
            let sorted: BTreeMap<String, Value> = fields.collect();
            (!sorted.is_empty()).then(|| Value::Object(sorted.into_iter().collect()))
        }
        other => Some(other),
    }
}

/// The digest of the processes.
pub fn processes(activities: &[Activity]) -> Digest {
    let mut hasher = RowHasher::default();
    for activity in activities {
        process(&mut hasher, activity);
    }
    hasher.digest()
}

fn process(hasher: &mut RowHasher, activity: &Activity) {
    let Activity {
        id,
        parent,
        pid,
        epoch,
        exec_path,
        argv,
        env_set,
        env_unset,
        cwd,
        interval,
        exit,
        signal,
        execed,
        lookups_known,
        via,
    } = activity;
    hasher.number(u64::from(id.0));
    hasher.option(parent.map(|parent| i64::from(parent.0)));
    hasher.number(u64::from(*pid));
    hasher.number(u64::from(*epoch));
    hasher.list(exec_path.as_slice());
    [argv, env_set, env_unset]
        .into_iter()
        .for_each(|list| hasher.list(list));
    hasher.bytes(cwd);
    hasher.interval(*interval);
    hasher.option(exit.map(i64::from));
    hasher.option(signal.map(i64::from));
    hasher.number(u64::from(*execed) | u64::from(*lookups_known) << 1);
    hasher.bytes(via.word().as_bytes());
}

/// The digest of the entities: versions of files, pipes, sockets and so on.
pub fn files(entities: &[Entity]) -> Digest {
    let mut hasher = RowHasher::default();
    for entity in entities {
        file(&mut hasher, entity);
    }
    hasher.digest()
}

fn file(hasher: &mut RowHasher, entity: &Entity) {
    let Entity {
        id,
        kind,
        path,
        aliases,
        by_name,
        version,
        previous,
        ident,
        last,
    } = entity;
    hasher.number(u64::from(id.0));
    hasher.number(u64::from(EntityKind::number(*kind)));
    hasher.bytes(path);
    hasher.list(aliases);
    hasher.number(by_name.len() as u64);
    for ByName { seen, possible } in by_name {
        hasher.number(u64::from(*seen) | u64::from(*possible) << 16);
    }
    hasher.number(u64::from(*version));
    hasher.option(previous.map(|previous| i64::from(previous.0)));
    hasher.number(u64::from(ident.is_some()));
    if let Some(ident) = ident {
        identity(hasher, ident);
    }
    hasher.number(u64::from(*last));
}

fn identity(hasher: &mut RowHasher, ident: &Ident) {
    let Ident {
        dev,
        ino,
        size,
        mtime,
        birth,
        ctime,
        mode,
        nlink,
    } = ident;
    hasher.number(*dev);
    hasher.number(*ino);
    [size, mtime, birth, ctime]
        .into_iter()
        .for_each(|number| hasher.signed(*number));
    hasher.number(u64::from(*mode));
    hasher.number(u64::from(*nlink));
}

/// The digest of the edges of all activities, in their order.
pub fn edges(store: &dyn Store, run: &RunRecord, activities: &[Activity]) -> Result<Digest> {
    let mut hasher = RowHasher::default();
    for activity in activities {
        let key = ActivityKey::new(run.key, activity.id);
        stream(&mut hasher, &store.stream(key)?);
    }
    Ok(hasher.digest())
}

fn stream(hasher: &mut RowHasher, stream: &Stream) {
    let Stream {
        edges,
        informed_by,
        informs,
        derived,
    } = stream;
    hasher.number(edges.len() as u64);
    for edge in edges {
        let Edge {
            activity,
            entity,
            relation,
            interval,
            certainty,
            via,
        } = edge;
        hasher.number(u64::from(activity.0));
        hasher.number(u64::from(entity.0));
        hasher.number(u64::from(relation.number()));
        hasher.interval(*interval);
        hasher.bytes(certainty.word().as_bytes());
        hasher.bytes(via.word().as_bytes());
    }
    for list in [informed_by, informs] {
        hasher.number(list.len() as u64);
        for Inform {
            from,
            to,
            why,
            time,
        } in list
        {
            hasher.number(u64::from(from.0));
            hasher.number(u64::from(to.0));
            hasher.number(u64::from(why.number()));
            hasher.signed(*time);
        }
    }
    hasher.number(derived.len() as u64);
    for Derived {
        entity,
        from,
        activity,
        time,
    } in derived
    {
        hasher.number(u64::from(entity.0));
        hasher.number(u64::from(from.0));
        hasher.number(u64::from(activity.0));
        hasher.signed(*time);
    }
}

/// The digest of the extended records. The verdicts of schemas are left out: they follow from the
/// records and the user's schemas, and a rebuilt store may have others.
pub fn notes(extended: &[(ActivityId, Time, Bytes, Bytes)]) -> Digest {
    let mut hasher = RowHasher::default();
    let stated = extended.iter();
    for (activity, time, kind, payload) in stated.filter(|(_, _, kind, _)| **kind != *JUDGEMENT) {
        hasher.number(u64::from(activity.0));
        hasher.signed(*time);
        hasher.bytes(kind);
        hasher.bytes(payload);
    }
    hasher.digest()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_from_before_a_field_existed_has_the_same_form() {
        let old: Value = serde_json::from_str(r#"{"a":"x","deep":{"b":1}}"#).unwrap();
        let text = r#"{"new":null,"list":[],"a":"x","deep":{"zero":0,"b":1,"no":false,"t":""}}"#;
        let new: Value = serde_json::from_str(text).unwrap();
        assert_eq!(without_defaults(old), without_defaults(new));
    }

    #[test]
    fn neighbouring_bytes_are_not_confused() {
        let forms = [["ab", "c"], ["a", "bc"]].map(|words| {
            let mut hasher = RowHasher::default();
            let words = words.map(|word| Bytes::from(word.as_bytes()));
            hasher.list(&words);
            hasher.digest()
        });
        assert_ne!(forms[0], forms[1]);
    }
}
