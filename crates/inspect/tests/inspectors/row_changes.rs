//! Rows that transactions changed, from the files that SQLite itself wrote.

use std::path::{Path, PathBuf};

use backstory_inspection::FormatReader;
use backstory_inspection::row_changes::{DatabaseFiles, RowChanges};
use rusqlite::Connection;
use serde_json::{Value, json};

use super::worker;

/// The files of a database at one moment.
#[derive(Clone, Default)]
struct Files {
    database: Vec<u8>,
    log: Vec<u8>,
    journal: Vec<u8>,
}

impl Files {
    fn parts(&self) -> DatabaseFiles<'_> {
        DatabaseFiles {
            database: &self.database,
            log: &self.log,
            journal: &self.journal,
        }
    }
}

/// A database in a directory of its own.
struct Database {
    path: PathBuf,
    connection: Connection,
    _directory: tempfile::TempDir,
}

impl Database {
    fn new(setup: &str) -> Database {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("bank.db");
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch(setup).unwrap();
        Database {
            path,
            connection,
            _directory: directory,
        }
    }

    /// With a log that no checkpoint touches.
    fn logged() -> Database {
        Database::new(
            "PRAGMA page_size = 1024; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0",
        )
    }

    fn run(&self, sql: &str) {
        self.connection.execute_batch(sql).unwrap();
    }

    fn files(&self) -> Files {
        let beside = |end: &str| {
            let path = format!("{}{end}", self.path.display());
            std::fs::read(Path::new(&path)).unwrap_or_default()
        };
        Files {
            database: beside(""),
            log: beside("-wal"),
            journal: beside("-journal"),
        }
    }
}

fn asked(
    older: Option<&Files>,
    newer: &Files,
    table: Option<&str>,
    key: Option<&str>,
) -> Result<RowChanges, String> {
    let reader = FormatReader::by(Ok(worker()));
    let older = older.map(Files::parts);
    let found = reader.row_changes(b"bank.db", older, newer.parts(), (table, key));
    found.map_err(|trouble| trouble.to_string())
}

/// The steps of a row: its transactions, the operation, and one column before and after.
fn history(older: Option<&Files>, newer: &Files, of: (&str, &str, &str)) -> Vec<Value> {
    let (table, key, column) = of;
    let found = asked(older, newer, Some(table), Some(key)).unwrap();
    let steps = found.steps.into_iter().map(|step| {
        let change = step.change.unwrap();
        json!([
            step.transactions,
            change.operation,
            change.before.get(column),
            change.after.get(column)
        ])
    });
    steps.collect()
}

const ACCOUNTS: &str = "CREATE TABLE accounts (id INTEGER PRIMARY KEY, sum INT, photo BLOB)";

#[test]
fn each_transaction_of_a_log_has_the_row_before_and_after_it() {
    let bank = Database::logged();
    bank.run(ACCOUNTS);
    bank.run("BEGIN; INSERT INTO accounts VALUES (42, 420, x'00ff'), (7, 70, NULL); COMMIT");
    bank.run("UPDATE accounts SET sum = sum + 5 WHERE id = 42");
    bank.run("BEGIN; UPDATE accounts SET sum = 0; ROLLBACK");
    bank.run("UPDATE accounts SET sum = 1 WHERE id = 7");
    bank.run("DELETE FROM accounts WHERE id = 42");
    let wanted = [
        json!([[2, 2], "insert", null, "420"]),
        json!([[3, 3], "update", "420", "425"]),
        json!([[5, 5], "delete", "425", null]),
    ];
    for older in [None, Some(&Files::default())] {
        let found = history(older, &bank.files(), ("ACCOUNTS", "42", "sum"));
        assert_eq!(found, wanted, "{}", older.is_some());
    }
    let photo = history(None, &bank.files(), ("accounts", "id=42", "photo"));
    assert_eq!(photo[0], json!([[2, 2], "insert", null, {"bytes": 2}]));
    let all = asked(None, &bank.files(), None, None).unwrap();
    let said: Vec<&str> = all
        .steps
        .iter()
        .map(|step| &*step.tables[0].sentences[0])
        .collect();
    let wanted = [
        "`accounts` was made: 0 rows added",
        "`accounts`: 2 rows added",
        "`accounts`: 1 row changed",
        "`accounts`: 1 row changed",
        "`accounts`: 1 row removed",
    ];
    assert_eq!(said, wanted);
    assert!(all.notes.is_empty(), "{:?}", all.notes);
}

