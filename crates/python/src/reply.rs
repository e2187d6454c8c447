//! Reads an answer of the program as Arrow tables.
//!
//! In: the file that the program wrote (`backstory_answers::reply`). Out: facts and tables. The
//! tables share the memory of the file.
//!
//! Invariant: a file that is no answer of this version is refused, and so is one whose header names
//! bytes outside it.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{RecordBatch, make_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::{ArrayData, ArrayDataBuilder};
use arrow_schema::{ArrowError, DataType, Field, Schema, TimeUnit};
use backstory_answers::layout::{ArrayLayout, ColumnLayout, Extent};
use backstory_answers::reply::{ReplyHeader, VERSION, aligned};
use backstory_answers::{AnswerFacts, ArrayKind, ExactValues, Failure};

/// The answer to a question.
pub struct Reply {
    /// The part that is no table.
    pub facts: AnswerFacts,
    /// The tables, in the order that the question has.
    pub tables: Vec<ArrowTable>,
}

/// Columns of equal length.
pub struct ArrowTable {
    /// The columns.
    pub batch: RecordBatch,
    /// The bytes of the texts that are not UTF-8, by column.
    pub exact: BTreeMap<String, ExactValues>,
}

/// Reads an answer.
///
/// # Errors
///
/// The failure that the program wrote; or that this is no answer of this version.
pub fn read(file: &Buffer) -> Result<Reply, Failure> {
    let damaged = || Failure::of_package("the answer of the program is damaged".to_owned());
    let length = file.first_chunk::<8>().ok_or_else(damaged)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| damaged())?;
    let end = length.checked_add(8).ok_or_else(damaged)?;
    let header = file.get(8..end).ok_or_else(damaged)?;
    let header: ReplyHeader = serde_json::from_slice(header).map_err(|_| damaged())?;
    if header.version != VERSION {
        return Err(Failure::of_package(format!(
            "the program is of version {}, and the package of version {VERSION}: \
             install the package again (pip install --force-reinstall backstory)",
            header.version
        )));
    }
    let (facts, layouts) = header.outcome?;
    let start = aligned(end).min(file.len());
    let body = file.slice(start);
    let mut tables = Vec::new();
    for layout in layouts {
        let batch = batch(&body, layout.columns).map_err(|_| damaged())?;
        let exact = layout.exact;
        tables.push(ArrowTable { batch, exact });
    }
    Ok(Reply { facts, tables })
}

/// The table whose buffers are in `body`.
fn batch(body: &Buffer, columns: Vec<ColumnLayout>) -> Result<RecordBatch, ArrowError> {
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for column in columns {
        let data_type = data_type(column.array.kind);
        fields.push(Field::new(column.name, data_type, column.nullable));
        arrays.push(make_array(array(body, column.array)?));
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}

fn array(body: &Buffer, layout: ArrayLayout) -> Result<ArrayData, ArrowError> {
    let slice = |(start, length): Extent| match start.checked_add(length) {
        Some(end) if end <= body.len() => Ok(body.slice_with_length(start, length)),
        _ => Err(ArrowError::MemoryError("a buffer is outside".to_owned())),
    };
    let nulls = match layout.nulls.map(slice).transpose()? {
        Some(bits) if bits.len() < layout.rows.div_ceil(8) => {
            return Err(ArrowError::MemoryError("a bitmap is short".to_owned()));
        }
        bits => bits.map(|bits| NullBuffer::new(BooleanBuffer::new(bits, 0, layout.rows))),
    };
    let buffers: Result<Vec<_>, _> = layout.buffers.into_iter().map(slice).collect();
    let children = layout.children.into_iter().map(|child| array(body, child));
    let children: Result<Vec<_>, _> = children.collect();
    ArrayDataBuilder::new(data_type(layout.kind))
        .len(layout.rows)
        .nulls(nulls)
        .buffers(buffers?)
        .child_data(children?)
        .build()
}

fn data_type(kind: ArrayKind) -> DataType {
    let list = |of| DataType::List(Arc::new(Field::new_list_field(of, true)));
    match kind {
        ArrayKind::Int32 => DataType::Int32,
        ArrayKind::Int64 => DataType::Int64,
        ArrayKind::UInt32 => DataType::UInt32,
        ArrayKind::UInt64 => DataType::UInt64,
        ArrayKind::Time => DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
        ArrayKind::Bool => DataType::Boolean,
        ArrayKind::Word => DataType::Utf8,
        ArrayKind::Text => DataType::LargeUtf8,
        ArrayKind::Bytes => DataType::LargeBinary,
        ArrayKind::Label => {
            DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
        }
        ArrayKind::Texts => list(DataType::LargeUtf8),
        ArrayKind::Indexes => list(DataType::UInt32),
    }
}
