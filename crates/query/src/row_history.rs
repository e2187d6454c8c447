//! The changes of a row of a watched database.
//!
//! In: the versions of the row. Out: each change with the facts that the source recorded about it,
//! about its transaction, and the client's process.
//!
//! A client that was recorded itself is that of its own run.
//!
//! A source records facts of two kinds, as JSON: `NAME.row` about a change of a row, and `NAME`
//! about a transaction or session.

use backstory_ordering::SmallSort;
use std::collections::{BTreeMap, BTreeSet};

use backstory_eventlog::event::{Bytes, Time, UNNUMBERED};
use backstory_graph::model::{Activity, ActivityId, Certainty, EntityKind};
use backstory_store::{ActivityKey, EntityKey, RunKey, RunRecord, Store};
use serde_json::Value;

use crate::Result;
use crate::session_clients::{ROW, SessionClients, processes_with};
use crate::watch_gaps::watched_the_same;

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
    /// The processes that are or can be the client, as the source knows them.
    pub clients: Vec<(Activity, Certainty)>,
    /// The times since the change before in which no run watched the database, each from begin to
    /// end.
    pub unwatched: Vec<(Time, Time)>,
}

impl RowEvent {
    /// The process that is certainly the client.
    pub fn client(&self) -> Option<&Activity> {
        let mut certain = self
            .clients
            .iter()
            .filter(|(_, how)| *how == Certainty::Seen);
        certain.next().map(|(client, _)| client)
    }
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
    let recorded = SessionClients::new(store);
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
        let mut known: BTreeMap<ActivityId, Vec<(Activity, Certainty)>> = BTreeMap::new();
        for (activity, time, change) in changes {
            let clients = match known.get(&activity) {
                Some(clients) => clients.clone(),
                None => {
                    let found = clients_of(store, ActivityKey::new(run, activity), &recorded)?;
                    known.insert(activity, found.clone());
                    found
                }
            };
            events.push(RowEvent {
                run: id.clone(),
                time,
                change,
                transaction: transactions.get(&activity).cloned().unwrap_or(Value::Null),
                clients,
                unwatched: Vec::new(),
            });
        }
    }
    events.sort_small_by_key(|event| event.time);
    let differ = |two: &[RowEvent]| two[0].run != two[1].run;
    if events.windows(2).any(differ) {
        let runs = store.runs()?;
        for at in 1..events.len() {
            if differ(&events[at - 1..=at]) {
                events[at].unwatched = unwatched(&runs, &events[at - 1].run, &events[at].run);
            }
        }
    }
    events.reverse();
    Ok(events)
}

/// The times between two runs of watched servers in which no run watched the database.
fn unwatched(runs: &[RunRecord], former: &str, later: &str) -> Vec<(Time, Time)> {
    let run = |id: &str| runs.iter().find(|run| run.header.id == id);
    let (Some(former), Some(later)) = (run(former), run(later)) else {
        return Vec::new();
    };
    let end = later.header.started;
    let is_same = |run: &&RunRecord| watched_the_same(&run.header, &former.header);
    let mut watched: Vec<(Time, Time)> = runs
        .iter()
        .filter(is_same)
        .map(|run| (run.header.started, run.end.ended))
        .filter(|(began, _)| *began < end)
        .collect();
    watched.sort_unstable();
    watched.push((end, end));
    let mut since = former.end.ended;
    let mut found = Vec::new();
    for (began, ended) in watched {
        if began > since {
            found.push((since, began));
        }
        since = since.max(ended);
    }
    found
}

fn is_about(fact: &Value, name: &Bytes) -> bool {
    let is = |field: &str| {
        fact[field]
            .as_str()
            .is_some_and(|row| row.as_bytes() == &**name)
    };
    is("row") || is("former")
}

/// The processes at the other end of a transaction's connection. A transaction whose session is
/// unknown has several connections, of which each is only possible. A database inside a program has
/// no connection: the program itself made the transaction.
pub(crate) fn clients_of(
    store: &dyn Store,
    transaction: ActivityKey,
    recorded: &SessionClients<'_>,
) -> Result<Vec<(Activity, Certainty)>> {
    let mut sockets: BTreeMap<EntityKey, Certainty> = BTreeMap::new();
    for edge in store.stream(transaction)?.edges {
        let socket = EntityKey::new(transaction.run(), edge.entity);
        let known = sockets.get(&socket).copied();
        if known.is_some() || store.entity(socket)?.kind == EntityKind::Socket {
            sockets.insert(
                socket,
                known.max(Some(edge.certainty)).unwrap_or(edge.certainty),
            );
        }
    }
    let mut found: BTreeMap<(RunKey, ActivityId), (Activity, Certainty)> = BTreeMap::new();
    for (socket, connected) in sockets {
        let recorded = recorded.of(socket)?;
        let is_recorded = |pid| recorded.iter().any(|one| one.activity.pid == pid);
        let own = recorded.iter();
        let own = own.map(|one| (one.run, one.activity.clone(), one.certainty));
        let watched = processes_with(store, socket)?.into_iter();
        let watched = watched.filter(|(activity, _)| !is_recorded(activity.pid));
        let watched = watched.map(|(activity, certainty)| (socket.run(), activity, certainty));
        for (run, activity, certainty) in own.chain(watched) {
            let (key, certainty) = ((run, activity.id), certainty.min(connected));
            let known = found.entry(key).or_insert((activity, certainty));
            known.1 = known.1.max(certainty);
        }
    }
    let run = store.run_by_key(transaction.run())?;
    // The activity around the transaction of a server is its session.
    if !found.is_empty() || run.is_some_and(|run| run.header.source.is_some()) {
        return Ok(found.into_values().collect());
    }
    let around = store.activity(transaction)?.parent;
    let around = around.map(|id| store.activity(ActivityKey::new(transaction.run(), id)));
    let around = around.transpose()?.filter(|one| one.pid < UNNUMBERED);
    Ok(around
        .map(|one| (one, Certainty::Seen))
        .into_iter()
        .collect())
}
