//! Joins the clients of watched servers: a process that its own run recorded, and the connections
//! that the server's run has of it.
//!
//! In its own run, a process has one thing for all connections to an address, and shares it with
//! the other processes of the run. The server's run has a thing for each connection, with the
//! process at its other end. So a step leads from a process, and not from the thing that it shares,
//! to the connections of this process. A search meets the shared thing after the process, and then
//! takes the steps on behalf of the process.
//!
//! If both runs are of one boot of the machine, a process id and a time identify a process. The
//! ports of a recorded process are known in its own run. They decide where the server's run lacks
//! the process, or is not certain of it, and between machines. The clocks of two machines can
//! differ by a minute, so a step between them widens the time that matters by as much.

use std::rc::Rc;

use backstory_eventlog::event::Via;
use backstory_eventlog::event::{Bytes, Pid, Time};
use backstory_eventlog::run::RunHeader;
use backstory_graph::model::{Activity, Edge, Interval, Relation};
use backstory_store::{ActivityKey, EntityKey};
use rustc_hash::FxHashMap;

use super::{Direction, Key, Neighbour, NeighbourFinder, step};
use crate::Result;
use crate::connections::{DRIFT, MINUTE};
use crate::peers::REPLY;
use crate::session_clients::{
    RecordedClient, address_in, is_reached_from_elsewhere, processes_with,
};

/// A connection that the run of a watched server has of a process.
#[derive(Debug)]
pub(super) struct ClientSocket {
    socket: EntityKey,
    pid: Pid,
    /// The time of the process as the server's run has it, by the clock of the process's own run.
    alive: Interval,
    /// Its uses of the connection, as the server's run has them. It knows whether the process used
    /// the connection, and the process's own run knows when.
    edges: Vec<Edge>,
    /// From the clock of the process's own run to that of the server's run, in ns.
    shift: i64,
}

/// The recorded processes that used connections, by the server's run and the connection's name.
pub(super) type UsersByConnection = FxHashMap<(String, Bytes), Rc<Vec<SocketUsers>>>;

/// The processes of a run that used a thing.
#[derive(Debug)]
pub(super) struct SocketUsers {
    socket: EntityKey,
    users: Vec<Activity>,
    /// From the clock of the server's run to that of this run, in ns.
    shift: i64,
    /// Both runs are of one boot of a machine.
    is_one_boot: bool,
}

