//! Compares two tables with a heading: columns, rows and cells.
//!
//! Columns are matched by their names. Rows are matched by the key columns that the user chose.
//! Without them, rows are matched by their first column if its values are unique in both tables. In
//! both cases their order does not matter. Otherwise equal rows are aligned like the lines of a
//! text, and the rows left between two equal rows are matched in order.

use std::collections::HashMap;

use backstory_comparison::{CellChange, FormatDifference, TableDifference, operations};
use similar::DiffOp;

use super::Table;
use super::row_keys::{self, KeyedRows, RowMatch};
use crate::{NamedContent, Read};

/// The most changed cells, added rows and removed rows that are listed, and the most bytes of all.
const LISTED: usize = 1000;
const LISTED_BYTES: usize = 4 << 20;

/// The difference of two contents, which `table` reads. `None` if they are equal, or if one of them
/// is no table.
///
/// # Errors
/// Those of `table`.
pub fn between(
    old: NamedContent<'_>,
    new: NamedContent<'_>,
    table: impl Fn(NamedContent<'_>) -> Read<Option<Table>>,
) -> Read<Option<FormatDifference>> {
    if old.bytes == new.bytes {
        return Ok(None);
    }
    let key = new.key;
    let tables = table(old)?.zip(table(new)?);
    Ok(tables.map(|(old, new)| FormatDifference::Table(compare(&old, &new, key))))
}

/// Compares two tables. `key`: the columns that the user chose to match rows by.
pub fn compare(a: &Table, b: &Table, key: &[String]) -> TableDifference {
    let only = |one: &Table, other: &Table| -> Vec<Vec<u8>> {
        let names = one.heading().iter();
        names
            .filter(|name| !other.heading().contains(name))
            .cloned()
            .collect()
    };
    let mut comparison = CellComparison {
        a,
        b,
        both: shared_columns(a, b),
        listed_bytes: 0,
        found: TableDifference {
            a: a.rows(),
            b: b.rows(),
            columns_removed: only(a, b),
            columns_added: only(b, a),
            ..TableDifference::default()
        },
    };
    let both = &comparison.both;
    comparison.found.columns_moved = !both.is_sorted_by_key(|(_, other)| *other);
    let RowMatch { keyed, refused } = row_keys::matched(a, b, key);
    comparison.found.key_not_used_because = refused;
    match keyed {
        Some((old, new)) => comparison.by_key(&old, &new),
        None => comparison.in_order(),
    }
    comparison.found
}

/// The columns that both tables have: their positions in either.
fn shared_columns(a: &Table, b: &Table) -> Vec<(usize, usize)> {
    let places: HashMap<&Vec<u8>, usize> = b.heading().iter().zip(0..).collect();
    let columns = a.heading().iter().enumerate();
    columns
        .filter_map(|(at, name)| Some((at, *places.get(name)?)))
        .collect()
}

/// A comparison in progress.
struct CellComparison<'t> {
    a: &'t Table,
    b: &'t Table,
    both: Vec<(usize, usize)>,
    listed_bytes: usize,
    found: TableDifference,
}

