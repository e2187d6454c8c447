//! A generated workload whose true lineage is known to the generator: precision and recall of the
//! record of rows, and of the tables behind them. The values of a row before and after a change are
//! a part of the truth.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use backstory_testkit::database_server::DatabaseServer;
use backstory_testkit::postgres::PostgresServer;
use serde_json::Value;

use crate::watch::place::DatabasePlace;

const TABLES: [&str; 3] = ["red", "green", "blue"];
/// The table that has the replica identity FULL in PostgreSQL. The others have the default.
const FULL: usize = 0;
/// Sessions at the same time. Each has rows of its own.
const SESSIONS: u64 = 3;

/// The columns of a row, as far as the server sends them.
type Image = BTreeMap<String, String>;

/// A change of a row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Change {
    table: usize,
    key: u64,
    operation: String,
    /// The mark of the transaction.
    mark: String,
    before: Option<Image>,
    after: Option<Image>,
    /// The record says that a part of the row before is missing.
    is_incomplete: bool,
}

/// Random numbers: a linear congruential generator.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// The SQL of the statements.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    #[default]
    Postgres,
    MariaDb,
}

/// The statements of a session, and what they do in truth.
#[derive(Default)]
pub struct Workload {
    dialect: Dialect,
    pub script: String,
    changes: Vec<Change>,
    /// The tables that each committed transaction reads rows of, beside the rows that it changes.
    reads: BTreeMap<String, BTreeSet<usize>>,
    /// The same of transactions that were rolled back. A client may go on by what it read there.
    undone: BTreeMap<String, BTreeSet<usize>>,
    /// The present rows, by table and key, with their marks.
    rows: BTreeMap<(usize, u64), String>,
    next: u64,
}

impl Workload {
    /// The workload of one session.
    pub fn of(session: u64, transactions: u64, seed: u64, dialect: Dialect) -> Workload {
        let mut dice = Dice(seed.wrapping_mul(31).wrapping_add(session));
        let mut work = Workload {
            dialect,
            next: session + 1,
            ..Workload::default()
        };
        for number in 0..transactions {
            let mark = format!("s{session}n{number}");
            match dice.below(6) {
                0 => work.alone(&mark, &mut dice, Workload::insert),
                1 => work.alone(&mark, &mut dice, Workload::update),
                2 => work.alone(&mark, &mut dice, Workload::delete),
                3 => work.several(&mark, &mut dice, true),
                4 => work.several(&mark, &mut dice, false),
                _ => work.alone(&mark, &mut dice, Workload::copy),
            }
        }
        work
    }

    fn alone(&mut self, mark: &str, dice: &mut Dice, step: fn(&mut Workload, &str, &mut Dice)) {
        self.reads.entry(mark.to_owned()).or_default();
        step(self, mark, dice);
    }

    /// A transaction of several statements, which commits or is rolled back.
    fn several(&mut self, mark: &str, dice: &mut Dice, commits: bool) {
        let before = (self.changes.len(), self.rows.clone());
        self.script.push_str("BEGIN;\n");
        self.reads.entry(mark.to_owned()).or_default();
        for _ in 0..2 + dice.below(3) {
            match dice.below(4) {
                0 => self.insert(mark, dice),
                1 => self.update(mark, dice),
                2 => self.delete(mark, dice),
                _ => self.copy(mark, dice),
            }
        }
        if commits {
            self.script.push_str("COMMIT;\n");
        } else {
            self.script.push_str("ROLLBACK;\n");
            self.changes.truncate(before.0);
            self.rows = before.1;
            let reads = self.reads.remove(mark).unwrap_or_default();
            self.undone.insert(mark.to_owned(), reads);
        }
    }

    fn key(&mut self) -> u64 {
        self.next += SESSIONS;
        self.next
    }

    fn row(&self, dice: &mut Dice) -> Option<(usize, u64)> {
        let count = self.rows.len() as u64;
        let at = (count > 0).then(|| dice.below(count))?;
        self.rows.keys().nth(at as usize).copied()
    }

