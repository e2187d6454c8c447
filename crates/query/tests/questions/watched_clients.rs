//! Lineage from a recorded client to the session of a server that another run watched.

use std::path::Path;

use backstory_eventlog::event::UNNUMBERED;
use backstory_eventlog::run::RunHeader;
use backstory_graph::model::*;
use backstory_query::answer::Scope;
use backstory_query::{Direction, ancestry, ancestry_of, influence, influence_of, watched_ends};
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

const SERVER: &str = "203.0.113.9:5432";
/// The name of a connection to the server. The clients at its ports are known.
const BY_PORT: &str = "tcp:203.0.113.9:5432";
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
/// after the client's last answer, at `read`. Its answer can have begun at `began`.
fn late_watch(connection: &str, began: i64, read: i64) -> Graph {
    let mut graph = watch(SERVER);
    let reply = format!("{connection} (reply)");
    let reply = graph.entity(EntityKind::Socket, &reply, 0, None);
    read_late(&mut graph, ActivityId(1), (TABLE, reply), (began, read));
    graph
}

/// The entity of the answers in a watch.
fn reply_of(watch: &Graph) -> EntityId {
    let mut entities = watch.entities.iter();
    let reply = entities.find(|entity| entity.path.ends_with(b" (reply)"));
    reply.unwrap().id
}

fn read_late(
    graph: &mut Graph,
    work: ActivityId,
    (table, reply): (&str, EntityId),
    (began, read): (i64, i64),
) {
    graph.edge(work, reply, Relation::Write, began, read + 1);
    let table = graph.entity(EntityKind::Resource, table, 1, None);
    graph.edge(work, table, Relation::Read, read, read);
}

/// Whether the lineage of the newest versions at these paths has a name.
fn leads_to(
    store: &dyn Store,
    paths: &[String],
    direction: Direction,
    scope: &Scope,
    name: &str,
) -> bool {
    let at = |path: &String| -> Vec<EntityKey> { store.at_path(path.as_bytes()).unwrap() };
    let roots: Vec<EntityKey> = paths.iter().flat_map(at).collect();
    let found = match direction {
        Direction::Back => ancestry_of(store, &roots, scope),
        Direction::Forth => influence_of(store, &roots, scope),
    };
    names(&found.unwrap()).iter().any(|one| one == name)
}

#[test]
fn an_answer_that_the_client_has_read_had_its_tables_although_the_log_was_read_later() {
    for (began, late) in [(SESSION, true), (ANSWERED + 1, false)] {
        every_store(|store| {
            reader(SERVER).append_as(store, &of_boot("client", "b", None));
            late_watch(BY_PORT, began, ANSWERED + SECOND)
                .append_as(store, &of_boot("watch", "b", Some("mariadb")));
            let scope = Scope::default();
            for (name, expected) in [("early", false), ("late", late)] {
                let of = leads_to(store, &[nowhere(name)], Direction::Back, &scope, "a");
                let uses = [TABLE.to_owned()];
                let uses = leads_to(store, &uses, Direction::Forth, &scope, name);
                assert_eq!([of, uses], [expected; 2], "{name} {began}");
            }
        });
    }
}

/// The client of a session and its child read from a connection. The client writes the file
/// `unread` before its last answer. The child has its last answer earlier, and then writes `read`.
fn two_readers(connection: &str) -> Graph {
    let mut graph = client(SERVER, SESSION - SECOND);
    let (parent, began) = (ActivityId(0), SESSION - 1);
    let child = graph.activity(Some(parent), 8, "child", began);
    graph.activities[child.0 as usize].interval.end = 2 * SESSION;
    let reply = format!("{connection} (reply)");
    let reply = graph.entity(EntityKind::Socket, &reply, 0, None);
    for (reader, last, name, written) in [
        (
            parent,
            ANSWERED + 3 * SECOND,
            "unread",
            ANSWERED + 2 * SECOND,
        ),
        (child, ANSWERED, "read", ANSWERED + 1),
    ] {
        graph.edge(reader, reply, Relation::Read, SESSION, last);
        let file = graph.file(&nowhere(name), 1, None);
        graph.edge(reader, file, Relation::Write, written, written);
    }
    graph
}

/// A watch as `late_watch`, with the two readers of the connection as far as it knows them. It saw
/// the client use it, and the child possibly used it.
fn watch_of_two(connection: &str, knows_readers: bool) -> Graph {
    let mut graph = late_watch(connection, SESSION, ANSWERED + 4 * SECOND);
    if knows_readers {
        let reply = reply_of(&graph);
        for pid in [7, 8] {
            let reader = graph.activity(None, pid, "psql", SESSION);
            graph.activities[reader.0 as usize].interval.end = 2 * SESSION;
            graph.edge(reader, reply, Relation::Read, SESSION, SESSION + SECOND);
        }
        graph.only_possible();
    }
    graph
}

