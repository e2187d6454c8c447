//! The changes of a row of a watched database.
//!
//! In: the versions of the row. Out: each change with the facts that the source recorded about it,
//! about its transaction, and the client's process.
//!
//! A source records facts of two kinds, as JSON: `NAME.row` about a change of a row, and `NAME`
//! about a transaction or session.

use backstory_ordering::SmallSort;
use std::collections::{BTreeMap, BTreeSet};

use backstory_eventlog::event::{Bytes, Time, UNNUMBERED};
use backstory_graph::model::{Activity, ActivityId, EntityKind};
use backstory_store::{ActivityKey, EntityKey, RunKey, Store};
use serde_json::Value;

use crate::Result;

/// The end of the kind of a fact about a row.
const ROW: &[u8] = b".row";

/// A change of a row.
#[derive(Debug, Clone, PartialEq)]
pub struct RowEvent {
    /// The id of the run.
    pub run: String,
    /// When its transaction committed.
    pub time: Time,
    /// The facts about the change: `operation`, `before`, `after`.
    pub change: Value,
    /// The facts about the transaction: `number`, `user`, `application`, `statements`.
    pub transaction: Value,
    /// The process of the client, as the source knows it.
    pub client: Option<Activity>,
}

/// The changes of a row, the newest first.
///
/// # Errors
///
/// The store fails.
pub fn row_history(store: &dyn Store, versions: &[EntityKey]) -> Result<Vec<RowEvent>> {
    let Some(first) = versions.first() else {
        return Ok(Vec::new());
    };
    let name = store.entity(*first)?.path;
    let mut changed: BTreeMap<RunKey, BTreeSet<ActivityId>> = BTreeMap::new();
    for key in versions {
        let touching = store.touching(*key)?.into_iter();
        let doers = touching.filter(|(_, generated)| *generated);
        let of_run = changed.entry(key.run()).or_default();
        of_run.extend(doers.map(|(activity, _)| activity));
    }
    let mut events = Vec::new();
    for (run, activities) in changed {
        let id = store.run_id(run)?.unwrap_or_default();
        let mut transactions: BTreeMap<ActivityId, Value> = BTreeMap::new();
        let mut changes = Vec::new();
        for (activity, time, kind, payload) in store.extended(run)? {
            if !activities.contains(&activity) {
                continue;
            }
            let Ok(fact) = serde_json::from_slice::<Value>(&payload) else {
                continue;
            };
            match kind.ends_with(ROW) {
                true if is_about(&fact, &name) => changes.push((activity, time, fact)),
                true => (),
                false => drop(transactions.insert(activity, fact)),
            }
        }
        let mut clients: BTreeMap<ActivityId, Option<Activity>> = BTreeMap::new();
        for (activity, time, change) in changes {
            let client = match clients.get(&activity) {
                Some(known) => known.clone(),
                None => {
                    let found = client_of(store, ActivityKey::new(run, activity))?;
                    clients.insert(activity, found.clone());
                    found
                }
            };
            events.push(RowEvent {
                run: id.clone(),
                time,
                change,
                transaction: transactions.get(&activity).cloned().unwrap_or(Value::Null),
                client,
            });
        }
    }
    events.sort_small_by_key(|event| event.time);
    events.reverse();
    Ok(events)
}

fn is_about(fact: &Value, name: &Bytes) -> bool {
    let is = |field: &str| {
        fact[field]
            .as_str()
            .is_some_and(|row| row.as_bytes() == &**name)
    };
    is("row") || is("former")
}

/// The process at the other end of a transaction's connection. A database inside a program has no
/// connection: the program itself made the transaction.
fn client_of(store: &dyn Store, transaction: ActivityKey) -> Result<Option<Activity>> {
    for edge in store.stream(transaction)?.edges {
        let socket = EntityKey::new(transaction.run(), edge.entity);
        if store.entity(socket)?.kind != EntityKind::Socket {
            continue;
        }
        for (user, _) in store.touching(socket)? {
            let user = store.activity(ActivityKey::new(transaction.run(), user))?;
            // A source numbers its own activities above those of processes.
            if user.pid < UNNUMBERED {
                return Ok(Some(user));
            }
        }
    }
    let around = store.activity(transaction)?.parent;
    let around = around.map(|id| store.activity(ActivityKey::new(transaction.run(), id)));
    Ok(around.transpose()?.filter(|one| one.pid < UNNUMBERED))
}