impl NeighbourFinder<'_> {
    /// Adds the steps of a visited process to its connections through the shared things that are
    /// known.
    pub(super) fn to_own_connections(
        &self,
        key: ActivityKey,
        edges: &[Edge],
        time: Time,
        steps: &mut Vec<Neighbour>,
    ) -> Result<()> {
        if self.shared.borrow().is_empty() {
            return Ok(());
        }
        for edge in edges.iter().filter(|edge| self.is_outward(edge)) {
            let socket = EntityKey::new(key.run(), edge.entity);
            let known = self.shared.borrow().get(&socket).cloned();
            if let Some(connections) = known {
                self.add_connections((key, edge), time, &connections, steps)?;
            }
        }
        Ok(())
    }

    /// Adds the steps that lead from the visited users of a shared thing to their own connections.
    /// False if no server's run has such a connection, or nothing that was visited used the thing.
    pub(super) fn on_behalf_of_users(
        &self,
        socket: EntityKey,
        steps: &mut Vec<Neighbour>,
    ) -> Result<bool> {
        let connections = self.connections_of(socket)?;
        if connections.is_empty() {
            return Ok(false);
        }
        let mut any = false;
        for (user, _) in self.store.touching(socket)? {
            let user = ActivityKey::new(socket.run(), user);
            let visited = self.visited.borrow().get(&user).copied();
            let Some(time) = visited else { continue };
            any = true;
            let first = steps.len();
            let index = self.index_of(user)?;
            let edges = index.stream.edges.iter();
            let own = edges.filter(|edge| edge.entity == socket.local() && self.is_outward(edge));
            for edge in own {
                self.add_connections((user, edge), time, &connections, steps)?;
            }
            for step in &mut steps[first..] {
                step.from = Some(Key::Activity(user));
            }
        }
        Ok(any)
    }

    /// Adds the steps from a process to those of the connections that are its own. The edge is that
    /// to the thing that it shares.
    fn add_connections(
        &self,
        (key, shared): (ActivityKey, &Edge),
        time: Time,
        connections: &[ClientSocket],
        steps: &mut Vec<Neighbour>,
    ) -> Result<()> {
        let at_client = time;
        let Some(time) = self.meet(shared.interval, time) else {
            return Ok(());
        };
        let process = self.store.activity(key)?;
        let own =
            |one: &&ClientSocket| one.pid == process.pid && overlap(one.alive, process.interval, 0);
        for connection in connections.iter().filter(own) {
            let there = time.saturating_add(connection.shift);
            for edge in connection.edges.iter().filter(|edge| self.is_outward(edge)) {
                self.note_client(
                    connection.socket,
                    shared.interval,
                    (at_client, connection.shift),
                );
                let mut step = step(Key::Entity(connection.socket), edge, there);
                step.interval = shared.interval;
                steps.push(step);
            }
        }
        Ok(())
    }

    /// True for an edge that a search follows from an activity to an entity.
    fn is_outward(&self, edge: &Edge) -> bool {
        edge.relation.is_use() == (self.direction == Direction::Back) && self.follows(edge)
    }

    /// The connections that the runs of watched servers have of the users of a shared thing.
    fn connections_of(&self, socket: EntityKey) -> Result<Rc<Vec<ClientSocket>>> {
        if let Some(known) = self.shared.borrow().get(&socket) {
            return Ok(known.clone());
        }
        let here = self.header(socket.run())?;
        let mut found = Vec::new();
        if here.source.is_none() && !here.boot_id.is_empty() {
            let path = self.store.entity(socket)?.path;
            for other in self.store.at_path(&path)? {
                let there = self.header(other.run())?;
                if there.source.is_none() || !self.is_in_scope(other) {
                    continue;
                }
                let is_one_boot = there.boot_id == here.boot_id;
                let shift = self.shift_between(&here, &there);
                let recorded = self.session_clients.of(other)?;
                let is_recorded = |pid| recorded.iter().any(|one| one.activity.pid == pid);
                for one in recorded.iter().filter(|one| one.run == socket.run()) {
                    found.push(ClientSocket {
                        socket: other,
                        pid: one.activity.pid,
                        alive: one.activity.interval,
                        edges: vec![edge_of(one, other, &path)],
                        shift,
                    });
                }
                if !is_one_boot {
                    continue;
                }
                let watched = processes_with(self.store, other)?.into_iter();
                for (client, _) in watched.filter(|(client, _)| !is_recorded(client.pid)) {
                    found.push(ClientSocket {
                        socket: other,
                        pid: client.pid,
                        alive: shifted(client.interval, -shift),
                        edges: self.edges_to(other, &client)?,
                        shift,
                    });
                }
            }
        }
        let found = Rc::new(found);
        if !found.is_empty() {
            let mut shared = self.shared.borrow_mut();
            shared.insert(socket, found.clone());
        }
        Ok(found)
    }

    fn edges_to(&self, socket: EntityKey, user: &Activity) -> Result<Vec<Edge>> {
        let index = self.index_of(ActivityKey::new(socket.run(), user.id))?;
        let edges = index.stream.edges.iter();
        let own = edges.filter(|edge| edge.entity == socket.local());
        Ok(own.cloned().collect())
    }

    /// Adds the steps from a connection in the run of a watched server to the processes of other
    /// runs that had it.
    pub(super) fn to_recorded_clients(
        &self,
        socket: EntityKey,
        time: Time,
        steps: &mut Vec<Neighbour>,
    ) -> Result<()> {
        let here = self.header(socket.run())?;
        if here.source.is_none() || here.boot_id.is_empty() {
            return Ok(());
        }
        let recorded = self.session_clients.of(socket)?;
        let is_recorded = |pid| recorded.iter().any(|one| one.activity.pid == pid);
        let mut clients = processes_with(self.store, socket)?;
        clients.retain(|(client, _)| !is_recorded(client.pid));
        if clients.is_empty() && recorded.is_empty() {
            return Ok(());
        }
        let path = self.store.entity(socket)?.path;
        let users = self.recorded_users(&path, &here)?;
        for one in recorded.iter() {
            let edge = edge_of(one, socket, &path);
            let shared = users.iter();
            let shared = shared.filter(|shared| shared.socket.run() == one.run);
            for shared in shared.filter(|_| self.is_inward(&edge)) {
                let mut client = one.activity.clone();
                client.interval = shifted(client.interval, -shared.shift);
                self.add_recorded((&client, &edge), (socket, time), shared, steps)?;
            }
        }
        for (client, _) in clients {
            let edges = self.edges_to(socket, &client)?;
            for edge in edges.iter().filter(|edge| self.is_inward(edge)) {
                for shared in users.iter().filter(|shared| shared.is_one_boot) {
                    self.add_recorded((&client, edge), (socket, time), shared, steps)?;
                }
            }
        }
        Ok(())
    }

    /// Adds the steps to the users of a shared thing that are the client of a connection. The edge
    /// is that of the client, as the server's run has it.
    fn add_recorded(
        &self,
        (client, edge): (&Activity, &Edge),
        (socket, time): (EntityKey, Time),
        shared: &SocketUsers,
        steps: &mut Vec<Neighbour>,
    ) -> Result<()> {
        let run = shared.socket.run();
        let time = time.saturating_add(shared.shift);
        let is_same = |user: &&Activity| {
            user.pid == client.pid && overlap(user.interval, client.interval, shared.shift)
        };
        for user in shared.users.iter().filter(is_same) {
            let key = ActivityKey::new(run, user.id);
            for own in self.edges_to(shared.socket, user)? {
                if !self.is_inward(&own) {
                    continue;
                }
                let met = match self.meet(own.interval, time) {
                    None => self.time_of_last_answer(socket, own.interval, (time, shared.shift))?,
                    met => met,
                };
                if let Some(time) = met {
                    let mut step = step(Key::Activity(key), edge, time);
                    step.interval = own.interval;
                    steps.push(step);
                }
            }
        }
        Ok(())
    }

    /// True for an edge that a search follows from an entity to an activity.
    fn is_inward(&self, edge: &Edge) -> bool {
        edge.relation.is_use() == (self.direction == Direction::Forth) && self.follows(edge)
    }

    /// The ns to add to a time of one run for that of another one. No time of the other run that
    /// can matter is left out.
    fn shift_between(&self, one: &RunHeader, other: &RunHeader) -> i64 {
        match (one.boot_id == other.boot_id, self.direction) {
            (true, _) => one.to_clock_of(other),
            (false, Direction::Back) => MINUTE,
            (false, Direction::Forth) => -MINUTE,
        }
    }

    /// The processes that used things of this name, in runs that recorded commands.
    fn recorded_users(&self, path: &Bytes, server: &RunHeader) -> Result<Rc<Vec<SocketUsers>>> {
        let key = (server.id.clone(), path.clone());
        if let Some(known) = self.socket_users.borrow().get(&key) {
            return Ok(known.clone());
        }
        let is_reached = address_in(path).is_some_and(is_reached_from_elsewhere);
        let mut found = Vec::new();
        for socket in self.store.at_path(path)? {
            let there = self.header(socket.run())?;
            let is_one_boot = there.boot_id == server.boot_id;
            let is_recorded = there.source.is_none() && (is_reached || is_one_boot);
            if !is_recorded || !self.is_in_scope(socket) {
                continue;
            }
            let mut ids: Vec<_> = self
                .store
                .touching(socket)?
                .into_iter()
                .map(|(id, _)| id)
                .collect();
            ids.sort_unstable();
            ids.dedup();
            let users = ids.into_iter();
            let users = users.map(|id| self.store.activity(ActivityKey::new(socket.run(), id)));
            found.push(SocketUsers {
                socket,
                is_one_boot,
                shift: self.shift_between(server, &there),
                users: users.collect::<backstory_store::Result<_>>()?,
            });
        }
        let found = Rc::new(found);
        let mut all = self.socket_users.borrow_mut();
        all.insert(key, found.clone());
        Ok(found)
    }
}

/// The use of a connection by its client, as the server's run would have it.
fn edge_of(client: &RecordedClient, socket: EntityKey, name: &[u8]) -> Edge {
    Edge {
        activity: client.activity.id,
        entity: socket.local(),
        relation: match name.ends_with(REPLY) {
            true => Relation::Read,
            false => Relation::Write,
        },
        interval: client.activity.interval,
        certainty: client.certainty,
        via: Via::Library,
    }
}

fn shifted(interval: Interval, by: i64) -> Interval {
    Interval {
        start: interval.start.saturating_add(by),
        end: interval.end.saturating_add(by),
    }
}

/// True if two intervals overlap. `shift` leads from the clock of the second to that of the first.
pub(super) fn overlap(one: Interval, two: Interval, shift: i64) -> bool {
    let two = shifted(two, shift);
    one.start <= two.end.saturating_add(DRIFT) && two.start <= one.end.saturating_add(DRIFT)
}
