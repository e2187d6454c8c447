//! Lineage from a recorded client to the session of a server that another run watched.

use std::path::Path;

use backstory_eventlog::event::UNNUMBERED;
use backstory_eventlog::run::RunHeader;
use backstory_graph::model::*;
use backstory_query::answer::Scope;
use backstory_query::{ancestry, ancestry_of, influence, influence_of, watched_ends};
use backstory_store::{EntityKey, Store};

use crate::graph::*;

const SECOND: i64 = 1_000_000_000;
const MINUTE: i64 = 60 * SECOND;
/// When the session existed.
const SESSION: i64 = 10 * MINUTE;
const CLIENT: &str = "198.51.100.7:40000";

/// A run whose process reads a script and then sends it to the server.
fn client(server: &str, began: i64) -> Graph {
    let mut graph = Graph::default();
    let process = graph.activity(None, 7, "psql", 0);
    graph.activities[0].interval.end = 2 * SESSION;
    let script = graph.file(&nowhere("fill.sql"), 0, None);
    graph.edge(process, script, Relation::Read, began, began);
    let name = format!("tcp:{server}");
    let socket = graph.entity(EntityKind::Socket, &name, 0, None);
    graph.edge(process, socket, Relation::Write, began, began + SECOND);
    let mut payload = vec![0];
    payload.extend(9u64.to_le_bytes());
    payload.extend([CLIENT, "\0", server, "\0", &name].concat().bytes());
    graph.extended.push((process, began, "connection", payload));
    graph
}

