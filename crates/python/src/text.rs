//! Texts of the operating system: bytes in the store, strings with lone surrogates in Python.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use pyo3::prelude::*;
use pyo3::types::PyString;

/// The string that `os.fsdecode` makes of these bytes in a UTF-8 locale.
pub fn os_text<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyString>> {
    OsStr::from_bytes(bytes)
        .into_pyobject(py)
        .map_err(Into::into)
}