    /// Notes that a row changes. `former` is its mark before that.
    fn changed(
        &mut self,
        (table, key): (usize, u64),
        operation: &str,
        mark: &str,
        former: Option<&str>,
    ) {
        let sends_whole = self.dialect == Dialect::MariaDb || table == FULL;
        let id = || ("id".to_owned(), key.to_string());
        let row = |mark: &str| Image::from([id(), ("mark".to_owned(), mark.to_owned())]);
        let before = match former {
            Some(former) if sends_whole => Some(row(former)),
            // By default, PostgreSQL sends the key of a deleted row, and nothing of an updated one.
            Some(_) if operation == "delete" => Some(Image::from([id()])),
            _ => None,
        };
        self.changes.push(Change {
            table,
            key,
            operation: operation.to_owned(),
            mark: mark.to_owned(),
            before,
            after: (operation != "delete").then(|| row(mark)),
            is_incomplete: former.is_some() && !sends_whole,
        });
    }

    /// Notes a new row.
    fn inserted(&mut self, row: (usize, u64), mark: &str) {
        self.rows.insert(row, mark.to_owned());
        self.changed(row, "insert", mark, None);
    }

    fn insert(&mut self, mark: &str, dice: &mut Dice) {
        let (table, key) = (dice.below(3) as usize, self.key());
        let name = TABLES[table];
        self.script
            .push_str(&format!("INSERT INTO {name} VALUES ({key}, '{mark}');\n"));
        self.inserted((table, key), mark);
    }

    fn update(&mut self, mark: &str, dice: &mut Dice) {
        let Some((table, key)) = self.row(dice) else {
            return self.insert(mark, dice);
        };
        let name = TABLES[table];
        self.script.push_str(&format!(
            "UPDATE {name} SET mark = '{mark}' WHERE id = {key};\n"
        ));
        let former = self.rows.insert((table, key), mark.to_owned());
        let former = former.as_deref();
        // MariaDB does not write a row that already has the value.
        if former != Some(mark) || self.dialect == Dialect::Postgres {
            self.changed((table, key), "update", mark, former);
        }
    }

    fn delete(&mut self, mark: &str, dice: &mut Dice) {
        let Some((table, key)) = self.row(dice) else {
            return self.insert(mark, dice);
        };
        let name = TABLES[table];
        self.script.push_str(&format!(
            "DELETE FROM {name} WHERE id = {key} AND '{mark}' <> '';\n"
        ));
        let former = self.rows.remove(&(table, key));
        self.changed((table, key), "delete", mark, former.as_deref());
    }

    /// A row from a row of another table, some through a view or a common table expression.
    fn copy(&mut self, mark: &str, dice: &mut Dice) {
        let Some((source, from)) = self.row(dice) else {
            return self.insert(mark, dice);
        };
        let (table, key) = ((source + 1) % 3, self.key());
        let (name, other) = (TABLES[table], TABLES[source]);
        let text = match dice.below(3) {
            0 => format!(
                "INSERT INTO {name} SELECT {key}, '{mark}' FROM {other} WHERE id = {from};\n"
            ),
            1 => format!(
                "INSERT INTO {name} SELECT {key}, '{mark}' FROM {other}_view WHERE id = {from};\n"
            ),
            _ => {
                let with = format!("WITH one AS (SELECT * FROM {other} WHERE id = {from})");
                let select = format!("SELECT {key}, '{mark}' FROM one");
                match self.dialect {
                    Dialect::Postgres => format!("{with} INSERT INTO {name} {select};\n"),
                    Dialect::MariaDb => format!("INSERT INTO {name} {with} {select};\n"),
                }
            }
        };
        self.script.push_str(&text);
        self.inserted((table, key), mark);
        self.reads
            .entry(mark.to_owned())
            .or_default()
            .insert(source);
    }
}

