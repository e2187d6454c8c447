//! Files of a database of SQLite as a crash, a program or an attacker left them: the database, its
//! write-ahead log, its rollback journal.
//!
//! The first byte of the input selects the files and the question ([`Choice`]). Changes of the
//! files follow: file, offset in three bytes, length, bytes. A file ends at the offset of a change
//! without bytes. The checksums are then made right, unless the first byte says otherwise: no
//! mutation would get past them.

use std::sync::OnceLock;

use backstory_inspect::{Inspector, NamedContent, PartName, by_name};
use backstory_inspection::row_changes::{DatabaseFiles, RowsWanted};
use rusqlite::Connection;

/// The database, its log and its journal.
type Files = [Vec<u8>; 3];

/// The first byte: each bit selects something.
struct Choice(u8);

impl Choice {
    /// The files with an unfinished transaction's journal. Otherwise those with a log.
    fn has_journal(&self) -> bool {
        self.0 & 1 != 0
    }

    /// The older state is that before the last transaction. Otherwise no older state is known.
    fn has_older(&self) -> bool {
        self.0 & 2 != 0
    }

    /// The changed files are the older state.
    fn is_older_changed(&self) -> bool {
        self.0 & 4 != 0
    }

    /// All changes are one step.
    fn as_one(&self) -> bool {
        self.0 & 8 != 0
    }

    /// The question is about one row.
    fn is_one_row(&self) -> bool {
        self.0 & 16 != 0
    }

    /// The checksums stay as they are.
    fn keeps_sums(&self) -> bool {
        self.0 & 32 != 0
    }
}

/// Tables of each kind of tree, with rows that continue on other pages.
const TABLES: &str = "PRAGMA page_size = 512;
    CREATE TABLE accounts (id INTEGER PRIMARY KEY, sum INTEGER, note TEXT);
    CREATE INDEX sums ON accounts (sum, note);
    CREATE TABLE names (name TEXT PRIMARY KEY, id INTEGER) WITHOUT ROWID;
    BEGIN;
    WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 60)
    INSERT INTO accounts SELECT i, i * 7, 'note ' || i FROM n;
    UPDATE accounts SET note = hex(zeroblob(1000)) WHERE id = 30;
    INSERT INTO names SELECT 'name ' || id, id FROM accounts;
    COMMIT;";
const LOGGED: &str = "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;
    UPDATE accounts SET sum = -1 WHERE id < 4;";
const LOGGED_LATER: &str = "DELETE FROM accounts WHERE id > 50;
    UPDATE accounts SET note = 'new' WHERE id = 30;";
const UNFINISHED: &str = "BEGIN; UPDATE accounts SET sum = -sum, note = id";

/// Two states with a log: after its first transaction, and after two more.
fn logged() -> &'static [Files; 2] {
    static MADE: OnceLock<[Files; 2]> = OnceLock::new();
    MADE.get_or_init(|| states(&format!("{TABLES} {LOGGED}"), LOGGED_LATER))
}

/// The states before and within a transaction, with a rollback journal.
fn unfinished() -> &'static [Files; 2] {
    static MADE: OnceLock<[Files; 2]> = OnceLock::new();
    MADE.get_or_init(|| {
        let mut states = states(TABLES, UNFINISHED);
        let journal = &mut states[1][2];
        assert!(journal.len() > 1024, "{} bytes of journal", journal.len());
        // SQLite writes the magic number and the number of records last.
        journal[..8].copy_from_slice(&JOURNAL);
        journal[8..12].fill(0xff);
        states
    })
}

/// The files of a new database after each of two batches of statements.
fn states(first: &str, second: &str) -> [Files; 2] {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("bank.db");
    let database = Connection::open(&path).expect("opens");
    [first, second].map(|statements| {
        database.execute_batch(statements).expect("executed");
        let mut files = ["", "-wal", "-journal"].map(|end| {
            // A file that does not exist is empty.
            std::fs::read(format!("{}{end}", path.display())).unwrap_or_default()
        });
        take_out_chance(&mut files);
        files
    })
}

/// Replaces the numbers that SQLite draws: an input means the same in each run.
fn take_out_chance([_, log, journal]: &mut Files) {
    const FIXED: u8 = 0x5a;
    if let Some(salts) = log.get_mut(16..24) {
        salts.fill(FIXED);
    }
    for frame in log.get_mut(32..).unwrap_or_default().chunks_exact_mut(536) {
        frame[8..16].fill(FIXED);
    }
    if let Some(nonce) = journal.get_mut(12..16) {
        nonce.fill(FIXED);
    }
    repair_log(log);
    repair_journal(journal);
}

/// Reads changed files: the rows that changed, facts, and the places of tables, rows and values.
pub fn run(data: &[u8]) {
    let Some((&choice, rest)) = data.split_first() else {
        return;
    };
    let choice = Choice(choice);
    let states = match choice.has_journal() {
        true => unfinished(),
        false => logged(),
    };
    let [mut older, mut newer] = states.clone();
    let changed = match choice.is_older_changed() {
        true => &mut older,
        false => &mut newer,
    };
    change(changed, rest);
    if !choice.keeps_sums() {
        repair_log(&mut changed[1]);
        repair_journal(&mut changed[2]);
    }
    let changed = changed[0].clone();
    let Some(inspector) = by_name("sqlite") else {
        panic!("there is no inspector sqlite");
    };
    let is_read = rows(inspector, &choice, &older, &newer);
    assert!(
        is_read || !rest.is_empty(),
        "files without damage are refused"
    );
    contents(inspector, &states[0][0], &changed);
}

