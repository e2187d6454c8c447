//! The graph as tables in Parquet: `runs`, `activities`, `entities` and `edges`, joined by their ids.
//!
//! Times are in UTC, to the microsecond. Text that is no UTF-8 is shown as well as it can be, and stands unchanged in a column of bytes
//! beside it.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use backstory_eventlog::event::{Bytes, Time};
use backstory_graph::model::Certainty;
use backstory_query::answer::Flow;
use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::format::{Family, Format, Shape, Target};
use crate::view::Endpoint;
use crate::{Error, Result, View};

/// `parquet`
pub struct Parquet;

impl Format for Parquet {
    fn name(&self) -> &'static str {
        "parquet"
    }
    fn about(&self) -> &'static str {
        "the graph as tables for DuckDB, pandas, Spark"
    }
    fn family(&self) -> Family {
        Family::Data
    }
    fn proven_by(&self) -> &'static str {
        "DuckDB"
    }
    fn shape(&self) -> Shape {
        Shape::Directory
    }

    fn write(&self, view: &View, target: Target<'_>) -> Result<()> {
        let directory = target.directory();
        for (table, columns) in [
            ("runs", runs(view)),
            ("activities", activities(view)),
            ("entities", entities(view)),
            ("edges", edges(view)),
        ] {
            write(&directory.join(format!("{table}.parquet")), &columns)
                .map_err(|source| Error::Table { table, source })?;
        }
        Ok(())
    }
}

/// A column: a value for each row, or none.
enum Column {
    Text(Vec<Option<String>>),
    Bytes(Vec<Option<Vec<u8>>>),
    Number(Vec<Option<i64>>),
    Moment(Vec<Option<Time>>),
    Truth(Vec<Option<bool>>),
}

