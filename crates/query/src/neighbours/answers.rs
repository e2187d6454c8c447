//! Answers of watched servers that their clients have read.
//!
//! A watch takes the times of statements from the server's log. A statement's line can be written,
//! or read, after the client got the answer. So the times of the watch may put the tables of a
//! transaction after the last answer that its client read. Causes precede effects all the same:
//!
//! - Backwards: the client's last read of the connection is before the time that matters. Then all
//!   that a transaction used went into the client, if its answer can have begun before that read
//!   ended.
//! - Forwards: the client's last read of the connection is before the time that matters. Then the
//!   client had the answer by its last read, if the answer can have begun before.
//!
//! Other times are compared as they are. A client that ended without reading its last answer counts
//! as one that read it.
//!
//! Invariant: the steps do not depend on the order of the search. A connection can have several
//! clients and many transactions, and a search may come to one of them after it has passed the
//! connection. The node whose steps this changes is then looked around again, see
//! [`NeighbourFinder::changed_nodes`].

use backstory_eventlog::event::Time;
use backstory_graph::model::{Edge, EntityKind, Interval};
use backstory_store::{ActivityKey, EntityKey};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Direction, Key, NeighbourFinder};
use crate::Result;
use crate::peers::REPLY;

/// The answers that a search has met.
#[derive(Debug, Default)]
pub(super) struct ReadAnswers {
    /// Backwards: connections of which a client read the last answer before the time that matters.
    /// With the end of its reads by the clock of the server's run, the latest of several clients.
    read_until: FxHashMap<EntityKey, Time>,
    /// Backwards: the activities that were met as the makers of answers, and when these can have
    /// begun.
    makers: FxHashMap<EntityKey, FxHashMap<ActivityKey, Time>>,
    /// Backwards: transactions whose answers were read.
    transactions: FxHashSet<ActivityKey>,
    /// Backwards: the connections in the runs of servers that stand for one of a client's run, and
    /// the ns from its clock to theirs.
    at_servers: FxHashMap<EntityKey, FxHashMap<EntityKey, i64>>,
    /// Forwards: when the first answer of a visited transaction can have begun.
    first_answers: FxHashMap<EntityKey, Option<Time>>,
    /// Forwards: the connections in `first_answers` to which an activity can have sent answers.
    sent_to: FxHashMap<ActivityKey, Vec<EntityKey>>,
    /// Visited nodes around which there are other steps by now.
    changed: Vec<Key>,
}

