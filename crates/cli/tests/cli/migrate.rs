//! A store moves from one storage engine to another. Each engine answers, verifies and rebuilds.
//!
//! Engines beside SQLite need the features `lsm` and `redb`, with which `scripts/test` builds.

use super::Place;
use super::stores::{noise, two_runs};
use backstory_testkit::need::needs;
use std::fs;
use std::path::{Path, PathBuf};

/// The engines of this build beside SQLite, and their files.
const ENGINES: &[(&str, &str)] = &[
    #[cfg(feature = "lsm")]
    ("lsm", "graph.lsm"),
    #[cfg(feature = "redb")]
    ("redb", "graph.redb"),
];

/// The answers of commands about the two runs.
fn answers(place: &Place) -> [String; 6] {
    [
        place.run(&["of", "copy", "--json"]).out,
        place.run(&["uses", "in", "--json"]).out,
        place.run(&["show", "first", "--json"]).out,
        place.run(&["log", "--json"]).out,
        place.run(&["contents", "sorted"]).out,
        place.run(&["tag", "first"]).out,
    ]
}

/// The names in the store that begin with `graph.` or are the mark of its engine.
fn databases(place: &Place) -> Vec<String> {
    let entries = fs::read_dir(place.stage.store()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names
        .filter(|name| name.starts_with("graph."))
        .filter(|name| !name.ends_with("-wal") && !name.ends_with("-shm"))
        .collect();
    names.sort();
    names
}

fn migrate(place: &Place, to: &str) {
    let moved = place.run(&["store", "migrate", "--to", to]);
    assert_eq!((moved.status, moved.err.as_str()), (0, ""), "{moved:?}");
    assert!(moved.out.contains(&format!("storage engine {to} now")));
}

#[test]
fn a_store_gives_the_same_answers_on_each_engine_and_comes_back() {
    let (place, _) = two_runs();
    assert_eq!(place.run(&["tag", "first", "stage=tune"]).status, 0);
    let mut before = answers(&place);
    for (engine, file) in ENGINES {
        migrate(&place, engine);
        assert_eq!(databases(&place), [*file], "{engine}");
        assert_eq!(answers(&place), before, "{engine}");
        assert_eq!(place.json(&["store", "stats", "--json"])["engine"], *engine);
        // The engine takes new runs, and is checked and rebuilt as SQLite is.
        place.record(&format!("cat copy > {engine}"));
        assert_eq!(place.run(&["index", "--wait"]).status, 0);
        assert!(place.run(&["of", engine]).out.contains("sort"), "{engine}");
        before = answers(&place);
        let verified = place.run(&["store", "verify"]);
        assert_eq!(
            (verified.status, verified.err.as_str()),
            (0, ""),
            "{verified:?}"
        );
        let rebuilt = place.run(&["store", "rebuild"]);
        assert_eq!(
            (rebuilt.status, rebuilt.err.as_str()),
            (0, ""),
            "{rebuilt:?}"
        );
        assert_eq!(databases(&place), [*file], "{engine}");
        let mut again = answers(&place);
        // The log has grown by identities since it was indexed first.
        again[2].clone_from(&before[2]);
        assert_eq!(again, before, "{engine}");
        before = answers(&place);
    }
    // Without another engine, the store has never left SQLite.
    if !ENGINES.is_empty() {
        migrate(&place, "sqlite");
    }
    assert_eq!(databases(&place), ["graph.db"]);
    assert_eq!(answers(&place), before);
    // The engine is known from one file only.
    let again = place.run(&["store", "migrate", "--to", "sqlite"]);
    assert!(again.out.contains("already"), "{again:?}");
}

#[test]
fn a_migration_reports_what_it_moved_and_keeps_the_old_database_on_demand() {
    let (place, database) = two_runs();
    for (engine, file) in ENGINES {
        let args = ["store", "migrate", "--to", engine, "--keep-old", "--json"];
        let moved = place.json(&args);
        assert_eq!(
            (&moved["from"], &moved["to"]),
            (&"sqlite".into(), &(*engine).into())
        );
        assert_eq!(moved["runs"], 2);
        assert_eq!(moved["digest"].as_str().unwrap().len(), 64);
        let kept = moved["kept"].as_str().unwrap();
        assert!(Path::new(kept).exists() && kept.ends_with("graph.db.old"));
        assert_eq!(databases(&place), ["graph.db.old", file]);
        let back = place.json(&["store", "migrate", "--to", "sqlite", "--json"]);
        assert_eq!(back["digest"], moved["digest"], "{engine}");
        assert!(database.exists());
        fs::remove_file(kept).unwrap();
    }
}

/// Kills migrations before each of their calls of these kinds. The store answers as before, and is
/// whole.
fn kill_migrations(calls: &str) {
    if !needs("a killed migration", &["strace"]) {
        return;
    }
    let (place, _) = two_runs();
    let asks = |place: &Place| {
        let ask = |args: &[&str]| place.run(args).out;
        [ask(&["of", "copy", "--json"]), ask(&["log", "--json"])]
    };
    let before = asks(&place);
    for (engine, _) in ENGINES {
        let mut killed = 0;
        while place.kill_in(calls, killed + 1, &["store", "migrate", "--to", engine]) {
            killed += 1;
            let when = format!("{engine}, call {killed}");
            assert_eq!(asks(&place), before, "{when}");
            let verified = place.run(&["store", "verify"]);
            assert_eq!(verified.status, 0, "{when}: {verified:?}");
            // Whichever engine the store has now.
            let back = place.run(&["store", "migrate", "--to", "sqlite"]);
            assert_eq!(back.status, 0, "{when}: {back:?}");
        }
        assert!(killed > 0, "{engine}");
        assert_eq!(asks(&place), before, "{engine}");
        migrate(&place, "sqlite");
        assert_eq!(databases(&place), ["graph.db"], "{engine}");
    }
}

#[test]
fn a_migration_that_is_killed_before_a_rename_leaves_a_usable_store() {
    kill_migrations("rename");
}

#[test]
#[ignore = "some minutes"]
fn a_migration_that_is_killed_at_any_moment_leaves_a_usable_store() {
    kill_migrations("write,pwrite64,fsync,fdatasync,rename,unlink,unlinkat,mkdir,ftruncate");
}

#[test]
fn a_store_of_an_unknown_engine_is_a_clear_error_and_is_left_alone() {
    let (place, _) = two_runs();
    let mark = place.stage.store().join("engine");
    fs::write(&mark, "bdb\n").unwrap();
    for args in [
        &["log"][..],
        &["of", "copy"],
        &["store", "verify"],
        &["store", "rebuild"],
        &["store", "migrate", "--to", "sqlite"],
    ] {
        place.run(args).is_error(1, &["bdb", "engine", "upgrade"]);
    }
    assert_eq!(fs::read_to_string(&mark).unwrap(), "bdb\n");
    place
        .run(&["store", "migrate", "--to", "bdb"])
        .is_error(2, &["bdb"]);
}

#[cfg(not(feature = "berkeleydb"))]
#[test]
fn a_store_of_an_engine_that_is_not_built_is_a_clear_error() {
    let (place, _) = two_runs();
    let wanted = [
        "berkeleydb",
        "cargo install backstory --features berkeleydb",
    ];
    let refused = place.run(&["store", "migrate", "--to", "berkeleydb"]);
    refused.is_error(1, &wanted);
    // The store has another engine.
    assert!(!refused.err.contains("the store"), "{refused:?}");
    fs::write(place.stage.store().join("engine"), "berkeleydb\n").unwrap();
    place
        .run(&["log"])
        .is_error(1, &[&wanted[..], &["--store"]].concat());
    assert_eq!(place.run(&["record", "--", "true"]).status, 0);
}

/// All files of a database.
fn files(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_owned()];
    }
    let entries = fs::read_dir(path).unwrap();
    entries
        .flat_map(|entry| files(&entry.unwrap().path()))
        .collect()
}

