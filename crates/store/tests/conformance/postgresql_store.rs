//! A store that a group shares: users, a lost connection, fifty writers, few statements.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use backstory_files::Ident;
use backstory_graph::model::{Activity, ActivityId, Relation, Sink};
use backstory_store::facts::{Availability, Fact, JournalPosition, JournalRecord};
use backstory_store::{
    Body, ConnectionFile, EngineOptions, Error, Home, Label, RunKey, Store, StoreEngine,
    VersionMatch, open_engine,
};

use crate::engines;
use crate::graph::*;
use crate::postgresql_server::{connection, is_installed, new_schema, port, superuser};

/// Opens the store of a directory on a connection.
fn open(dir: &Path, connection: &str) -> Result<Box<dyn Store>, Error> {
    let home = Home::open(dir)?;
    let path = dir.join("graph.postgresql");
    if !path.exists() {
        ConnectionFile::new(connection)?.write(&path)?;
    }
    open_engine(&home, StoreEngine::Postgresql, &EngineOptions::default())
}

/// A directory with a store of its own on a connection.
fn member(connection: &str) -> (tempfile::TempDir, Box<dyn Store>) {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), connection).unwrap();
    (dir, store)
}

fn append(store: &mut dyn Store, id: &str) -> Result<(), Error> {
    let out = format!("/out/{id}");
    let body: &mut Body<'_> =
        &mut |sink| copy_body(sink, 1, ("/in", ident(1, 1)), (&out, ident(2, 2)));
    store.append(&header(id, 1), &end(), 0, body).map(drop)
}

fn ids(store: &dyn Store) -> Vec<String> {
    let mut ids: Vec<String> = store.run_ids().unwrap().into_iter().collect();
    ids.sort();
    ids
}

/// Makes a role that may read and write the tables of a schema.
fn role(name: &str, schema: &str, rights: &str) {
    let make = format!(
        "DO $$ BEGIN CREATE ROLE {name} LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$; \
         GRANT {rights} ON ALL TABLES IN SCHEMA {schema} TO {name}"
    );
    superuser().batch_execute(&make).unwrap();
}

const WRITES: &str = "SELECT, INSERT, UPDATE, DELETE";

#[test]
fn members_see_all_runs_and_change_only_their_own() {
    if !is_installed() {
        return;
    }
    let schema = new_schema();
    let at = |user: &str| connection(user, port().unwrap(), &schema);
    let (_owner_dir, owner) = member(&at("ann"));
    role("member_bob", &schema, WRITES);
    role("member_cid", &schema, WRITES);
    let (_bob_dir, mut bob) = member(&at("member_bob"));
    let (_cid_dir, mut cid) = member(&at("member_cid"));
    append(&mut *bob, "of-bob").unwrap();
    append(&mut *cid, "of-cid").unwrap();
    for store in [&owner, &bob, &cid] {
        assert_eq!(ids(&**store), ["of-bob", "of-cid"]);
        assert_eq!(store.at_path(b"/in").unwrap().len(), 2);
    }
    for refused in [
        bob.remove("of-cid").map(drop),
        bob.set_label("of-cid", Label::Name, Some("taken")),
    ] {
        let error = refused.unwrap_err();
        assert!(matches!(error, Error::NotPermitted { .. }), "{error}");
        assert!(error.to_string().contains("/bank"), "{error}");
    }
    assert_eq!(cid.run("of-cid").unwrap().unwrap().name, None);
    assert_eq!(
        cid.entities(cid.run("of-cid").unwrap().unwrap().key)
            .unwrap()
            .len(),
        2
    );
    for (store, run) in [(&bob, "of-bob"), (&cid, "of-cid")] {
        let own = store.own_runs().unwrap().unwrap();
        let run = store.run(run).unwrap().unwrap().key;
        assert_eq!(own.into_iter().collect::<Vec<_>>(), [run]);
    }
    assert!(owner.own_runs().unwrap().unwrap().is_empty());
    bob.set_label("of-bob", Label::Name, Some("mine")).unwrap();
    bob.forget_unreferred().unwrap();
    assert_eq!(cid.runs_named("mine").unwrap().len(), 1);
    assert!(bob.remove("of-bob").unwrap());
    assert_eq!(ids(&*cid), ["of-cid"]);
}

