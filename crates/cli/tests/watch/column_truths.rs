//! Generated statements whose true columns are known.

use std::collections::BTreeSet;

use crate::watch::accuracy::{Dialect, Dice};

/// Columns of the tables `red` and `green`. Their names differ, except for `id` and `mark`.
pub const TABLES: [(&str, [&str; 5]); 2] = [
    ("red", ["id", "mark", "a", "b", "c"]),
    ("green", ["id", "mark", "d", "e", "f"]),
];
/// The tables' columns, and a view that renames some of `red`.
pub const DEFINITIONS: &str = "\
    CREATE TABLE red (id int PRIMARY KEY, mark varchar(20), a int, b int, c int); \
    CREATE TABLE green (id int PRIMARY KEY, mark varchar(20), d int, e int, f int); \
    CREATE VIEW red_view AS SELECT id AS number, a + b AS total, c AS rest FROM red \
      WHERE mark <> 'x'";

/// A statement, and its true columns.
pub struct Truth {
    pub text: String,
    pub read: BTreeSet<String>,
    pub written: BTreeSet<String>,
}

/// The names that a statement gets: a table, two of its own columns, another table with one.
struct Names {
    table: &'static str,
    x: &'static str,
    y: &'static str,
    other: &'static str,
    z: &'static str,
    /// Not in any row.
    key: u64,
    mark: String,
}

/// Text, columns that are read, and columns that are written.
type Parts = (String, Vec<String>, Vec<String>);

/// Chooses statements, and says which columns they use.
pub struct Generator {
    pub dice: Dice,
    pub dialect: Dialect,
    pub next: u64,
}

impl Generator {
    pub fn truth(&mut self, mark: &str) -> Truth {
        let at = self.dice.below(2) as usize;
        let ((table, own), (other, others)) = (TABLES[at], TABLES[1 - at]);
        let first = 2 + self.dice.below(3) as usize;
        self.next += 1;
        let names = Names {
            table,
            x: own[first],
            y: own[2 + (first - 1) % 3],
            other,
            z: others[2 + self.dice.below(3) as usize],
            key: self.next,
            mark: mark.to_owned(),
        };
        let kind = self.dice.below(4);
        let (text, read, written) = match self.dice.below(4) {
            0 => selection(kind, &names),
            1 => selection_within(kind, &names),
            2 => insertion(kind, &names, self.dialect),
            _ => update(kind, &names, self.dialect),
        };
        Truth {
            text,
            read: read.into_iter().collect(),
            written: written.into_iter().collect(),
        }
    }
}

fn of(table: &str, columns: &[&str]) -> Vec<String> {
    let columns = columns.iter();
    columns.map(|column| format!("{table}.{column}")).collect()
}

fn all(table: &str) -> Vec<String> {
    let known = TABLES.iter().find(|one| one.0 == table);
    of(table, &known.unwrap().1)
}

fn both(one: Vec<String>, two: Vec<String>) -> Vec<String> {
    [one, two].concat()
}

#[rustfmt::skip]
fn selection(kind: u64, names: &Names) -> Parts {
    let Names { table, x, other, z, mark, .. } = names;
    match kind {
        0 => (
            format!("SELECT {x} FROM {table} WHERE mark = '{mark}'"),
            of(table, &[x, "mark"]), vec![],
        ),
        1 => (format!("SELECT * FROM {table} WHERE mark = '{mark}'"), all(table), vec![]),
        2 => (
            format!("SELECT t.{x}, {z} FROM {table} t JOIN {other} o ON t.id = o.id \
                WHERE o.mark = '{mark}'"),
            both(of(table, &[x, "id"]), of(other, &[z, "id", "mark"])), vec![],
        ),
        _ => (
            format!("SELECT {z} FROM {table} JOIN {other} USING (id) \
                WHERE {x} > 0 AND '{mark}' <> ''"),
            both(of(table, &["id", x]), of(other, &[z, "id"])), vec![],
        ),
    }
}

