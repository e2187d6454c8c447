//! Compares two tables with a heading: columns, rows and cells.
//!
//! Columns are matched by their names. Rows are matched by their first column if its values are
//! unique in both tables; then their order does not matter. Otherwise equal rows are aligned like
//! the lines of a text, and the rows left between two equal rows are matched in order.

use std::collections::HashMap;

use backstory_comparison::{CellChange, FormatDifference, TableDifference, operations};
use similar::DiffOp;

use super::Table;
use crate::{NamedContent, Read};

/// The most changed cells that are listed, and the most bytes of them.
const LISTED: usize = 1000;
const LISTED_BYTES: usize = 4 << 20;

/// The position of each value of the first column. `None` if a value is there twice.
fn keys(table: &Table) -> Option<HashMap<&[u8], usize>> {
    let rows = table.rows();
    let keys: HashMap<&[u8], usize> = (0..rows).map(|at| (table.cell(at, 0), at)).collect();
    (keys.len() == rows).then_some(keys)
}

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
    let tables = table(old)?.zip(table(new)?);
    Ok(tables.map(|(old, new)| FormatDifference::Table(compare(&old, &new))))
}

/// Compares two tables.
pub fn compare(a: &Table, b: &Table) -> TableDifference {
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
    let keyed = (a.heading()[0] == b.heading()[0])
        .then(|| Some((keys(a)?, keys(b)?)))
        .flatten();
    match keyed {
        Some((old, new)) if old.keys().any(|key| new.contains_key(key)) => {
            comparison.by_key(&old, &new);
        }
        _ => comparison.in_order(),
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
    /// Matches rows by their first column.
    fn by_key(&mut self, old: &HashMap<&[u8], usize>, new: &HashMap<&[u8], usize>) {
        let mut places = Vec::new();
        for at in 0..self.a.rows() {
            match new.get(self.a.cell(at, 0)) {
                Some(&other) => {
                    places.push(other);
                    self.pair(at, other, true);
                }
                None => self.found.rows_removed += 1,
            }
        }
        self.found.rows_moved = !places.is_sorted();
        let is_added = |at: &usize| !old.contains_key(self.b.cell(*at, 0));
        self.found.rows_added = (0..self.b.rows()).filter(is_added).count();
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
                self.pair(at, other, false);
            }
            self.found.rows_removed += x.len().saturating_sub(y.len());
            self.found.rows_added += y.len().saturating_sub(x.len());
        }
    }

    /// Compares the cells of two matched rows.
    fn pair(&mut self, at: usize, other: usize, keyed: bool) {
        let (a, b) = (self.a, self.b);
        let before = self.found.cells_changed;
        for &(x, y) in &self.both {
            let (old, new) = (a.cell(at, x), b.cell(other, y));
            if old == new {
                continue;
            }
            self.found.cells_changed += 1;
            let row = match keyed {
                true => a.cell(at, 0).to_vec(),
                false => (at + 1).to_string().into_bytes(),
            };
            let bytes = row.len() + a.heading()[x].len() + old.len() + new.len();
            if self.found.cells.len() < LISTED && self.listed_bytes + bytes <= LISTED_BYTES {
                self.listed_bytes += bytes;
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
        compare(&read(a).unwrap(), &read(b).unwrap())
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