#[test]
fn a_role_that_may_only_read_asks_and_cannot_append() {
    if !is_installed() {
        return;
    }
    let schema = new_schema();
    let at = |user: &str| connection(user, port().unwrap(), &schema);
    let (_dir, mut owner) = member(&at("ann"));
    append(&mut *owner, "first").unwrap();
    role("member_reader", &schema, "SELECT");
    let (_reader_dir, mut reader) = member(&at("member_reader"));
    assert_eq!(ids(&*reader), ["first"]);
    let error = append(&mut *reader, "second").unwrap_err();
    assert!(matches!(error, Error::NotPermitted { .. }), "{error}");
    assert_eq!(ids(&*owner), ["first"]);
}

#[test]
fn facts_are_of_the_directory_that_learned_them() {
    if !is_installed() {
        return;
    }
    let at = connection("ann", port().unwrap(), &new_schema());
    let ((_a_dir, mut a), (_b_dir, mut b)) = (member(&at), member(&at));
    let fact = |inode| Fact {
        ident: ident(1, inode),
        digest: None,
        availability: Availability::Stored,
    };
    let read = |offset| JournalPosition {
        offset,
        ..JournalPosition::default()
    };
    a.learn(&[JournalRecord::Fact(fact(5))], read(10), false)
        .unwrap();
    b.learn(&[JournalRecord::Fact(fact(6))], read(20), true)
        .unwrap();
    for (store, mtime, offset) in [(&a, 5, 10), (&b, 6, 20)] {
        let facts = store.facts().unwrap();
        let known: Vec<i64> = facts.iter().map(|fact| fact.ident.mtime).collect();
        assert_eq!(
            (known, store.learned().unwrap()),
            (vec![mtime], read(offset))
        );
        assert!(store.fact(&ident(1, mtime)).unwrap().is_some());
        assert!(store.fact(&ident(1, 11 - mtime)).unwrap().is_none());
    }
}

#[test]
fn fifty_writers_append_at_once_and_nothing_is_lost() {
    if !is_installed() {
        return;
    }
    let at = connection("ann", port().unwrap(), &new_schema());
    let (_dir, store) = member(&at);
    std::thread::scope(|scope| {
        for writer in 0..50 {
            let at = &at;
            scope.spawn(move || {
                let (_dir, mut store) = member(at);
                for number in 0..2 {
                    append(&mut *store, &format!("run-{writer}-{number}")).unwrap();
                }
            });
        }
    });
    assert_eq!(store.runs().unwrap().len(), 100);
    assert_eq!(store.at_path(b"/in").unwrap().len(), 100);
    for run in store.runs().unwrap() {
        assert_eq!(store.entities(run.key).unwrap().len(), 2);
        let out = format!("/out/{}", run.header.id);
        assert_eq!(store.at_path(out.as_bytes()).unwrap().len(), 1);
    }
}

#[test]
fn an_append_whose_connection_was_closed_by_the_server_can_be_repeated() {
    if !is_installed() {
        return;
    }
    let schema = new_schema();
    let (_dir, mut store) = member(&connection("ann", port().unwrap(), &schema));
    let close = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_class ON oid = objid \
         WHERE locktype = 'advisory' AND relnamespace = '{schema}'::regnamespace"
    );
    let failed = store.append(&header("cut", 1), &end(), 0, &mut |sink| {
        copy_body(sink, 1, ("/in", ident(1, 1)), ("/out", ident(2, 2)))?;
        // The first full block begins the transaction.
        sink.extended(ActivityId(0), 1, b"kind", &[7; 1 << 16])?;
        assert_eq!(superuser().query(&close, &[]).unwrap().len(), 1);
        Ok(())
    });
    let error = failed.unwrap_err();
    assert!(matches!(error, Error::ConnectionLost { .. }), "{error}");
    assert!(ids(&*store).is_empty());
    append(&mut *store, "cut").unwrap();
    assert_eq!(ids(&*store), ["cut"]);
    assert_eq!(store.at_path(b"/in").unwrap().len(), 1);
}

/// Passes connections on to the server. Cuts the first after this many bytes from the client.
fn cutter(bytes: usize) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    let server = port().unwrap();
    std::thread::spawn(move || {
        let left = Arc::new(AtomicUsize::new(bytes));
        for (number, client) in listener.incoming().flatten().enumerate() {
            let limit = (number == 0).then(|| left.clone());
            let up = TcpStream::connect(("127.0.0.1", server)).unwrap();
            let (answers, asker) = (up.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || pass(client, up, limit));
            std::thread::spawn(move || pass(answers, asker, None));
        }
    });
    own
}