/// Numbers of claims: true, found, and both.
#[derive(Debug)]
pub struct Accuracy {
    wanted: usize,
    found: usize,
    right: usize,
    /// The first claims that are wrong, and those that are missing.
    wrong: Vec<String>,
    missing: Vec<String>,
}

impl Accuracy {
    pub fn of<T: Ord + std::fmt::Debug>(wanted: &BTreeSet<T>, found: &BTreeSet<T>) -> Accuracy {
        Accuracy {
            wanted: wanted.len(),
            found: found.len(),
            right: wanted.intersection(found).count(),
            wrong: first(found.difference(wanted)),
            missing: first(wanted.difference(found)),
        }
    }

    fn precision(&self) -> f64 {
        self.right as f64 / self.found.max(1) as f64
    }

    fn recall(&self) -> f64 {
        self.right as f64 / self.wanted.max(1) as f64
    }
}

fn first<T: std::fmt::Debug>(claims: impl Iterator<Item = T>) -> Vec<String> {
    claims.take(12).map(|claim| format!("{claim:?}")).collect()
}

/// The marks in the statements of a transaction.
fn marks(text: &str) -> BTreeSet<String> {
    let parts = text.split('\'');
    let is_mark = |part: &&str| {
        part.starts_with('s')
            && part.contains('n')
            && part[1..].chars().all(|c| c == 'n' || c.is_ascii_digit())
    };
    parts.filter(is_mark).map(Into::into).collect()
}

/// Records a workload in sessions at the same time, and compares the record with the truth: of
/// changes of rows, and of reads of tables.
pub fn measured<S: DatabaseServer>(
    what: &str,
    dialect: Dialect,
    transactions: u64,
    seed: u64,
) -> Option<(Accuracy, Accuracy)> {
    let place = DatabasePlace::<S>::new(what, &[])?;
    for name in TABLES {
        place.query(&format!(
            "CREATE TABLE {name} (id int PRIMARY KEY, mark varchar(20)); \
             CREATE VIEW {name}_view AS SELECT * FROM {name}"
        ));
    }
    if dialect == Dialect::Postgres {
        let table = TABLES[FULL];
        place.query(&format!("ALTER TABLE {table} REPLICA IDENTITY FULL"));
    }
    let watch = place.watched();
    let workloads: Vec<Workload> = (0..SESSIONS)
        .map(|session| Workload::of(session, transactions, seed, dialect))
        .collect();
    let mut clients = Vec::new();
    for (session, work) in workloads.iter().enumerate() {
        let script = place.work.join(format!("{session}.sql"));
        fs::write(&script, &work.script).unwrap();
        let line = place.server.executes_file(&script);
        let client = place.stage.command("sh").args(["-c", &line]).spawn();
        clients.push(client.unwrap());
    }
    for mut client in clients {
        assert!(client.wait().unwrap().success());
    }
    place.ends_complete(watch);
    Some(compare(&place, &workloads))
}

/// Compares the record of workloads with the truth: of changes of rows, and of reads of tables.
fn compare<S: DatabaseServer>(
    place: &DatabasePlace<S>,
    workloads: &[Workload],
) -> (Accuracy, Accuracy) {
    let wanted: BTreeSet<Change> = workloads
        .iter()
        .flat_map(|one| one.changes.clone())
        .collect();
    let mut found = BTreeSet::new();
    let rows: BTreeSet<(usize, u64)> = wanted.iter().map(|one| (one.table, one.key)).collect();
    for (table, key) in rows {
        let answer = place.json(&["of", "--table", TABLES[table], "--key", &key.to_string()]);
        let history = answer["history"].as_array().unwrap();
        found.extend(history.iter().map(|event| recorded((table, key), event)));
    }
    let changes = Accuracy::of(&wanted, &found);

    let reads =
        |of: fn(&Workload) -> &BTreeMap<String, BTreeSet<usize>>| -> BTreeSet<(String, usize)> {
            let all = workloads.iter().flat_map(of);
            all.flat_map(|(mark, tables)| tables.iter().map(|table| (mark.clone(), *table)))
                .collect()
        };
    let (wanted, undone) = (reads(|one| &one.reads), reads(|one| &one.undone));
    let mut found = BTreeSet::new();
    for name in TABLES {
        let answer = place.json(&["of", "--level", "all", "--table", name]);
        found.extend(table_reads(&answer));
    }
    found.retain(|read| !undone.contains(read));
    (changes, Accuracy::of(&wanted, &found))
}