/// True if the files are read. The steps are then in the order of the log's transactions.
fn rows(inspector: &dyn Inspector, choice: &Choice, older: &Files, newer: &Files) -> bool {
    let wanted = RowsWanted {
        has_older: choice.has_older(),
        table: choice.is_one_row().then(|| "accounts".to_owned()),
        key: choice.is_one_row().then(|| "30".to_owned()),
        as_one: choice.as_one(),
    };
    let before = match wanted.has_older {
        true => DatabaseFiles::of(older),
        false => DatabaseFiles::default(),
    };
    let Ok(found) = inspector.row_changes(&wanted, before, DatabaseFiles::of(newer)) else {
        return false;
    };
    let mut last = 0;
    for (from, to) in found.steps.iter().filter_map(|step| step.transactions) {
        assert!(last < from && from <= to, "{from} to {to} after {last}");
        last = to;
    }
    true
}

/// The bytes of each part lie within the file.
fn contents(inspector: &dyn Inspector, good: &[u8], changed: &[u8]) {
    let named = |bytes| NamedContent {
        name: "bank.db",
        bytes,
        key: &[],
    };
    let _ = inspector.facts(named(changed));
    let _ = inspector.changes(named(good), named(changed));
    for part in [
        "accounts",
        "names",
        "accounts[30]",
        "accounts[30].note",
        "accounts[60].id",
        "names[\"name 7\"]",
    ] {
        let part = PartName::Member(part.to_owned());
        let place = inspector.part(named(changed), &part).unwrap_or_default();
        let mut ranges = place.ranges.iter();
        assert!(ranges.all(|range| range.start <= range.end && range.end <= changed.len()));
    }
}

fn change(files: &mut Files, mut rest: &[u8]) {
    while let Some(([file, a, b, c, length], after)) = rest.split_first_chunk::<5>() {
        let (bytes, after) = after.split_at(usize::from(*length).min(after.len()));
        let file = &mut files[usize::from(*file) % 3];
        let at = u32::from_le_bytes([*a, *b, *c, 0]) as usize % (file.len() + 1);
        match bytes {
            [] => file.truncate(at),
            bytes => {
                for (to, from) in file[at..].iter_mut().zip(bytes) {
                    *to = *from;
                }
            }
        }
        rest = after;
    }
}

/// The first bytes of a journal that counts.
const JOURNAL: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

fn number(bytes: &[u8], at: usize) -> usize {
    let four = bytes.get(at..).and_then(<[u8]>::first_chunk);
    four.copied().map_or(0, u32::from_be_bytes) as usize
}

/// Makes the sums of a write-ahead log right: those of the head, and of each frame with all before
/// it. Source: <https://www.sqlite.org/fileformat2.html>, section 4.2.
fn repair_log(log: &mut [u8]) {
    const HEAD: usize = 32;
    let size = number(log, 8);
    if log.len() < HEAD || !(512..=65536).contains(&size) {
        return;
    }
    let is_big = log[3] & 1 == 1;
    let (head, frames) = log.split_at_mut(HEAD);
    let sums = add((0, 0), &head[..24], is_big);
    write(&mut head[24..], sums);
    let mut sums = sums;
    for frame in frames.chunks_exact_mut(24 + size) {
        sums = add(sums, &frame[..8], is_big);
        sums = add(sums, &frame[24..], is_big);
        write(&mut frame[16..], sums);
    }
}

fn add((mut one, mut other): (u32, u32), bytes: &[u8], is_big: bool) -> (u32, u32) {
    for pair in bytes.chunks_exact(8) {
        let number = |at: usize| {
            let four = [pair[at], pair[at + 1], pair[at + 2], pair[at + 3]];
            match is_big {
                true => u32::from_be_bytes(four),
                false => u32::from_le_bytes(four),
            }
        };
        one = one.wrapping_add(number(0)).wrapping_add(other);
        other = other.wrapping_add(number(4)).wrapping_add(one);
    }
    (one, other)
}

fn write(to: &mut [u8], (one, other): (u32, u32)) {
    to[..4].copy_from_slice(&one.to_be_bytes());
    to[4..8].copy_from_slice(&other.to_be_bytes());
}

/// Makes the sums of a rollback journal's records right, as if its first head counted all. Source:
/// <https://www.sqlite.org/fileformat2.html>, section 3.
fn repair_journal(journal: &mut [u8]) {
    let (nonce, sector, size) = (
        number(journal, 12),
        number(journal, 20),
        number(journal, 24),
    );
    if !(512..=65536).contains(&size) || sector < 28 {
        return;
    }
    let Some(records) = journal.get_mut(sector..) else {
        return;
    };
    for record in records.chunks_exact_mut(size + 8) {
        let content = &record[4..size + 4];
        let mut at = size - 200;
        let mut sum = nonce as u32;
        while at > 0 {
            sum = sum.wrapping_add(u32::from(content[at]));
            at = at.saturating_sub(200);
        }
        record[size + 4..].copy_from_slice(&sum.to_be_bytes());
    }
}