#[test]
fn a_value_that_differs_only_where_an_image_is_cut_is_an_update() {
    let bank = Database::logged();
    bank.run("CREATE TABLE t (id INTEGER PRIMARY KEY, v)");
    bank.run("INSERT INTO t VALUES (1, NULL)");
    let long = "ä".repeat(300);
    let values = [
        "x'00ff'",
        "x'00fe'",
        // The same bytes of another type, and the same digits.
        "CAST(x'00fe' AS TEXT)",
        "1",
        "'1'",
        "0.1 + 0.2",
        "0.3",
        &format!("'{long}b'"),
        &format!("'{long}c'"),
    ];
    for value in values {
        bank.run(&format!("UPDATE t SET v = {value}"));
    }
    let found = history(None, &bank.files(), ("t", "1", "v"));
    let numbers: Vec<&Value> = found.iter().map(|step| &step[0][0]).collect();
    let wanted: Vec<Value> = (2..values.len() + 3).map(Value::from).collect();
    assert_eq!(numbers, wanted.iter().collect::<Vec<_>>(), "{found:?}");
    assert_eq!(
        found[2],
        json!([[4, 4], "update", {"bytes": 2}, {"bytes": 2}])
    );
}

#[test]
fn a_row_is_found_by_each_kind_of_key() {
    let bank = Database::logged();
    bank.run("CREATE TABLE rates (day TEXT, currency TEXT, rate REAL, PRIMARY KEY (currency, day)) WITHOUT ROWID");
    bank.run("CREATE TABLE notes (text)");
    bank.run("CREATE TABLE names (name TEXT PRIMARY KEY, v INT)");
    bank.run("CREATE TABLE loose (k PRIMARY KEY, v INT)");
    let long = "ä".repeat(300);
    bank.run(&format!(
        "BEGIN; INSERT INTO rates VALUES ('mo', 'EUR', 1.10); INSERT INTO notes VALUES ('{long}');
         INSERT INTO names VALUES ('42', 1); INSERT INTO loose VALUES (42, 2); COMMIT"
    ));
    let files = bank.files();
    let of = |table, key, column| history(None, &files, (table, key, column))[0][3].clone();
    assert_eq!(of("rates", "day=mo,currency=EUR", "rate"), "1.1");
    assert_eq!(of("names", "42", "v"), "1");
    assert_eq!(of("loose", "42", "v"), "2");
    let note = of("notes", "rowid=1", "text");
    assert_eq!(note, json!({"begins": "ä".repeat(200), "bytes": 600}));
    for (table, key) in [
        ("rates", "mo"),
        ("names", "43"),
        ("none", "1"),
        ("notes", "x"),
    ] {
        let found = asked(None, &files, Some(table), Some(key)).unwrap();
        assert!(found.steps.is_empty(), "{table} {key}");
    }
}

/// A model of the rows says what each transaction changed.
#[test]
fn the_history_of_each_row_is_that_of_the_statements() {
    let bank = Database::logged();
    bank.run(ACCOUNTS);
    let mut truth: Vec<Vec<Value>> = vec![Vec::new(); 12];
    let mut sums: Vec<Option<u64>> = vec![None; 12];
    let mut random = 7_u64;
    for _ in 0..90 {
        let mut next = |below: u64| {
            random = random
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (random >> 33) % below
        };
        let former = sums.clone();
        let mut sql = "BEGIN;".to_owned();
        for _ in 0..=next(4) {
            let (key, sum) = (next(12), next(1000));
            let pad = next(900);
            match next(3) {
                0 => {
                    sql += &format!("DELETE FROM accounts WHERE id = {key};");
                    sums[key as usize] = None;
                }
                _ => {
                    sql += &format!(
                        "INSERT OR REPLACE INTO accounts VALUES ({key}, {sum}, zeroblob({pad}));"
                    );
                    sums[key as usize] = Some(sum);
                }
            }
        }
        bank.run(&(sql + "COMMIT"));
        for (key, (old, new)) in former.iter().zip(&sums).enumerate() {
            if old != new {
                truth[key].push(json!([
                    old.map(|one| one.to_string()),
                    new.map(|one| one.to_string())
                ]));
            }
        }
    }
    let files = bank.files();
    for (key, truth) in truth.iter().enumerate() {
        let steps = history(None, &files, ("accounts", &key.to_string(), "sum"));
        let found = steps.iter().map(|step| json!([step[2], step[3]]));
        let found: Vec<Value> = found.filter(|step| step[0] != step[1]).collect();
        assert_eq!(&found, truth, "row {key}");
    }
}

