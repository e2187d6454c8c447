//! Parquet files: columns with types and statistics, rows, and changed cells.
//!
//! Statistics come from the file's own metadata. Cells are compared where the pages are not
//! compressed, or compressed by Snappy, gzip, LZ4 or zstd. Absent: Brotli, which few writers use.

use backstory_comparison::FormatDifference;
use backstory_inspection::file_parts::{PartAnswer, PartName};
use backstory_inspection::format_answer::TableRows;
use backstory_inspection::question::Portion;
use bytes::Bytes;
use parquet::basic::Compression;
use parquet::data_type::{AsBytes, ByteArray};
use parquet::file::metadata::ParquetMetaDataReader;
use parquet::file::statistics::Statistics;
use serde_json::{Map, Value, json};

use super::delimited::by_cells;
use crate::changes::{self, FileChanges};
use crate::parts::parquet_cell;
use crate::tables::{cell_comparison, parquet_rows};
use crate::{FileFacts, Inspector, NamedContent, Read, UnreadableContent};

pub struct ParquetFile;

impl Inspector for ParquetFile {
    fn part(&self, content: NamedContent<'_>, name: &PartName) -> PartAnswer {
        parquet_cell::place(content.bytes, name)
    }

    fn facts(&self, content: NamedContent<'_>) -> Read<FileFacts> {
        let bytes = Bytes::copy_from_slice(content.bytes);
        let metadata = ParquetMetaDataReader::new()
            .parse_and_finish(&bytes)
            .map_err(UnreadableContent::of)?;
        let file = metadata.file_metadata();
        let mut facts = FileFacts::default();
        facts.value("rows", file.num_rows());
        facts.value("row_groups", metadata.num_row_groups());
        facts.value("created_by", file.created_by().unwrap_or_default());
        for pair in file.key_value_metadata().into_iter().flatten() {
            // The same schema once more, in a binary form.
            if pair.key != "ARROW:schema" {
                let value = pair.value.clone().unwrap_or_default();
                facts.value(&format!("metadata {}", pair.key), value);
            }
        }
        let schema = file.schema_descr();
        let columns = schema.columns().iter().enumerate().map(|(at, column)| {
            let mut told = Map::new();
            told.insert("type".to_owned(), json!(column.physical_type().to_string()));
            if let Some(logical) = column.logical_type_ref() {
                told.insert("logical_type".to_owned(), json!(format!("{logical:?}")));
            }
            let groups = metadata.row_groups().iter();
            let chunks: Vec<_> = groups.filter_map(|group| group.columns().get(at)).collect();
            if let Some(first) = chunks.first() {
                told.insert("compression".to_owned(), json!(codec(first.compression())));
            }
            let chunks = chunks.iter();
            let all: Vec<&Statistics> = chunks.filter_map(|chunk| chunk.statistics()).collect();
            if all.len() == metadata.num_row_groups() && !all.is_empty() {
                statistics(&all, &mut told);
            }
            (column.path().string(), Value::Object(told))
        });
        facts.parts(("column", "columns"), columns.collect::<Vec<_>>());
        Ok(facts)
    }

    fn changes(&self, old: NamedContent<'_>, new: NamedContent<'_>) -> Read<FileChanges> {
        let by_facts = changes::between(&self.facts(old)?, &self.facts(new)?);
        by_cells(self, [old, new], || Ok(by_facts))
    }

    fn difference(
        &self,
        old: NamedContent<'_>,
        new: NamedContent<'_>,
    ) -> Read<Option<FormatDifference>> {
        cell_comparison::between(old, new, |content| parquet_rows::table(content.bytes))
    }

    fn rows(&self, content: NamedContent<'_>, part: Portion) -> Read<TableRows> {
        parquet_rows::rows(content.bytes, part)
    }
}

/// The name of a compression, without its level, which readers do not know. LZ4 has two frames.
fn codec(compression: Compression) -> String {
    let name = compression.to_string();
    let end = name.find('(').unwrap_or(name.len());
    name[..end].trim_end_matches("_RAW").to_owned()
}

/// Missing values, and the least and the greatest one, over all row groups.
fn statistics(all: &[&Statistics], told: &mut Map<String, Value>) {
    let nulls: Option<u64> = all.iter().map(|one| one.null_count_opt()).sum();
    if let Some(nulls) = nulls {
        told.insert("missing".to_owned(), json!(nulls));
    }
    let extremes = all
        .iter()
        .map(|one| extremes(one))
        .collect::<Option<Vec<_>>>();
    let Some(extremes) = extremes else { return };
    let least = extremes
        .iter()
        .map(|(least, _)| least)
        .cloned()
        .reduce(|a, b| if b.0 < a.0 { b } else { a });
    let most = extremes
        .iter()
        .map(|(_, most)| most)
        .cloned()
        .reduce(|a, b| if b.0 > a.0 { b } else { a });
    if let (Some(least), Some(most)) = (least, most) {
        told.insert("min".to_owned(), least.1);
        told.insert("max".to_owned(), most.1);
    }
}

/// A form for comparisons, and the value.
type Extreme = (Order, Value);

/// The order of a column's values: that of numbers, or that of their bytes.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
enum Order {
    Number(f64),
    Bytes(Vec<u8>),
}

fn extremes(one: &Statistics) -> Option<(Extreme, Extreme)> {
    fn both<T: Copy + Into<f64>>(
        least: Option<&T>,
        most: Option<&T>,
    ) -> Option<(Extreme, Extreme)> {
        let of = |value: &T| -> Extreme {
            let number: f64 = (*value).into();
            (Order::Number(number), json!(number))
        };
        Some((of(least?), of(most?)))
    }
    match one {
        Statistics::Int32(one) => both(one.min_opt(), one.max_opt()),
        Statistics::Float(one) => both(one.min_opt(), one.max_opt()),
        Statistics::Double(one) => both(one.min_opt(), one.max_opt()),
        Statistics::Int64(one) => {
            let of = |value: &i64| -> Extreme { (Order::Number(*value as f64), json!(value)) };
            Some((of(one.min_opt()?), of(one.max_opt()?)))
        }
        // A writer cuts long texts, so that an extreme may be no value of the column.
        Statistics::ByteArray(one) if one.min_is_exact() && one.max_is_exact() => {
            let of = |value: &ByteArray| -> Option<Extreme> {
                let bytes = value.as_bytes().to_vec();
                let text = json!(std::str::from_utf8(&bytes).ok()?);
                Some((Order::Bytes(bytes), text))
            };
            Some((of(one.min_opt()?)?, of(one.max_opt()?)?))
        }
        _ => None,
    }
}
