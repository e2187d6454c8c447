//! Failures with the wording of the command line, and the classes of their exceptions in Python.

use arrow_schema::ArrowError;
use backstory_query as query;
use backstory_store as store;
use backstory_vocabulary::error_chain;
use serde::{Deserialize, Serialize};

/// A failure in one line, and the class of its exception.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Failure {
    /// The class in `backstory.errors`.
    pub class: String,
    /// The failure, its object, and the remedy.
    pub line: String,
}

impl Failure {
    /// The subject does not exist, or the question could not be answered.
    pub fn not_found(line: impl ToString) -> Failure {
        Failure {
            class: "NotFoundError".to_owned(),
            line: line.to_string(),
        }
    }

    /// The program and the package do not fit together, or the program did not answer.
    pub fn of_package(line: String) -> Failure {
        Failure {
            class: "BackstoryError".to_owned(),
            line,
        }
    }

    /// The question is wrong.
    pub fn misuse(line: impl ToString) -> Failure {
        Failure {
            class: "MisuseError".to_owned(),
            line: line.to_string(),
        }
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
