//! The forms of an answer: a table, JSON and comma-separated values.

use std::io::{self, Write};

use backstory_sql::{AnswerSink, SqlValue};

use crate::json::Value;
use crate::text::csv;
use crate::text::line::width;
use crate::text::paths::shown;
use crate::text::style::{Role, Style};

/// Rows that the widths of a table's columns are taken from.
const MEASURED: usize = 500;

/// The end of an answer before its last row.
pub enum Ended {
    /// The answer cannot be written.
    Unwritable(io::Error),
    /// The question fails.
    Failed(backstory_sql::Error),
}

impl From<backstory_sql::Error> for Ended {
    fn from(error: backstory_sql::Error) -> Ended {
        Ended::Failed(error)
    }
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Ended {
        Ended::Unwritable(error)
    }
}

/// An array of objects, one a line.
pub struct JsonRows<'o, W> {
    out: &'o mut W,
    names: Vec<String>,
    rows: u64,
}

impl<'o, W: Write> JsonRows<'o, W> {
    pub fn new(out: &'o mut W) -> Self {
        let names = Vec::new();
        JsonRows {
            out,
            names,
            rows: 0,
        }
    }

    /// Ends the array.
    pub fn end(self) -> io::Result<()> {
        self.out
            .write_all(if self.rows == 0 { b"[]\n" } else { b"\n]\n" })
    }
}

impl<W: Write> AnswerSink for JsonRows<'_, W> {
    type Error = Ended;

    fn head(&mut self, names: Vec<String>) -> Result<(), Ended> {
        self.names = names;
        Ok(())
    }

    fn row(&mut self, values: Vec<SqlValue>) -> Result<(), Ended> {
        self.out
            .write_all(if self.rows == 0 { b"[\n" } else { b",\n" })?;
        self.rows += 1;
        let names = self.names.iter().cloned();
        let fields = names.zip(values.into_iter().map(json_value));
        Ok(Value::Map(fields.collect()).write(self.out)?)
    }
}

fn json_value(value: SqlValue) -> Value {
    match value {
        SqlValue::Null => Value::Null,
        SqlValue::Integer(number) => Value::Int(number.into()),
        // JSON has no infinity.
        SqlValue::Real(number) if number.is_finite() => Value::Number(real(number)),
        SqlValue::Real(_) => Value::Null,
        SqlValue::Text(text) => Value::Bytes(text.into_bytes()),
        SqlValue::Blob(bytes) => Value::Bytes(bytes),
    }
}

/// A number that is read as a fraction again.
fn real(number: f64) -> String {
    format!("{number:?}")
}

/// Comma-separated values, with a line of names.
pub struct CsvRows<'o, W> {
    out: &'o mut W,
}

impl<'o, W: Write> CsvRows<'o, W> {
    pub fn new(out: &'o mut W) -> Self {
        CsvRows { out }
    }
}

impl<W: Write> AnswerSink for CsvRows<'_, W> {
    type Error = Ended;

    fn head(&mut self, names: Vec<String>) -> Result<(), Ended> {
        Ok(csv::row(names, self.out)?)
    }

    fn row(&mut self, values: Vec<SqlValue>) -> Result<(), Ended> {
        let cells = values.into_iter().map(|value| match value {
            SqlValue::Null => Vec::new(),
            SqlValue::Integer(number) => number.to_string().into_bytes(),
            SqlValue::Real(number) => real(number).into_bytes(),
            SqlValue::Text(text) => text.into_bytes(),
            SqlValue::Blob(bytes) => bytes,
        });
        Ok(csv::row(cells, self.out)?)
    }
}

/// Columns for people. Their widths are those of the first rows.
pub struct TableRows<'o, W> {
    out: &'o mut W,
    style: Style,
    names: Vec<String>,
    /// Rows that are not written yet: the text of each cell, and whether it is a number.
    held: Vec<Vec<(String, bool)>>,
    widths: Option<Vec<usize>>,
    rows: u64,
}

impl<'o, W: Write> TableRows<'o, W> {
    pub fn new(style: Style, out: &'o mut W) -> Self {
        TableRows {
            out,
            style,
            names: Vec::new(),
            held: Vec::new(),
            widths: None,
            rows: 0,
        }
    }

    /// Writes the rest.
    pub fn end(mut self) -> io::Result<()> {
        if self.widths.is_none() {
            self.begin()?;
        }
        match self.rows {
            0 => writeln!(self.out, "{}", self.style.paint(Role::Dim, "no rows")),
            _ => Ok(()),
        }
    }

    /// Fixes the widths, and writes the names and the rows so far.
    fn begin(&mut self) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        let widest = |(at, name): (usize, &String)| {
            let cells = held.iter().filter_map(|row| row.get(at));
            let cells = cells.map(|(text, _)| width(text));
            cells.chain([width(name)]).max().unwrap_or_default()
        };
        let widths: Vec<usize> = self.names.iter().enumerate().map(widest).collect();
        // A column of numbers has its name at the right, too.
        let numbers = |at| {
            held.first()
                .and_then(|row| row.get(at))
                .is_some_and(|(_, number)| *number)
        };
        let names: Vec<(String, bool)> = self
            .names
            .iter()
            .cloned()
            .enumerate()
            .map(|(at, name)| (name, numbers(at)))
            .collect();
        if !held.is_empty() {
            let head = line(&names, &widths);
            writeln!(self.out, "{}", self.style.paint(Role::Dim, &head))?;
        }
        for row in held {
            writeln!(self.out, "{}", line(&row, &widths))?;
        }
        self.widths = Some(widths);
        Ok(())
    }
}

impl<W: Write> AnswerSink for TableRows<'_, W> {
    type Error = Ended;

    fn head(&mut self, names: Vec<String>) -> Result<(), Ended> {
        self.names = names;
        Ok(())
    }

    fn row(&mut self, values: Vec<SqlValue>) -> Result<(), Ended> {
        self.rows += 1;
        let row: Vec<(String, bool)> = values.into_iter().map(cell).collect();
        match &self.widths {
            Some(widths) => writeln!(self.out, "{}", line(&row, widths))?,
            None => {
                self.held.push(row);
                if self.held.len() == MEASURED {
                    self.begin()?;
                }
            }
        }
        Ok(())
    }
}

/// A cell's text in one line, and whether it is a number.
fn cell(value: SqlValue) -> (String, bool) {
    match value {
        SqlValue::Null => (String::new(), false),
        SqlValue::Integer(number) => (number.to_string(), true),
        SqlValue::Real(number) => (real(number), true),
        SqlValue::Text(text) => (without_controls(text), false),
        SqlValue::Blob(bytes) => (shown(&bytes), false),
    }
}

/// Control characters as escapes, so that a cell stays in its line and cannot command the terminal.
fn without_controls(text: String) -> String {
    if !text.contains(char::is_control) {
        return text;
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c.is_control() {
            true => escaped.extend(c.escape_default()),
            false => escaped.push(c),
        }
    }
    escaped
}

/// The cells side by side: numbers at the right of their column, texts at the left.
fn line(cells: &[(String, bool)], widths: &[usize]) -> String {
    let mut line = String::new();
    for (at, ((text, number), column)) in cells.iter().zip(widths).enumerate() {
        let pad = " ".repeat(column.saturating_sub(width(text)));
        line.push_str(if at == 0 { "" } else { "  " });
        match number {
            true => line.extend([&*pad, text]),
            false => line.extend([text, &*pad]),
        }
    }
    line.truncate(line.trim_end().len());
    line
}
