//! A table of Arrow columns, as Python sees it.
//!
//! - Other libraries take it without a copy, through the Arrow C interface
//!   (`__arrow_c_stream__`, `__arrow_c_array__`, `__arrow_c_schema__`).
//! - numpy takes the numbers of a column without a copy, through `__array_interface__`.
//! - [`Table::column`] makes Python objects of a column.
//!
//! Invariant: a table never changes.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, to_ffi};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Int32Type, Int64Type, TimestampNanosecondType, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch, RecordBatchIterator, StructArray};
use arrow_schema::{ArrowError, DataType, Field};
use backstory_answers::ExactValues;
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList, PyString, PyTuple};

use crate::buffer::ColumnBuffer;
use crate::failure::arrow_failed;
use crate::reply::ArrowTable;
use crate::text::os_text;

/// Columns of equal length.
#[pyclass(frozen, module = "backstory._core")]
#[derive(Clone)]
pub struct Table(Arc<ArrowTable>);

impl Table {
    /// A table of an answer.
    pub fn new(table: ArrowTable) -> Table {
        Table(Arc::new(table))
    }

    fn array(&self, name: &str) -> PyResult<&dyn Array> {
        let column = self.0.batch.column_by_name(name);
        column
            .map(|array| &**array)
            .ok_or_else(|| PyKeyError::new_err(name.to_owned()))
    }
}

#[pymethods]
impl Table {
    fn __len__(&self) -> usize {
        self.0.batch.num_rows()
    }

    /// The names of the columns, without those that hold the bytes of others.
    #[getter]
    fn names(&self) -> Vec<String> {
        let schema = self.0.batch.schema();
        let fields = schema.fields().iter();
        let shown = fields.filter(|field| !is_companion(field));
        shown.map(|field| field.name().clone()).collect()
    }

