//! Lineage from a client in one run to its server in another.

use std::path::Path;

use backstory_eventlog::run::RunHeader;
use backstory_graph::model::*;
use backstory_query::answer::{Lineage, Scope};
use backstory_query::{TouchSearch, Touches, ancestry, influence};
use backstory_store::Store;

use crate::graph::*;

const SECOND: i64 = 1_000_000_000;
/// The address of the server, and the end of the client.
const SERVER: &str = "203.0.113.1:80";
const CLIENT: &str = "198.51.100.7:40000";

/// The process of a run, with the moments at which it did everything.
struct Peer {
    accepted: bool,
    /// When its end of the connection began, when it read its input, when it sent, when it got, and
    /// when it wrote its output.
    moments: [i64; 5],
}

impl Peer {
    /// A run that has one end of the connection, and its own file before and after.
    fn graph(&self, name: &str, server: &str) -> Graph {
        let mut graph = Graph::default();
        let [began, read, sent, got, wrote] = self.moments;
        let process = graph.activity(None, 1, name, read - 1);
        let input = graph.file(&nowhere(&format!("{name}.in")), 0, None);
        let output = graph.file(&nowhere(&format!("{name}.out")), 1, None);
        // A server of all addresses has named its socket so.
        let own = if self.accepted {
            "tcp:0.0.0.0:80"
        } else {
            &format!("tcp:{server}")
        };
        let to = graph.entity(EntityKind::Socket, own, 0, None);
        let reply = graph.entity(EntityKind::Socket, &format!("{own} (reply)"), 0, None);
        graph.edge(process, input, Relation::Read, read, read);
        let (sends, gets) = if self.accepted {
            (reply, to)
        } else {
            (to, reply)
        };
        graph.edge(process, sends, Relation::Write, sent, sent);
        graph.edge(process, gets, Relation::Read, got, got);
        graph.edge(process, output, Relation::Write, wrote, wrote);
        let ends = match self.accepted {
            true => [server, CLIENT],
            false => [CLIENT, server],
        };
        let mut payload = vec![u8::from(self.accepted)];
        payload.extend(7u64.to_le_bytes());
        payload.extend([ends[0], "\0", ends[1], "\0", own].concat().bytes());
        graph.extended.push((process, began, "connection", payload));
        graph
    }
}

fn of_boot(id: &str, boot: &str, started: i64) -> RunHeader {
    RunHeader {
        boot_id: boot.into(),
        ..header(id, started)
    }
}

/// Appends the runs of a client and a server to a store.
fn append(
    store: &mut dyn Store,
    boots: [&str; 2],
    address: &str,
    client: [i64; 5],
    server: [i64; 5],
) {
    let peers = [("client", client, false), ("server", server, true)];
    for ((name, moments, accepted), boot) in peers.into_iter().zip(boots) {
        let graph = Peer { accepted, moments }.graph(name, address);
        graph.append_as(store, &of_boot(name, boot, moments[1] - 1));
    }
}

fn all() -> Scope {
    Scope {
        possible: true,
        ..Scope::default()
    }
}

/// The files of a lineage, without directories.
fn files(lineage: &Lineage) -> Vec<String> {
    let mut found = names(lineage);
    found.retain(|name| name.contains('.') && !name.starts_with("tcp:"));
    found
}

fn of(store: &dyn Store, name: &str, scope: &Scope) -> Vec<String> {
    files(&ancestry(store, Path::new(&nowhere(name)), scope).unwrap())
}

fn uses(store: &dyn Store, name: &str, scope: &Scope) -> Vec<String> {
    files(&influence(store, Path::new(&nowhere(name)), scope).unwrap())
}

const QUESTION: [i64; 5] = [SECOND, SECOND, 2 * SECOND, 8 * SECOND, 9 * SECOND];
const ANSWER: [i64; 5] = [SECOND, SECOND, 5 * SECOND, 3 * SECOND, 6 * SECOND];

#[test]
fn lineage_crosses_from_a_client_to_its_server_and_back() {
    every_store(|store| {
        append(store, ["here", "there"], SERVER, QUESTION, ANSWER);
        let back = ["client.in", "client.out", "server.in"];
        assert_eq!(of(store, "client.out", &all()), back);
        let back = ["client.in", "server.in", "server.out"];
        assert_eq!(of(store, "server.out", &all()), back);
        let forth = ["client.in", "client.out", "server.out"];
        assert_eq!(uses(store, "client.in", &all()), forth);
        let forth = ["client.out", "server.in", "server.out"];
        assert_eq!(uses(store, "server.in", &all()), forth);
    });
}

#[test]
fn a_connection_that_began_later_carries_nothing_before() {
    every_store(|store| {
        // The server wrote its output before it got the connection.
        let answer = [7 * SECOND, SECOND, 8 * SECOND, 8 * SECOND, 6 * SECOND];
        append(store, ["boot", "boot"], "127.0.0.1:80", QUESTION, answer);
        let back = ["server.in", "server.out"];
        assert_eq!(of(store, "server.out", &all()), back);
        assert_eq!(
            uses(store, "client.in", &all()),
            ["client.in", "client.out"]
        );
    });
}

#[test]
fn a_server_passes_nothing_on_that_it_reads_after_the_client_has_its_reply() {
    every_store(|store| {
        // The server reads its file after the client has got the last reply.
        let answer = [2 * SECOND, 20 * SECOND, 5 * SECOND, 3 * SECOND, 21 * SECOND];
        append(store, ["here", "there"], SERVER, QUESTION, answer);
        assert_eq!(of(store, "client.out", &all()), ["client.in", "client.out"]);
        assert_eq!(
            uses(store, "server.in", &all()),
            ["server.in", "server.out"]
        );
    });
}

#[test]
fn a_private_address_of_another_machine_leads_there_possibly() {
    every_store(|store| {
        append(store, ["here", "there"], "10.0.0.1:80", QUESTION, ANSWER);
        let back = ["client.in", "client.out", "server.in"];
        assert_eq!(of(store, "client.out", &all()), back);
        let seen = Scope::default();
        assert_eq!(of(store, "client.out", &seen), ["client.in", "client.out"]);
    });
}

#[test]
fn an_address_that_another_client_had_leads_nowhere() {
    every_store(|store| {
        append(store, ["here", "there"], SERVER, QUESTION, ANSWER);
        // The same server and the same port an hour later.
        let later = QUESTION.map(|moment| moment + 3600 * SECOND);
        let graph = Peer {
            accepted: false,
            moments: later,
        }
        .graph("later", SERVER);
        graph.append_as(store, &of_boot("later", "third", later[1] - 1));
        assert_eq!(of(store, "later.out", &all()), ["later.in", "later.out"]);
        assert_eq!(uses(store, "later.in", &all()), ["later.in", "later.out"]);
    });
}

#[test]
fn localhost_means_its_addresses_of_both_protocols() {
    for address in ["127.0.0.1:80", "[::1]:80"] {
        every_store(|store| {
            append(store, ["boot", "boot"], address, QUESTION, ANSWER);
            let touched = |host: &str| {
                let wanted = Touches::default();
                let mut search = TouchSearch::new(store, Path::new(host), &wanted).ok()?;
                Some(search.next_run().unwrap()?.len())
            };
            assert_eq!(touched("localhost"), Some(1), "{address}");
            assert_eq!(touched("localhost:80"), Some(1), "{address}");
            assert_eq!(touched("localhost:81"), None, "{address}");
        });
    }
}
