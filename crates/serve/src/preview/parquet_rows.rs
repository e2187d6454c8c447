//! Rows of a Parquet file, without Arrow.

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

/// Name and type of each column, the number of all rows, and the cells of some rows.
pub type ParquetRows = (Vec<(String, String)>, usize, Vec<Vec<Option<String>>>);

/// `limit` rows from row `first` on. `go_on` is asked again and again, and false stops the reading.
///
/// # Errors
///
/// If the bytes are no Parquet file, or have a compression that this program lacks: a sentence.
pub fn read(
    bytes: Vec<u8>,
    first: usize,
    limit: usize,
    go_on: &dyn Fn() -> bool,
) -> Result<ParquetRows, String> {
    let say = |error: ParquetError| error.to_string();
    let reader = SerializedFileReader::new(Bytes::from(bytes)).map_err(say)?;
    let metadata = reader.metadata().file_metadata();
    let total = metadata.num_rows().max(0) as usize;
    let fields = metadata.schema_descr().root_schema().get_fields();
    let columns = fields.iter().map(|field| {
        let kind = match field.is_primitive() {
            true => field.get_physical_type().to_string().to_lowercase(),
            false => "group".to_owned(),
        };
        (field.name().to_owned(), kind)
    });
    let columns: Vec<_> = columns.collect();
    let mut rows = Vec::new();
    let mut before = 0;
    for number in 0..reader.num_row_groups() {
        let here = reader.metadata().row_group(number).num_rows().max(0) as usize;
        if before + here <= first {
            before += here;
            continue;
        }
        let group = reader.get_row_group(number).map_err(say)?;
        for row in group.get_row_iter(None).map_err(say)? {
            let row = row.map_err(say)?;
            before += 1;
            if before <= first {
                continue;
            }
            if rows.len() == limit || !go_on() {
                return Ok((columns, total, rows));
            }
            rows.push(
                row.get_column_iter()
                    .map(|(_, field)| text(field))
                    .collect(),
            );
        }
    }
    Ok((columns, total, rows))
}

/// A value for people. Strings have no quotes.
fn text(field: &Field) -> Option<String> {
    match field {
        Field::Null => None,
        Field::Str(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}
