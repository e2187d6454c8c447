//! Reads the table in a Parquet file: the names of the columns, then the rows as text.
//!
//! Each cell is the text that a person would write. A missing value is empty where tables are
//! compared, and no value in a view.

use backstory_inspection::format_answer::{TableColumn, TableRows};
use backstory_inspection::question::Portion;
use bytes::Bytes;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use super::delimited_rows::CELL;
use super::{Table, ViewBudget, shown};
use crate::{Read, UnreadableContent};

fn reader(content: &[u8]) -> Read<SerializedFileReader<Bytes>> {
    SerializedFileReader::new(Bytes::copy_from_slice(content)).map_err(UnreadableContent::of)
}

/// The table. `None` if two columns have the same name.
///
/// # Errors
/// The file is damaged, or the table is too large.
pub fn table(content: &[u8]) -> Read<Option<Table>> {
    let reader = reader(content)?;
    let metadata = reader.metadata().file_metadata();
    let rows = metadata.num_rows();
    let fields = metadata.schema().get_fields();
    let heading = fields.iter().map(|field| field.name().into()).collect();
    let Some(mut table) = Table::new(heading) else {
        return Ok(None);
    };
    for row in reader.get_row_iter(None).map_err(UnreadableContent::of)? {
        let row = row.map_err(UnreadableContent::of)?;
        let width = table.heading().len();
        if table.rows() as i64 >= rows || row.len() != width {
            return Err(UnreadableContent(format!(
                "it has more rows than {rows}, or a row without {width} cells"
            )));
        }
        for (_, field) in row.get_column_iter() {
            table.push(&text(field))?;
        }
    }
    Ok(Some(table))
}

/// Some rows, for a view.
///
/// # Errors
/// The file is damaged.
pub fn rows(content: &[u8], part: Portion) -> Read<TableRows> {
    let reader = reader(content)?;
    let metadata = reader.metadata().file_metadata();
    let fields = metadata.schema_descr().root_schema().get_fields();
    let columns = fields.iter().map(|field| TableColumn {
        name: shown(field.name().as_bytes()).into(),
        kind: match field.is_primitive() {
            true => field.get_physical_type().to_string().to_lowercase(),
            false => "group".to_owned(),
        },
    });
    let mut found = TableRows {
        total: metadata.num_rows().max(0) as usize,
        columns: columns.collect(),
        rows: Vec::new(),
    };
    let mut budget = ViewBudget::default();
    let mut before = 0;
    for number in 0..reader.num_row_groups() {
        let here = reader.metadata().row_group(number).num_rows().max(0) as usize;
        if before + here <= part.first {
            before += here;
            continue;
        }
        let group = reader
            .get_row_group(number)
            .map_err(UnreadableContent::of)?;
        for row in group.get_row_iter(None).map_err(UnreadableContent::of)? {
            let row = row.map_err(UnreadableContent::of)?;
            before += 1;
            if before <= part.first {
                continue;
            }
            let cells: Vec<Option<Vec<u8>>> = row
                .get_column_iter()
                .map(|(_, field)| (!matches!(field, Field::Null)).then(|| text(field)))
                .collect();
            let shown_cells = cells.iter().flatten().map(|cell| shown(cell).len());
            let bytes = shown_cells.sum::<usize>() + cells.len() * CELL;
            if found.rows.len() == part.limit || !budget.takes(bytes) {
                return Ok(found);
            }
            let cells = cells
                .iter()
                .map(|cell| cell.as_deref().map(|cell| shown(cell).into()));
            found.rows.push(cells.collect());
        }
    }
    Ok(found)
}

fn text(field: &Field) -> Vec<u8> {
    match field {
        Field::Null => Vec::new(),
        Field::Str(text) => text.as_bytes().to_vec(),
        // The library writes each negative number with an exponent.
        Field::Float(number) => format!("{number:?}").into_bytes(),
        Field::Double(number) => format!("{number:?}").into_bytes(),
        other => other.to_string().into_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::basic::Compression;
    use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use super::*;
    use crate::tables::cell_comparison::compare;

    /// A file with a name and a number in each row.
    fn file(rows: &[(&str, Option<f64>)], compression: Compression) -> Vec<u8> {
        let message = "message m { REQUIRED BYTE_ARRAY id (UTF8); OPTIONAL DOUBLE x; }";
        let schema = Arc::new(parse_message_type(message).unwrap());
        let properties = WriterProperties::builder().set_compression(compression);
        let mut out = Vec::new();
        let mut writer =
            SerializedFileWriter::new(&mut out, schema, Arc::new(properties.build())).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let names: Vec<ByteArray> = rows
            .iter()
            .map(|(name, _)| ByteArray::from(*name))
            .collect();
        let mut column = group.next_column().unwrap().unwrap();
        let typed = column.typed::<ByteArrayType>();
        typed.write_batch(&names, None, None).unwrap();
        column.close().unwrap();
        let numbers: Vec<f64> = rows.iter().filter_map(|(_, x)| *x).collect();
        let levels: Vec<i16> = rows.iter().map(|(_, x)| i16::from(x.is_some())).collect();
        let mut column = group.next_column().unwrap().unwrap();
        let typed = column.typed::<DoubleType>();
        typed.write_batch(&numbers, Some(&levels), None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        writer.close().unwrap();
        out
    }

    #[test]
    fn the_cells_of_two_parquet_files_are_compared() {
        let rows = [("a", Some(1.5)), ("b", Some(2.0)), ("c", None)];
        let mut other = rows;
        other[1].1 = Some(7.25);
        other[2].1 = Some(-0.5);
        let old = file(&rows, Compression::SNAPPY);
        let new = file(&other, Compression::UNCOMPRESSED);
        let [old, new] = [old, new].map(|file| table(&file).unwrap().unwrap());
        let found = compare(&old, &new, &[]);
        assert_eq!((found.a, found.b, found.cells_changed), (3, 3, 2));
        let cells: Vec<String> = (found.cells.iter())
            .map(|cell| {
                let parts = [&cell.row, &cell.column, &cell.a, &cell.b];
                parts
                    .map(|part| String::from_utf8_lossy(part).into_owned())
                    .join("|")
            })
            .collect();
        assert_eq!(cells, ["b|x|2.0|7.25", "c|x||-0.5"]);
    }

    #[test]
    fn a_damaged_parquet_file_has_no_table_and_no_rows() {
        let mut damaged = file(&[("a", Some(1.5))], Compression::SNAPPY);
        let part = Portion { first: 0, limit: 9 };
        assert_eq!(rows(&damaged, part).unwrap().rows.len(), 1);
        damaged[5..20].fill(0xff);
        assert!(table(&damaged).is_err());
        assert!(rows(&damaged, part).is_err());
    }

    #[test]
    fn a_view_has_the_rows_from_the_first_to_the_limit_and_no_value_for_a_missing_one() {
        let whole = file(
            &[("a", Some(1.5)), ("b", None), ("c", Some(-2.0))],
            Compression::SNAPPY,
        );
        let found = rows(&whole, Portion { first: 1, limit: 1 }).unwrap();
        assert_eq!((found.total, found.rows.len()), (3, 1));
        assert_eq!(found.rows[0], [Some(b"b"[..].into()), None]);
        assert_eq!(found.columns[1].kind, "double");
    }
}
