//! Parts of a thing that a program named: a row of a table, a range of bytes.
//!
//! A part is a kind and a value, as `row=42` or `bytes=0-4095`. It is an entity of its own, with
//! the name `THING#KIND=VALUE`. A use of a part is a use of the thing, too.
//!
//! Invariant: [`PartKind`] is the only table of kinds. A part whose value does not fit its kind
//! does not exist.

use std::fmt;
use std::str::FromStr;

use backstory_vocabulary::{Word, vocabulary};

vocabulary! {
    /// The kind of a part.
    pub enum PartKind: "kind of part" {
        /// A row of a table, by its key or number.
        Row = "row",
        /// A column of a table, by its name or number.
        Column = "column",
        /// A cell of a table or sheet, as `B7`.
        Cell = "cell",
        /// A key of a map or key-value store.
        Key = "key",
        /// A field of a record or document, as `/author/name`.
        Field = "field",
        /// A member of an archive or collection.
        Member = "member",
        /// Bytes, from the first to the last, counted from 0.
        Bytes = "bytes",
        /// Lines of a text, from the first to the last, counted from 1.
        Lines = "lines",
        /// Pages of a document, likewise.
        Pages = "pages",
    }
}

/// The values of a kind.
enum PartValue {
    /// A text.
    Text,
    /// A number, or two with a dash between them, of which the first is not greater. The least one.
    Range(u64),
}

impl PartKind {
    fn value(self) -> PartValue {
        use PartKind::{Bytes, Cell, Column, Field, Key, Lines, Member, Pages, Row};
        match self {
            Row | Column | Cell | Key | Field | Member => PartValue::Text,
            Bytes => PartValue::Range(0),
            Lines | Pages => PartValue::Range(1),
        }
    }
}

/// The longest value, in bytes.
const LONGEST: usize = 200;

/// A part of a thing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Part {
    kind: PartKind,
    value: String,
}

impl Part {
    /// The kind.
    pub fn kind(&self) -> PartKind {
        self.kind
    }

    /// The value, which fits the kind.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// The name of this part of a thing.
    pub fn name(&self, thing: &[u8]) -> Vec<u8> {
        [thing, b"#", self.to_string().as_bytes()].concat()
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.kind, self.value)
    }
}

/// Why a text is no part, in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartError(String);

impl fmt::Display for PartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PartError {}

impl FromStr for Part {
    type Err = PartError;

    fn from_str(text: &str) -> Result<Part, PartError> {
        let found = text.split_once('=').and_then(|(kind, value)| {
            let kind = kind.parse::<PartKind>().ok()?;
            Some((kind, value))
        });
        let Some((kind, value)) = found else {
            let kinds: Vec<&str> = PartKind::ALL.iter().map(|kind| kind.word()).collect();
            let kinds = kinds.join(", ");
            return Err(PartError(format!(
                "{text}: a part is KIND=VALUE, with one of the kinds {kinds}"
            )));
        };
        let expected = match kind.value() {
            PartValue::Text if is_text(value) => None,
            PartValue::Text => Some(format!(
                "a text of 1 to {LONGEST} bytes without control characters"
            )),
            PartValue::Range(least) if is_range(value, least) => None,
            PartValue::Range(least) => Some(format!(
                "a number, or the first and the last with a dash between them, from {least}"
            )),
        };
        match expected {
            Some(expected) => Err(PartError(format!("{text}: the value is {expected}"))),
            None => Ok(Part {
                kind,
                value: value.to_owned(),
            }),
        }
    }
}

/// The thing and the part that the name of a resource is of. `None` for the name of a thing.
pub fn of_name(name: &[u8]) -> Option<(&[u8], Part)> {
    let at = name.iter().rposition(|&byte| byte == b'#')?;
    let part = std::str::from_utf8(&name[at + 1..]).ok()?.parse().ok()?;
    Some((&name[..at], part))
}

/// `#` begins a part, so a value cannot have it.
fn is_text(value: &str) -> bool {
    let fits = |c: char| !c.is_control() && c != '#';
    (1..=LONGEST).contains(&value.len()) && value.chars().all(fits)
}

fn is_range(value: &str, least: u64) -> bool {
    let number = |text: &str| {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
        let is_canonical = text == "0" || !text.starts_with('0');
        text.parse::<u64>()
            .ok()
            .filter(|_| is_plain && is_canonical)
    };
    let (first, last) = value.split_once('-').unwrap_or((value, value));
    match (number(first), number(last)) {
        (Some(first), Some(last)) => least <= first && first <= last,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_takes_its_values_and_no_others() {
        for text in [
            "row=42",
            "row=id=42",
            "key=user:7",
            "cell=B7",
            "field=/author/name",
            "bytes=0-4095",
            "bytes=7",
            "lines=1-1",
            "pages=3",
        ] {
            let part: Part = text.parse().unwrap();
            assert_eq!(part.to_string(), text);
        }
        for (text, why) in [
            ("", "KIND=VALUE"),
            ("row", "KIND=VALUE"),
            ("Row=1", "KIND=VALUE"),
            ("page=3", "row, column, cell"),
            ("row=", "a text of 1 to 200 bytes"),
            ("row=a\nb", "without control characters"),
            ("key=a#b", "a text"),
            ("bytes=9-3", "the first and the last"),
            ("bytes=-3", "from 0"),
            ("bytes=+3", "from 0"),
            ("bytes=007", "from 0"),
            ("bytes=0-99999999999999999999", "from 0"),
            ("lines=0", "from 1"),
            ("lines=a", "from 1"),
        ] {
            let error = text.parse::<Part>().unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        assert!(format!("row={}", "x".repeat(201)).parse::<Part>().is_err());
    }

    #[test]
    fn the_name_of_a_part_has_its_thing() {
        let part: Part = "row=42".parse().unwrap();
        let name = part.name(b"bank:accounts");
        assert_eq!(name, b"bank:accounts#row=42");
        assert_eq!(of_name(&name), Some((&b"bank:accounts"[..], part)));
        for other in [&b"bank:accounts"[..], b"bank:accounts#top"] {
            assert_eq!(of_name(other), None);
        }
    }
}
