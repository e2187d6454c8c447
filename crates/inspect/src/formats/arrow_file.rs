//! Arrow files (also called Feather): columns with types, rows, and changed cells.

use std::io::Cursor;

use arrow_array::RecordBatch;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_ipc::reader::FileReader;
use arrow_schema::Schema;
use backstory_comparison::{ContentDifference, compare};
use serde_json::json;

use super::delimited::of_table;
use crate::changes::{self, FileChanges};
use crate::{FileFacts, Inspector, NamedContent, Read, UnreadableContent};

pub struct ArrowFile;

impl Inspector for ArrowFile {
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
            let told = json!({
                "type": field.data_type().to_string(),
                "nullable": field.is_nullable(),
                "missing": missing,
            });
            (field.name().clone(), told)
        });
        facts.parts(("column", "columns"), columns.collect::<Vec<_>>());
        Ok(facts)
    }

    fn changes(&self, old: NamedContent<'_>, new: NamedContent<'_>) -> Read<FileChanges> {
        let (before, after) = (batches(old.bytes)?, batches(new.bytes)?);
        let (before, after) = (table(&before)?, table(&after)?);
        match compare(b"table.csv", &before, &after) {
            ContentDifference::Table(table) => Ok(of_table(&table)),
            _ => Ok(changes::between(&self.facts(old)?, &self.facts(new)?)),
        }
    }
}

type Batches = (std::sync::Arc<Schema>, Vec<RecordBatch>);

fn batches(bytes: &[u8]) -> Read<Batches> {
    let reader = FileReader::try_new(Cursor::new(bytes), None).map_err(UnreadableContent::of)?;
    let schema = reader.schema();
    let all: Result<Vec<RecordBatch>, _> = reader.collect();
    Ok((schema, all.map_err(UnreadableContent::of)?))
}

/// The table as separated values, which crate `comparison` compares by cells.
fn table((schema, batches): &Batches) -> Read<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let names = schema.fields().iter().map(|field| field.name());
    writer.write_record(names).map_err(UnreadableContent::of)?;
    let options = FormatOptions::default();
    for batch in batches {
        let columns: Result<Vec<ArrayFormatter<'_>>, _> = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column, &options))
            .collect();
        let columns = columns.map_err(UnreadableContent::of)?;
        for row in 0..batch.num_rows() {
            let cells = columns.iter().map(|column| column.value(row).to_string());
            writer.write_record(cells).map_err(UnreadableContent::of)?;
        }
    }
    writer.into_inner().map_err(UnreadableContent::of)
}