fn pass(mut from: TcpStream, mut to: TcpStream, limit: Option<Arc<AtomicUsize>>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let allowed = match &limit {
            Some(left) => {
                let before = left.load(Ordering::Relaxed);
                left.store(before.saturating_sub(count), Ordering::Relaxed);
                count.min(before)
            }
            None => count,
        };
        if to.write_all(&buffer[..allowed]).is_err() || allowed < count {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

#[test]
fn a_connection_that_is_cut_after_any_byte_leaves_the_whole_run_or_nothing() {
    if !is_installed() {
        return;
    }
    let schema = new_schema();
    let (_dir, whole) = member(&connection("ann", port().unwrap(), &schema));
    let (mut refused, mut done) = (0, 0);
    for step in 0.. {
        let id = format!("run-{step:03}");
        let dir = tempfile::tempdir().unwrap();
        let through = connection("ann", cutter(700 + 131 * step), &schema);
        let store = open(dir.path(), &through);
        let Ok(mut store) = store else { continue };
        match append(&mut *store, &id) {
            Ok(()) => done += 1,
            Err(error) => {
                assert!(matches!(error, Error::ConnectionLost { .. }), "{error}");
                refused += 1;
                assert!(!ids(&*whole).contains(&id), "{id} is there after an error");
                append(&mut *store, &id).unwrap();
            }
        }
        let run = whole.run(&id).unwrap().unwrap();
        assert_eq!(whole.entities(run.key).unwrap().len(), 2);
        // A few more after the first that was not cut.
        if done > 3 {
            break;
        }
    }
    assert!(refused > 10, "{refused}");
}

#[test]
fn a_server_that_is_not_there_is_an_error_without_the_password() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let tmp = tempfile::tempdir().unwrap();
    let at = format!("postgresql://ann:secret@127.0.0.1:{port}/bank");
    let error = open(tmp.path(), &at).map(drop).unwrap_err();
    let text = format!("{error} {error:?}");
    assert!(
        text.contains(&format!("127.0.0.1:{port}/bank")) && !text.contains("secret"),
        "{text}"
    );
    assert!(text.contains("graph.postgresql"), "{text}");
}

/// Passes connections on to the server. Counts how often the server was ready for a next statement:
/// a client that waits for each answer waits so often.
fn counter() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    let server = port().unwrap();
    let ready = Arc::new(AtomicUsize::new(0));
    let count = ready.clone();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let up = TcpStream::connect(("127.0.0.1", server)).unwrap();
            // Otherwise each small message waits for the acknowledgement of the one before.
            up.set_nodelay(true).unwrap();
            client.set_nodelay(true).unwrap();
            let (answers, asker) = (up.try_clone().unwrap(), client.try_clone().unwrap());
            let count = count.clone();
            std::thread::spawn(move || pass(client, up, None));
            std::thread::spawn(move || pass_answers(answers, asker, &count));
        }
    });
    (own, ready)
}

