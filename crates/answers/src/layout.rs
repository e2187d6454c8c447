//! The columns of tables as positions of buffers in a file.
//!
//! In: a batch of columns. Out: its buffers, and where they are. And back.

use std::sync::Arc;

use arrow_array::{Array, RecordBatch, make_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::{ArrayData, ArrayDataBuilder};
use arrow_schema::{ArrowError, DataType, Field, Schema, TimeUnit};
use serde::{Deserialize, Serialize};

/// One column.
#[derive(Debug, Serialize, Deserialize)]
pub struct ColumnLayout {
    name: String,
    nullable: bool,
    array: ArrayLayout,
}

/// An array: its type, its rows, and the positions and lengths of its buffers.
#[derive(Debug, Serialize, Deserialize)]
struct ArrayLayout {
    kind: ArrayKind,
    rows: usize,
    nulls: Option<Extent>,
    buffers: Vec<Extent>,
    children: Vec<ArrayLayout>,
}

/// A position, and the number of bytes from there.
type Extent = (usize, usize);

/// The types that columns have.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum ArrayKind {
    Int32,
    Int64,
    UInt32,
    UInt64,
    Time,
    Bool,
    Word,
    Text,
    Bytes,
    Label,
    Texts,
    Indexes,
}

const KINDS: [ArrayKind; 12] = [
    ArrayKind::Int32,
    ArrayKind::Int64,
    ArrayKind::UInt32,
    ArrayKind::UInt64,
    ArrayKind::Time,
    ArrayKind::Bool,
    ArrayKind::Word,
    ArrayKind::Text,
    ArrayKind::Bytes,
    ArrayKind::Label,
    ArrayKind::Texts,
    ArrayKind::Indexes,
];

impl ArrayKind {
    fn data_type(self) -> DataType {
        let list = |of| DataType::List(Arc::new(Field::new_list_field(of, true)));
        match self {
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

    fn of(data_type: &DataType) -> Result<ArrayKind, ArrowError> {
        let found = KINDS.iter().find(|kind| kind.data_type() == *data_type);
        found.copied().ok_or_else(|| refused(data_type))
    }
}

fn refused(data_type: &DataType) -> ArrowError {
    ArrowError::NotYetImplemented(format!("a column of {data_type}"))
}

/// Buffers, and their positions. Each position is a multiple of 64.
#[derive(Default)]
pub struct LaidOut {
    /// In the order of their positions.
    pub buffers: Vec<(usize, Buffer)>,
    end: usize,
}

impl LaidOut {
    /// Adds the buffers of a table.
    pub fn add(&mut self, batch: &RecordBatch) -> Result<Vec<ColumnLayout>, ArrowError> {
        let schema = batch.schema();
        let columns = schema.fields().iter().zip(batch.columns());
        let layouts = columns.map(|(field, array)| {
            Ok(ColumnLayout {
                name: field.name().clone(),
                nullable: field.is_nullable(),
                array: self.array(&array.to_data())?,
            })
        });
        layouts.collect()
    }

    fn array(&mut self, data: &ArrayData) -> Result<ArrayLayout, ArrowError> {
        // A part of an array is never a column: builders make whole ones.
        let nulls = data.nulls();
        if data.offset() != 0 || nulls.is_some_and(|nulls| nulls.offset() != 0) {
            return Err(refused(data.data_type()));
        }
        let children = data.child_data().iter().map(|child| self.array(child));
        let children: Result<Vec<_>, _> = children.collect();
        Ok(ArrayLayout {
            kind: ArrayKind::of(data.data_type())?,
            rows: data.len(),
            nulls: nulls.map(|nulls| self.buffer(nulls.buffer())),
            buffers: data.buffers().iter().map(|one| self.buffer(one)).collect(),
            children: children?,
        })
    }

    fn buffer(&mut self, buffer: &Buffer) -> Extent {
        let extent = (self.end, buffer.len());
        self.end = (self.end + buffer.len()).next_multiple_of(64);
        self.buffers.push((extent.0, buffer.clone()));
        extent
    }
}

/// The table whose buffers are in `body`.
///
/// # Errors
///
/// A buffer is outside of `body`, or the buffers are no columns of these types.
pub fn batch(body: &Buffer, columns: Vec<ColumnLayout>) -> Result<RecordBatch, ArrowError> {
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for column in columns {
        let data_type = column.array.kind.data_type();
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
    ArrayDataBuilder::new(layout.kind.data_type())
        .len(layout.rows)
        .nulls(nulls)
        .buffers(buffers?)
        .child_data(children?)
        .build()
}
