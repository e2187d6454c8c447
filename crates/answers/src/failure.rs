//! Failures with the wording of the command line, and the classes of their exceptions in Python.

use std::error::Error;

use backstory_query as query;
use backstory_store as store;
use backstory_vocabulary::error_chain;
use serde::{Deserialize, Serialize};

/// The class of the exception if a question is wrong.
const MISUSE: &str = "MisuseError";

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

    /// True if the question is wrong.
    pub fn is_misuse(&self) -> bool {
        self.class == MISUSE
    }

    /// The question is wrong.
    pub fn misuse(line: impl ToString) -> Failure {
        Failure {
            class: MISUSE.to_owned(),
            line: line.to_string(),
        }
    }
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Failure {
        classified(error.is_misuse(), &error)
    }
}

impl From<query::Error> for Failure {
    fn from(error: query::Error) -> Failure {
        classified(error.is_misuse(), &error)
    }
}

fn classified(is_misuse: bool, error: &dyn Error) -> Failure {
    match is_misuse {
        true => Failure::misuse(error_chain(error)),
        false => Failure::not_found(error_chain(error)),
    }
}

/// Failures of a crate whose errors can be those of the store, of a query, and these others.
macro_rules! passes_on {
    ($error:ty: $($inner:ident)*) => {
        impl From<$error> for Failure {
            fn from(error: $error) -> Failure {
                type Of = $error;
                match error {
                    $(Of::$inner(error) => error.into(),)*
                    error => Failure::not_found(error_chain(&error)),
                }
            }
        }
    };
}

passes_on!(backstory_workflow::Error: Query Store);
passes_on!(backstory_currency::Error: Query Store Workflow);
passes_on!(backstory_replay::Error: Query Store Workflow Currency);

impl From<backstory_contents::Error> for Failure {
    fn from(error: backstory_contents::Error) -> Failure {
        classified(false, &error)
    }
}
