//! Byte strings in JSON: paths, arguments, lines of files. Bytes that are not UTF-8 become lone
//! surrogates (`\udcXX`), as with Python's `surrogateescape` and `backstory --json`.

use std::fmt::Write as _;

use backstory_eventlog::event::Bytes;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
#[cfg(test)]
use utoipa::ToSchema;

/// A byte string.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(test, derive(ToSchema))]
#[cfg_attr(test, schema(value_type = String))]
pub struct PathText(pub Bytes);

impl PathText {
    /// A list of byte strings.
    pub fn list(all: &[Bytes]) -> Vec<PathText> {
        all.iter().cloned().map(PathText).collect()
    }
}

impl From<&[u8]> for PathText {
    fn from(bytes: &[u8]) -> PathText {
        PathText(bytes.into())
    }
}

impl From<&Bytes> for PathText {
    fn from(bytes: &Bytes) -> PathText {
        PathText(bytes.clone())
    }
}

impl From<String> for PathText {
    fn from(text: String) -> PathText {
        PathText(text.into_bytes().into())
    }
}

impl Serialize for PathText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => {
                let raw = RawValue::from_string(escaped(&self.0));
                raw.map_err(serde::ser::Error::custom)?
                    .serialize(serializer)
            }
        }
    }
}

/// The JSON string, in ASCII except for valid UTF-8.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' => text.push_str("\\\""),
                '\\' => text.push_str("\\\\"),
                c if c.is_control() => _ = write!(text, "\\u{:04x}", c as u32),
                c => text.push(c),
            }
        }
        for byte in chunk.invalid() {
            _ = write!(text, "\\udc{byte:02x}");
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_utf8_become_lone_surrogates() {
        let text = |bytes: &[u8]| serde_json::to_string(&PathText::from(bytes)).unwrap();
        assert_eq!(text(b"a\"b"), "\"a\\\"b\"");
        assert_eq!(text(b"a\n\xff\xc3\xa4\\"), "\"a\\u000a\\udcff\u{e4}\\\\\"");
        assert_eq!(text(b"\xed\xb3\xbf"), "\"\\udced\\udcb3\\udcbf\"");
    }
}
