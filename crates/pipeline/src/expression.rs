//! An expression of a user's file, and its position there.
//!
//! In: a string of the file. Out: messages about the expression that name line and column.

use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::judge::JudgeFailure;
use crate::text_position::position;

/// An expression, and its position in the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression {
    /// The text.
    pub text: String,
    /// The configuration's file, line and column at which the text begins. The column is `None` if
    /// the text stands there in another form, with escapes.
    pub place: (PathBuf, usize, Option<usize>),
}

impl Expression {
    /// An expression that is the string at `span` of the file at `path`.
    pub fn at(text: String, file: &str, path: &Path, span: Range<usize>) -> Expression {
        let within = file.get(span.clone()).and_then(|raw| raw.find(&text));
        let (line, column) = position(file, span.start + within.unwrap_or(0));
        let column = within.map(|_| column);
        Expression {
            text,
            place: (path.to_owned(), line, column),
        }
    }

    /// A failure of the expression, with its position in the file if it has one.
    pub fn failure(&self, failure: &JudgeFailure) -> String {
        let JudgeFailure::Expression { line, column, why } = failure else {
            return failure.to_string();
        };
        let (path, first, begin) = &self.place;
        match begin {
            Some(begin) => {
                let column = if *line == 1 {
                    begin + column - 1
                } else {
                    *column
                };
                format!("{}:{}:{column}: {why}", path.display(), first + line - 1)
            }
            None => format!("{}:{first}: {failure}", path.display()),
        }
    }
}
