//! Answers of watched servers that their clients have read.
//!
//! A watch takes the times of statements from the server's log. A statement's line can be written,
//! or read, after the client got the answer. So the times of the watch may put the tables of a
//! transaction after the last answer that its client read. Causes precede effects all the same:
//!
//! - Backwards: the client's last read of the connection is before the time that matters. Then all
//!   that a transaction used went into the client, if the transaction can have begun before.
//! - Forwards: the client's last read of the connection is before the time that matters. Then the
//!   client had the answer by its last read, if the transaction can have begun before.
//!
//! Other times are compared as they are. A client that ended without reading its last answer counts
//! as one that read it.

use backstory_eventlog::event::Time;
use backstory_graph::model::{Edge, EntityKind, Interval};
use backstory_store::{ActivityKey, EntityKey};
use rustc_hash::FxHashSet;

use super::{Direction, NeighbourFinder};
use crate::Result;
use crate::peers::REPLY;

/// The answers that a search backwards has met.
#[derive(Debug, Default)]
pub(super) struct ReadAnswers {
    /// Connections of which a client read the last answer before the time that matters.
    connections: FxHashSet<EntityKey>,
    /// Transactions whose answers went through such a connection.
    transactions: FxHashSet<ActivityKey>,
}

impl NeighbourFinder<'_> {
    /// Notes that a client read from a connection in this interval, and did something at `time`.
    pub(super) fn note_client(&self, connection: EntityKey, read: Interval, time: Time) {
        if self.direction == Direction::Back && read.end <= time {
            self.answers.borrow_mut().connections.insert(connection);
        }
    }

    /// Notes the transaction that made an answer.
    pub(super) fn note_answer(&self, connection: EntityKey, transaction: ActivityKey) {
        let mut answers = self.answers.borrow_mut();
        if answers.connections.contains(&connection) {
            answers.transactions.insert(transaction);
        }
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
    pub(super) fn meet_answers(
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
        let mut earliest = there;
        for (user, generated) in self.store.touching(client)? {
            let user = ActivityKey::new(client.run(), user);
            if generated {
                continue;
            }
            let visited = self.visited.borrow().get(&user).copied();
            let index = self.index_of(user)?;
            let reads = index.stream.edges.iter();
            for read in reads.filter(|edge| edge.entity == client.local() && self.follows(edge)) {
                if let Some(time) = visited {
                    self.note_client(other, read.interval, time);
                }
                let had = self.had_answers(here, read.interval, (there, shift))?;
                earliest = earliest.min(had.unwrap_or(there));
            }
        }
        Ok(earliest)
    }

    /// The time by which a client had the answers of a connection, if that is before `time`. Its
    /// reads have this interval. `shift` leads from the clock of the server's run to theirs.
    pub(super) fn had_answers(
        &self,
        connection: EntityKey,
        read: Interval,
        (time, shift): (Time, i64),
    ) -> Result<Option<Time>> {
        if self.direction != Direction::Forth || read.end >= time {
            return Ok(None);
        }
        for transaction in self.store.generators(connection)? {
            let key = ActivityKey::new(connection.run(), transaction);
            if !self.visited.borrow().contains_key(&key) {
                continue;
            }
            let index = self.index_of(key)?;
            let mut answers = index.stream.edges.iter();
            let can_begin = |edge: &Edge| {
                let is_answer = edge.entity == connection.local() && !edge.relation.is_use();
                is_answer && edge.interval.start.saturating_add(shift) <= read.end
            };
            if answers.any(can_begin) {
                return Ok(Some(read.end));
            }
        }
        Ok(None)
    }
}
