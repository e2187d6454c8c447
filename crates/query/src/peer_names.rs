//! The names of the addresses that a run's processes talked to.
//!
//! In: the processes, the names that they looked up, `/etc/hosts`. Out: the names that the address
//! of a contact had for the process.
//!
//! Invariant: if the process, or one that started it, looked up names with this address as the
//! answer, these are the names. Otherwise they are inferred: see [`NameSource`].

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backstory_eventlog::event::Via;
use backstory_graph::looked_up_name;
use backstory_graph::model::{Activity, ActivityId, Entity};
use backstory_store::same_version;

use crate::answer::{NameSource, PeerContact, PeerName};
use crate::now;

/// The file with the names of hosts.
pub(crate) const HOSTS: &[u8] = b"/etc/hosts";

/// Finds the names of addresses.
pub(crate) struct NameFinder {
    processes: HashMap<ActivityId, Activity>,
    looked_up: HashMap<ActivityId, Vec<(String, IpAddr)>>,
    /// The text of `/etc/hosts`, as the run read it.
    hosts: String,
}

impl NameFinder {
    pub(crate) fn new(processes: Vec<Activity>) -> NameFinder {
        NameFinder {
            processes: processes.into_iter().map(|one| (one.id, one)).collect(),
            looked_up: HashMap::new(),
            hosts: String::new(),
        }
    }

    /// Reads `/etc/hosts`, if it still is as the run read it.
    pub(crate) fn read_hosts(&mut self, entity: &Entity) {
        let path = Path::new(OsStr::from_bytes(HOSTS));
        let present = now::ident(path, true);
        let same = present.zip(entity.ident);
        if same.is_some_and(|(present, read)| same_version(&present, &read)) {
            self.hosts = std::fs::read_to_string(path).unwrap_or_default();
        }
    }

    /// Takes a record of the run, if it is about a name.
    pub(crate) fn take(&mut self, activity: ActivityId, kind: &[u8], payload: &[u8]) {
        let found = looked_up_name(kind, payload);
        if let Some((found, address)) = found.and_then(|found| Some((found, found.address?))) {
            let name = String::from_utf8_lossy(found.name).into_owned();
            self.looked_up
                .entry(activity)
                .or_default()
                .push((name, address));
        }
    }

    /// A process and those that started it, the nearest first. Bounded, in case they form a ring.
    fn line(&self, id: ActivityId) -> impl Iterator<Item = &Activity> {
        let next = |one: &&Activity| self.processes.get(&one.parent?);
        std::iter::successors(self.processes.get(&id), next).take(8)
    }

    /// The names that the address of a contact can have had.
    pub(crate) fn of(&self, contact: &PeerContact) -> Vec<PeerName> {
        let address = String::from_utf8_lossy(&contact.address);
        let rest = ["tcp:", "udp:", "ip:"]
            .iter()
            .find_map(|kind| address.strip_prefix(kind));
        let Some((host, port)) = rest.and_then(|rest| rest.rsplit_once(':')) else {
            return Vec::new();
        };
        let host = host.trim_matches(['[', ']']);
        let mut found = self.looked_up(contact, host);
        if found.is_empty() {
            found = self.inferred(contact, host, port);
        }
        found
            .into_iter()
            .map(|(source, name)| PeerName { name, source })
            .collect()
    }

    /// The names that the nearest process with such a look-up asked for.
    fn looked_up(&self, contact: &PeerContact, host: &str) -> BTreeSet<(NameSource, String)> {
        let Ok(host) = host.parse::<IpAddr>() else {
            return BTreeSet::new();
        };
        let found = self.line(contact.activity.id).map(|process| {
            let all = self.looked_up.get(&process.id).into_iter().flatten();
            let of_host = all.filter(|(name, address)| {
                address.to_canonical() == host.to_canonical() && name.parse::<IpAddr>().is_err()
            });
            of_host
                .map(|(name, _)| (NameSource::Lookup, name.clone()))
                .collect::<BTreeSet<_>>()
        });
        found
            .into_iter()
            .find(|names| !names.is_empty())
            .unwrap_or_default()
    }

    /// The names in `/etc/hosts` and in arguments. Of a program whose look-ups are known, the file
    /// says nothing: the program did not look this address up.
    fn inferred(
        &self,
        contact: &PeerContact,
        host: &str,
        port: &str,
    ) -> BTreeSet<(NameSource, String)> {
        let mut found = BTreeSet::new();
        if contact.activity.via == Via::Kernel {
            for line in self.hosts.lines() {
                let line = line.split('#').next().unwrap_or_default();
                let mut words = line.split_whitespace();
                if words.next() == Some(host) {
                    found.extend(words.map(|name| (NameSource::HostsFile, name.to_owned())));
                }
            }
        }
        for process in self.line(contact.activity.id) {
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
    }
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
