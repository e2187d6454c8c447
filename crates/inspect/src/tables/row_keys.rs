//! The keys of the rows of two tables: which row of one belongs to which row of the other.
//!
//! In: two tables, and the names of the key columns that the user chose, if any. Out: the rows of
//! both by their keys. Invariant: no two rows of a table have the same key.

use std::collections::HashMap;

use super::Table;

/// A digest of the key columns' cells.
type KeyDigest = [u8; 16];

/// The rows of a table by their keys.
#[derive(Debug)]
pub struct KeyedRows<'t> {
    table: &'t Table,
    columns: Vec<usize>,
    places: HashMap<KeyDigest, u32>,
}

/// How the rows of two tables are matched.
#[derive(Debug)]
pub struct RowMatch<'t> {
    /// The rows of both by their keys. `None`: rows are matched in order.
    pub keyed: Option<(KeyedRows<'t>, KeyedRows<'t>)>,
    /// Why the columns that the user chose are not the key.
    pub refused: Option<String>,
}

/// The keys of two tables: the columns `chosen`, else the first column if it fits.
pub fn matched<'t>(a: &'t Table, b: &'t Table, chosen: &[String]) -> RowMatch<'t> {
    let refused = match by_chosen(a, b, chosen) {
        Ok(keyed @ Some(_)) => {
            return RowMatch {
                keyed,
                refused: None,
            };
        }
        Ok(None) => None,
        Err(why) => Some(why),
    };
    RowMatch {
        keyed: by_first_column(a, b),
        refused,
    }
}

/// By the chosen columns. `None` if the user chose none.
fn by_chosen<'t>(
    a: &'t Table,
    b: &'t Table,
    chosen: &[String],
) -> Result<Option<(KeyedRows<'t>, KeyedRows<'t>)>, String> {
    let keyed = |which: &str, table: &'t Table| {
        let columns = chosen.iter().map(|name| {
            let mut heading = table.heading().iter();
            let at = heading.position(|other| other == name.as_bytes());
            at.ok_or_else(|| format!("the {which} table has no column `{name}`"))
        });
        let columns = columns.collect::<Result<Vec<usize>, String>>()?;
        KeyedRows::of(table, columns).map_err(|twice| {
            let twice = String::from_utf8_lossy(&twice).into_owned();
            format!("two rows of the {which} table have the key `{twice}`")
        })
    };
    match chosen.is_empty() {
        true => Ok(None),
        false => Ok(Some((keyed("first", a)?, keyed("second", b)?))),
    }
}

/// By the first column, if it has one name and unique values, of which both tables have some.
fn by_first_column<'t>(a: &'t Table, b: &'t Table) -> Option<(KeyedRows<'t>, KeyedRows<'t>)> {
    if a.heading()[0] != b.heading()[0] {
        return None;
    }
    let keyed = |table| KeyedRows::of(table, vec![0]).ok();
    let (old, new) = (keyed(a)?, keyed(b)?);
    let mut keys = old.places.keys();
    keys.any(|key| new.places.contains_key(key))
        .then_some((old, new))
}

impl<'t> KeyedRows<'t> {
    /// # Errors
    /// The key that two rows have.
    fn of(table: &'t Table, columns: Vec<usize>) -> Result<KeyedRows<'t>, Vec<u8>> {
        let mut keyed = KeyedRows {
            table,
            columns,
            places: HashMap::with_capacity(table.rows()),
        };
        for row in 0..table.rows() {
            if keyed.places.insert(keyed.digest(row), row as u32).is_some() {
                return Err(keyed.key(row));
            }
        }
        Ok(keyed)
    }

    /// The key of a row, for people: its cells, joined by `/`.
    pub fn key(&self, row: usize) -> Vec<u8> {
        let cells = self.columns.iter().map(|at| self.table.cell(row, *at));
        cells.collect::<Vec<_>>().join(&b'/')
    }

    /// The row with the key of a row of another table.
    pub fn place_of(&self, other: &KeyedRows<'_>, row: usize) -> Option<usize> {
        let place = self.places.get(&other.digest(row));
        place.map(|place| *place as usize)
    }

    fn digest(&self, row: usize) -> KeyDigest {
        let mut hasher = blake3::Hasher::new();
        for at in &self.columns {
            let cell = self.table.cell(row, *at);
            hasher.update(&(cell.len() as u32).to_le_bytes());
            hasher.update(cell);
        }
        let mut digest = KeyDigest::default();
        hasher.finalize_xof().fill(&mut digest);
        digest
    }
}
