//! A table of a database of SQLite, a row of it, or a value: `accounts`, `accounts[42]`,
//! `accounts["ash"].sum`.
//!
//! A row has the key that the answers about rows print: the primary key, else the rowid.

use backstory_inspection::file_parts::{NoPart, PartAnswer, PartName, PartPlace};
use rusqlite::Connection;

use super::member_path::{MemberPath, PathStep};
use super::{absent, listed, unreadable};
use crate::formats::sqlite_content::{open, tables};
use crate::formats::sqlite_pages::{DatabasePages, RowPlace, ValuePlace};
use crate::formats::sqlite_rows::TableReader;

/// The most names in an answer.
const NAMED: usize = 20;

/// The type of a value that the library reads.
const NULL: &str = "null";

/// The place of a table, a row or a value.
///
/// # Errors
/// A cell is meant, or the name has another form, or the database has no such part, or is damaged.
pub fn place(content: &[u8], name: &PartName) -> PartAnswer {
    let PartName::Member(text) = name else {
        return Err(NoPart::OtherKind);
    };
    let path = MemberPath::read(text)?;
    let (table, key, column) = match &path.0[..] {
        [PathStep::Name(table)] => (table, None, None),
        [PathStep::Name(table), key] => (table, Some(key), None),
        [PathStep::Name(table), key, PathStep::Name(column)] => (table, Some(key), Some(column)),
        _ => {
            let how = "give a table, the key of a row, and a column, as in accounts[42].sum or accounts[\"ash\"].sum";
            return Err(NoPart::Misnamed(how.to_owned()));
        }
    };
    let key = key.map(|key| match key {
        PathStep::Name(text) => text.clone(),
        PathStep::Item(number) => number.to_string(),
    });
    let database = open(content)?;
    let pages = DatabasePages::of(content)?;
    let table = Table::find(&database, table)?;
    match key {
        None => table.place(&pages),
        Some(key) => table.row_part(&pages, &key, column.map(String::as_str)),
    }
}

/// A table of an open database.
struct Table<'d> {
    database: &'d Connection,
    reader: TableReader,
    /// The number of the first page of its tree.
    root: u32,
}

impl<'d> Table<'d> {
    fn find(database: &'d Connection, name: &str) -> Result<Table<'d>, NoPart> {
        let mut all = tables(database)?;
        let found = all
            .iter()
            .position(|one| one.name.eq_ignore_ascii_case(name));
        let Some(found) = found else {
            let names = all.iter().take(NAMED).map(|one| format!("`{}`", one.name));
            let names = listed(&names.collect::<Vec<_>>());
            let but = match all.len() {
                0 => String::new(),
                1..=NAMED => format!(", but {names}"),
                many => format!(", but {names} and {} others", many - NAMED),
            };
            return Err(absent(format!("it has no table `{name}`{but}")));
        };
        let reader = all.swap_remove(found);
        let query = "SELECT rootpage FROM sqlite_schema WHERE type = 'table' AND name = ?1";
        let root = database.query_row(query, [&reader.name], |row| row.get(0));
        Ok(Table {
            database,
            reader,
            root: root.map_err(unreadable)?,
        })
    }

    fn place(&self, pages: &DatabasePages<'_>) -> PartAnswer {
        Ok(PartPlace {
            ranges: pages.tree(self.root)?,
            name: Some(self.reader.name.clone()),
            within: Some("all pages of the table, with their free space".to_owned()),
            ..PartPlace::default()
        })
    }

    /// The place of a row, or of a value in it.
    fn row_part(&self, pages: &DatabasePages<'_>, key: &str, column: Option<&str>) -> PartAnswer {
        let name = &self.reader.name;
        if self.reader.rowid_name().is_none() {
            return Err(absent(format!(
                "`{name}` has no rowids (WITHOUT ROWID), so its rows are not found: ask for the table"
            )));
        }
        let stored = column.map(|column| self.stored(column)).transpose()?;
        let found = self.reader.rowid(self.database, key, column);
        let found = found.map_err(unreadable)?;
        let (rowid, kind) =
            found.ok_or_else(|| absent(format!("`{name}` has no row {key} in the file itself")))?;
        let row = pages.row(self.root, rowid)?;
        let row = row.ok_or_else(|| unreadable(format!("row {key} of `{name}` is not found")))?;
        match (stored, column) {
            (Some(stored), Some(column)) => {
                let value = value_ranges(pages, &row, stored, &kind)?;
                let ranges = value.ok_or_else(|| {
                    absent(format!(
                        "row {key} of `{name}` is older than the column `{column}`, and has no bytes of it"
                    ))
                })?;
                Ok(PartPlace {
                    ranges,
                    ..PartPlace::default()
                })
            }
            _ => Ok(PartPlace {
                ranges: row.all,
                ..PartPlace::default()
            }),
        }
    }

    /// The place of a column among those that rows have bytes of.
    fn stored(&self, column: &str) -> Result<usize, NoPart> {
        /// Computed when it is read.
        const VIRTUAL: i64 = 2;
        let read = || {
            let query = "SELECT name, hidden FROM pragma_table_xinfo(?1) ORDER BY cid";
            let mut query = self.database.prepare(query)?;
            let columns = query.query_map([&self.reader.name], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
            })?;
            columns.collect::<rusqlite::Result<Vec<_>>>()
        };
        let all = read().map_err(unreadable)?;
        let is_wanted = |one: &&(String, i64)| one.0.eq_ignore_ascii_case(column);
        match all.iter().find(is_wanted) {
            None => Err(absent(format!(
                "`{}` has no column `{column}`",
                self.reader.name
            ))),
            Some((_, VIRTUAL)) => Err(absent(format!(
                "`{column}` is computed when it is read: no bytes of it are stored"
            ))),
            Some(_) => {
                let mut stored = all.iter().filter(|(_, hidden)| *hidden != VIRTUAL);
                let place = stored.position(|(name, _)| name.eq_ignore_ascii_case(column));
                Ok(place.unwrap_or_default())
            }
        }
    }
}

