//! The acts of a view in the order of time, for formats that are lists of events.
//!
//! In: a view. Out: the begin and the end of each activity, and each of its links. An end is an act
//! only if the process ended: an activity that executes another program goes on as that program.

use std::collections::HashMap;

use backstory_eventlog::event::Time;
use backstory_graph::model::{EntityKind, Relation};
use backstory_query::answer::Flow;

use crate::View;
use crate::view::{Endpoint, ViewActivity, ViewEntity, ViewLink};

/// One act.
pub struct Act<'v> {
    /// When it began.
    pub time: Time,
    /// Its kind, with the parts of the view that it is about.
    pub kind: ActKind<'v>,
}

/// The kind of an act.
pub enum ActKind<'v> {
    /// The activity at this index begins.
    Begin(usize),
    /// The process of the activity at this index ends.
    End(usize),
    /// An activity uses or generates an entity: their indexes.
    Touch(usize, usize, Relation, &'v ViewLink),
    /// Information flows between two activities or two entities.
    Flow(&'v ViewLink),
}

/// All acts of a view. Of two acts at one time, the one that comes first in the list above does so
/// here.
pub fn acts(view: &View) -> Vec<Act<'_>> {
    let mut all = Vec::with_capacity(2 * view.activities.len() + view.links.len());
    for (at, activity) in view.activities.iter().enumerate() {
        all.push((0, activity.interval.start, ActKind::Begin(at)));
        if has_ended(activity) {
            all.push((2, activity.interval.end, ActKind::End(at)));
        }
    }
    for link in &view.links {
        all.push((1, link.interval.start, of_link(link)));
    }
    all.sort_by_key(|(rank, time, _)| (*time, *rank));
    let each = all.into_iter();
    each.map(|(_, time, kind)| Act { time, kind }).collect()
}

/// True if the end of the activity is the end of its process.
fn has_ended(activity: &ViewActivity) -> bool {
    activity.exit.is_some() || activity.signal.is_some()
}

fn of_link(link: &ViewLink) -> ActKind<'_> {
    match (link.flow, link.from, link.to) {
        (Flow::Used(relation), Endpoint::Entity(what), Endpoint::Activity(who))
        | (Flow::Generated(relation), Endpoint::Activity(who), Endpoint::Entity(what)) => {
            ActKind::Touch(who, what, relation, link)
        }
        _ => ActKind::Flow(link),
    }
}

/// The version of a file under its former name, by that under its new one: indexes of entities.
pub fn former_names(view: &View) -> HashMap<usize, usize> {
    let derived = view.links.iter().filter(|link| link.flow == Flow::Derived);
    let pairs = derived.filter_map(|link| match (link.from, link.to) {
        (Endpoint::Entity(from), Endpoint::Entity(to)) => Some((to, from)),
        _ => None,
    });
    pairs
        .filter(|(to, from)| view.entities[*to].path != view.entities[*from].path)
        .collect()
}

/// True if the activity executes its own program: a part of its begin.
pub fn is_own_program(who: &ViewActivity, what: &ViewEntity, relation: Relation) -> bool {
    relation == Relation::Execute && who.program.as_ref() == Some(&what.path)
}

/// The other end of a connection over a network.
#[derive(Debug, PartialEq, Eq)]
pub struct Peer<'e> {
    /// The numeric address.
    pub host: &'e str,
    /// The port.
    pub port: u16,
    /// The number of the protocol as in RFC 5237's registry: 6 is TCP, 17 is UDP.
    pub protocol: u8,
}

/// The address of a network socket: `tcp:127.0.0.1:80`, `udp:[::1]:53`. `None` for other things.
pub fn peer(entity: &ViewEntity) -> Option<Peer<'_>> {
    if entity.kind != EntityKind::Socket {
        return None;
    }
    let (transport, address) = std::str::from_utf8(&entity.path).ok()?.split_once(':')?;
    let protocol = match transport {
        "tcp" => 6,
        "udp" => 17,
        _ => return None,
    };
    let (host, port) = address.rsplit_once(':')?;
    Some(Peer {
        host: host.trim_start_matches('[').trim_end_matches(']'),
        port: port.parse().ok()?,
        protocol,
    })
}

/// The last part of a path.
pub fn base_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peer_of_a_network_socket_has_an_address_and_a_port() {
        let socket = |path: &str| ViewEntity {
            id: "r/f0".to_owned(),
            run: 0,
            kind: EntityKind::Socket,
            path: path.as_bytes().into(),
            version: 0,
            ident: None,
            last: false,
            tool: false,
            no_byte_of: Default::default(),
        };
        let found = |path: &str| {
            let entity = socket(path);
            peer(&entity).map(|peer| (peer.host.to_owned(), peer.port, peer.protocol))
        };
        assert_eq!(
            found("tcp:127.0.0.1:80"),
            Some(("127.0.0.1".to_owned(), 80, 6))
        );
        assert_eq!(found("udp:[::1]:53"), Some(("::1".to_owned(), 53, 17)));
        for other in ["unix:/run/x", "tcp:", "tcp:host", "socket:3"] {
            assert_eq!(found(other), None, "{other}");
        }
    }
}