fn copy_all(from: &Path, to: &Path) {
    for file in files(from) {
        let copy = match file.strip_prefix(from) {
            Ok(below) if below != Path::new("") => to.join(below),
            _ => to.to_owned(),
        };
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(&file, &copy).unwrap();
    }
}

#[test]
fn a_damaged_database_of_any_engine_is_a_clear_error_and_a_rebuild_repairs_it() {
    for (engine, name) in ENGINES {
        let (place, _) = two_runs();
        migrate(&place, engine);
        let before = place.run(&["of", "copy", "--json"]).out;
        let database = place.stage.store().join(name);
        let sound = place.stage.path().join("sound");
        copy_all(&database, &sound);
        let mut found = 0;
        for file in files(&sound) {
            let length = fs::metadata(&file).unwrap().len() as usize;
            for piece in 0..5.min(length) {
                let at = length * piece / 5;
                match database.is_dir() {
                    true => fs::remove_dir_all(&database).unwrap(),
                    false => fs::remove_file(&database).unwrap(),
                }
                copy_all(&sound, &database);
                let damaged = match file.strip_prefix(&sound) {
                    Ok(below) if below != Path::new("") => database.join(below),
                    _ => database.clone(),
                };
                let mut bytes = fs::read(&damaged).unwrap();
                let end = (at + 4096).min(bytes.len());
                noise(&mut bytes[at..end]);
                fs::write(&damaged, &bytes).unwrap();
                owned(&place, &database);
                let when = format!("{engine}: {} at {at}", damaged.display());
                let asked = place.run(&["of", "copy", "--json"]);
                match asked.status {
                    0 => assert_eq!(asked.out, before, "{when}"),
                    _ => asked.is_error(1, &[]),
                }
                let verified = place.run(&["store", "verify"]);
                assert!(verified.status < 2, "{when}: {verified:?}");
                if verified.status == 0 {
                    continue;
                }
                found += 1;
                let rebuild = "`backstory store rebuild`";
                let said = [verified.out.as_str(), verified.err.as_str()].concat();
                assert!(said.contains(rebuild), "{when}: {said}");
                let rebuilt = place.run(&["store", "rebuild"]);
                assert_eq!(rebuilt.status, 0, "{when}: {rebuilt:?}");
                assert_eq!(place.run(&["store", "verify"]).status, 0, "{when}");
                assert_eq!(place.run(&["of", "copy", "--json"]).out, before, "{when}");
            }
        }
        assert!(found > 0, "{engine}: no damage was found");
    }
}