/// A run that watched the server. A transaction of the session wrote a file.
fn watch(server: &str) -> Graph {
    let mut graph = Graph::default();
    let session = graph.activity(None, UNNUMBERED + 1, "session", SESSION);
    let work = graph.activity(Some(session), UNNUMBERED + 2, "transaction", SESSION);
    graph.activities[work.0 as usize].parent = Some(session);
    let socket = graph.entity(EntityKind::Socket, &format!("tcp:{server}"), 0, None);
    graph.edge(work, socket, Relation::Read, SESSION, SESSION + SECOND);
    let result = graph.file(&nowhere("result"), 1, None);
    let written = SESSION + SECOND;
    graph.edge(work, result, Relation::Write, written, written);
    let (host, port) = CLIENT.split_once(':').unwrap();
    let fact = format!(r#"{{"client":{{"address":"{host}","port":{port},"network":9}}}}"#);
    let fact = (work, SESSION, "postgres", fact.into_bytes());
    graph.extended.push(fact);
    graph
}

fn of_boot(id: &str, boot: &str, source: Option<&str>) -> RunHeader {
    RunHeader {
        boot_id: boot.into(),
        source: source.map(str::to_owned),
        ..header(id, 0)
    }
}

/// Whether the result leads to the script, and the script to the result: certainly, or at all.
fn joins(store: &mut dyn Store, server: &str, boot: &str, began: i64) -> [bool; 4] {
    client(server, began).append_as(store, &of_boot("client", boot, None));
    watch(server).append_as(store, &of_boot("watch", "b2", Some("postgres")));
    let mut found = Vec::new();
    for possible in [false, true] {
        let scope = Scope {
            possible,
            ..Scope::default()
        };
        let of = ancestry(store, Path::new(&nowhere("result")), &scope).unwrap();
        let uses = influence(store, Path::new(&nowhere("fill.sql")), &scope).unwrap();
        let has = |names: Vec<String>, name: &str| names.iter().any(|one| one.ends_with(name));
        found.push(has(names(&of), "fill.sql"));
        found.push(has(names(&uses), "result"));
    }
    found.try_into().unwrap()
}

const SEEN: [bool; 4] = [true; 4];
const POSSIBLE: [bool; 4] = [false, false, true, true];
const NO: [bool; 4] = [false; 4];

#[test]
fn a_client_of_another_machine_meets_the_watched_server_by_its_port() {
    let global = "203.0.113.9:5432";
    for (server, boot, began, expected) in [
        (global, "b1", SESSION, SEEN),
        // The clock of the client is ahead, and then too far ahead.
        (global, "b1", SESSION + MINUTE, SEEN),
        (global, "b1", SESSION + MINUTE + SECOND, NO),
        // Several networks may use a private address.
        ("10.0.0.9:5432", "b1", SESSION, POSSIBLE),
        ("127.0.0.1:5432", "b1", SESSION, NO),
        (global, "b2", SESSION, SEEN),
    ] {
        every_store(|store| {
            let found = joins(store, server, boot, began);
            assert_eq!(found, expected, "{server} {boot} {began}");
        });
    }
}

/// A process that reads one thing and writes another.
fn passes_on(pid: u32, from: (EntityKind, &str), to: (EntityKind, &str)) -> Graph {
    let mut graph = Graph::default();
    let process = graph.activity(None, pid, "program", 0);
    graph.activities[0].interval.end = 2 * SESSION;
    let ends = [(from, 0, Relation::Read), (to, 1, Relation::Write)];
    for ((kind, name), version, relation) in ends {
        let version = if kind == EntityKind::File { version } else { 0 };
        let thing = graph.entity(kind, name, version, None);
        graph.edge(process, thing, relation, SESSION, SESSION + SECOND);
    }
    graph
}

#[test]
fn a_socket_without_an_address_joins_no_runs() {
    use EntityKind::{File, Socket};
    let (script, result) = (nowhere("fill.sql"), nowhere("result"));
    // The run gave the socket its number, and another run gave the number to another socket.
    for (name, expected) in [("unix:/run/server", true), ("socket:3", false)] {
        every_store(|store| {
            let client = passes_on(7, (File, &script), (Socket, name));
            client.append_as(store, &of_boot("client", "b2", None));
            let server = passes_on(UNNUMBERED + 1, (Socket, name), (File, &result));
            server.append_as(store, &of_boot("watch", "b2", Some("postgres")));
            let scope = Scope {
                possible: true,
                ..Scope::default()
            };
            let of = ancestry(store, Path::new(&result), &scope).unwrap();
            let uses = influence(store, Path::new(&script), &scope).unwrap();
            let has = |names: Vec<String>, name: &str| names.iter().any(|one| one.ends_with(name));
            assert_eq!(has(names(&of), "fill.sql"), expected, "{name}");
            assert_eq!(has(names(&uses), "result"), expected, "{name}");
        });
    }
}

#[test]
fn the_session_of_a_watched_server_has_an_end_of_the_connection() {
    every_store(|store| {
        watch("203.0.113.9:5432").append_as(store, &of_boot("watch", "b2", Some("postgres")));
        let run = store.run("watch").unwrap().unwrap().key;
        let ends = watched_ends(store, run).unwrap();
        let [one] = &ends[..] else {
            panic!("{ends:?}");
        };
        assert_eq!(one.end.activity, ActivityId(0));
        assert_eq!(one.end.own.to_string(), "203.0.113.9:5432");
        assert_eq!(one.end.other.to_string(), CLIENT);
        assert_eq!((one.end.began, one.end.network), (SESSION, 9));
    });
}

const TABLE: &str = "mariadb://db/bank/a";
/// When the client read the last answer.
const ANSWERED: i64 = SESSION + SECOND;

/// The recorded client of a session. It writes a file before its last answer, and one after it.
fn reader(server: &str) -> Graph {
    let mut graph = client(server, SESSION - SECOND);
    let reply = format!("tcp:{server} (reply)");
    let reply = graph.entity(EntityKind::Socket, &reply, 0, None);
    graph.edge(ActivityId(0), reply, Relation::Read, SESSION, ANSWERED);
    for (name, time) in [("early", SESSION), ("late", ANSWERED + 1)] {
        let file = graph.file(&nowhere(name), 1, None);
        graph.edge(ActivityId(0), file, Relation::Write, time, time);
    }
    graph
}

/// A watch of the session. By the time at which the log was read, a transaction read its table
/// after the client's last answer. It can have begun at `began`.
fn late_watch(server: &str, began: i64) -> Graph {
    let mut graph = watch(server);
    let work = ActivityId(1);
    let reply = format!("tcp:{server} (reply)");
    let reply = graph.entity(EntityKind::Socket, &reply, 0, None);
    let read = ANSWERED + SECOND;
    graph.edge(work, reply, Relation::Write, began, read + 1);
    let table = graph.entity(EntityKind::Resource, TABLE, 1, None);
    graph.edge(work, table, Relation::Read, read, read);
    graph
}

#[test]
fn an_answer_that_the_client_has_read_had_its_tables_although_the_log_was_read_later() {
    let server = "203.0.113.9:5432";
    for (began, late) in [(SESSION, true), (ANSWERED + 1, false)] {
        every_store(|store| {
            reader(server).append_as(store, &of_boot("client", "b", None));
            late_watch(server, began).append_as(store, &of_boot("watch", "b", Some("mariadb")));
            let at = |path: &str| -> Vec<EntityKey> { store.at_path(path.as_bytes()).unwrap() };
            let scope = Scope::default();
            let has = |name: &str| {
                let of = ancestry_of(store, &at(&nowhere(name)), &scope).unwrap();
                names(&of).contains(&"a".to_owned())
            };
            assert_eq!([has("early"), has("late")], [false, late], "{began}");
            let uses = influence_of(store, &at(TABLE), &scope).unwrap();
            let reaches = |name: &str| names(&uses).contains(&name.to_owned());
            assert_eq!(
                [reaches("early"), reaches("late")],
                [false, late],
                "{began}"
            );
        });
    }
}