/// Passes the messages of the server on. A message is a letter, its length with the four bytes of
/// the length, and its content.
fn pass_answers(mut from: TcpStream, mut to: TcpStream, ready: &AtomicUsize) {
    let mut head = [0; 5];
    while from.read_exact(&mut head).is_ok() {
        let [kind, length @ ..] = head;
        let length = u64::from(u32::from_be_bytes(length)) - 4;
        let mut message = head.to_vec();
        // Both `Read` and `Write` have a method `by_ref`.
        let mut content = Read::take(&mut from, length);
        if content.read_to_end(&mut message).is_err() {
            break;
        }
        ready.fetch_add(usize::from(kind == b'Z'), Ordering::Relaxed);
        if to.write_all(&message).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// Files of a wide run, each in a directory of its own and written by a command of its own.
const WIDTH: u32 = 1000;

/// A version of a file. No two files have neighbouring inodes.
fn version_of(number: u32, mtime: i64) -> Ident {
    ident(u64::from(number) * 16 + 1, mtime)
}

fn wide_run(store: &mut dyn Store, id: &str, mtime: i64) -> RunKey {
    let body: &mut Body<'_> = &mut |sink| {
        for number in 0..WIDTH {
            let argument = format!("an argument that only process {number} has");
            let process = Activity {
                argv: vec![bytes("program"), bytes(&argument)],
                ..activity(number, None)
            };
            sink.activity(&process)?;
            let path = format!("/tree/{number}/file");
            let version = version_of(number, mtime);
            sink.entity(&entity(number, &path, 1, Some(version)))?;
            sink.edge(&edge(number, number, Relation::Write, 2, 3))?;
        }
        Ok(())
    };
    store.append(&header(id, 1), &end(), 0, body).unwrap()
}

#[test]
fn an_append_of_many_directories_and_commands_waits_for_few_answers() {
    if !is_installed() {
        return;
    }
    let (through, ready) = counter();
    let (_dir, mut shared) = member(&connection("ann", through, &new_schema()));
    let local_dir = tempfile::tempdir().unwrap();
    let mut local = engines::open("sqlite", local_dir.path()).unwrap();
    // All is new; all is known; the directories and commands are known, and the versions are new.
    for (id, mtime) in [("new", 1), ("known", 1), ("changed", 2)] {
        let before = ready.load(Ordering::Relaxed);
        let run = wide_run(&mut *shared, id, mtime);
        let waits = ready.load(Ordering::Relaxed) - before;
        assert!((10..=60).contains(&waits), "{id}: {waits} answers");
        assert_eq!(wide_run(&mut *local, id, mtime), run);
        assert_eq!(shared.entities(run).unwrap(), local.entities(run).unwrap());
        let processes = shared.activities(run).unwrap();
        assert_eq!(processes, local.activities(run).unwrap());
        assert_eq!(processes.len(), WIDTH as usize);
    }
    for number in [0, 511, 512, 999] {
        for mtime in [1, 2] {
            let version = version_of(number, mtime);
            let found = shared.same(&version, VersionMatch::Any).unwrap();
            assert_eq!(found, local.same(&version, VersionMatch::Any).unwrap());
            assert!(!found.is_empty(), "{number}");
        }
    }
}

#[test]
fn a_journal_of_many_facts_waits_for_few_answers() {
    if !is_installed() {
        return;
    }
    let (through, ready) = counter();
    let (_dir, mut store) = member(&connection("ann", through, &new_schema()));
    let facts = (0..WIDTH).map(|number| Fact {
        ident: version_of(number, 1),
        digest: None,
        availability: Availability::Stored,
    });
    let records: Vec<_> = facts.map(JournalRecord::Fact).collect();
    for time in ["first", "again"] {
        let before = ready.load(Ordering::Relaxed);
        let read = JournalPosition::default();
        store.learn(&records, read, false).unwrap();
        let waits = ready.load(Ordering::Relaxed) - before;
        assert!((5..=40).contains(&waits), "{time}: {waits} answers");
        assert_eq!(store.facts().unwrap().len(), WIDTH as usize);
    }
}

/// Why a store is refused after another program changed its tables. The refusal changes nothing.
fn refused_after(change: &str) -> Error {
    let schema = new_schema();
    let at = connection("ann", port().unwrap(), &schema);
    let (dir, mut store) = member(&at);
    append(&mut *store, "first").unwrap();
    drop(store);
    let mut server = superuser();
    let path = format!("SET search_path TO {schema}");
    server.batch_execute(&path).unwrap();
    assert_eq!(server.execute(change, &[]).unwrap(), 1, "{change}");
    let mut content = || {
        let tables = "SELECT string_agg(l::text, ';') || (SELECT string_agg(r::text, ';' \
            ORDER BY directory, key) FROM backstory_rows r) FROM backstory_layout l";
        let row = server.query_one(tables, &[]).unwrap();
        row.get::<_, String>(0)
    };
    let before = content();
    let error = open(dir.path(), &at).map(drop).unwrap_err();
    assert!(content() == before, "the tables are changed");
    error
}

#[test]
fn tables_of_a_newer_program_are_refused_and_left_alone() {
    if !is_installed() {
        return;
    }
    let layout = refused_after("UPDATE backstory_layout SET number = number + 1");
    let format = "UPDATE backstory_rows SET value = '\\x00000004' WHERE key = '\\x00'";
    let rows = refused_after(format);
    for (error, number) in [(layout, 2), (rows, 4)] {
        let Error::NewerSchema { found, known, .. } = error else {
            panic!("{error}");
        };
        assert_eq!((found, known), (number, number - 1));
        let text = error.to_string();
        let is_clear = text.contains("/bank") && text.contains("upgrade backstory");
        assert!(is_clear, "{text}");
    }
}

#[test]
fn rows_from_before_the_first_release_are_reported_and_left_alone() {
    if !is_installed() {
        return;
    }
    for format in [1, 2] {
        let change =
            format!("UPDATE backstory_rows SET value = '\\x0000000{format}' WHERE key = '\\x00'");
        let error = refused_after(&change);
        assert!(matches!(error, Error::PreRelease(_)), "{error}");
        assert!(error.to_string().contains("/bank"), "{error}");
    }
}