    /// The kind of a column: text, label, int, time, bool, list.
    fn kind(&self, name: &str) -> PyResult<&'static str> {
        Ok(match self.array(name)?.data_type() {
            DataType::LargeUtf8 => "text",
            DataType::LargeBinary => "bytes",
            DataType::Dictionary(..) => "label",
            DataType::Boolean => "bool",
            DataType::Timestamp(..) => "time",
            DataType::List(_) => "list",
            _ => "int",
        })
    }

    /// A column as a list of Python objects. Moments are nanoseconds since 1970.
    #[pyo3(signature = (name, start=0, end=None))]
    fn column<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        start: usize,
        end: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let rows = self.0.batch.num_rows();
        let end = end.unwrap_or(rows).min(rows);
        let start = start.min(end);
        let exact = self.0.exact.get(name);
        objects(py, self.array(name)?, start..end, exact)
    }

    /// The numbers of a column for numpy, and the bitmap of the rows that have one (`None`: all
    /// have). Of a column of labels, also the words behind the numbers.
    fn buffers<'py>(
        &self,
        py: Python<'py>,
        name: &str,
    ) -> PyResult<(
        ColumnBuffer,
        Option<ColumnBuffer>,
        Option<Bound<'py, PyList>>,
    )> {
        let array = self.array(name)?;
        let validity = array.nulls().filter(|nulls| nulls.null_count() > 0);
        let validity = validity.map(ColumnBuffer::bits);
        let values = |buffer: &arrow_buffer::Buffer, kind| ColumnBuffer::new(buffer.clone(), kind);
        let (values, words) = match array.data_type() {
            DataType::Int32 => (
                values(array.as_primitive::<Int32Type>().values().inner(), "<i4"),
                None,
            ),
            DataType::Int64 => (
                values(array.as_primitive::<Int64Type>().values().inner(), "<i8"),
                None,
            ),
            DataType::UInt32 => (
                values(array.as_primitive::<UInt32Type>().values().inner(), "<u4"),
                None,
            ),
            DataType::UInt64 => (
                values(array.as_primitive::<UInt64Type>().values().inner(), "<u8"),
                None,
            ),
            DataType::Timestamp(..) => {
                let moments = array.as_primitive::<TimestampNanosecondType>();
                (values(moments.values().inner(), "<i8"), None)
            }
            DataType::Dictionary(..) => {
                let labels = array.as_dictionary::<Int32Type>();
                let words = labels.values();
                let words = objects(py, words, 0..words.len(), None)?;
                (values(labels.keys().values().inner(), "<i4"), Some(words))
            }
            other => {
                let text = format!("the column {name} has no numbers: it is {other}");
                return Err(PyTypeError::new_err(text));
            }
        };
        Ok((values, validity, words))
    }

    /// Rows `start` to `end` as dictionaries.
    #[pyo3(signature = (start=0, end=None))]
    fn rows<'py>(
        &self,
        py: Python<'py>,
        start: usize,
        end: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let names = self.names();
        let mut columns = Vec::new();
        for name in &names {
            columns.push(self.column(py, name, start, end)?);
        }
        let keys: Vec<Bound<'py, PyString>> = names
            .iter()
            .map(|name| PyString::intern(py, name))
            .collect();
        let found = PyList::empty(py);
        for row in 0..columns.first().map_or(0, |column| column.len()) {
            let object = PyDict::new(py);
            for (key, column) in keys.iter().zip(&columns) {
                object.set_item(key, column.get_item(row)?)?;
            }
            found.append(object)?;
        }
        Ok(found)
    }

    /// Part of the Arrow PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = self.0.batch.schema();
        let schema = FFI_ArrowSchema::try_from(schema.as_ref()).map_err(arrow_failed)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// Part of the Arrow PyCapsule interface. The requested schema is not needed: a consumer casts.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let _ = requested_schema;
        let whole = StructArray::from(self.0.batch.clone());
        let (array, schema): (FFI_ArrowArray, FFI_ArrowSchema) =
            to_ffi(&whole.into_data()).map_err(arrow_failed)?;
        let schema = PyCapsule::new_with_value(py, schema, c"arrow_schema")?;
        let array = PyCapsule::new_with_value(py, array, c"arrow_array")?;
        PyTuple::new(py, [schema, array])
    }

    /// Part of the Arrow PyCapsule interface. The requested schema is not needed: a consumer casts.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches: [Result<RecordBatch, ArrowError>; 1] = [Ok(self.0.batch.clone())];
        let reader = RecordBatchIterator::new(batches, self.0.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

/// True for a column that holds the bytes of another one.
fn is_companion(field: &Field) -> bool {
    *field.data_type() == DataType::LargeBinary
}

/// Python objects for rows of a column.
fn objects<'py>(
    py: Python<'py>,
    array: &dyn Array,
    rows: std::ops::Range<usize>,
    exact: Option<&ExactValues>,
) -> PyResult<Bound<'py, PyList>> {
    let none = || py.None().into_bound(py);
    let list = PyList::empty(py);
    macro_rules! each {
        ($values:expr, $make:expr) => {{
            let values = $values;
            for row in rows {
                match array.is_null(row) {
                    true => list.append(none())?,
                    false => list.append($make(row, values.value(row))?)?,
                }
            }
        }};
    }
    macro_rules! numbers {
        ($kind:ty) => {
            each!(array.as_primitive::<$kind>(), |_, value| {
                Ok::<_, PyErr>(value)
            })
        };
    }
    match array.data_type() {
        DataType::LargeUtf8 => each!(array.as_string::<i64>(), |row, text: &str| {
            let bytes = exact.and_then(|exact| exact.get(&row)?.first());
            match bytes {
                Some(bytes) => os_text(py, bytes),
                None => Ok(PyString::new(py, text)),
            }
        }),
        // The words of labels.
        DataType::Utf8 => each!(array.as_string::<i32>(), |_, text: &str| {
            Ok::<_, PyErr>(PyString::new(py, text))
        }),
        DataType::LargeBinary => each!(array.as_binary::<i64>(), |_, bytes: &[u8]| {
            Ok::<_, PyErr>(PyBytes::new(py, bytes))
        }),
        DataType::Boolean => each!(array.as_boolean(), |_, value: bool| Ok::<_, PyErr>(value)),
        DataType::Int32 => numbers!(Int32Type),
        DataType::Int64 => numbers!(Int64Type),
        DataType::UInt32 => numbers!(UInt32Type),
        DataType::UInt64 => numbers!(UInt64Type),
        DataType::Timestamp(..) => numbers!(TimestampNanosecondType),
        DataType::Dictionary(..) => {
            let labels = array.as_dictionary::<Int32Type>();
            let words = objects(py, labels.values(), 0..labels.values().len(), None)?;
            each!(labels.keys(), |_, key: i32| words.get_item(key as usize))
        }
        DataType::List(_) => each!(
            array.as_list::<i32>(),
            |row, items: arrow_array::ArrayRef| {
                match exact.and_then(|exact| exact.get(&row)) {
                    Some(bytes) => {
                        let texts = bytes.iter().map(|bytes| os_text(py, bytes));
                        PyList::new(py, texts.collect::<PyResult<Vec<_>>>()?)
                    }
                    None => objects(py, &items, 0..items.len(), None),
                }
            }
        ),
        other => return Err(PyTypeError::new_err(format!("no objects for {other}"))),
    }
    Ok(list)
}
