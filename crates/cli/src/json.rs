//! JSON out, with byte strings: what is not UTF-8 becomes lone surrogates (`\udcXX`), as Python's `surrogateescape` does.
//!
//! Written here because the usual serialisers refuse lone surrogates: a Rust string cannot hold one. Reads nothing.

use std::io::{self, Write};

use backstory_eventlog::event::Time;

/// A JSON value on its way out.
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
    /// An object, in this order.
    Object(Vec<(&'static str, Value)>),
}

impl Value {
    /// An array of whatever has a JSON form.
    pub fn array<T: Into<Value>>(items: impl IntoIterator<Item = T>) -> Value {
        Value::Array(items.into_iter().map(Into::into).collect())
    }

    /// Writes it in one line.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        match self {
            Value::Null => out.write_all(b"null"),
            Value::Bool(value) => write!(out, "{value}"),
            Value::Int(value) => write!(out, "{value}"),
            Value::Time(time) => {
                let (sign, ns) = (if *time < 0 { "-" } else { "" }, time.unsigned_abs());
                write!(out, "{sign}{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
            }
            Value::Bytes(bytes) => string(bytes, out),
            Value::Array(items) => {
                out.write_all(b"[")?;
                for (n, item) in items.iter().enumerate() {
                    out.write_all(if n == 0 { b"" } else { b", " })?;
                    item.write(out)?;
                }
                out.write_all(b"]")
            }
            Value::Object(fields) => {
                out.write_all(b"{")?;
                for (n, (key, value)) in fields.iter().enumerate() {
                    write!(out, "{}\"{key}\": ", if n == 0 { "" } else { ", " })?;
                    value.write(out)?;
                }
                out.write_all(b"}")
            }
        }
    }
}

/// Writes an array with one element a line, so that a long answer needs no memory of its own and can be compared by line.
pub fn lines(out: &mut impl Write, items: impl IntoIterator<Item = Value>) -> io::Result<()> {
    out.write_all(b"[")?;
    let mut first = true;
    for item in items {
        out.write_all(if first { b"\n" } else { b",\n" })?;
        first = false;
        item.write(out)?;
    }
    out.write_all(if first { b"]\n" } else { b"\n]\n" })
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

/// A quoted string. Invalid bytes become surrogates one by one.
fn string(bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"\"")?;
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' => out.write_all(b"\\\"")?,
                '\\' => out.write_all(b"\\\\")?,
                '\n' => out.write_all(b"\\n")?,
                '\r' => out.write_all(b"\\r")?,
                '\t' => out.write_all(b"\\t")?,
                // Those above 0x7f, too: terminals take U+009B for an escape and a bracket.
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

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: impl Into<Value>) -> String {
        let mut out = Vec::new();
        value.into().write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn bytes_that_are_not_utf8_become_lone_surrogates() {
        assert_eq!(
            text(&b"a\xffb\xc3\xa4\xe2\x82"[..]),
            "\"a\\udcffb\u{e4}\\udce2\\udc82\""
        );
    }

    #[test]
    fn quotes_and_control_characters_are_escaped() {
        assert_eq!(
            text("a\"b\\c\nd\x01\x7f\u{9b}"),
            "\"a\\\"b\\\\c\\nd\\u0001\\u007f\\u009b\""
        );
    }

    #[test]
    fn a_utf8_encoded_surrogate_is_three_bytes_as_python_has_it() {
        assert_eq!(text(&b"\xed\xb3\xbf"[..]), "\"\\udced\\udcb3\\udcbf\"");
    }

    #[test]
    fn everything_without_surrogates_reads_back_with_another_reader() {
        let value = Value::Object(vec![
            ("a", Value::array(["x", "\u{1f600}\"\u{7}"])),
            ("b", None::<i32>.into()),
            ("c", true.into()),
            ("t", Value::Time(1_700_000_000_000_000_001)),
        ]);
        let read: serde_json::Value = serde_json::from_str(&text(value)).unwrap();
        assert_eq!(read["a"][1], "\u{1f600}\"\u{7}");
        assert!(read["b"].is_null());
        assert!((read["t"].as_f64().unwrap() - 1_700_000_000.0).abs() < 1e-6);
    }

    #[test]
    fn moments_before_1970_keep_their_sign() {
        assert_eq!(text(Value::Time(-1)), "-0.000000001");
    }

    #[test]
    fn an_empty_answer_is_an_empty_array() {
        let mut out = Vec::new();
        lines(&mut out, []).unwrap();
        assert_eq!(out, b"[]\n");
    }
}
