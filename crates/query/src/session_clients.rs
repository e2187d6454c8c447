//! The recorded processes behind the sessions of a watched server.
//!
//! In: a connection in the run of a watched server. Out: the processes of other runs that had the
//! client's end. The log of the server has the client's address and port. The recorder of a client
//! has the addresses of both ends. So a client is known although it ended before the watch looked
//! for its process.
//!
//! Invariant: a process is certain only if no other process can have sent the statements. It was
//! alive when the session began, and had begun the connection less than a minute before. No other
//! process of its run can have got its socket. The kernel gives a port to another connection later,
//! so the newest connection before the session counts. Where the log has only bounds for the begin
//! of the session, each connection between them counts. The clocks of two machines differ by less
//! than a minute, else their runs have no connection in common.
//!
//! Absent: connections through sockets of files, which have no port.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use backstory_eventlog::event::{Time, UNNUMBERED};
use backstory_eventlog::run::RunHeader;
use backstory_graph::model::{Activity, ActivityId, Certainty, Informed};
use backstory_store::{ActivityKey, EntityKey, RunKey, Store};
use rustc_hash::FxHashMap;
use serde_json::Value;

use crate::Result;
use crate::connections::{
    AddressScope, ClosedByExec, ConnectionEnd, DRIFT, EndsByAddress, MINUTE, closed_by_exec,
    connection_ends,
};
use crate::peers::REPLY;

/// The end of the kind of a fact about a row.
pub(crate) const ROW: &[u8] = b".row";

/// A recorded process that had the client's end of a session's connection, or can have had it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RecordedClient {
    /// The run that recorded it.
    pub(crate) run: RunKey,
    /// The process.
    pub(crate) activity: Activity,
    pub(crate) certainty: Certainty,
}

/// The client's end of a session, as the log of the server has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionEnd {
    pub(crate) address: SocketAddr,
    /// The cookie of the network namespace of the watch. 0 if unknown.
    pub(crate) network: u64,
    /// The session existed at this time, and may have begun a while before.
    pub(crate) seen: Time,
}

/// The ends of the sessions of a run, by their transactions.
pub(crate) type SessionEnds = BTreeMap<ActivityId, SessionEnd>;

/// Runs that recorded commands, with the ends of their connections.
type RecordedRuns = BTreeMap<RunKey, Rc<EndsByAddress>>;

/// Finds recorded clients, and keeps what it has read.
pub(crate) struct SessionClients<'s> {
    store: &'s dyn Store,
    headers: RefCell<FxHashMap<RunKey, Rc<RunHeader>>>,
    ends: RefCell<FxHashMap<RunKey, Rc<EndsByAddress>>>,
    closed: RefCell<FxHashMap<RunKey, Rc<ClosedByExec>>>,
    sessions: RefCell<FxHashMap<RunKey, Rc<SessionEnds>>>,
    found: RefCell<FxHashMap<EntityKey, Rc<Vec<RecordedClient>>>>,
}

/// A connection that can be that of a session.
struct ClientEnd {
    /// When it began, by the clock of the server's run.
    began: Time,
    run: RunKey,
    end: ConnectionEnd,
    process: Activity,
    /// How far the clocks of the two runs can differ, in ns.
    slack: i64,
}