type Columns = Vec<(&'static str, Column)>;

impl Column {
    fn of_text<T: ToString>(values: impl Iterator<Item = Option<T>>) -> Column {
        Column::Text(
            values
                .map(|value| value.map(|value| value.to_string()))
                .collect(),
        )
    }

    fn of_numbers<T: Into<i64>>(values: impl Iterator<Item = Option<T>>) -> Column {
        Column::Number(values.map(|value| value.map(Into::into)).collect())
    }

    /// As the schema's own language has it.
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

/// The column of names, and that of the bytes of those that are no text.
fn names<'p>(
    name: &'static str,
    bytes: &'static str,
    values: impl Iterator<Item = &'p [u8]>,
) -> Columns {
    let (mut text, mut odd) = (Vec::new(), Vec::new());
    for value in values {
        text.push(Some(super::notation::text(value)));
        odd.push(std::str::from_utf8(value).is_err().then(|| value.to_vec()));
    }
    vec![(name, Column::Text(text)), (bytes, Column::Bytes(odd))]
}

fn runs(view: &View) -> Columns {
    let all = || view.runs.iter().map(|run| &run.summary);
    let command = |words: &Vec<Bytes>| {
        let words: Vec<String> = words
            .iter()
            .map(|word| backstory_workflow::shell::quote(word))
            .collect();
        words.join(" ")
    };
    let mut columns = vec![
        ("run", Column::of_text(all().map(|run| Some(&run.id)))),
        ("name", Column::of_text(all().map(|run| run.name.as_ref()))),
        (
            "command",
            Column::of_text(all().map(|run| Some(command(&run.command)))),
        ),
    ];
    columns.extend(names("cwd", "cwd_bytes", all().map(|run| &*run.cwd)));
    columns.extend([
        (
            "started",
            Column::Moment(all().map(|run| Some(run.started)).collect()),
        ),
        (
            "ended",
            Column::Moment(all().map(|run| run.ended).collect()),
        ),
        ("exit", Column::of_numbers(all().map(|run| run.exit))),
        ("signal", Column::of_numbers(all().map(|run| run.signal))),
        (
            "complete",
            Column::Truth(all().map(|run| Some(run.complete)).collect()),
        ),
    ]);
    columns
}

fn activities(view: &View) -> Columns {
    let all = || view.activities.iter();
    let run = |at: usize| view.runs[at].summary.id.clone();
    let mut columns = vec![
        (
            "activity",
            Column::of_text(all().map(|activity| Some(&activity.id))),
        ),
        (
            "run",
            Column::of_text(all().map(|activity| Some(run(activity.run)))),
        ),
        (
            "parent",
            Column::of_text(
                all().map(|activity| activity.parent.map(|parent| &view.activities[parent].id)),
            ),
        ),
        (
            "command",
            Column::of_text(all().map(|activity| Some(&activity.label))),
        ),
    ];
    columns.extend(names(
        "cwd",
        "cwd_bytes",
        all().map(|activity| &*activity.cwd),
    ));
    columns.extend([
        (
            "pid",
            Column::of_numbers(all().map(|activity| Some(activity.pid))),
        ),
        (
            "epoch",
            Column::of_numbers(all().map(|activity| Some(activity.epoch))),
        ),
        (
            "exit",
            Column::of_numbers(all().map(|activity| activity.exit)),
        ),
        (
            "signal",
            Column::of_numbers(all().map(|activity| activity.signal)),
        ),
        (
            "started",
            Column::Moment(
                all()
                    .map(|activity| Some(activity.interval.start))
                    .collect(),
            ),
        ),
        (
            "ended",
            Column::Moment(all().map(|activity| Some(activity.interval.end)).collect()),
        ),
    ]);
    columns
}

fn entities(view: &View) -> Columns {
    let all = || view.entities.iter();
    let digest = |entity: &crate::view::ViewEntity| {
        view.contents
            .of(entity.run, &entity.path, entity.version)?
            .digest
    };
    let mut columns = vec![
        (
            "entity",
            Column::of_text(all().map(|entity| Some(&entity.id))),
        ),
        (
            "run",
            Column::of_text(all().map(|entity| Some(&view.runs[entity.run].summary.id))),
        ),
        (
            "kind",
            Column::of_text(all().map(|entity| Some(entity.kind.word()))),
        ),
    ];
    columns.extend(names(
        "path",
        "path_bytes",
        all().map(|entity| &*entity.path),
    ));
    columns.extend([
        (
            "version",
            Column::of_numbers(all().map(|entity| Some(entity.version))),
        ),
        (
            "last",
            Column::Truth(all().map(|entity| Some(entity.last)).collect()),
        ),
        (
            "size",
            Column::of_numbers(all().map(|entity| entity.ident.map(|ident| ident.size))),
        ),
        (
            "modified",
            Column::Moment(
                all()
                    .map(|entity| entity.ident.map(|ident| ident.mtime))
                    .collect(),
            ),
        ),
        ("blake3", Column::of_text(all().map(digest))),
    ]);
    columns
}

fn edges(view: &View) -> Columns {
    let all = || view.links.iter();
    let id = |end: Endpoint| match end {
        Endpoint::Activity(at) => view.activities[at].id.clone(),
        Endpoint::Entity(at) => view.entities[at].id.clone(),
    };
    let sort = |flow: Flow| match flow {
        Flow::Used(_) => "used",
        Flow::Generated(_) => "generated",
        Flow::Derived => "derived",
        Flow::Same | Flow::Alike => "same",
        Flow::Informed(_) => "informed",
    };
    let certainty = |certainty: Certainty| match certainty {
        Certainty::Seen => "seen",
        Certainty::Possible => "possible",
    };
    vec![
        (
            "source",
            Column::of_text(all().map(|link| Some(id(link.from)))),
        ),
        (
            "target",
            Column::of_text(all().map(|link| Some(id(link.to)))),
        ),
        (
            "edge",
            Column::of_text(all().map(|link| Some(sort(link.flow)))),
        ),
        (
            "how",
            Column::of_text(all().map(|link| Some(super::word(link.flow)))),
        ),
        (
            "certainty",
            Column::of_text(all().map(|link| Some(certainty(link.certainty)))),
        ),
        (
            "began",
            Column::Moment(all().map(|link| Some(link.interval.start)).collect()),
        ),
        (
            "ended",
            Column::Moment(all().map(|link| Some(link.interval.end)).collect()),
        ),
    ]
}

fn write(path: &Path, columns: &Columns) -> std::result::Result<(), ParquetError> {
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

/// The values that are there, and for each row whether it has one (Parquet's definition level).
fn apart<T, V>(values: &[Option<T>], value: impl Fn(&T) -> V) -> (Vec<V>, Vec<i16>) {
    let there = values
        .iter()
        .map(|value| i16::from(value.is_some()))
        .collect();
    (values.iter().flatten().map(value).collect(), there)
}