impl CellComparison<'_> {
    /// Matches rows by their keys.
    fn by_key(&mut self, old: &KeyedRows<'_>, new: &KeyedRows<'_>) {
        let mut places = Vec::new();
        for at in 0..self.a.rows() {
            match new.place_of(old, at) {
                Some(other) => {
                    places.push(other);
                    self.pair(at, other, Some(old));
                }
                None => {
                    self.found.rows_removed += 1;
                    if let Some(key) = self.listed_key(old, at, self.found.keys_removed.len()) {
                        self.found.keys_removed.push(key);
                    }
                }
            }
        }
        self.found.rows_moved = !places.is_sorted();
        for at in 0..self.b.rows() {
            if old.place_of(new, at).is_none() {
                self.found.rows_added += 1;
                if let Some(key) = self.listed_key(new, at, self.found.keys_added.len()) {
                    self.found.keys_added.push(key);
                }
            }
        }
    }

    /// The key of a row that only one table has. `None` if enough keys are listed.
    fn listed_key(&mut self, rows: &KeyedRows<'_>, at: usize, listed: usize) -> Option<Vec<u8>> {
        if listed >= LISTED {
            return None;
        }
        let key = rows.key(at);
        self.lists(key.len()).then_some(key)
    }

    /// True if so many more bytes are listed.
    fn lists(&mut self, bytes: usize) -> bool {
        let fits = self.listed_bytes + bytes <= LISTED_BYTES;
        self.listed_bytes += if fits { bytes } else { 0 };
        fits
    }

    /// Matches rows by their order.
    fn in_order(&mut self) {
        let (a, b) = (self.a, self.b);
        let row = |table: &'_ Table, at: usize, second: bool| -> Vec<u8> {
            // The cells of a row with their lengths, so that two rows are equal if these are.
            let mut all = Vec::new();
            for &(x, y) in &self.both {
                let cell = table.cell(at, if second { y } else { x });
                all.extend((cell.len() as u32).to_le_bytes());
                all.extend(cell);
            }
            all
        };
        let digest = |table, second| -> Vec<[u8; 32]> {
            let rows = (0..Table::rows(table)).map(|at| row(table, at, second));
            rows.map(|row| *blake3::hash(&row).as_bytes()).collect()
        };
        let (old, new) = (digest(a, false), digest(b, true));
        for op in operations(&old, &new) {
            if matches!(op, DiffOp::Equal { .. }) {
                continue;
            }
            let (x, y) = (op.old_range(), op.new_range());
            for (at, other) in x.clone().zip(y.clone()) {
                self.pair(at, other, None);
            }
            self.found.rows_removed += x.len().saturating_sub(y.len());
            self.found.rows_added += y.len().saturating_sub(x.len());
        }
    }

    /// Compares the cells of two matched rows. `keyed`: the rows of the first table, if they have
    /// keys.
    fn pair(&mut self, at: usize, other: usize, keyed: Option<&KeyedRows<'_>>) {
        let (a, b) = (self.a, self.b);
        let before = self.found.cells_changed;
        for column in 0..self.both.len() {
            let (x, y) = self.both[column];
            let (old, new) = (a.cell(at, x), b.cell(other, y));
            if old == new {
                continue;
            }
            self.found.cells_changed += 1;
            let row = match keyed {
                Some(rows) => rows.key(at),
                None => (at + 1).to_string().into_bytes(),
            };
            let bytes = row.len() + a.heading()[x].len() + old.len() + new.len();
            if self.found.cells.len() < LISTED && self.lists(bytes) {
                self.found.cells.push(CellChange {
                    row,
                    column: a.heading()[x].clone(),
                    a: old.to_vec(),
                    b: new.to_vec(),
                });
            }
        }
        self.found.rows_changed += usize::from(self.found.cells_changed > before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::delimited_rows;

    fn read(text: &str) -> Option<Table> {
        delimited_rows::table("x.csv", text.as_bytes()).unwrap()
    }

    fn of(a: &str, b: &str) -> TableDifference {
        by(a, b, &[])
    }

    fn by(a: &str, b: &str, key: &[&str]) -> TableDifference {
        let key: Vec<String> = key.iter().map(|name| name.to_string()).collect();
        compare(&read(a).unwrap(), &read(b).unwrap(), &key)
    }

    fn texts(keys: &[Vec<u8>]) -> Vec<&str> {
        let texts = keys.iter().map(|key| std::str::from_utf8(key).unwrap());
        texts.collect()
    }

    #[test]
    fn rows_are_matched_by_the_chosen_columns_in_any_order() {
        let old = "n,place,year,x\n1,oslo,2020,5\n2,oslo,2021,6\n3,bergen,2020,7\n";
        let new = "n,place,year,x\n1,bergen,2021,4\n2,bergen,2020,7\n3,oslo,2021,8\n";
        let found = by(old, new, &["place", "year"]);
        assert_eq!(texts(&found.keys_removed), ["oslo/2020"]);
        assert_eq!(texts(&found.keys_added), ["bergen/2021"]);
        assert_eq!((found.rows_removed, found.rows_added), (1, 1));
        assert_eq!((found.rows_changed, found.cells_changed), (2, 3));
        let cells = found.cells.iter().filter(|cell| cell.column == b"x");
        assert_eq!(
            cells.map(|cell| &cell.row[..]).collect::<Vec<_>>(),
            [b"oslo/2021"]
        );
        assert!(found.rows_moved && found.key_not_used_because.is_none());
        // Without them, the first column is the key, and every row has changed.
        assert_eq!(of(old, new).rows_changed, 3);
    }

    #[test]
    fn chosen_columns_that_are_no_key_are_refused_with_the_reason() {
        let old = "k,v\nx,1\ny,1\n";
        let new = "k,v\nx,1\ny,2\n";
        let refused = |key: &[&str]| {
            let found = by(old, new, key);
            assert_eq!(found.cells_changed, 1, "the first column is still the key");
            found.key_not_used_because.unwrap()
        };
        assert_eq!(refused(&["K"]), "the first table has no column `K`");
        assert_eq!(
            refused(&["v"]),
            "two rows of the first table have the key `1`"
        );
    }

    #[test]
    fn keys_of_two_columns_are_not_those_of_their_joined_text() {
        let found = by("a,b,x\n1/2,3,p\n", "a,b,x\n1,2/3,p\n", &["a", "b"]);
        assert_eq!((found.rows_removed, found.rows_added), (1, 1));
    }

    #[test]
    fn rows_are_matched_by_a_unique_first_column() {
        let found = of(
            "id,x,y\na,1,2\nb,3,4\nc,5,6\n",
            "id,x,y\nc,5,6\na,1,9\nd,7,8\n",
        );
        assert_eq!(
            (found.rows_removed, found.rows_added, found.rows_changed),
            (1, 1, 1)
        );
        assert!(found.rows_moved);
        let cell = &found.cells[0];
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        assert_eq!(
            [&cell.row, &cell.column, &cell.a, &cell.b].map(|part| text(part)),
            ["a", "y", "2", "9"]
        );
    }

    #[test]
    fn rows_without_a_unique_column_are_matched_in_order() {
        let found = of("k,v\nx,1\nx,2\nx,3\n", "k,v\nx,1\nx,5\nx,3\nx,4\n");
        assert_eq!(
            (found.rows_removed, found.rows_added, found.cells_changed),
            (0, 1, 1)
        );
        assert_eq!(found.cells[0].row, b"2");
    }

    #[test]
    fn columns_are_matched_by_their_names() {
        let found = of("id,x,y\na,1,2\n", "id,y,z\na,2,3\n");
        assert_eq!(found.columns_removed, [b"x".to_vec()]);
        assert_eq!(found.columns_added, [b"z".to_vec()]);
        assert_eq!((found.cells_changed, found.columns_moved), (0, false));
        assert!(of("id,x,y\na,1,2\n", "id,y,x\na,2,1\n").columns_moved);
    }

    #[test]
    fn quoted_fields_are_read_and_a_text_without_columns_is_no_table() {
        let found = of("id,t\n1,\"a, b\"\n", "id,t\n1,\"a, c\"\n");
        assert_eq!(found.cells[0].b, b"a, c");
        assert!(read("one\ntwo\n").is_none());
        assert!(read("a,b\n1\n").is_none());
    }

    #[test]
    fn long_cells_are_counted_and_not_all_listed() {
        let row = |digit: char| format!("{},{}\n", "k".repeat(1 << 20), digit);
        let [a, b] = ['1', '2'].map(|digit| format!("id,x\n{}", row(digit)));
        let found = of(&a, &b);
        assert_eq!((found.cells_changed, found.cells.len()), (1, 1));
        let wide = |digit: char| {
            let names: Vec<String> = (0..100).map(|at| format!("c{at}")).collect();
            let cells = vec![digit.to_string(); 99];
            format!(
                "{}\n{},{}\n",
                names.join(","),
                "k".repeat(1 << 20),
                cells.join(",")
            )
        };
        let found = of(&wide('1'), &wide('2'));
        assert_eq!((found.cells_changed, found.cells.len()), (99, 3));
    }
}