impl<'s> SessionClients<'s> {
    pub(crate) fn new(store: &'s dyn Store) -> SessionClients<'s> {
        SessionClients {
            store,
            headers: RefCell::default(),
            ends: RefCell::default(),
            closed: RefCell::default(),
            sessions: RefCell::default(),
            found: RefCell::default(),
        }
    }

    /// The header of a run.
    pub(crate) fn header(&self, run: RunKey) -> Result<Rc<RunHeader>> {
        if let Some(header) = self.headers.borrow().get(&run) {
            return Ok(header.clone());
        }
        let record = self.store.run_by_key(run)?;
        let header = Rc::new(record.map(|record| record.header).unwrap_or_default());
        self.headers.borrow_mut().insert(run, header.clone());
        Ok(header)
    }

    /// The ends of a run's connections.
    pub(crate) fn ends(&self, run: RunKey) -> Result<Rc<EndsByAddress>> {
        if let Some(known) = self.ends.borrow().get(&run) {
            return Ok(known.clone());
        }
        let mut found = EndsByAddress::default();
        for end in connection_ends(self.store, run)? {
            found.entry((end.own, end.other)).or_default().push(end);
        }
        let found = Rc::new(found);
        self.ends.borrow_mut().insert(run, found.clone());
        Ok(found)
    }

    /// The connections that processes of a run closed by executing programs.
    fn closed(&self, run: RunKey) -> Result<Rc<ClosedByExec>> {
        if let Some(known) = self.closed.borrow().get(&run) {
            return Ok(known.clone());
        }
        let found = Rc::new(closed_by_exec(self.store, run)?);
        self.closed.borrow_mut().insert(run, found.clone());
        Ok(found)
    }

    /// The recorded clients of a connection in the run of a watched server. Empty if none was
    /// recorded, or if the run is no such run.
    pub(crate) fn of(&self, socket: EntityKey) -> Result<Rc<Vec<RecordedClient>>> {
        if let Some(known) = self.found.borrow().get(&socket) {
            return Ok(known.clone());
        }
        let found = Rc::new(self.find(socket)?);
        self.found.borrow_mut().insert(socket, found.clone());
        Ok(found)
    }

    fn find(&self, socket: EntityKey) -> Result<Vec<RecordedClient>> {
        let here = self.header(socket.run())?;
        if here.source.is_none() || here.boot_id.is_empty() {
            return Ok(Vec::new());
        }
        let path = self.store.entity(socket)?.path;
        let Some(server) = address_in(&path) else {
            return Ok(Vec::new());
        };
        let mut runs = self.recorded_runs(&path, server, &here)?;
        runs.retain(|_, ends| ends.keys().any(|(_, other)| *other == server));
        let session = match runs.is_empty() {
            true => None,
            false => self.session(socket)?,
        };
        let Some((session, began)) = session else {
            return Ok(Vec::new());
        };
        let seen = session.seen.max(began);
        let mut candidates = Vec::new();
        for (run, ends) in runs {
            let there = self.header(run)?;
            let (shift, is_one_boot) = (there.to_clock_of(&here), there.boot_id == here.boot_id);
            let slack = if is_one_boot { DRIFT } else { MINUTE };
            let ends = ends.get(&(session.address, server)).into_iter().flatten();
            let is_possible = |end: &&ConnectionEnd| {
                !end.accepted && (!is_one_boot || is_one_network(end, &session))
            };
            for end in ends.filter(is_possible) {
                let process = self.store.activity(ActivityKey::new(run, end.activity))?;
                let lasted = process.interval.end.saturating_add(shift);
                let candidate = ClientEnd {
                    began: end.began.saturating_add(shift),
                    run,
                    end: end.clone(),
                    process,
                    slack,
                };
                let is_before = candidate.began <= seen.saturating_add(slack);
                if is_before && lasted.saturating_add(slack) >= began {
                    candidates.push(candidate);
                }
            }
        }
        let Some(newest) = candidates.iter().map(|one| one.began).max() else {
            return Ok(Vec::new());
        };
        // The log may have the time of the session's begin too early. So each connection since then
        // can be its own.
        let first = newest.min(began);
        candidates.retain(|one| one.began.saturating_add(one.slack) >= first);
        let is_near = began.saturating_sub(newest) <= MINUTE;
        // Several networks may use the address.
        let is_unique = AddressScope::of(server.ip()) != AddressScope::Private
            || candidates.iter().all(|one| one.slack == DRIFT);
        let mut found = self.with_sharers(candidates, is_near && is_unique)?;
        // The watch may have seen the socket in another process.
        let pids: BTreeSet<_> = found.iter().map(|one| one.activity.pid).collect();
        let watched = processes_with(self.store, socket)?;
        if watched.iter().any(|(one, _)| !pids.contains(&one.pid)) {
            for one in &mut found {
                one.certainty = Certainty::Possible;
            }
        }
        Ok(found)
    }

    /// The processes of the connections, and those that can have got their sockets. `is_sure`: the
    /// one connection is certainly that of the session.
    fn with_sharers(
        &self,
        candidates: Vec<ClientEnd>,
        is_sure: bool,
    ) -> Result<Vec<RecordedClient>> {
        let is_one = candidates.len() == 1;
        let mut found: Vec<RecordedClient> = Vec::new();
        for one in candidates {
            let sharers = self.sharers(&one)?;
            let certainty = match is_one && is_sure && sharers.is_empty() {
                true => Certainty::Seen,
                false => Certainty::Possible,
            };
            let all = std::iter::once((one.process, certainty));
            let sharers = sharers.into_iter().map(|one| (one, Certainty::Possible));
            found.extend(
                all.chain(sharers)
                    .map(|(activity, certainty)| RecordedClient {
                        run: one.run,
                        activity,
                        certainty,
                    }),
            );
        }
        Ok(found)
    }

    /// The other processes of the run that can have got the socket. The client's children and its
    /// next program inherit it. A process that used one of this name without a connection of its
    /// own got one from another process.
    fn sharers(&self, one: &ClientEnd) -> Result<Vec<Activity>> {
        let ends = self.ends(one.run)?;
        let closed = self.closed(one.run)?;
        let ends = ends.values().flatten();
        let own: BTreeSet<ActivityId> = ends
            .filter(|end| end.name == one.end.name)
            .map(|end| end.activity)
            .collect();
        let mut users = BTreeSet::new();
        for name in [one.end.name.to_vec(), [&one.end.name, REPLY].concat()] {
            let entities = self.store.at_path(&name)?.into_iter();
            for entity in entities.filter(|entity| entity.run() == one.run) {
                for (user, _) in self.store.touching(entity)? {
                    let left = closed.get(&(user, one.end.name.clone()));
                    if !self.is_unused_since(entity, user, left.copied())? {
                        users.insert(user);
                    }
                }
            }
        }
        users.retain(|user| !own.contains(user));
        let lifetime = (one.end.began, Time::MAX);
        self.add_heirs(one, one.process.id, lifetime, &closed, &mut users)?;
        users.remove(&one.process.id);
        let users = users.into_iter();
        let found = users.map(|user| self.store.activity(ActivityKey::new(one.run, user)));
        Ok(found.collect::<backstory_store::Result<_>>()?)
    }

    /// Adds the processes that can have inherited the socket from one that had it between two
    /// times. A child that did not use it had it until it executed a program that closed it.
    fn add_heirs(
        &self,
        client: &ClientEnd,
        from: ActivityId,
        (first, last): (Time, Time),
        closed: &ClosedByExec,
        heirs: &mut BTreeSet<ActivityId>,
    ) -> Result<()> {
        let stream = self.store.stream(ActivityKey::new(client.run, from))?;
        for inform in stream.informs {
            let inherits = matches!(inform.why, Informed::Fork | Informed::Exec);
            if !inherits || !(first..=last).contains(&inform.time) {
                continue;
            }
            match closed.get(&(inform.to, client.end.name.clone())) {
                Some(&left) => {
                    let lifetime = (inform.time, left);
                    self.add_heirs(client, inform.to, lifetime, closed, heirs)?;
                }
                None => drop(heirs.insert(inform.to)),
            }
        }
        Ok(())
    }

    /// True if a process closed what it had inherited of a thing, and has not used it since.
    fn is_unused_since(
        &self,
        thing: EntityKey,
        user: ActivityId,
        closed: Option<Time>,
    ) -> Result<bool> {
        let Some(closed) = closed else {
            return Ok(false);
        };
        let stream = self.store.stream(ActivityKey::new(thing.run(), user))?;
        let mut own = stream
            .edges
            .iter()
            .filter(|edge| edge.entity == thing.local());
        Ok(own.all(|edge| edge.certainty == Certainty::Possible && edge.interval.end <= closed))
    }

    /// The runs that recorded commands, and have a connection of this name. Those of other machines
    /// are left out if they cannot reach the server's address.
    fn recorded_runs(
        &self,
        path: &[u8],
        address: SocketAddr,
        server: &RunHeader,
    ) -> Result<RecordedRuns> {
        let is_reached = is_reached_from_elsewhere(address);
        let mut found = RecordedRuns::new();
        for entity in self.store.at_path(path)? {
            let there = self.header(entity.run())?;
            if there.source.is_none() && (is_reached || there.boot_id == server.boot_id) {
                found.insert(entity.run(), self.ends(entity.run())?);
            }
        }
        Ok(found)
    }

    /// The client's end of a connection, and when its session began.
    fn session(&self, socket: EntityKey) -> Result<Option<(SessionEnd, Time)>> {
        let sessions = self.sessions_of(socket.run())?;
        for (user, _) in self.store.touching(socket)? {
            let Some(end) = sessions.get(&user) else {
                continue;
            };
            let around = self
                .store
                .activity(ActivityKey::new(socket.run(), user))?
                .parent;
            let Some(around) = around else { continue };
            let session = self
                .store
                .activity(ActivityKey::new(socket.run(), around))?;
            return Ok(Some((*end, session.interval.start)));
        }
        Ok(None)
    }

    fn sessions_of(&self, run: RunKey) -> Result<Rc<SessionEnds>> {
        if let Some(known) = self.sessions.borrow().get(&run) {
            return Ok(known.clone());
        }
        let found = Rc::new(sessions_of(self.store, run)?);
        self.sessions.borrow_mut().insert(run, found.clone());
        Ok(found)
    }
}

/// The clients' ends of the sessions of a run that watched a server, by their transactions.
pub(crate) fn sessions_of(store: &dyn Store, run: RunKey) -> Result<SessionEnds> {
    let mut found = SessionEnds::new();
    for (activity, _, kind, payload) in store.extended(run)? {
        if kind.ends_with(ROW) {
            continue;
        }
        if let Ok(fact) = serde_json::from_slice::<Value>(&payload) {
            found.extend(session_end(&fact["client"]).map(|end| (activity, end)));
        }
    }
    Ok(found)
}

/// The client of the fact about a transaction.
fn session_end(client: &Value) -> Option<SessionEnd> {
    let host: IpAddr = client["address"].as_str()?.parse().ok()?;
    let port = u16::try_from(client["port"].as_u64()?).ok()?;
    Some(SessionEnd {
        address: SocketAddr::new(host.to_canonical(), port),
        network: client["network"].as_u64().unwrap_or_default(),
        seen: client["seen"].as_i64().unwrap_or(Time::MIN),
    })
}

/// The address in the name of a TCP connection, `tcp:127.0.0.1:80`.
pub(crate) fn address_in(name: &[u8]) -> Option<SocketAddr> {
    let name = name.strip_suffix(REPLY).unwrap_or(name);
    let text = std::str::from_utf8(name.strip_prefix(b"tcp:")?).ok()?;
    let address: SocketAddr = text.parse().ok()?;
    Some(SocketAddr::new(address.ip().to_canonical(), address.port()))
}

/// True if a server's address can be that of a connection from another machine.
pub(crate) fn is_reached_from_elsewhere(address: SocketAddr) -> bool {
    AddressScope::of(address.ip()) != AddressScope::Loopback
}

fn is_one_network(end: &ConnectionEnd, session: &SessionEnd) -> bool {
    let networks = [end.network, session.network];
    networks[0] == networks[1] || networks.contains(&0)
}

/// The processes that used a socket of a watched server, or can have used it.
pub(crate) fn processes_with(
    store: &dyn Store,
    socket: EntityKey,
) -> Result<Vec<(Activity, Certainty)>> {
    let mut found: BTreeMap<ActivityId, (Activity, Certainty)> = BTreeMap::new();
    for (user, _) in store.touching(socket)? {
        let key = ActivityKey::new(socket.run(), user);
        let activity = store.activity(key)?;
        // A source numbers its own activities above those of processes.
        if activity.pid >= UNNUMBERED || found.contains_key(&user) {
            continue;
        }
        let edges = store.stream(key)?.edges.into_iter();
        let own = edges.filter(|edge| EntityKey::new(socket.run(), edge.entity) == socket);
        let certainty = own.map(|edge| edge.certainty).max();
        found.insert(user, (activity, certainty.unwrap_or(Certainty::Possible)));
    }
    Ok(found.into_values().collect())
}
