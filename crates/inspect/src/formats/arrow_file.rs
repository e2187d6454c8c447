//! Arrow files (also called Feather) and streams: columns with types and statistics, rows, and
//! changed cells.

use std::io::Cursor;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{DataType, Schema};
use backstory_comparison::FormatDifference;
use backstory_inspection::file_parts::{PartAnswer, PartName};
use serde_json::json;

use super::delimited::by_cells;
use crate::changes::{self, FileChanges};
use crate::parts::arrow_cell;
use crate::tables::{Table, cell_comparison};
use crate::{FileFacts, Inspector, NamedContent, Read, UnreadableContent};

pub struct ArrowFile;

impl Inspector for ArrowFile {
    fn part(&self, content: NamedContent<'_>, name: &PartName) -> PartAnswer {
        arrow_cell::place(content.bytes, name)
    }

    fn facts(&self, content: NamedContent<'_>) -> Read<FileFacts> {
        let (schema, batches) = batches(content.bytes)?;
        let mut facts = FileFacts::default();
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        facts.value("rows", rows);
        facts.value("record_batches", batches.len());
        let columns = schema.fields().iter().enumerate().map(|(at, field)| {
            let missing: usize = batches
                .iter()
                .map(|batch| batch.column(at).null_count())
                .sum();
            let mut told = json!({
                "type": field.data_type().to_string(),
                "nullable": field.is_nullable(),
                "missing": missing,
            });
            let extremes = batches
                .iter()
                .filter_map(|batch| extremes(batch.column(at)));
            let extremes = extremes.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
            if let Some((least, most)) = extremes {
                told["min"] = json!(least);
                told["max"] = json!(most);
            }
            (field.name().clone(), told)
        });
        facts.parts(("column", "columns"), columns.collect::<Vec<_>>());
        Ok(facts)
    }

    fn changes(&self, old: NamedContent<'_>, new: NamedContent<'_>) -> Read<FileChanges> {
        by_cells(self, [old, new], || {
            Ok(changes::between(&self.facts(old)?, &self.facts(new)?))
        })
    }

    fn difference(
        &self,
        old: NamedContent<'_>,
        new: NamedContent<'_>,
    ) -> Read<Option<FormatDifference>> {
        cell_comparison::between(old, new, |content| table(&batches(content.bytes)?))
    }
}

type Batches = (std::sync::Arc<Schema>, Vec<RecordBatch>);

/// The first bytes of a file. A stream has none of its own.
const FILE: &[u8] = b"ARROW1";

fn batches(bytes: &[u8]) -> Read<Batches> {
    let input = Cursor::new(bytes);
    if bytes.starts_with(FILE) {
        let reader = FileReader::try_new(input, None).map_err(UnreadableContent::of)?;
        return all(reader.schema(), reader);
    }
    let reader = StreamReader::try_new(input, None).map_err(UnreadableContent::of)?;
    all(reader.schema(), reader)
}

fn all<E: std::fmt::Display>(
    schema: std::sync::Arc<Schema>,
    reader: impl Iterator<Item = Result<RecordBatch, E>>,
) -> Read<Batches> {
    let batches: Result<Vec<RecordBatch>, E> = reader.collect();
    Ok((schema, batches.map_err(UnreadableContent::of)?))
}

/// The least and the greatest number of a column. `None` without numbers. NaN is no number.
fn extremes(column: &dyn Array) -> Option<(f64, f64)> {
    /// `as` loses digits of numbers over 2^53: they are shown, and not compared.
    macro_rules! of {
        ($($name:ident => $type:ty),*) => {
            match column.data_type() {
                $(DataType::$name => range::<$type>(column, |value| value as f64),)*
                _ => None,
            }
        };
    }
    of!(
        Int8 => Int8Type, Int16 => Int16Type, Int32 => Int32Type, Int64 => Int64Type,
        UInt8 => UInt8Type, UInt16 => UInt16Type, UInt32 => UInt32Type, UInt64 => UInt64Type,
        Float32 => Float32Type, Float64 => Float64Type
    )
}

fn range<T: ArrowPrimitiveType>(
    column: &dyn Array,
    number: impl Fn(T::Native) -> f64,
) -> Option<(f64, f64)> {
    let values = column.as_primitive_opt::<T>()?.iter().flatten();
    let numbers = values.map(number).filter(|number| !number.is_nan());
    let pairs = numbers.map(|number| (number, number));
    pairs.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

/// The table with each cell as a text. `None` if two columns have the same name.
fn table((schema, batches): &Batches) -> Read<Option<Table>> {
    let names = schema.fields().iter().map(|field| field.name());
    let names = names.map(|name| name.clone().into_bytes()).collect();
    let Some(mut table) = Table::new(names) else {
        return Ok(None);
    };
    let options = FormatOptions::default();
    for batch in batches {
        let columns: Result<Vec<ArrayFormatter<'_>>, _> = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column, &options))
            .collect();
        let columns = columns.map_err(UnreadableContent::of)?;
        for row in 0..batch.num_rows() {
            for column in &columns {
                table.push(column.value(row).to_string().as_bytes())?;
            }
        }
    }
    Ok(Some(table))
}
