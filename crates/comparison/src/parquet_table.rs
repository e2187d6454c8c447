//! Reads the table in a Parquet file: the names of the columns, then the rows as text.
//!
//! In: the bytes of a file. Out: a [`Table`], of which each cell is the text that a person would
//! write. A missing value is empty. Absent: files that are compressed by another method than
//! Snappy, and tables that are too large. These are compared as bytes.

use bytes::Bytes;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use crate::table::Table;

/// The bytes at both ends of a Parquet file.
const MAGIC: &[u8] = b"PAR1";

/// The most cells that are read.
const MOST: usize = 2_000_000;

/// Reads a table. `None` if the content is no Parquet file, or cannot be read.
pub fn read(content: &[u8]) -> Option<Table> {
    if !(content.starts_with(MAGIC) && content.ends_with(MAGIC)) {
        return None;
    }
    let reader = SerializedFileReader::new(Bytes::copy_from_slice(content)).ok()?;
    let metadata = reader.metadata().file_metadata();
    let columns = metadata.schema_descr().num_columns();
    let rows = usize::try_from(metadata.num_rows()).ok()?;
    if rows.checked_mul(columns)? > MOST {
        return None;
    }
    let fields = metadata.schema().get_fields();
    let heading = fields.iter().map(|field| field.name().into()).collect();
    let mut table = Vec::new();
    for row in reader.get_row_iter(None).ok()? {
        let row = row.ok()?;
        // A damaged file may have more rows than it says.
        if table.len() == rows {
            return None;
        }
        table.push(
            row.get_column_iter()
                .map(|(_, field)| text(field))
                .collect(),
        );
    }
    Table::new(heading, table)
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

    use crate::{ContentDifference, compare};

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
        let ContentDifference::Table(found) = compare(b"x.parquet", &old, &new) else {
            panic!("no table");
        };
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
    fn a_damaged_parquet_file_is_compared_as_bytes() {
        let whole = file(&[("a", Some(1.5))], Compression::SNAPPY);
        let mut damaged = whole.clone();
        damaged[5..20].fill(0xff);
        let found = compare(b"x.parquet", &whole, &damaged);
        assert!(matches!(found, ContentDifference::Binary(_)), "{found:?}");
    }
}