#[test]
fn a_log_that_was_copied_into_the_database_is_told_apart_with_the_older_database_only() {
    let bank = Database::new(
        "PRAGMA page_size = 1024; CREATE TABLE other (a); INSERT INTO other VALUES (1)",
    );
    bank.run(ACCOUNTS);
    let older = bank.files();
    bank.run("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0");
    bank.run("INSERT INTO accounts VALUES (1, 10, NULL)");
    bank.run("UPDATE accounts SET sum = 11");
    bank.run("UPDATE other SET a = 2");
    bank.run("PRAGMA wal_checkpoint(PASSIVE)");
    let copied = bank.files();
    let apart = [
        json!([[1, 1], "insert", null, "10"]),
        json!([[2, 2], "update", "10", "11"]),
    ];
    let of = ("accounts", "1", "sum");
    assert_eq!(history(Some(&older), &copied, of), apart);
    // The page of the other table is in no file as it was before the third transaction.
    let alone = asked(None, &copied, None, None).unwrap();
    assert!(alone.steps.is_empty(), "{alone:?}");
    let why = "what the first 3 transactions of its write-ahead log changed is not known";
    assert!(alone.notes[0].starts_with(why), "{alone:?}");
    // The next transaction begins the log anew.
    bank.run("UPDATE accounts SET sum = 12");
    let begun = bank.files();
    let later = [json!([[1, 1], "update", "11", "12"])];
    assert_eq!(history(None, &begun, of), later);
    assert_eq!(history(Some(&copied), &begun, of), later);
    let together = [
        json!([null, "insert", null, "11"]),
        json!([[1, 1], "update", "11", "12"]),
    ];
    assert_eq!(history(Some(&older), &begun, of), together);
}

#[test]
fn a_log_that_grew_tells_its_new_transactions_alone() {
    let bank = Database::logged();
    bank.run(ACCOUNTS);
    bank.run("INSERT INTO accounts VALUES (1, 10, NULL)");
    let older = bank.files();
    bank.run("UPDATE accounts SET sum = 11");
    let found = history(Some(&older), &bank.files(), ("accounts", "1", "sum"));
    assert_eq!(found, [json!([[3, 3], "update", "10", "11"])]);
}

#[test]
fn two_databases_without_a_log_are_compared_whatever_their_pages_are() {
    let bank = Database::new(ACCOUNTS);
    bank.run("INSERT INTO accounts VALUES (1, 10, NULL), (2, 20, NULL)");
    let older = bank.files();
    bank.run("PRAGMA page_size = 8192; VACUUM");
    let vacuumed = bank.files();
    assert_ne!(older.database, vacuumed.database);
    assert!(
        asked(Some(&older), &vacuumed, None, None)
            .unwrap()
            .steps
            .is_empty()
    );
    bank.run(
        "DELETE FROM accounts WHERE id = 1; CREATE TABLE other (a); INSERT INTO other VALUES (1)",
    );
    let newer = bank.files();
    let of = ("accounts", "1", "sum");
    assert_eq!(
        history(Some(&older), &newer, of),
        [json!([null, "delete", "10", null])]
    );
    let all = asked(Some(&older), &newer, None, None).unwrap();
    let said: Vec<&String> = all.steps[0]
        .tables
        .iter()
        .flat_map(|table| &table.sentences)
        .collect();
    assert_eq!(
        said,
        ["`accounts`: 1 row removed", "`other` was made: 1 row added"]
    );
}

#[test]
fn a_rollback_journal_of_an_unfinished_transaction_gives_the_rows_before_it() {
    let bank = Database::new(ACCOUNTS);
    bank.run("BEGIN; WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 5000) INSERT INTO accounts SELECT i, i, zeroblob(500) FROM n; COMMIT");
    let older = bank.files();
    // So few pages in memory that the transaction writes into the file before its end.
    bank.run("PRAGMA cache_size = 5; BEGIN; UPDATE accounts SET sum = -1; DELETE FROM accounts WHERE id > 4000");
    let torn = bank.files();
    assert!(torn.journal.len() > 10_000, "{}", torn.journal.len());
    assert_ne!(torn.database, older.database);
    let found = asked(Some(&older), &torn, None, None).unwrap();
    assert!(found.steps.is_empty(), "{found:?}");
    assert!(
        found.notes[0].starts_with("a transaction was not finished"),
        "{found:?}"
    );
    bank.run("COMMIT");
    let of = ("accounts", "4500", "sum");
    let wanted = [json!([null, "delete", "4500", null])];
    assert_eq!(history(Some(&torn), &bank.files(), of), wanted);
}

