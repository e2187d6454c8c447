//! Failures become Python exceptions with the wording of the command line.

use arrow_schema::ArrowError;
use backstory_answers::Failure;
use pyo3::prelude::*;
use pyo3::types::PyAnyMethods;

/// The exception for a failure.
pub fn exception(py: Python<'_>, failure: Failure) -> PyErr {
    let class = py
        .import("backstory.errors")
        .and_then(|module| module.getattr(&*failure.class));
    match class.and_then(|class| class.call1((failure.line,))) {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// The exception for an error of Arrow.
pub fn arrow_failed(error: ArrowError) -> PyErr {
    Python::attach(|py| exception(py, Failure::not_found(error)))
}

/// The exception for an answer to another question.
pub fn unexpected() -> PyErr {
    let line = "the program answered another question: install the package again \
                (pip install --force-reinstall backstory)";
    Python::attach(|py| exception(py, Failure::of_package(line.to_owned())))
}