/// The user of the stage owns the files that the test has written.
fn owned(place: &Place, path: &Path) {
    place.stage.user().owns(path).unwrap();
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            owned(place, &entry.unwrap().path());
        }
    }
}

/// A connection to a server in the stage of a place.
fn server(place: &Place) -> Option<(backstory_testkit::postgres::PostgresServer, String)> {
    use backstory_testkit::postgres::PostgresServer;
    let server = PostgresServer::start("a store on a server", &place.stage, "").unwrap()?;
    let connection = format!("postgresql://ann@127.0.0.1:{}/bank", server.port);
    Some((server, connection))
}

/// Moves a store into the database of a server.
fn move_to(place: &Place, connection: &str) -> super::Answer {
    let to = ["--to", "postgresql", "--connection", connection];
    place.run(&[&["store", "migrate"], &to[..]].concat())
}

fn join(place: &Place, connection: &str) {
    let moved = move_to(place, connection);
    assert_eq!((moved.status, moved.err.as_str()), (0, ""), "{moved:?}");
    assert!(moved.out.contains("postgresql now: 2 runs"), "{moved:?}");
}

/// How many runs the list has.
fn listed(place: &Place) -> usize {
    place.json(&["log", "--json"]).as_array().unwrap().len()
}

#[test]
fn two_stores_share_the_database_of_a_server_and_go_back() {
    let ((ann, _), (bob, _)) = (two_runs(), two_runs());
    assert_eq!(ann.run(&["tag", "first", "stage=tune"]).status, 0);
    let Some((_server, connection)) = server(&ann) else {
        return;
    };
    let before = answers(&ann);
    let shown = ann.json(&["show", "first", "--json"]);
    let first = shown["run"].as_str().unwrap();
    join(&ann, &connection);
    assert_eq!(databases(&ann), ["graph.postgresql"]);
    assert_eq!(answers(&ann), before);
    join(&bob, &connection);
    assert_eq!((listed(&ann), listed(&bob)), (4, 4));
    // Each finds what the other has recorded, and its own tags.
    let made = bob.path("copy");
    let steps = |place: &Place| {
        let told = place.run(&["of", &made]).out;
        let steps = told.lines().filter(|line| line.starts_with("  "));
        steps.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(steps(&ann), steps(&bob));
    assert!(steps(&ann).contains(&"  sort in > out".to_owned()));
    // Both have a run with the name `first`.
    assert_eq!(ann.run(&["tag", first]).out, before[5]);
    assert_eq!(bob.run(&["tag", first]).out, "");
    ann.record("cat copy > third");
    assert_eq!(ann.run(&["index", "--wait"]).status, 0);
    assert_eq!(listed(&bob), 5);
    for place in [&ann, &bob] {
        let verified = place.run(&["store", "verify"]);
        assert_eq!(
            (verified.status, verified.err.as_str()),
            (0, ""),
            "{verified:?}"
        );
        place
            .run(&["store", "rebuild"])
            .is_error(1, &["server", "migrate --to sqlite"]);
    }
    migrate(&ann, "sqlite");
    assert_eq!(databases(&ann), ["graph.db"]);
    assert_eq!(answers(&ann)[0], before[0]);
    // The database of the server stays, and a store that comes again is compared with it.
    assert_eq!(move_to(&ann, &connection).status, 0);
    assert_eq!((listed(&ann), listed(&bob)), (5, 5));
}

#[test]
fn a_server_that_is_stopped_is_a_clear_error_and_its_store_answers_when_it_is_back() {
    let (place, _) = two_runs();
    let Some((server, connection)) = server(&place) else {
        return;
    };
    join(&place, &connection.replace("ann@", "ann:hush@"));
    let before = answers(&place);
    server
        .control(&place.stage, &["-m", "fast", "-w", "stop"])
        .unwrap();
    for args in [&["log"][..], &["of", "copy"], &["store", "stats"]] {
        let failed = place.run(args);
        failed.is_error(1, &["cannot connect", "127.0.0.1", "graph.postgresql"]);
        assert!(!failed.err.contains("hush"), "{failed:?}");
    }
    assert_eq!(place.run(&["record", "--", "true"]).status, 0);
    server.control(&place.stage, &["-w", "start"]).unwrap();
    assert_eq!(listed(&place), 3);
    assert_eq!(answers(&place)[0], before[0]);
    place
        .run(&[
            "store",
            "migrate",
            "--to",
            "redb",
            "--connection",
            &connection,
        ])
        .is_error(2, &["--connection"]);
    place
        .run(&["store", "migrate", "--to", "postgresql"])
        .is_error(2, &["--connection"]);
}

#[test]
fn runs_are_delivered_to_the_database_of_a_server_also_after_it_was_away() {
    let (place, _) = two_runs();
    let group = Place::new();
    group.record("true");
    let Some((server, connection)) = server(&place) else {
        return;
    };
    let moved = move_to(&group, &connection);
    assert_eq!((moved.status, moved.err.as_str()), (0, ""), "{moved:?}");
    let other = group.stage.store().display().to_string();
    super::filters::configure(
        &place,
        &format!(
            "[[filter]]\naction = 'drop'\npath = 'middle'\n\n[[store]]\nname = 'group'\ndirectory = '{other}'\n"
        ),
    );
    let control = |args: &[&str]| server.control(&place.stage, args).unwrap();
    let indexed = || place.run(&["index", "--wait"]);
    let before = listed(&group);
    control(&["-m", "fast", "-w", "stop"]);
    place.record("sort in > middle; uniq middle > third; rm middle");
    place.quiet();
    let away = indexed();
    assert!(
        away.status == 0 && away.err.contains("group"),
        "a server that is away stops nothing: {away:?}"
    );
    let pending = place.run(&["pipeline", "show"]).out;
    assert!(
        pending.contains("to deliver") && pending.contains("cannot connect"),
        "{pending}"
    );
    assert!(place.run(&["of", "third"]).out.contains("in"));
    control(&["-w", "start"]);
    place.record("cat third > fourth");
    place.quiet();
    let back = indexed();
    assert_eq!((back.status, back.err.as_str()), (0, ""), "{back:?}");
    let shown = place.run(&["pipeline", "show"]).out;
    assert!(shown.contains("all runs delivered"), "{shown}");
    assert!(listed(&group) >= before + 2);
    // The group's database has the lineage, and not what the filter took.
    let of = group.run(&["of", &place.path("fourth")]).out;
    assert!(of.contains("sort in") && !of.contains("/middle"), "{of}");
    let rows = "SELECT count(*) FROM backstory_rows";
    let rows = server.query(&place.stage, "bank", rows).unwrap();
    assert!(rows.trim().parse::<u32>().unwrap() > 0, "{rows}");
    indexed();
    assert_eq!(
        server
            .query(&place.stage, "bank", "SELECT count(*) FROM backstory_rows")
            .unwrap(),
        rows,
        "nothing is delivered twice"
    );
}

/// The database refuses to remove the runs of another role.
#[test]
fn gc_of_a_group_leaves_the_runs_of_others_alone() {
    let ((ann, _), (bob, _)) = (two_runs(), two_runs());
    let Some((server, connection)) = server(&ann) else {
        return;
    };
    let ids = |place: &Place| {
        let runs = place.json(&["log", "--json"]);
        let runs = runs.as_array().unwrap().iter();
        let mut ids: Vec<_> = runs.map(|run| run["run"].to_string()).collect();
        ids.sort();
        ids
    };
    let (of_ann, of_bob) = (ids(&ann), ids(&bob));
    join(&ann, &connection);
    let grant = "CREATE ROLE bob LOGIN; \
        GRANT SELECT, INSERT, UPDATE, DELETE ON backstory_rows, backstory_layout TO bob";
    server.query(&ann.stage, "bank", grant).unwrap();
    join(&bob, &connection.replace("ann@", "bob@"));
    let before = ann.run(&["of", "copy", "--json"]).out;
    let collect = |place: &Place, rest: &[&str]| {
        let gc = ["store", "gc", "--older-than", "0h", "--json"];
        let done = place.json(&[&gc[..], rest].concat());
        let runs = done["runs"].as_array().unwrap().iter();
        let mut ids: Vec<_> = runs.map(|run| run.to_string()).collect();
        ids.sort();
        ids
    };
    // The owner of the tables could remove every run.
    for (place, own) in [(&ann, &of_ann), (&bob, &of_bob)] {
        assert_eq!(&collect(place, &["--dry-run"]), own);
    }
    assert_eq!(collect(&bob, &[]), of_bob);
    assert_eq!((ids(&ann), ids(&bob)), (of_ann.clone(), of_ann));
    assert_eq!(ann.run(&["of", "copy", "--json"]).out, before);
    // Also down to a size.
    let gc = ["store", "gc", "--max-size", "1", "--json"];
    assert_eq!(bob.json(&gc)["runs"].as_array().unwrap().len(), 0);
}