/// A recorded change of a row.
fn recorded((table, key): (usize, u64), event: &Value) -> Change {
    let change = &event["change"];
    let texts = event["transaction"]["statements"].to_string();
    let mark = marks(&texts).into_iter().next();
    Change {
        table,
        key,
        operation: change["operation"].as_str().unwrap().to_owned(),
        mark: mark.unwrap_or_else(|| event["transaction"].to_string()),
        before: image(&change["before"]),
        after: image(&change["after"]),
        is_incomplete: !change["before_incomplete"].is_null(),
    }
}

fn image(columns: &Value) -> Option<Image> {
    let text = |value: &Value| match value.as_str() {
        Some(text) => text.to_owned(),
        None => value.to_string(),
    };
    let columns = columns.as_object()?.iter();
    Some(
        columns
            .map(|(name, value)| (name.clone(), text(value)))
            .collect(),
    )
}

/// The transactions of an answer, by their marks, with the tables that they read.
fn table_reads(answer: &Value) -> BTreeSet<(String, usize)> {
    let nodes = answer["nodes"].as_array().unwrap();
    let at = |index: &Value| &nodes[index.as_u64().unwrap() as usize];
    let reads = answer["links"].as_array().unwrap().iter();
    let reads = reads.filter(|link| link["flow"] == "used" && link["how"] == "read");
    let mut found = BTreeSet::new();
    for link in reads {
        let path = at(&link["from"])["path"].as_str().unwrap_or_default();
        let table = TABLES
            .iter()
            .position(|name| path.rsplit(['/', '.']).next() == Some(*name));
        let text = at(&link["to"])["argv"].to_string();
        if let Some(table) = table {
            found.extend(marks(&text).into_iter().map(|mark| (mark, table)));
        }
    }
    found
}

#[track_caller]
pub fn assert_exact((changes, reads): &(Accuracy, Accuracy)) {
    assert_exact_claims("changes of rows", changes);
    assert_exact_claims("reads of tables", reads);
}

#[track_caller]
pub fn assert_exact_columns(columns: &Accuracy) {
    assert_exact_claims("columns", columns);
}

#[track_caller]
fn assert_exact_claims(of: &str, accuracy: &Accuracy) {
    let (precision, recall) = (accuracy.precision(), accuracy.recall());
    let Accuracy { wrong, missing, .. } = accuracy;
    let exact = accuracy.wanted > 0 && wrong.is_empty() && missing.is_empty();
    assert!(
        exact,
        "{of}: precision {precision:.4}, recall {recall:.4}, wrong: {wrong:?}, missing: {missing:?}"
    );
}

fn postgres(what: &str, transactions: u64, seed: u64) -> Option<(Accuracy, Accuracy)> {
    measured::<PostgresServer>(what, Dialect::Postgres, transactions, seed)
}

#[test]
fn the_rows_of_a_generated_workload_have_their_true_transactions() {
    let measured = postgres("the accuracy of rows", 12, 1);
    measured.iter().for_each(assert_exact);
}

#[test]
#[ignore = "a long workload"]
fn the_rows_of_a_long_generated_workload_have_their_true_transactions() {
    for seed in 2..5 {
        let measured = postgres("the accuracy of many rows", 150, seed);
        measured.iter().for_each(assert_exact);
    }
}
