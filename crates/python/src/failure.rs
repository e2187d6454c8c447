//! Errors become Python exceptions with the wording of the command line.

use arrow_schema::ArrowError;
use backstory_query as query;
use backstory_store as store;
use backstory_vocabulary::error_chain;
use pyo3::prelude::*;
use pyo3::types::PyAnyMethods;

/// A failure in one line, and the class of its exception. It can be made without Python's lock.
#[derive(Debug)]
pub struct Failure {
    /// The class in `backstory.errors`.
    pub class: &'static str,
    /// The failure, its object, and the remedy.
    pub line: String,
}

impl Failure {
    /// The subject does not exist, or the question could not be answered.
    pub fn not_found(line: impl ToString) -> Failure {
        Failure {
            class: "NotFoundError",
            line: line.to_string(),
        }
    }

    /// The question is wrong.
    pub fn misuse(line: impl ToString) -> Failure {
        Failure {
            class: "MisuseError",
            line: line.to_string(),
        }
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        Python::attach(|py| {
            let class = py
                .import("backstory.errors")
                .and_then(|module| module.getattr(failure.class));
            match class.and_then(|class| class.call1((failure.line,))) {
                Ok(exception) => PyErr::from_value(exception),
                Err(error) => error,
            }
        })
    }
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Failure {
        match error.is_misuse() {
            true => Failure::misuse(error_chain(&error)),
            false => Failure::not_found(error_chain(&error)),
        }
    }
}

impl From<query::Error> for Failure {
    fn from(error: query::Error) -> Failure {
        match error.is_misuse() {
            true => Failure::misuse(error_chain(&error)),
            false => Failure::not_found(error_chain(&error)),
        }
    }
}

macro_rules! is_not_found {
    ($($error:ty),*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Failure {
                Failure::not_found(error_chain(&error))
            }
        }
    )*};
}

is_not_found!(
    backstory_replay::Error,
    backstory_currency::Error,
    backstory_contents::Error,
    backstory_workflow::Error,
    ArrowError
);

/// The exception for an error of Arrow.
pub fn arrow_failed(error: ArrowError) -> PyErr {
    Failure::from(error).into()
}