/// The bytes of a value. `None`: the row has none of the column. `kind` is the type of the value
/// that the library reads.
fn value_ranges(
    pages: &DatabasePages<'_>,
    row: &RowPlace,
    stored: usize,
    kind: &str,
) -> Result<Option<Vec<std::ops::Range<usize>>>, NoPart> {
    Ok(match pages.value(row, stored)? {
        ValuePlace::Bytes(ranges) => Some(ranges),
        // A column that is the rowid is stored as NULL.
        ValuePlace::InHead(ranges) => match (kind, row.rowid()) {
            (NULL, _) => Some(ranges),
            (_, rowid) if pages.is_null(&ranges) => Some(vec![rowid]),
            _ => Some(ranges),
        },
        ValuePlace::Absent => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::MAIN_DB;

    const LONG: usize = 20_000;

    /// A database with many rows, a long one, and values without bytes.
    fn database() -> Vec<u8> {
        let database = Connection::open_in_memory().unwrap();
        database
            .execute_batch(
                "PRAGMA page_size = 512;
                 CREATE TABLE plants (id INTEGER PRIMARY KEY, name TEXT, price REAL, few INTEGER,
                                      twice AS (price * 2), long TEXT);
                 CREATE TABLE \"by name\" (name TEXT PRIMARY KEY, sum INTEGER);
                 CREATE TABLE pairs (a, b, c, PRIMARY KEY (a, b));
                 CREATE TABLE none (name TEXT PRIMARY KEY, sum) WITHOUT ROWID;
                 INSERT INTO \"by name\" VALUES ('ash', 12345), ('birch', 0);
                 INSERT INTO pairs VALUES (1, 'x', 'first'), (1, 'y', 'second');
                 INSERT INTO none VALUES ('ash', 54321);
                 WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
                 INSERT INTO plants (id, name, price, few, long)
                 SELECT i * 3, 'name-' || i, i + 0.5, i % 2, NULL FROM n;",
            )
            .unwrap();
        let long = "long".repeat(LONG / 4);
        let update = "UPDATE plants SET long = ?1 WHERE id IN (300, 3000)";
        database.execute(update, [&long]).unwrap();
        database
            .execute_batch("ALTER TABLE plants ADD COLUMN late TEXT DEFAULT 'never'")
            .unwrap();
        database.serialize(MAIN_DB).unwrap().to_vec()
    }

    fn asked(content: &[u8], name: &str) -> Result<Vec<u8>, NoPart> {
        let place = place(content, &PartName::Member(name.to_owned()))?;
        let bytes = place
            .ranges
            .iter()
            .flat_map(|range| &content[range.clone()]);
        Ok(bytes.copied().collect())
    }

    #[test]
    fn a_value_of_a_row_is_found_by_its_own_bytes() {
        let content = database();
        for (name, bytes) in [
            ("plants[3].name", &b"name-1"[..]),
            ("plants[6000].name", b"name-2000"),
            ("PLANTS[2961].Name", b"name-987"),
            ("plants[300].price", &100.5f64.to_be_bytes()),
            ("[\"by name\"].ash.sum", &12345u16.to_be_bytes()),
            ("[\"by name\"].birch.name", b"birch"),
            ("pairs[\"b=y,a=1\"].c", b"second"),
            // The rowid in two bytes of seven bits.
            ("plants[300].id", &[0x82, 0x2c]),
            // The types of 0, 1 and NULL.
            ("plants[6].few", &[8]),
            ("plants[3].few", &[9]),
            ("plants[3].long", &[0]),
        ] {
            assert_eq!(asked(&content, name).unwrap(), bytes, "{name}");
        }
        let long = asked(&content, "plants[3000].long").unwrap();
        assert_eq!(long, "long".repeat(LONG / 4).into_bytes());
    }

    #[test]
    fn a_row_has_all_its_values_and_a_table_all_its_rows() {
        let content = database();
        let row = asked(&content, "plants[3000]").unwrap();
        assert!(row.windows(9).any(|part| part == b"name-1000"));
        assert!(row.len() > LONG && row.len() < LONG + 60, "{}", row.len());
        let table = asked(&content, "plants").unwrap();
        let has = |text: &str| {
            table
                .windows(text.len())
                .any(|part| part == text.as_bytes())
        };
        // The price 1.5 follows the first name.
        assert!(has("name-1?") && has("name-2000") && has("longlong") && !has("birch"));
        let without = place(&content, &PartName::Member("none".to_owned())).unwrap();
        assert!(without.within.unwrap().contains("free space"));
    }

    #[test]
    fn what_is_not_there_is_said() {
        let content = database();
        for (name, word) in [
            ("trees[3]", "no table `trees`"),
            ("plants[4].name", "no row 4"),
            ("plants[3].colour", "no column `colour`"),
            ("plants[3].twice", "computed"),
            ("plants[3].late", "older than the column"),
            ("none.ash.sum", "WITHOUT ROWID"),
        ] {
            match asked(&content, name) {
                Err(NoPart::Absent(why)) => assert!(why.contains(word), "{name}: {why}"),
                other => panic!("{name}: {other:?}"),
            }
        }
        for name in ["plants[3].name.x", "[3]", "plants[3][0]"] {
            let misnamed = asked(&content, name);
            assert!(matches!(misnamed, Err(NoPart::Misnamed(_))), "{name}");
        }
        let cell = place(&content, &PartName::Cell("B3".to_owned()));
        assert!(matches!(cell, Err(NoPart::OtherKind)));
    }

    /// Otherwise a small file could have rows that are read for hours.
    #[test]
    fn a_table_is_refused_if_two_rows_continue_on_one_page() {
        let mut content = database();
        let pointer = |row: &str| {
            let found = place(&content, &PartName::Member(row.to_owned())).unwrap();
            let end = found.ranges[0].end;
            end..end + 4
        };
        let (one, other) = (pointer("plants[300]"), pointer("plants[3000]"));
        assert!(asked(&content, "plants").is_ok());
        content.copy_within(one, other.start);
        assert!(asked(&content, "plants[3000]").is_ok());
        assert!(asked(&content, "plants").is_err());
    }

    #[test]
    fn a_damaged_database_is_refused_or_has_fewer_rows_and_nothing_hangs() {
        let whole = database();
        for at in (100..whole.len()).step_by(997) {
            let mut content = whole.clone();
            content[at] ^= 0x5f;
            for name in ["plants", "plants[3000].long", "plants[6000]"] {
                let _ = asked(&content, name);
            }
        }
        for length in [0, 50, 512, 5120, whole.len() / 2] {
            let _ = asked(&whole[..length], "plants[6000].name");
        }
    }
}