#[test]
fn a_log_that_is_damaged_torn_or_of_another_database_is_read_up_to_there_or_refused() {
    let bank = Database::logged();
    bank.run(ACCOUNTS);
    bank.run("INSERT INTO accounts VALUES (1, 10, NULL)");
    let end = bank.files().log.len();
    bank.run("UPDATE accounts SET sum = 11");
    let files = bank.files();
    let whole = history(None, &files, ("accounts", "1", "sum"));
    assert_eq!(whole.len(), 2);
    let with_log = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut files = files.clone();
        change(&mut files.log);
        files
    };
    for (damage, note) in [
        (
            with_log(&|log| log.truncate(end + 100)),
            "ends within a frame",
        ),
        (with_log(&|log| log[end + 50] ^= 1), "do not count"),
        (with_log(&|log| log[end + 8] ^= 1), "do not count"),
    ] {
        let found = history(None, &damage, ("accounts", "1", "sum"));
        assert_eq!(found, whole[..1], "{note}");
        let notes = asked(None, &damage, None, None).unwrap().notes.join("; ");
        assert!(notes.contains(note), "{notes}");
    }
    let refused = |files: &Files| asked(None, files, Some("accounts"), Some("1")).unwrap_err();
    let of = |change: &dyn Fn(&mut Files)| {
        let mut files = files.clone();
        change(&mut files);
        refused(&files)
    };
    let why = of(&|files| files.log[24] ^= 1);
    assert!(why.contains("the sums of its head are wrong"), "{why}");
    let why = of(&|files| files.log = b"other".to_vec());
    assert!(why.contains("it is no write-ahead log"), "{why}");
    let other = Database::new("PRAGMA page_size = 4096; CREATE TABLE t (a)").files();
    let why = of(&|files| files.database.clone_from(&other.database));
    assert!(why.contains("of another database"), "{why}");
    let why = of(&|files| files.database = vec![0x5c; 4096]);
    assert!(why.contains("or it is encrypted"), "{why}");
    // A log alone lacks the page that the mode of the journal was written into.
    let alone = Files {
        log: files.log.clone(),
        ..Files::default()
    };
    assert_eq!(history(None, &alone, ("accounts", "1", "sum")), whole);
    let large = Files {
        database: vec![0; 40 << 20],
        ..Files::default()
    };
    let why = asked(Some(&large), &large, None, None).unwrap_err();
    assert!(why.contains("more than 64 MiB"), "{why}");
}

/// The answer may be a refusal. The worker must not crash, hang, or take much memory.
#[test]
fn damaged_files_never_crash_the_reader() {
    let bank = Database::logged();
    bank.run(ACCOUNTS);
    bank.run("INSERT INTO accounts VALUES (1, 10, zeroblob(3000))");
    bank.run("UPDATE accounts SET sum = 11");
    let logged = bank.files();
    let plain = Database::new(ACCOUNTS);
    plain.run("INSERT INTO accounts VALUES (1, 10, zeroblob(9000)); BEGIN; DELETE FROM accounts");
    let mut unfinished = plain.files();
    assert!(unfinished.journal.len() > 512);
    // The head of a journal is written last. Without it the journal counts for nothing.
    let head = [
        0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7, 0xff, 0xff, 0xff, 0xff,
    ];
    unfinished.journal[..12].copy_from_slice(&head);
    let places = (0..36).chain([100, 103, 512, 515, 520, 1100, 4620]);
    for (place, value) in places.flat_map(|place| [(place, 0), (place, 0xff)]) {
        for files in [&logged, &unfinished] {
            for part in 0..3 {
                let mut damaged = files.clone();
                let content = match part {
                    0 => &mut damaged.database,
                    1 => &mut damaged.log,
                    _ => &mut damaged.journal,
                };
                let Some(byte) = content.get_mut(place).filter(|byte| **byte != value) else {
                    continue;
                };
                *byte = value;
                if let Err(why) = asked(Some(files), &damaged, None, None) {
                    let is_refusal = why.contains("the newer state:") || why.contains("SQLite");
                    assert!(is_refusal, "part {part}, byte {place} = {value}: {why}");
                }
            }
        }
    }
}
