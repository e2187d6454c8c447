//! A value of a row. Texts that are the same in many rows are shared, and costly values are made
//! only if the question uses their column.

use std::rc::Rc;

use backstory_eventlog::event::{Bytes, Time};
use backstory_files::Ident;
use backstory_query::is_undone;
use backstory_store::{RunRecord, Store};
use backstory_workflow::shell;
use rusqlite::types::{ToSqlOutput, Value};

use crate::error::{Error, Result};

/// A value of a row.
#[derive(Debug, Clone)]
pub(crate) enum Cell {
    Null,
    Integer(i64),
    Real(f64),
    Word(&'static str),
    Text(Rc<str>),
    /// A path or name that need not be UTF-8.
    Bytes(Bytes),
    /// The words of a command.
    Command(Vec<Bytes>),
    /// A JSON array of paths.
    Paths(Vec<Bytes>),
    Time(Time),
    /// The digest of this version's content.
    Digest(Ident),
    /// Whether the outputs of this repetition were put back.
    Undone(Box<RunRecord>),
}

impl Cell {
    /// The value that SQLite gets.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub(crate) fn value(&self, store: &dyn Store) -> Result<ToSqlOutput<'_>> {
        Ok(match self {
            Cell::Null => ToSqlOutput::Owned(Value::Null),
            Cell::Integer(number) => (*number).into(),
            Cell::Real(number) => (*number).into(),
            Cell::Word(word) => (*word).into(),
            Cell::Text(text) => ToSqlOutput::from(&**text),
            Cell::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => text.into(),
                Err(_) => (&**bytes).into(),
            },
            Cell::Command(words) => ToSqlOutput::Owned(Value::Text(shell::line(words))),
            Cell::Paths(paths) => ToSqlOutput::Owned(Value::Text(json_array(paths))),
            Cell::Time(time) => ToSqlOutput::Owned(Value::Text(moment(*time))),
            Cell::Digest(ident) => match store.fact(ident)?.and_then(|fact| fact.digest) {
                Some(digest) => ToSqlOutput::Owned(Value::Text(digest.to_string())),
                None => ToSqlOutput::Owned(Value::Null),
            },
            Cell::Undone(record) => is_undone(store, record).map_err(Error::query)?.into(),
        })
    }

    /// NULL for `None`.
    pub(crate) fn of<T>(value: Option<T>, cell: impl FnOnce(T) -> Cell) -> Cell {
        value.map_or(Cell::Null, cell)
    }

    /// A number that may be missing.
    pub(crate) fn number<T: Into<i64>>(value: Option<T>) -> Cell {
        Cell::of(value, |number| Cell::Integer(number.into()))
    }

    /// A text of its own.
    pub(crate) fn text(text: &str) -> Cell {
        Cell::Text(text.into())
    }
}

/// In JSON, a path that is not UTF-8 is a text with replacement characters.
fn json_array(paths: &[Bytes]) -> String {
    let texts = paths.iter().map(|path| String::from_utf8_lossy(path));
    serde_json::Value::from_iter(texts).to_string()
}

/// A moment in UTC, to the microsecond.
fn moment(time: Time) -> String {
    match jiff::Timestamp::from_nanosecond(time.into()) {
        Ok(stamp) => {
            let utc = stamp.to_zoned(jiff::tz::TimeZone::UTC).datetime();
            let micros = utc.subsec_nanosecond() / 1000;
            format!(
                "{} {:02}:{:02}:{:02}.{micros:06}",
                utc.date(),
                utc.hour(),
                utc.minute(),
                utc.second()
            )
        }
        // `Time` has 64 bits, which jiff's range contains.
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_before_1970_is_written_like_every_other() {
        assert_eq!(moment(0), "1970-01-01 00:00:00.000000");
        assert_eq!(moment(-1_000), "1969-12-31 23:59:59.999999");
        assert_eq!(
            moment(1_795_448_727_344_631_901),
            "2026-11-23 15:45:27.344631"
        );
    }
}