impl NeighbourFinder<'_> {
    /// Nodes that were passed to [`NeighbourFinder::around`] before, and around which there are
    /// more steps since. Each call has those since the former one.
    pub fn changed_nodes(&self) -> Vec<Key> {
        std::mem::take(&mut self.answers.borrow_mut().changed)
    }

    /// Notes that a client read from a connection in this interval, and did something at `time`.
    /// `shift` leads from its clock to that of the server's run.
    pub(super) fn note_client(
        &self,
        connection: EntityKey,
        read: Interval,
        (time, shift): (Time, i64),
    ) {
        if self.direction != Direction::Back || read.end > time {
            return;
        }
        let until = read.end.saturating_add(shift);
        let mut answers = self.answers.borrow_mut();
        let known = answers.read_until.get(&connection);
        if known.is_some_and(|known| *known >= until) {
            return;
        }
        answers.read_until.insert(connection, until);
        let makers = answers.makers.get(&connection).into_iter().flatten();
        let had = makers.filter(|(_, began)| **began <= until);
        let had: Vec<ActivityKey> = had.map(|(transaction, _)| *transaction).collect();
        for transaction in had {
            self.note_transaction(&mut answers, transaction);
        }
    }

    /// Notes an activity that made an answer, which can have begun at `began`.
    pub(super) fn note_maker(&self, connection: EntityKey, maker: ActivityKey, began: Time) {
        if self.direction != Direction::Back {
            return;
        }
        let mut answers = self.answers.borrow_mut();
        let makers = answers.makers.entry(connection).or_default();
        let first = makers.entry(maker).or_insert(began);
        *first = began.min(*first);
        let until = answers.read_until.get(&connection);
        if until.is_some_and(|until| began <= *until) {
            self.note_transaction(&mut answers, maker);
        }
    }

    /// Notes a transaction whose answer was read.
    fn note_transaction(&self, answers: &mut ReadAnswers, transaction: ActivityKey) {
        let is_new = answers.transactions.insert(transaction);
        if is_new && self.visited.borrow().contains_key(&transaction) {
            answers.changed.push(Key::Activity(transaction));
        }
    }

    /// Notes that an activity is visited, and what this tells of the answers of connections that
    /// the search has passed.
    pub(super) fn note_visit(&self, key: ActivityKey, edges: &[Edge], time: Time) {
        let mut visited = self.visited.borrow_mut();
        let best = visited.entry(key).or_insert(time);
        *best = match self.direction {
            Direction::Back => time.max(*best),
            Direction::Forth => time.min(*best),
        };
        drop(visited);
        match self.direction {
            Direction::Back => self.note_reads(key, edges, time),
            Direction::Forth => self.note_sent(key, edges),
        }
    }

    /// Notes the reads of a client from connections that the search has passed.
    fn note_reads(&self, key: ActivityKey, edges: &[Edge], time: Time) {
        if self.answers.borrow().at_servers.is_empty() {
            return;
        }
        let is_read = |edge: &&Edge| edge.relation.is_use() && self.follows(edge);
        for read in edges.iter().filter(is_read) {
            let socket = EntityKey::new(key.run(), read.entity);
            let at_servers = self.answers.borrow().at_servers.get(&socket).cloned();
            for (connection, shift) in at_servers.into_iter().flatten() {
                self.note_client(connection, read.interval, (time, shift));
            }
        }
    }

    /// Notes the answers of a transaction to connections that the search has passed.
    fn note_sent(&self, key: ActivityKey, edges: &[Edge]) {
        let connections = self.answers.borrow().sent_to.get(&key).cloned();
        for connection in connections.into_iter().flatten() {
            let Some(began) = self.first_begin(edges, connection) else {
                continue;
            };
            let mut answers = self.answers.borrow_mut();
            let first = answers.first_answers.entry(connection).or_default();
            if first.is_none_or(|first| began < first) {
                *first = Some(began);
                answers.changed.push(Key::Entity(connection));
            }
        }
    }

    /// When the first of an activity's answers to a connection can have begun.
    fn first_begin(&self, edges: &[Edge], connection: EntityKey) -> Option<Time> {
        let is_answer = |edge: &&Edge| {
            edge.entity == connection.local() && !edge.relation.is_use() && self.follows(edge)
        };
        let answers = edges.iter().filter(is_answer);
        answers.map(|edge| edge.interval.start).min()
    }

    /// The time that matters at what an activity used.
    pub(super) fn reach_of_use(&self, key: ActivityKey, edge: &Edge, time: Time) -> Result<Time> {
        let is_late = edge.relation.is_use() && edge.interval.end > time;
        if !is_late || !self.answers.borrow().transactions.contains(&key) {
            return Ok(time);
        }
        // Requests that the server received later are no cause.
        let used = self.store.entity(EntityKey::new(key.run(), edge.entity))?;
        Ok(match used.kind {
            EntityKind::Socket => time,
            _ => edge.interval.end,
        })
    }

    /// The time that matters at a connection of another run, by the answers that went through both.
    /// Backwards, the other run watched the server, and forwards this one. `there` is the time that
    /// matters by the clock of the other run, to which `shift` leads.
    pub(super) fn time_of_answers(
        &self,
        (here, other): (EntityKey, EntityKey),
        (there, shift): (Time, i64),
    ) -> Result<Time> {
        if !self.store.entity(here)?.path.ends_with(REPLY) {
            return Ok(there);
        }
        let client = match self.direction {
            Direction::Back => here,
            Direction::Forth => other,
        };
        if self.direction == Direction::Back {
            let mut answers = self.answers.borrow_mut();
            let at_servers = answers.at_servers.entry(here).or_default();
            at_servers.insert(other, shift);
        }
        let mut earliest = there;
        for (user, generated) in self.store.touching(client)? {
            let user = ActivityKey::new(client.run(), user);
            if generated {
                continue;
            }
            let visited = self.visited.borrow().get(&user).copied();
            let index = self.index_of(user)?;
            let is_read = |edge: &&Edge| {
                edge.entity == client.local() && edge.relation.is_use() && self.follows(edge)
            };
            for read in index.stream.edges.iter().filter(is_read) {
                if let Some(time) = visited {
                    self.note_client(other, read.interval, (time, shift));
                }
                let had = self.time_of_last_answer(here, read.interval, (there, shift))?;
                earliest = earliest.min(had.unwrap_or(there));
            }
        }
        Ok(earliest)
    }

    /// The time by which a client had the answers of a connection, if that is before `time`. Its
    /// reads have this interval. `shift` leads from the clock of the server's run to theirs.
    pub(super) fn time_of_last_answer(
        &self,
        connection: EntityKey,
        read: Interval,
        (time, shift): (Time, i64),
    ) -> Result<Option<Time>> {
        if self.direction != Direction::Forth || read.end >= time {
            return Ok(None);
        }
        let began = self.first_answer(connection)?;
        let had = began.is_some_and(|began| began.saturating_add(shift) <= read.end);
        Ok(had.then_some(read.end))
    }

    /// When the first answer of a visited transaction to a connection can have begun.
    fn first_answer(&self, connection: EntityKey) -> Result<Option<Time>> {
        if let Some(known) = self.answers.borrow().first_answers.get(&connection) {
            return Ok(*known);
        }
        let mut first: Option<Time> = None;
        for maker in self.store.generators(connection)? {
            let maker = ActivityKey::new(connection.run(), maker);
            if self.visited.borrow().contains_key(&maker) {
                let index = self.index_of(maker)?;
                let began = self.first_begin(&index.stream.edges, connection);
                first = [first, began].into_iter().flatten().min();
            }
            let mut answers = self.answers.borrow_mut();
            answers.sent_to.entry(maker).or_default().push(connection);
        }
        let mut answers = self.answers.borrow_mut();
        answers.first_answers.insert(connection, first);
        Ok(first)
    }
}
