//! Writes JSON with byte strings. Bytes that are not UTF-8 become lone surrogates (`\udcXX`), as
//! with Python's `surrogateescape`.
//!
//! The usual serialisers refuse lone surrogates, because a Rust string cannot hold one. This module
//! reads no JSON.

use std::io::{self, Write};

use backstory_eventlog::event::Time;
use backstory_files::Digest;

/// A JSON value to write.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A whole number.
    Int(i128),
    /// A moment: seconds since 1970, exact to the nanosecond in the text.
    Time(Time),
    /// A string that need not be UTF-8.
    Bytes(Vec<u8>),
    /// An array.
    Array(Vec<Value>),
    /// A number, as JSON spells it.
    Number(String),
    /// An object whose keys are data, in this order.
    Map(Vec<(String, Value)>),
    /// An object, in this order.
    Object(Vec<(&'static str, Value)>),
}

impl Value {
    /// An array of values that have a JSON form.
    pub fn array<T: Into<Value>>(items: impl IntoIterator<Item = T>) -> Value {
        Value::Array(items.into_iter().map(Into::into).collect())
    }

    /// Writes the value in one line.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        match self {
            Value::Null => out.write_all(b"null"),
            Value::Bool(value) => write!(out, "{value}"),
            Value::Int(value) => number(*value, out),
            Value::Time(time) => moment(*time, out),
            Value::Bytes(bytes) => string(bytes, out),
            Value::Array(items) => {
                out.write_all(b"[")?;
                for (n, item) in items.iter().enumerate() {
                    out.write_all(if n == 0 { b"" } else { b", " })?;
                    item.write(out)?;
                }
                out.write_all(b"]")
            }
            Value::Number(text) => out.write_all(text.as_bytes()),
            Value::Map(fields) => {
                out.write_all(b"{")?;
                for (n, (key, value)) in fields.iter().enumerate() {
                    out.write_all(if n == 0 { b"" } else { b", " })?;
                    string(key.as_bytes(), out)?;
                    out.write_all(b": ")?;
                    value.write(out)?;
                }
                out.write_all(b"}")
            }
            Value::Object(fields) => {
                out.write_all(b"{")?;
                for (n, (key, value)) in fields.iter().enumerate() {
                    out.write_all(if n == 0 { b"\"" } else { b", \"" })?;
                    out.write_all(key.as_bytes())?;
                    out.write_all(b"\": ")?;
                    value.write(out)?;
                }
                out.write_all(b"}")
            }
        }
    }
}

/// Writes an array with one element a line. A long answer then needs no memory for the whole array,
/// and can be compared line by line.
pub fn lines(out: &mut impl Write, items: impl IntoIterator<Item = Value>) -> io::Result<()> {
    array(out, items, |item, line| item.write(line))
}

/// Writes an array as [`lines`] does, of elements that are written field by field. An answer may
/// have a hundred thousand elements, and a [`Value`] would be a tree for each of them.
pub fn objects<T>(
    out: &mut impl Write,
    items: impl IntoIterator<Item = T>,
    fields: impl Fn(T, &mut Fields<'_>),
) -> io::Result<()> {
    array(out, items, |item, line| {
        line.push(b'{');
        fields(item, &mut Fields::begun(line));
        line.push(b'}');
        Ok(())
    })
}

/// An array with one element a line, each written by `element`.
fn array<T>(
    out: &mut impl Write,
    items: impl IntoIterator<Item = T>,
    element: impl Fn(T, &mut Vec<u8>) -> io::Result<()>,
) -> io::Result<()> {
    out.write_all(b"[")?;
    let mut line = Vec::new();
    let mut first = true;
    for item in items {
        line.clear();
        line.extend_from_slice(if first { b"\n" } else { b",\n" });
        first = false;
        element(item, &mut line)?;
        out.write_all(&line)?;
    }
    out.write_all(if first { b"]\n" } else { b"\n]\n" })
}

/// The fields of one object, written one after another.
pub struct Fields<'l> {
    line: &'l mut Vec<u8>,
    first: bool,
}

