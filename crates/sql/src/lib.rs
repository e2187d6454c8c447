//! A store's graph as tables for SQL.
//!
//! In: a store of any engine, and a question in the SQL of SQLite. Out: rows. The tables are those
//! of [`VIEWS`]: SQLite reads them through virtual tables, so nothing is copied, and equal keys
//! lead to single runs, processes and files.
//!
//! | module | what it does |
//! | --- | --- |
//! | `schema` | names the views and columns, with their meaning |
//! | `table` | joins a view with SQLite's planner |
//! | `rows`, `cell` | read rows from the store, a part at a time |
//! | `inspections` | how the caller's inspectors are asked |
//!
//! Invariant: a question only reads. It is bounded by time and by SQLite's memory. Absent on
//! purpose: the form of the answer, which belongs to `cli`.

mod cell;
mod error;
mod inspections;
mod rows;
pub mod schema;
mod table;

use std::rc::Rc;
use std::time::{Duration, Instant};

use backstory_store::Store;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::types::Value;
use rusqlite::vtab::eponymous_only_module;
use rusqlite::{Connection, ErrorCode, Statement};

pub use error::{Error, Result};
pub use inspections::{INSPECTED_VIEWS, Inspection, Inspections};
pub use rusqlite::types::Value as SqlValue;
pub use schema::{Column, ColumnType, VIEWS, View};

use rows::Source;
use table::{ViewSource, ViewTable};

/// Steps of SQLite's machine between two looks at the clock.
const STEPS: i32 = 10_000;

/// Bounds of a question.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The longest time until the last row. `None`: no bound.
    pub time: Option<Duration>,
    /// The memory of SQLite in this process, in MB of 1,000,000 bytes.
    pub megabytes: u64,
}

/// Receives an answer.
pub trait AnswerSink {
    /// The reason why the rest of an answer is not wanted, or a failure of the question.
    type Error: From<Error>;

    /// The names of the columns, once, before the rows.
    ///
    /// # Errors
    ///
    /// The answer ends here.
    fn head(&mut self, names: Vec<String>) -> std::result::Result<(), Self::Error>;

    /// The next row.
    ///
    /// # Errors
    ///
    /// The answer ends here.
    fn row(&mut self, values: Vec<Value>) -> std::result::Result<(), Self::Error>;
}

/// Answers a question. The store and the inspections must live as long as the process, because
/// SQLite keeps its tables so long. Without inspections, the views `facts` and `changes` are empty.
///
/// # Errors
///
/// The question is no single SELECT, or exceeds a limit. The store cannot be read. The sink ended
/// the answer.
pub fn ask<S: AnswerSink>(
    store: &'static dyn Store,
    inspections: Option<&'static dyn Inspections>,
    question: &str,
    limits: Limits,
    sink: &mut S,
) -> std::result::Result<(), S::Error> {
    let explain = |error| explained(error, limits);
    let connection = connection(store, inspections, limits).map_err(explain)?;
    let mut statement = one_statement(&connection, question, limits)?;
    let names: Vec<String> = statement
        .column_names()
        .into_iter()
        .map(str::to_owned)
        .collect();
    let columns = names.len();
    sink.head(names)?;
    let mut rows = statement.query([]).map_err(explain)?;
    while let Some(found) = rows.next().map_err(explain)? {
        let values = (0..columns).map(|at| found.get::<_, Value>(at));
        sink.row(values.collect::<rusqlite::Result<_>>().map_err(explain)?)?;
    }
    Ok(())
}

fn connection(
    store: &'static dyn Store,
    inspections: Option<&'static dyn Inspections>,
    limits: Limits,
) -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    let bytes = limits.megabytes.saturating_mul(1_000_000);
    // Sorting uses temporary files before it uses more memory.
    connection.execute_batch(&format!(
        "PRAGMA temp_store = FILE; PRAGMA hard_heap_limit = {bytes}"
    ))?;
    let source = Rc::new(Source::new(store, inspections, limits.time));
    for view in &VIEWS {
        let source = source.clone();
        let of = ViewSource { source, view };
        connection.create_module(view.name, eponymous_only_module::<ViewTable>(), Some(of))?;
    }
    connection.authorizer(Some(authorization));
    if let Some(time) = limits.time {
        let began = Instant::now();
        connection.progress_handler(STEPS, Some(move || began.elapsed() > time));
    }
    Ok(connection)
}

/// Only reads are allowed, and functions that touch no file.
fn authorization(context: AuthContext<'_>) -> Authorization {
    match context.action {
        AuthAction::Function {
            function_name: "load_extension",
        } => Authorization::Deny,
        AuthAction::Select
        | AuthAction::Read { .. }
        | AuthAction::Function { .. }
        | AuthAction::Recursive => Authorization::Allow,
        _ => Authorization::Deny,
    }
}

fn one_statement<'c>(
    connection: &'c Connection,
    question: &str,
    limits: Limits,
) -> Result<Statement<'c>> {
    let statement = connection.prepare(question);
    match statement.map_err(|error| misunderstood(error, question, limits)) {
        Ok(statement) if statement.column_count() == 0 => Err(Error::NotOne),
        other => other,
    }
}

/// The reason why a question cannot be prepared.
fn misunderstood(error: rusqlite::Error, question: &str, limits: Limits) -> Error {
    let (message, at) = match error {
        rusqlite::Error::MultipleStatement => return Error::NotOne,
        rusqlite::Error::SqlInputError { msg, offset, .. } => (msg, usize::try_from(offset).ok()),
        rusqlite::Error::SqliteFailure(failure, Some(message))
            if failure.code == ErrorCode::Unknown =>
        {
            (message, None)
        }
        error => return explained(error, limits),
    };
    // SQLite's words for changes of tables and for refused functions.
    match message.contains("may not be modified") || message.starts_with("not authorized") {
        true => Error::Refused,
        false => Error::Syntax {
            message,
            at: at.filter(|at| *at < question.len()),
        },
    }
}

/// The reason why an answer ends.
fn explained(error: rusqlite::Error, limits: Limits) -> Error {
    match (error.sqlite_error_code(), limits.time) {
        (Some(ErrorCode::OperationInterrupted), Some(time)) => Error::TooLong(time),
        (Some(ErrorCode::OutOfMemory), _) => Error::TooMuchMemory(limits.megabytes),
        (Some(ErrorCode::AuthorizationForStatementDenied), _) => Error::Refused,
        _ => match error {
            rusqlite::Error::SqliteFailure(_, Some(message)) => Error::Failed(message),
            error => Error::Sqlite(error),
        },
    }
}
