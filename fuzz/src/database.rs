//! Opening and querying a store ends with answers or an error, whichever bytes its files hold.
//!
//! The first byte of the input selects the rest:
//!
//! - even: changes of rows (table, row, length in two bytes, bytes)
//! - 1 modulo 4: changes of the file's bytes (offset in four, length in one, bytes)
//! - otherwise: the content of `format`

use super::fold::{append, ask};
use super::place;
use backstory_eventlog::Log;
use backstory_store::{Home, SqliteStore};
use rusqlite::Connection;
use std::path::Path;
use std::sync::OnceLock;

const GOLDEN: &[u8] = include_bytes!("../../fixtures/logs/1/pipeline.log");

/// Tables, and the column with the content of a row.
const TABLES: [(&str, &str); 12] = [
    ("versions", "block"),
    ("members", "block"),
    ("activities", "block"),
    ("segments", "block"),
    ("edge_lists", "block"),
    ("extended", "block"),
    ("texts", "block"),
    ("directories", "block"),
    ("runs", "header"),
    ("runs", "\"end\""),
    ("runs", "started"),
    ("runs", "unknown"),
];

/// The bytes of a good database.
fn good() -> &'static [u8] {
    static GOOD: OnceLock<Vec<u8>> = OnceLock::new();
    GOOD.get_or_init(|| {
        let place = place::new();
        let path = place.path().join("log");
        std::fs::write(&path, GOLDEN).expect("write");
        let home = Home::open(&place.path().join("store")).expect("a home");
        let mut store = SqliteStore::open(&home).expect("a store");
        append(&Log::open(&path).expect("opens"), &mut store).expect("appended");
        drop(store);
        std::fs::read(home.database_path()).expect("read")
    })
}

/// Opens the store and queries it.
pub fn run(data: &[u8]) {
    let Some((&mode, mut rest)) = data.split_first() else {
        return;
    };
    let place = place::new();
    let home = Home::open(place.path()).expect("a home");
    let path = home.database_path();
    let mut bytes = good().to_vec();
    if mode % 4 == 1 {
        patch(&mut bytes, &mut rest);
    }
    std::fs::write(&path, &bytes).expect("write");
    if mode % 2 == 0 {
        rows(&path, &mut rest);
    } else if mode % 4 == 3 {
        std::fs::write(place.path().join("format"), rest).expect("write");
    }
    let Ok(home) = Home::open(place.path()) else {
        return;
    };
    if let Ok(store) = SqliteStore::open(&home) {
        ask(&store);
    }
}

fn patch(bytes: &mut [u8], rest: &mut &[u8]) {
    while let Some(([a, b, c, d, length], after)) = rest.split_first_chunk::<5>() {
        let (patch, after) = after.split_at(usize::from(*length).min(after.len()));
        let at = u32::from_le_bytes([*a, *b, *c, *d]) as usize % bytes.len();
        for (to, from) in bytes[at..].iter_mut().zip(patch) {
            *to = *from;
        }
        *rest = after;
    }
}

fn rows(path: &Path, rest: &mut &[u8]) {
    let database = Connection::open(path).expect("opens");
    while let Some(([table, row, low, high], after)) = rest.split_first_chunk::<4>() {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(after.len());
        let (value, after) = after.split_at(length);
        let (table, column) = TABLES[usize::from(*table) % TABLES.len()];
        let update = format!(
            "UPDATE {table} SET {column} = ?1 WHERE rowid = \
             (SELECT rowid FROM {table} ORDER BY rowid LIMIT 1 OFFSET ?2 % max(1, (SELECT count(*) FROM {table})))"
        );
        // The schema may refuse a value.
        let _ = match table {
            "runs" => database.execute(&update, (String::from_utf8_lossy(value), *row)),
            _ => database.execute(&update, (value, *row)),
        };
        *rest = after;
    }
}