impl Fields<'_> {
    fn begun(line: &mut Vec<u8>) -> Fields<'_> {
        Fields { line, first: true }
    }

    fn key(&mut self, key: &'static str) {
        self.line
            .extend_from_slice(if self.first { b"\"" } else { b", \"" });
        self.first = false;
        self.line.extend_from_slice(key.as_bytes());
        self.line.extend_from_slice(b"\": ");
    }

    /// A whole number.
    pub fn number(&mut self, key: &'static str, value: impl itoa::Integer) {
        self.key(key);
        self.line
            .extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
    }

    /// A moment.
    pub fn time(&mut self, key: &'static str, time: Time) {
        self.key(key);
        // Writing to a vector cannot fail.
        let _ = moment(time, self.line);
    }

    /// A string, or `null`.
    pub fn bytes(&mut self, key: &'static str, bytes: Option<impl AsRef<[u8]>>) {
        match bytes {
            Some(bytes) => {
                self.key(key);
                let _ = string(bytes.as_ref(), self.line);
            }
            None => self.null(key),
        }
    }

    /// An array of strings.
    pub fn list(&mut self, key: &'static str, list: &[impl AsRef<[u8]>]) {
        self.key(key);
        self.line.push(b'[');
        for (n, item) in list.iter().enumerate() {
            self.line
                .extend_from_slice(if n == 0 { b"" } else { b", " });
            let _ = string(item.as_ref(), self.line);
        }
        self.line.push(b']');
    }

    /// An array of whole numbers.
    pub fn numbers(&mut self, key: &'static str, numbers: impl Iterator<Item = usize>) {
        self.key(key);
        self.line.push(b'[');
        for (n, number) in numbers.enumerate() {
            let lead: &[u8] = if n == 0 { b"" } else { b", " };
            self.line.extend_from_slice(lead);
            self.line
                .extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        }
        self.line.push(b']');
    }

    /// `true` or `false`
    pub fn bool(&mut self, key: &'static str, value: bool) {
        self.key(key);
        self.line
            .extend_from_slice(if value { b"true" } else { b"false" });
    }

    /// A value that is JSON already.
    pub fn written(&mut self, key: &'static str, json: &str) {
        self.key(key);
        self.line.extend_from_slice(json.as_bytes());
    }

    /// Any value.
    pub fn value(&mut self, key: &'static str, value: &Value) {
        self.key(key);
        let _ = value.write(self.line);
    }

    /// `null`
    pub fn null(&mut self, key: &'static str) {
        self.key(key);
        self.line.extend_from_slice(b"null");
    }

    /// An object whose names are data.
    pub fn map<'p>(
        &mut self,
        key: &'static str,
        pairs: impl Iterator<Item = (&'p [u8], &'p [u8])>,
    ) {
        self.key(key);
        self.line.push(b'{');
        for (n, (name, value)) in pairs.enumerate() {
            let lead: &[u8] = if n == 0 { b"" } else { b", " };
            self.line.extend_from_slice(lead);
            let _ = string(name, self.line);
            self.line.extend_from_slice(b": ");
            let _ = string(value, self.line);
        }
        self.line.push(b'}');
    }

    /// An object.
    pub fn object(&mut self, key: &'static str, fields: impl FnOnce(&mut Fields<'_>)) {
        self.key(key);
        self.line.push(b'{');
        fields(&mut Fields::begun(self.line));
        self.line.push(b'}');
    }

    /// An array of objects.
    pub fn objects<T>(
        &mut self,
        key: &'static str,
        items: impl IntoIterator<Item = T>,
        fields: impl Fn(T, &mut Fields<'_>),
    ) {
        self.key(key);
        self.line.push(b'[');
        for (n, item) in items.into_iter().enumerate() {
            self.line
                .extend_from_slice(if n == 0 { b"{" } else { b", {" });
            fields(item, &mut Fields::begun(self.line));
            self.line.push(b'}');
        }
        self.line.push(b']');
    }
}

/// Writes an object with one field a line.
pub fn object(out: &mut impl Write, fields: Vec<(&'static str, Value)>) -> io::Result<()> {
    out.write_all(b"{")?;
    for (n, (key, value)) in fields.into_iter().enumerate() {
        write!(out, "{}\n  \"{key}\": ", if n == 0 { "" } else { "," })?;
        value.write(out)?;
    }
    out.write_all(b"\n}\n")
}

fn number(value: i128, out: &mut impl Write) -> io::Result<()> {
    let mut buffer = itoa::Buffer::new();
    let text = match i64::try_from(value) {
        Ok(value) => buffer.format(value),
        Err(_) => buffer.format(value),
    };
    out.write_all(text.as_bytes())
}

/// Seconds, exact to the nanosecond.
fn moment(time: Time, out: &mut impl Write) -> io::Result<()> {
    const SECOND: u64 = 1_000_000_000;
    let ns = time.unsigned_abs();
    if time < 0 {
        out.write_all(b"-")?;
    }
    out.write_all(itoa::Buffer::new().format(ns / SECOND).as_bytes())?;
    out.write_all(b".")?;
    // The sum is a second more, and its digit is left out, so that the nanoseconds keep their
    // zeros.
    out.write_all(&itoa::Buffer::new().format(SECOND + ns % SECOND).as_bytes()[1..])
}

/// A quoted string. Invalid bytes become surrogates one by one.
fn string(bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"\"")?;
    // The common case.
    let plain = |byte: &u8| (0x20..0x7f).contains(byte) && *byte != b'"' && *byte != b'\\';
    if bytes.iter().all(plain) {
        out.write_all(bytes)?;
        return out.write_all(b"\"");
    }
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' => out.write_all(b"\\\"")?,
                '\\' => out.write_all(b"\\\\")?,
                '\n' => out.write_all(b"\\n")?,
                '\r' => out.write_all(b"\\r")?,
                '\t' => out.write_all(b"\\t")?,
                // Control characters above 0x7f, too: terminals take U+009B for an escape sequence.
                c if c.is_control() => write!(out, "\\u{:04x}", c as u32)?,
                c => out.write_all(c.encode_utf8(&mut [0; 4]).as_bytes())?,
            }
        }
        for byte in chunk.invalid() {
            write!(out, "\\udc{byte:02x}")?;
        }
    }
    out.write_all(b"\"")
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

macro_rules! whole_numbers {
    ($($number:ty),*) => {$(
        impl From<$number> for Value {
            fn from(value: $number) -> Value {
                Value::Int(value as i128)
            }
        }
    )*};
}
whole_numbers!(i32, i64, u32, u64, usize);

impl From<&[u8]> for Value {
    fn from(value: &[u8]) -> Value {
        Value::Bytes(value.to_vec())
    }
}

impl From<&Box<[u8]>> for Value {
    fn from(value: &Box<[u8]>) -> Value {
        Value::Bytes(value.to_vec())
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::Bytes(value.as_bytes().to_vec())
    }
}

impl From<&String> for Value {
    fn from(value: &String) -> Value {
        value.as_str().into()
    }
}

impl From<Digest> for Value {
    /// The digest as 64 hexadecimal digits, as `contents` accepts it.
    fn from(value: Digest) -> Value {
        (&value.to_string()).into()
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

#[cfg(test)]
mod tests;
