//! `peers`: the addresses that the processes of a run talked to, or tried to.
//!
//! A connection is two entities, one for each direction: see the fold's `channels`. A process that
//! writes to the first or reads from the second is the client. The record has no payload, so a
//! peer's name is known only from what surrounds the connection: see [`PeerName`].

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_eventlog::event::Bytes;
use backstory_graph::model::{
    Activity, ActivityId, Certainty, Entity, EntityKind, Interval, Relation,
};
use backstory_graph::refused_connection;
use backstory_store::{ActivityKey, EntityKey, RunKey, Store, same_version};

use crate::answer::{NameSource, PeerContact, PeerName};
use crate::runs::record;
use crate::{Result, now};

/// How the entity of the answers of an address is named, after the address.
pub(crate) const REPLY: &[u8] = b" (reply)";

/// True for the name of an address: `tcp:127.0.0.1:80`, `unix:/run/x`.
pub(crate) fn is_address(path: &[u8]) -> bool {
    [&b"tcp:"[..], b"unix:"]
        .iter()
        .any(|kind| path.starts_with(kind))
}

/// The contacts of a run's processes, in the order of their time.
pub fn peers(store: &dyn Store, run: &str) -> Result<Vec<PeerContact>> {
    let _one_state = store.reading()?;
    let run = record(store, run)?.key;
    let mut hosts = None;
    let mut found: BTreeMap<(Bytes, ActivityId), PeerContact> = BTreeMap::new();
    for entity in store.entities(run)? {
        if entity.kind == EntityKind::File && &*entity.path == b"/etc/hosts" {
            hosts = hosts_file(&entity);
        }
        if entity.kind != EntityKind::Socket || !is_address(&entity.path) {
            continue;
        }
        let is_reply = entity.path.ends_with(REPLY);
        let address: Bytes = entity
            .path
            .strip_suffix(REPLY)
            .unwrap_or(&entity.path)
            .into();
        for (activity, _) in store.touching(EntityKey::new(run, entity.id))? {
            let stream = store.stream(ActivityKey::new(run, activity))?;
            for edge in stream.edges.iter().filter(|edge| edge.entity == entity.id) {
                let contact = contact(&mut found, store, run, activity, &address, edge.interval)?;
                let reads = edge.relation == Relation::Read;
                // A connection that does not block, and fails, has both directions as possible.
                let seen = edge.certainty == Certainty::Seen;
                if seen {
                    contact.connected = Some(true);
                    contact.serves |= reads != is_reply;
                }
                contact.received |= reads && seen;
                contact.sent |= !reads && seen;
            }
        }
    }
    for (activity, time, kind, payload) in store.extended(run)? {
        let Some((address, errno)) = refused_connection(&kind, &payload) else {
            continue;
        };
        let interval = Interval {
            start: time,
            end: time,
        };
        let contact = contact(&mut found, store, run, activity, &address.into(), interval)?;
        if contact.connected.is_none() {
            contact.connected = Some(false);
        }
        contact.errno = Some(errno);
    }
    let mut contacts: Vec<PeerContact> = found.into_values().collect();
    contacts.sort_by_key(|contact| (contact.interval.start, contact.id));
    let processes = Ancestors::new(store.activities(run)?);
    for contact in &mut contacts {
        contact.names = names(contact, &processes, hosts.as_deref());
    }
    Ok(contacts)
}

fn contact<'f>(
    found: &'f mut BTreeMap<(Bytes, ActivityId), PeerContact>,
    store: &dyn Store,
    run: RunKey,
    activity: ActivityId,
    address: &Bytes,
    interval: Interval,
) -> Result<&'f mut PeerContact> {
    let key = (address.clone(), activity);
    if !found.contains_key(&key) {
        let of = ActivityKey::new(run, activity);
        let new = PeerContact {
            address: address.clone(),
            id: of.0,
            activity: store.activity(of)?,
            connected: None,
            errno: None,
            serves: false,
            sent: false,
            received: false,
            interval,
            names: Vec::new(),
        };
        found.insert(key.clone(), new);
    }
    let contact = found
        .get_mut(&key)
        .ok_or(backstory_store::Error::Damaged("contact"))?;
    contact.interval.start = contact.interval.start.min(interval.start);
    contact.interval.end = contact.interval.end.max(interval.end);
    Ok(contact)
}

