//! Compares two tables with a heading: columns, rows and cells.
//!
//! Columns are matched by their names. Rows are matched by their first column if its values are
//! unique in both tables; then their order does not matter. Otherwise equal rows are aligned like
//! the lines of a text, and the rows left between two equal rows are matched in order.

use std::collections::{HashMap, HashSet};

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// The most changed cells that are listed.
const LISTED: usize = 1000;

/// The difference between two tables.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableDifference {
    /// Rows of the first table, without the heading.
    pub a: usize,
    /// Rows of the second table.
    pub b: usize,
    /// Names of the columns that only the first table has.
    pub columns_removed: Vec<Vec<u8>>,
    /// Names of the columns that only the second table has.
    pub columns_added: Vec<Vec<u8>>,
    /// True if the columns that both have stand in another order.
    pub columns_moved: bool,
    /// Rows that only the first table has.
    pub rows_removed: usize,
    /// Rows that only the second table has.
    pub rows_added: usize,
    /// Rows with a changed cell.
    pub rows_changed: usize,
    /// True if rows that both have stand in another order.
    pub rows_moved: bool,
    /// Changed cells.
    pub cells_changed: usize,
    /// The first of the changed cells.
    pub cells: Vec<CellChange>,
}

/// A cell that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellChange {
    /// The row: the value of the first column if that is unique, else the row's number from 1.
    pub row: Vec<u8>,
    /// The name of the column.
    pub column: Vec<u8>,
    /// The value in the first table.
    pub a: Vec<u8>,
    /// The value in the second table.
    pub b: Vec<u8>,
}

type Row = Vec<Vec<u8>>;

/// A table with a heading.
pub struct Table {
    heading: Row,
    rows: Vec<Row>,
}

impl Table {
    /// A table of rows that are as long as its heading. `None` if the heading is empty, or has a
    /// name twice.
    pub fn new(heading: Row, rows: Vec<Row>) -> Option<Table> {
        let names: HashSet<&Vec<u8>> = heading.iter().collect();
        let is_table = !heading.is_empty() && names.len() == heading.len();
        is_table.then_some(Table { heading, rows })
    }

    /// `None` if the text is no table: a single column, or rows of different lengths.
    pub fn read(text: &[u8], separator: u8) -> Option<Table> {
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(separator)
            .has_headers(false)
            .from_reader(text);
        let mut rows = Vec::new();
        for record in reader.byte_records() {
            rows.push(record.ok()?.iter().map(<[u8]>::to_vec).collect::<Row>());
        }
        if rows.is_empty() || rows[0].len() < 2 {
            return None;
        }
        let heading = rows.remove(0);
        Table::new(heading, rows)
    }

    /// The position of each value of the first column. `None` if a value is there twice.
    fn keys(&self) -> Option<HashMap<&[u8], usize>> {
        let all = self.rows.iter().enumerate();
        let keys: HashMap<&[u8], usize> = all.map(|(at, row)| (&*row[0], at)).collect();
        (keys.len() == self.rows.len()).then_some(keys)
    }
}

/// Compares two tables.
pub fn compare(a: &Table, b: &Table) -> TableDifference {
    let only = |one: &Table, other: &Table| -> Vec<Vec<u8>> {
        let names = one.heading.iter();
        names
            .filter(|name| !other.heading.contains(name))
            .cloned()
            .collect()
    };
    // The columns that both have: positions in either table.
    let both: Vec<(usize, usize)> = a
        .heading
        .iter()
        .enumerate()
        .filter_map(|(at, name)| Some((at, b.heading.iter().position(|other| other == name)?)))
        .collect();
    let mut found = TableDifference {
        a: a.rows.len(),
        b: b.rows.len(),
        columns_removed: only(a, b),
        columns_added: only(b, a),
        columns_moved: !both.is_sorted_by_key(|(_, other)| *other),
        ..TableDifference::default()
    };
    let keyed = (a.heading[0] == b.heading[0])
        .then(|| Some((a.keys()?, b.keys()?)))
        .flatten();
    match keyed {
        Some((old, new)) if old.keys().any(|key| new.contains_key(key)) => {
            let mut places = Vec::new();
            for (at, row) in a.rows.iter().enumerate() {
                match new.get(&*row[0]) {
                    Some(&other) => {
                        places.push(other);
                        found.pair(a, at, &b.rows[other], &both, true);
                    }
                    None => found.rows_removed += 1,
                }
            }
            found.rows_moved = !places.is_sorted();
            found.rows_added = b
                .rows
                .iter()
                .filter(|row| !old.contains_key(&*row[0]))
                .count();
        }
        _ => found.align(a, b, &both),
    }
    found
}

impl TableDifference {
    /// Matches rows by their order.
    fn align(&mut self, a: &Table, b: &Table, both: &[(usize, usize)]) {
        let shared = |row: &Row, second: bool| -> Vec<Vec<u8>> {
            let of = |&(x, y): &(usize, usize)| row[if second { y } else { x }].clone();
            both.iter().map(of).collect()
        };
        let old: Vec<_> = a.rows.iter().map(|row| shared(row, false)).collect();
        let new: Vec<_> = b.rows.iter().map(|row| shared(row, true)).collect();
        for op in capture_diff_slices(Algorithm::Myers, &old, &new) {
            if matches!(op, DiffOp::Equal { .. }) {
                continue;
            }
            let (x, y) = (op.old_range(), op.new_range());
            for (at, other) in x.clone().zip(y.clone()) {
                self.pair(a, at, &b.rows[other], both, false);
            }
            self.rows_removed += x.len().saturating_sub(y.len());
            self.rows_added += y.len().saturating_sub(x.len());
        }
    }

    /// Compares the cells of two matched rows.
    fn pair(&mut self, a: &Table, at: usize, other: &Row, both: &[(usize, usize)], keyed: bool) {
        let row = &a.rows[at];
        let before = self.cells_changed;
        for &(x, y) in both.iter().filter(|&&(x, y)| row[x] != other[y]) {
            self.cells_changed += 1;
            if self.cells.len() < LISTED {
                self.cells.push(CellChange {
                    row: match keyed {
                        true => row[0].clone(),
                        false => (at + 1).to_string().into_bytes(),
                    },
                    column: a.heading[x].clone(),
                    a: row[x].clone(),
                    b: other[y].clone(),
                });
            }
        }
        self.rows_changed += usize::from(self.cells_changed > before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Table> {
        Table::read(text.as_bytes(), b',')
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
}