#[test]
fn an_answer_of_two_readers_had_its_tables_in_whichever_order_the_search_meets_them() {
    let unix = "unix:/run/server";
    for (connection, knows_readers) in [(BY_PORT, false), (unix, false), (unix, true)] {
        every_store(|store| {
            two_readers(connection).append_as(store, &of_boot("client", "b", None));
            watch_of_two(connection, knows_readers)
                .append_as(store, &of_boot("watch", "b", Some("mariadb")));
            let scope = Scope {
                possible: true,
                ..Scope::default()
            };
            let case = format!("{connection} {knows_readers}");
            for (roots, expected) in [
                (vec!["unread"], false),
                (vec!["read"], true),
                (vec!["unread", "read"], true),
                (vec!["read", "unread"], true),
            ] {
                let paths: Vec<String> = roots.iter().map(|name| nowhere(name)).collect();
                let of = leads_to(store, &paths, Direction::Back, &scope, "a");
                assert_eq!(of, expected, "{case} {roots:?}");
            }
            let uses = leads_to(store, &[TABLE.to_owned()], Direction::Forth, &scope, "read");
            assert!(uses, "{case}");
        });
    }
}

#[test]
fn a_reader_that_is_only_possible_shows_no_certain_table() {
    let unix = "unix:/run/server";
    every_store(|store| {
        two_readers(unix).append_as(store, &of_boot("client", "b", None));
        watch_of_two(unix, true).append_as(store, &of_boot("watch", "b", Some("mariadb")));
        let paths = ["unread", "read"].map(nowhere);
        for possible in [false, true] {
            let scope = Scope {
                possible,
                ..Scope::default()
            };
            let of = leads_to(store, &paths, Direction::Back, &scope, "a");
            assert_eq!(of, possible);
            assert!(leads_to(
                store,
                &paths,
                Direction::Back,
                &scope,
                "transaction"
            ));
        }
    });
}

#[test]
fn a_later_transaction_of_the_connection_leads_to_the_client_that_had_its_answer() {
    // The answer of the first one began after the client's last read, and that of the second one
    // can have begun before.
    let second = "mariadb://db/bank/b";
    every_store(|store| {
        reader(SERVER).append_as(store, &of_boot("client", "b", None));
        let mut watch = late_watch(BY_PORT, ANSWERED + 1, ANSWERED + SECOND);
        let reply = reply_of(&watch);
        let session = Some(ActivityId(0));
        let work = watch.activity(session, UNNUMBERED + 3, "transaction", SESSION);
        let times = (SESSION, ANSWERED + 2 * SECOND);
        read_late(&mut watch, work, (second, reply), times);
        watch.append_as(store, &of_boot("watch", "b", Some("mariadb")));
        for (tables, expected) in [
            (vec![TABLE], false),
            (vec![second], true),
            (vec![TABLE, second], true),
            (vec![second, TABLE], true),
        ] {
            let paths: Vec<String> = tables.iter().map(|&table| table.to_owned()).collect();
            let uses = leads_to(store, &paths, Direction::Forth, &Scope::default(), "late");
            assert_eq!(uses, expected, "{tables:?}");
        }
    });
}

#[test]
fn a_session_without_a_port_is_possibly_that_of_a_client_with_a_connection_at_its_time() {
    every_store(|store| {
        reader(SERVER).append_as(store, &of_boot("client", "b", None));
        // The log tells neither the port nor whether the client used TCP.
        let mut watch = late_watch(BY_PORT, SESSION, SESSION);
        watch.extended.clear();
        let is_socket = |id: EntityId| watch.entities[id.0 as usize].kind == EntityKind::Socket;
        for edge in &mut watch.edges {
            if is_socket(edge.entity) {
                edge.certainty = Certainty::Possible;
            }
        }
        watch.append_as(store, &of_boot("watch", "b", Some("mariadb")));
        for possible in [false, true] {
            let scope = Scope {
                possible,
                ..Scope::default()
            };
            let of = leads_to(store, &[nowhere("late")], Direction::Back, &scope, "a");
            let uses = [TABLE.to_owned()];
            let uses = leads_to(store, &uses, Direction::Forth, &scope, "late");
            assert_eq!([of, uses], [possible; 2]);
        }
    });
}
