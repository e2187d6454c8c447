//! One row of an event: its columns, by the description of the table and by the catalog.

use backstory_database::row_change::{ColumnValue, RowImage};

use crate::binlog_event::MappedTable;
use crate::byte_reader::ByteReader;
use crate::row_value::ColumnType;

/// A column by its name in the stream, else by its place in the catalog.
pub(crate) fn column(table: &MappedTable, known: &[ColumnType], at: usize) -> ColumnType {
    match table.names.get(at) {
        Some(name) => {
            let found = known.iter().find(|column| column.name == *name);
            let unknown = || ColumnType {
                name: name.clone(),
                ..ColumnType::default()
            };
            found.cloned().unwrap_or_else(unknown)
        }
        None => known.get(at).cloned().unwrap_or_default(),
    }
}

pub(crate) fn has(bits: &[u8], at: usize) -> bool {
    bits.get(at / 8)
        .is_some_and(|byte| byte >> (at % 8) & 1 == 1)
}

/// The values of one row: `None` for a column that is not in it.
pub(crate) type PackedRow = Vec<(String, Option<ColumnValue>)>;

pub(crate) fn packed_row(
    row: &mut ByteReader<'_>,
    present: &[u8],
    width: usize,
    table: &MappedTable,
    types: &[ColumnType],
) -> Option<PackedRow> {
    let count = (0..width).filter(|at| has(present, *at)).count();
    let nulls = row.take(count.div_ceil(8))?;
    let mut values = PackedRow::new();
    let mut number = 0;
    for (at, (kind, of)) in table.columns.iter().zip(types).enumerate().take(width) {
        let value = match has(present, at) {
            false => None,
            true => {
                let is_null = has(nulls, number);
                number += 1;
                match is_null {
                    true => Some(ColumnValue::Null),
                    false => Some(kind.value(row, of)?),
                }
            }
        };
        values.push((of.name.clone(), value));
    }
    Some(values)
}

/// The columns that are in the row and have a name.
pub(crate) fn known_columns(row: PackedRow) -> RowImage {
    let known = row.into_iter().filter(|(name, _)| !name.is_empty());
    known
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

/// The row after an update. A column that is not in it has the value from before.
pub(crate) fn completed(
    after: PackedRow,
    before: Option<&PackedRow>,
    types: &[ColumnType],
) -> RowImage {
    let before = |at: usize| before.and_then(|row| row.get(at)?.1.clone());
    let all = after.into_iter().enumerate().map(|(at, (name, value))| {
        let value = value.or_else(|| before(at));
        (name, value.unwrap_or(ColumnValue::Unchanged))
    });
    let has_name = |(name, _): &(String, ColumnValue)| !name.is_empty();
    all.take(types.len()).filter(has_name).collect()
}
