//! The memory of a column, which numpy reads in place.

use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Numbers of one type, read-only. numpy keeps this object alive as long as it uses the memory.
#[pyclass(frozen, module = "backstory._core")]
pub struct ColumnBuffer {
    buffer: Buffer,
    /// The type in the notation of numpy's array interface.
    kind: &'static str,
    items: usize,
}

impl ColumnBuffer {
    /// A buffer of numbers of a type such as `<i8`.
    pub fn new(buffer: Buffer, kind: &'static str) -> ColumnBuffer {
        let size = usize::from(kind.as_bytes()[2] - b'0');
        ColumnBuffer {
            items: buffer.len() / size,
            buffer,
            kind,
        }
    }

    /// A bitmap, the lowest bit first, from bit 0 on.
    pub fn bits(nulls: &NullBuffer) -> ColumnBuffer {
        let bits: &BooleanBuffer = nulls.inner();
        ColumnBuffer::new(bits.sliced(), "|u1")
    }
}

#[pymethods]
impl ColumnBuffer {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("typestr", self.kind)?;
        interface.set_item("shape", (self.items,))?;
        interface.set_item("data", (self.buffer.as_ptr() as usize, true))?;
        Ok(interface)
    }
}
