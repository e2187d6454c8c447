//! Joins runs by TCP connections: a client in one run, and its server in another.
//!
//! All connections to one address share two entities in a run. So a step leads from the entity of
//! one run to that of the other if both have a connection in common. It respects the time at which
//! the connection began at either end:
//!
//! ```text
//! server's run: request, until t     the client's run: request, until t by its clock, s ≤ t
//! client's run: reply, until t       the server's run: reply, until t by its clock, c ≤ t
//! ```
//!
//! Here the client began to connect at `c`, and the server had accepted the connection at `s`.

use std::collections::BTreeSet;
use std::rc::Rc;

use backstory_eventlog::event::Time;
use backstory_graph::model::{Certainty, Interval};
use backstory_store::{EntityKey, RunKey};

use super::{Direction, Key, Neighbour, NeighbourFinder};
use crate::Result;
use crate::answer::Flow;
use crate::connections::{CommonConnection, CommonConnections, ConnectionEnd, common};
use crate::peers::REPLY;

impl NeighbourFinder<'_> {
    /// Adds the steps to the runs at the other ends of an entity's connections.
    pub(super) fn to_other_ends(
        &self,
        key: EntityKey,
        time: Time,
        steps: &mut Vec<Neighbour>,
    ) -> Result<()> {
        let path = self.store.entity(key)?.path;
        let (name, is_reply) = match path.strip_suffix(REPLY) {
            Some(name) => (name, true),
            None => (&*path, false),
        };
        // Requests arrive at the server, and replies at the client.
        let is_server = (self.direction == Direction::Back) != is_reply;
        let own = self.session_clients.ends(key.run())?;
        let ends = own.values().flatten();
        let ends = ends.filter(|end| &*end.name == name && end.accepted == is_server);
        let names: BTreeSet<String> = ends.flat_map(|end| end.names_there()).collect();
        for there in names {
            let suffix: &[u8] = if is_reply { REPLY } else { b"" };
            for other in self.store.at_path(&[there.as_bytes(), suffix].concat())? {
                let is_wanted = other.run() != key.run() && self.is_in_scope(other);
                if is_wanted && self.carries(other)? {
                    let names = (name, there.as_bytes());
                    self.cross(key.run(), other, is_server, names, time, steps)?;
                }
            }
        }
        Ok(())
    }

    /// True if the entity's processes used it as those at the other end do.
    fn carries(&self, other: EntityKey) -> Result<bool> {
        let touching = self.store.touching(other)?;
        let generated = self.direction == Direction::Back;
        Ok(touching.iter().any(|(_, made)| *made == generated))
    }

    /// Adds the steps to an entity of another run, by the connections whose entities here and there
    /// have these names.
    fn cross(
        &self,
        run: RunKey,
        other: EntityKey,
        is_server: bool,
        (here, there): (&[u8], &[u8]),
        time: Time,
        steps: &mut Vec<Neighbour>,
    ) -> Result<()> {
        let common = match is_server {
            true => self.common(other.run(), run)?,
            false => self.common(run, other.run())?,
        };
        let passes = if is_server != (self.direction == Direction::Forth) {
            common.to_client
        } else {
            common.to_server
        };
        for one in &common.all {
            let (own, far) = ends_of(one, is_server);
            let is_named = &*own.name == here && &*far.name == there;
            if !is_named || !(self.possible || one.certainty == Certainty::Seen) {
                continue;
            }
            let there = match self.direction {
                Direction::Back if own.began > time => continue,
                Direction::Back => time.saturating_add(passes),
                Direction::Forth => far.began.max(time.saturating_sub(passes)),
            };
            steps.push(Neighbour {
                from: None,
                to: Key::Entity(other),
                flow: Flow::Same,
                certainty: one.certainty,
                interval: Interval {
                    start: time,
                    end: time,
                },
                time: there,
            });
        }
        Ok(())
    }

    /// The connections whose clients are in one run, and whose servers are in another.
    fn common(&self, client: RunKey, server: RunKey) -> Result<Rc<CommonConnections>> {
        let runs = (client, server);
        if let Some(known) = self.common_connections.borrow().get(&runs) {
            return Ok(known.clone());
        }
        let (clients, servers) = (
            self.session_clients.ends(client)?,
            self.session_clients.ends(server)?,
        );
        let headers = (self.header(client)?, self.header(server)?);
        let found = Rc::new(common((&*clients, &*headers.0), (&*servers, &*headers.1)));
        self.common_connections
            .borrow_mut()
            .insert(runs, found.clone());
        Ok(found)
    }
}

/// The end in this run, and that in the other one.
fn ends_of(one: &CommonConnection, is_server: bool) -> (&ConnectionEnd, &ConnectionEnd) {
    match is_server {
        true => (&one.server, &one.client),
        false => (&one.client, &one.server),
    }
}