/// The text of `/etc/hosts`, if it is as the run read it.
fn hosts_file(entity: &Entity) -> Option<String> {
    let path = Path::new(OsStr::from_bytes(&entity.path));
    let same = same_version(&now::ident(path, true)?, entity.ident.as_ref()?);
    same.then(|| std::fs::read_to_string(path).ok()).flatten()
}

/// Processes by their number in the run.
struct Ancestors {
    by_id: HashMap<ActivityId, Activity>,
}

impl Ancestors {
    fn new(all: Vec<Activity>) -> Ancestors {
        Ancestors {
            by_id: all.into_iter().map(|one| (one.id, one)).collect(),
        }
    }

    /// A process and those that started it, the nearest first. Bounded, in case they form a ring.
    fn of(&self, id: ActivityId) -> impl Iterator<Item = &Activity> {
        let next = |one: &&Activity| self.by_id.get(&one.parent?);
        std::iter::successors(self.by_id.get(&id), next).take(8)
    }
}

/// The names that the address can have had.
fn names(contact: &PeerContact, processes: &Ancestors, hosts: Option<&str>) -> Vec<PeerName> {
    let address = String::from_utf8_lossy(&contact.address).into_owned();
    let Some((host, port)) = address
        .strip_prefix("tcp:")
        .and_then(|rest| rest.rsplit_once(':'))
    else {
        return Vec::new();
    };
    let host = host.trim_matches(['[', ']']);
    let mut found = BTreeSet::new();
    for line in hosts.unwrap_or_default().lines() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        if words.next() == Some(host) {
            found.extend(words.map(|name| (NameSource::HostsFile, name.to_owned())));
        }
    }
    for process in processes.of(contact.activity.id) {
        let before = found.len();
        for word in process.argv.iter().skip(1) {
            let word = String::from_utf8_lossy(word);
            let named = urls(&word).filter(|(_, of)| *of == port);
            let named = named.filter(|(name, _)| *name != host);
            found.extend(named.map(|(name, _)| (NameSource::Arguments, name.to_owned())));
        }
        if found.len() > before {
            break;
        }
    }
    found
        .into_iter()
        .map(|(source, name)| PeerName { name, source })
        .collect()
}

/// The hosts and ports of the URLs in a text.
fn urls(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let usual = |scheme: &str| match scheme {
        "http" | "ws" => "80",
        "https" | "wss" => "443",
        "ssh" | "git+ssh" | "sftp" => "22",
        "git" => "9418",
        "ftp" => "21",
        "postgres" | "postgresql" => "5432",
        "mysql" => "3306",
        "redis" => "6379",
        _ => "",
    };
    text.match_indices("://").filter_map(move |(at, _)| {
        let scheme = text[..at]
            .rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '+')
            .next()?;
        let rest = &text[at + 3..];
        let end = rest
            .find(['/', '?', '#', ' ', '"', '\''])
            .unwrap_or(rest.len());
        let place = rest[..end].rsplit('@').next()?;
        match place.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some((host, port))
            }
            _ => Some((place, usual(scheme))),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_host_and_the_usual_port_of_its_scheme() {
        let all = |text| urls(text).collect::<Vec<_>>();
        assert_eq!(all("https://example.org/a"), [("example.org", "443")]);
        assert_eq!(all("--url=http://u:p@h.net:8080"), [("h.net", "8080")]);
        assert_eq!(all("git+ssh://h"), [("h", "22")]);
        assert!(all("no url").is_empty());
    }
}