#[rustfmt::skip]
fn selection_within(kind: u64, names: &Names) -> Parts {
    let Names { table, x, y, other, z, mark, .. } = names;
    match kind {
        0 => (
            format!("SELECT total FROM red_view WHERE '{mark}' <> ''"),
            of("red", &["a", "b", "mark"]), vec![],
        ),
        1 => (
            format!("WITH q AS (SELECT {x} AS v, {y} AS w FROM {table}) \
                SELECT v FROM q WHERE '{mark}' <> ''"),
            of(table, &[x]), vec![],
        ),
        2 => (
            format!("SELECT o.* FROM {table}, {other} o WHERE {x} = o.id AND '{mark}' <> ''"),
            both(of(table, &[x]), all(other)), vec![],
        ),
        _ => (
            format!("SELECT count(*) FROM {table} WHERE '{mark}' <> '' \
                AND EXISTS (SELECT * FROM {other} WHERE {z} = {x})"),
            both(of(table, &[x]), of(other, &[z])), vec![],
        ),
    }
}

#[rustfmt::skip]
fn insertion(kind: u64, names: &Names, dialect: Dialect) -> Parts {
    let Names { table, x, y, other, z, key, mark } = names;
    let begin = format!("INSERT INTO {table}");
    match (kind, dialect) {
        (0, _) => (
            format!("{begin} (id, {x}) VALUES ({key}, length('{mark}'))"),
            vec![], of(table, &["id", x]),
        ),
        (1, _) => (format!("{begin} VALUES ({key}, '{mark}', 1, 2, 3)"), vec![], all(table)),
        (2, _) => (
            format!("{begin} (id, mark, {y}) SELECT id + 1000000 + {key}, '{mark}', {z} \
                FROM {other} WHERE id = {key}"),
            of(other, &["id", z]), of(table, &["id", "mark", y]),
        ),
        (_, Dialect::Postgres) => (
            format!("{begin} AS t (id, mark) VALUES ({key}, '{mark}') \
                ON CONFLICT (id) DO UPDATE SET {x} = t.{y} + 1 RETURNING id"),
            of(table, &["id", y]), of(table, &["id", "mark", x]),
        ),
        (_, Dialect::MariaDb) => (
            format!("{begin} (id, mark) VALUES ({key}, '{mark}') \
                ON DUPLICATE KEY UPDATE {x} = {y} + 1"),
            of(table, &[y]), of(table, &["id", "mark", x]),
        ),
    }
}

#[rustfmt::skip]
fn update(kind: u64, names: &Names, dialect: Dialect) -> Parts {
    let Names { table, x, y, other, z, key, mark } = names;
    match (kind, dialect) {
        (0, _) => (
            format!("UPDATE {table} SET {x} = {y} + 1, mark = '{mark}' WHERE id = {key}"),
            of(table, &[y, "id"]), of(table, &[x, "mark"]),
        ),
        (1, _) => (
            format!("UPDATE {table} SET {x} = (SELECT max({z}) FROM {other} \
                WHERE mark = '{mark}')"),
            of(other, &[z, "mark"]), of(table, &[x]),
        ),
        (2, _) => (
            format!("DELETE FROM {table} WHERE {x} = 5 AND mark = '{mark}'"),
            of(table, &[x, "mark"]), vec![],
        ),
        (_, Dialect::Postgres) => (
            format!("UPDATE {table} t SET {x} = o.{z} FROM {other} o \
                WHERE o.id = t.id AND o.mark = '{mark}'"),
            both(of(other, &[z, "id", "mark"]), of(table, &["id"])), of(table, &[x]),
        ),
        (_, Dialect::MariaDb) => (
            format!("UPDATE {table} t JOIN {other} o ON o.id = t.id SET t.{x} = o.{z} \
                WHERE o.mark = '{mark}'"),
            both(of(other, &[z, "id", "mark"]), of(table, &["id"])), of(table, &[x]),
        ),
    }
}
