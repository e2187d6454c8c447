//! Joins runs by names: the connections and things that a source of records named, and not a file.
//! Two recorded ends of a connection are the concern of `by_connection`.
//!
//! All connections to one address share a name. A recorded client has a connection in its run, and
//! a source that watched the server has it in another run. `client_sockets` joins the two by the
//! client's process. A source may not know the process. Its connection is then possibly that of
//! each client at this time.
//!
//! A thing, as a table, has the versions that a run saw it change to. The version from before a run
//! is the last one of the newest older run that changed it. A thing of a watched server may have
//! changed unseen between two watches, so it is then possibly this version.

use backstory_eventlog::event::{Time, UNNUMBERED};
use backstory_graph::model::{Activity, Certainty, EntityKind, Interval};
use backstory_store::{ActivityKey, EntityKey, Store};

use super::client_sockets::overlap;
use super::{Direction, Key, Neighbour, NeighbourFinder, Seen};
use crate::answer::Flow;
use crate::connections::MINUTE;
use crate::peers::{REPLY, is_address};
use crate::{Result, remote_runs};

impl NeighbourFinder<'_> {
    /// Adds the steps to other runs that lead by a name: of a connection, or of a source's own
    /// thing.
    pub(super) fn to_same_name(
        &self,
        key: EntityKey,
        seen: Seen,
        time: Time,
        steps: &mut Vec<Neighbour>,
    ) -> Result<()> {
        if self.run.is_some() {
            return Ok(());
        }
        let mut found = match (seen.kind, self.direction) {
            (EntityKind::Socket, _) => {
                let name = self.store.entity(key)?.path;
                if is_of_ssh(&name) {
                    return self.to_other_machine(key, time, steps);
                }
                // A socket without an address has the number that its run gave it.
                if !is_address(&name) {
                    return Ok(());
                }
                self.to_other_ends(key, time, steps)?;
                self.to_recorded_clients(key, time, steps)?;
                let is_known = self.on_behalf_of_users(key, steps)?;
                self.same_connection(key, is_known)?
            }
            (EntityKind::Resource, Direction::Back) if seen.version == 0 => {
                let former = former_version(self.store, key)?.into_iter();
                former
                    .map(|other| Ok((other, self.certainty_between(other, key)?)))
                    .collect::<Result<_>>()?
            }
            (EntityKind::Resource, Direction::Forth) => {
                let later = later_versions(self.store, key)?.into_iter();
                later
                    .map(|other| Ok((other, self.certainty_between(key, other)?)))
                    .collect::<Result<_>>()?
            }
            _ => return Ok(()),
        };
        found.retain(|(other, certainty)| {
            self.is_in_scope(*other) && (self.possible || *certainty == Certainty::Seen)
        });
        for (other, certainty) in found {
            let shift = self
                .header(key.run())?
                .to_clock_of(&*self.header(other.run())?);
            let there = time.saturating_add(shift);
            let there = match seen.kind {
                EntityKind::Socket => self.time_of_answers((key, other), (there, shift))?,
                _ => there,
            };
            steps.push(Neighbour {
                from: None,
                to: Key::Entity(other),
                flow: Flow::Same,
                certainty,
                interval: Interval {
                    start: time,
                    end: time,
                },
                time: there,
            });
        }
        Ok(())
    }

    /// Adds the steps to the run at the other end of a connection of ssh. Its name has the id of
    /// the run that it started, so no other connection has it. Data flows to the started run, and
    /// the other direction of the connection brings replies. The clocks of two machines differ by
    /// an unknown time, so no time restricts the step.
    fn to_other_machine(
        &self,
        key: EntityKey,
        time: Time,
        steps: &mut Vec<Neighbour>,
    ) -> Result<()> {
        let here = self.header(key.run())?;
        let path = self.store.entity(key)?.path;
        let started = here.ssh_connection.as_deref().unwrap_or_default();
        let is_reply = path.ends_with(REPLY);
        let is_started = path.strip_suffix(REPLY).unwrap_or(&path)
            == [remote_runs::SSH, started].concat().as_bytes();
        let receives = is_reply != is_started;
        if receives != (self.direction == Direction::Back) {
            return Ok(());
        }
        for other in self.store.at_path(&path)? {
            if other.run() == key.run() || !self.is_in_scope(other) {
                continue;
            }
            let there = self.header(other.run())?;
            let one_clock = !here.boot_id.is_empty() && here.boot_id == there.boot_id;
            steps.push(Neighbour {
                from: None,
                to: Key::Entity(other),
                flow: Flow::Same,
                certainty: Certainty::Seen,
                interval: Interval {
                    start: time,
                    end: time,
                },
                time: match one_clock {
                    true => time.saturating_add(here.to_clock_of(&there)),
                    false => self.direction.always(),
                },
            });
        }
        Ok(())
    }

    /// Whether a thing was the same at the end of one run and at the begin of a later one. A watch
    /// sees its server a while after its run began.
    fn certainty_between(&self, former: EntityKey, later: EntityKey) -> Result<Certainty> {
        let headers = (self.header(former.run())?, self.header(later.run())?);
        if headers.0.source.is_none() && headers.1.source.is_none() {
            return Ok(Certainty::Seen);
        }
        let record = self.store.run_by_key(former.run())?;
        let ended = record.map_or(Time::MIN, |record| record.end.ended);
        let ended = ended.saturating_add(headers.0.to_clock_of(&headers.1));
        Ok(match ended >= headers.1.started.saturating_add(MINUTE) {
            true => Certainty::Seen,
            false => Certainty::Possible,
        })
    }

    /// The same connection in other runs. If the clients are known, only those of which no client
    /// is known.
    fn same_connection(
        &self,
        key: EntityKey,
        is_known: bool,
    ) -> Result<Vec<(EntityKey, Certainty)>> {
        let store = self.store;
        let path = store.entity(key)?.path;
        let mut found = Vec::new();
        let mut own: Option<Vec<Activity>> = None;
        for other in store.at_path(&path)? {
            if other.run() == key.run() {
                continue;
            }
            let (here, there) = (self.header(key.run())?, self.header(other.run())?);
            let one_watched = here.source.is_some() != there.source.is_some();
            if !one_watched || here.boot_id.is_empty() || here.boot_id != there.boot_id {
                continue;
            }
            let is_watched = here.source.is_some();
            // The ports of its client are known in the run that recorded it.
            let recorded = self
                .session_clients
                .of(if is_watched { key } else { other })?;
            if let Some(one) = recorded.first() {
                let is_here = one.run == if is_watched { other.run() } else { key.run() };
                let is_shared = !is_watched && !is_known;
                found.extend((is_here && is_shared).then_some((other, one.certainty)));
                continue;
            }
            let own = match &own {
                Some(own) => own,
                None => own.insert(users(store, key)?),
            };
            let shift = there.to_clock_of(&here);
            let theirs = users(store, other)?;
            let watched = if is_watched { own } else { &theirs };
            let mut pairs = own
                .iter()
                .flat_map(|one| theirs.iter().map(move |two| (one, two)))
                .filter(|(one, two)| overlap(one.interval, two.interval, shift));
            // A number that no process has is that of a source's own activity.
            let certainty = match watched.iter().any(|one| one.pid < UNNUMBERED) {
                true if is_watched || is_known => None,
                true => pairs
                    .any(|(one, two)| one.pid == two.pid)
                    .then_some(Certainty::Seen),
                false => pairs.next().map(|_| Certainty::Possible),
            };
            found.extend(certainty.map(|certainty| (other, certainty)));
        }
        Ok(found)
    }
}

