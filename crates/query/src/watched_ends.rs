//! The ends of connections that watched servers had.
//!
//! In: a run that watched a server. Out: for each session of a client through TCP, the server's end
//! of its connection. The server's log has the address and port of the client. A session has an
//! entity for its transactions whose client is certain, and another one for the others.

use std::collections::BTreeMap;

use backstory_eventlog::event::Bytes;
use backstory_graph::model::{Activity, Entity, EntityId, EntityKind};
use backstory_store::{ActivityKey, RunKey, Store};

use crate::Result;
use crate::connections::ConnectionEnd;
use crate::peers::REPLY;
use crate::session_clients::{address_in, sessions_of};

/// The server's end of a session's connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedEnd {
    /// The end. Its process is the session.
    pub end: ConnectionEnd,
    /// The entity of what the client sends.
    pub requests: EntityId,
    /// The entity of what the server sends.
    pub replies: Option<EntityId>,
}

/// The server's ends of the connections of a run's sessions. Empty if the run watched no server.
///
/// # Errors
///
/// If the store fails.
pub fn watched_ends(store: &dyn Store, run: RunKey) -> Result<Vec<WatchedEnd>> {
    let record = store.run_by_key(run)?;
    if record.is_none_or(|record| record.header.source.is_none()) {
        return Ok(Vec::new());
    }
    let sessions = sessions_of(store, run)?;
    if sessions.is_empty() {
        return Ok(Vec::new());
    }
    let (activities, entities) = (store.activities(run)?, store.entities(run)?);
    let mut found: BTreeMap<EntityId, WatchedEnd> = BTreeMap::new();
    for (activity, client) in sessions {
        let session = activities
            .get(activity.0 as usize)
            .and_then(|one| activities.get(one.parent?.0 as usize));
        let Some(session) = session else { continue };
        let edges = store.stream(ActivityKey::new(run, activity))?.edges;
        let mut used: Vec<EntityId> = edges.iter().map(|edge| edge.entity).collect();
        used.sort_unstable();
        used.dedup();
        let sockets = used.iter().filter_map(|id| entities.get(id.0 as usize));
        let sockets: Vec<&Entity> = sockets
            .filter(|one| one.kind == EntityKind::Socket)
            .collect();
        let requests = sockets.iter().filter(|one| !one.path.ends_with(REPLY));
        for socket in requests {
            let Some(own) = address_in(&socket.path) else {
                continue;
            };
            let reply = Bytes::from([&socket.path, REPLY].concat());
            let replies = sockets.iter().find(|one| one.path == reply);
            let one = found.entry(socket.id).or_insert_with(|| WatchedEnd {
                end: ConnectionEnd {
                    activity: session.id,
                    began: began(session, client.seen),
                    accepted: true,
                    network: client.network,
                    own,
                    other: client.address,
                    name: socket.path.clone(),
                },
                requests: socket.id,
                replies: None,
            });
            // A transaction may have no answer that was recorded.
            one.replies = one.replies.or(replies.map(|one| one.id));
        }
    }
    Ok(found.into_values().collect())
}

/// A time at which the session certainly existed.
fn began(session: &Activity, seen: i64) -> i64 {
    session.interval.start.max(seen)
}
