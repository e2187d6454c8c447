//! Columns of a table, and their file.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use backstory_eventlog::event::Time;
use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

/// A column: for each row a value or nothing.
pub enum Column {
    Text(Vec<Option<String>>),
    Bytes(Vec<Option<Vec<u8>>>),
    Number(Vec<Option<i64>>),
    Moment(Vec<Option<Time>>),
    Truth(Vec<Option<bool>>),
}

/// The columns of a table, by name.
pub type Columns = Vec<(&'static str, Column)>;

impl Column {
    /// A column of texts.
    pub fn of_text<T: ToString>(values: impl Iterator<Item = Option<T>>) -> Column {
        Column::Text(
            values
                .map(|value| value.map(|value| value.to_string()))
                .collect(),
        )
    }

    /// A column of numbers.
    pub fn of_numbers<T: Into<i64>>(values: impl Iterator<Item = Option<T>>) -> Column {
        Column::Number(values.map(|value| value.map(Into::into)).collect())
    }

    /// The column's declaration in Parquet's schema language.
    fn declared(&self, name: &str) -> String {
        match self {
            Column::Text(_) => format!("optional binary {name} (STRING);"),
            Column::Bytes(_) => format!("optional binary {name};"),
            Column::Number(_) => format!("optional int64 {name};"),
            Column::Moment(_) => format!("optional int64 {name} (TIMESTAMP(MICROS,true));"),
            Column::Truth(_) => format!("optional boolean {name};"),
        }
    }
}

/// Writes a table as a file of one row group.
pub fn write(path: &Path, columns: &Columns) -> std::result::Result<(), ParquetError> {
    let declared: String = columns
        .iter()
        .map(|(name, column)| column.declared(name))
        .collect();
    let schema = Arc::new(parse_message_type(&format!(
        "message table {{ {declared} }}"
    ))?);
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .build();
    let mut writer = SerializedFileWriter::new(File::create(path)?, schema, Arc::new(properties))?;
    let mut rows = writer.next_row_group()?;
    for (_, column) in columns {
        let Some(mut out) = rows.next_column()? else {
            break;
        };
        match column {
            Column::Text(values) => {
                let (values, there) = apart(values, |text| ByteArray::from(text.as_str()));
                out.typed::<ByteArrayType>()
                    .write_batch(&values, Some(&there), None)?;
            }
            Column::Bytes(values) => {
                let (values, there) = apart(values, |bytes| ByteArray::from(bytes.clone()));
                out.typed::<ByteArrayType>()
                    .write_batch(&values, Some(&there), None)?;
            }
            Column::Number(values) => {
                let (values, there) = apart(values, |number| *number);
                out.typed::<Int64Type>()
                    .write_batch(&values, Some(&there), None)?;
            }
            Column::Moment(values) => {
                let (values, there) = apart(values, |nanoseconds| nanoseconds.div_euclid(1000));
                out.typed::<Int64Type>()
                    .write_batch(&values, Some(&there), None)?;
            }
            Column::Truth(values) => {
                let (values, there) = apart(values, |truth| *truth);
                out.typed::<BoolType>()
                    .write_batch(&values, Some(&there), None)?;
            }
        }
        out.close()?;
    }
    rows.close()?;
    writer.close()?;
    Ok(())
}

/// The values that exist, and each row's definition level: 1 if it has a value, else 0.
fn apart<T, V>(values: &[Option<T>], value: impl Fn(&T) -> V) -> (Vec<V>, Vec<i16>) {
    let there = values
        .iter()
        .map(|value| i16::from(value.is_some()))
        .collect();
    (values.iter().flatten().map(value).collect(), there)
}