/// True for a connection that ssh made between two recorded machines.
fn is_of_ssh(name: &[u8]) -> bool {
    name.starts_with(remote_runs::SSH.as_bytes())
}

/// The activities that used an entity.
fn users(store: &dyn Store, key: EntityKey) -> Result<Vec<Activity>> {
    let touching = store.touching(key)?.into_iter();
    let found = touching.map(|(one, _)| store.activity(ActivityKey::new(key.run(), one)));
    Ok(found.collect::<backstory_store::Result<_>>()?)
}

/// The version of another run that a thing had before its run.
fn former_version(store: &dyn Store, key: EntityKey) -> Result<Option<EntityKey>> {
    let path = store.entity(key)?.path;
    let mut newest: Option<(EntityKey, u32)> = None;
    for other in store.at_path(&path)? {
        let newer = newest.is_none_or(|(known, _)| other.run() >= known.run());
        if other.run() >= key.run() || !newer {
            continue;
        }
        let entity = store.entity(other)?;
        let later = newest
            .is_none_or(|(known, version)| (other.run(), entity.version) > (known.run(), version));
        if entity.kind == EntityKind::Resource && entity.version > 0 && later {
            newest = Some((other, entity.version));
        }
    }
    Ok(newest.map(|(key, _)| key))
}

/// The versions that a thing had at the beginning of newer runs, if they are this version.
fn later_versions(store: &dyn Store, key: EntityKey) -> Result<Vec<EntityKey>> {
    let path = store.entity(key)?.path;
    let mut found = Vec::new();
    for other in store.at_path(&path)? {
        if other.run() > key.run()
            && store.entity(other)?.version == 0
            && former_version(store, other)? == Some(key)
        {
            found.push(other);
        }
    }
    Ok(found)
}
