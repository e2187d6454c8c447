//! Values of PROV-JSON: texts, times, names with a prefix.

use crate::json::Object;
use backstory_eventlog::event::Time;
use serde_json::Value;

/// The texts of a member: one, or several of an array. A typed value has its text in `$`.
pub(super) fn texts<'v>(members: &'v Object, name: &str) -> Vec<&'v str> {
    fn text(value: &Value) -> Option<&str> {
        match value {
            Value::String(text) => Some(text),
            Value::Object(typed) => typed.get("$").and_then(Value::as_str),
            _ => None,
        }
    }
    match members.get(name) {
        Some(Value::Array(all)) => all.iter().filter_map(text).collect(),
        Some(one) => text(one).into_iter().collect(),
        None => Vec::new(),
    }
}

/// The first text of a member.
pub(super) fn text<'v>(members: &'v Object, name: &str) -> Option<&'v str> {
    texts(members, name).first().copied()
}

/// The number of a member: a number, or the text of one.
pub(super) fn number(members: &Object, name: &str) -> Option<i64> {
    let value = members.get(name)?;
    let value = value.get("$").unwrap_or(value);
    value
        .as_i64()
        .or_else(|| value.as_str().and_then(|text| text.parse().ok()))
}

/// A time as XML Schema writes it. One without a zone is of this machine's zone.
pub(crate) fn time(text: &str) -> Option<Time> {
    let instant = text.parse::<jiff::Timestamp>().or_else(|_| {
        let civil = text.parse::<jiff::civil::DateTime>()?;
        let zoned = civil.to_zoned(jiff::tz::TimeZone::system())?;
        Ok::<_, jiff::Error>(zoned.timestamp())
    });
    Time::try_from(instant.ok()?.as_nanosecond()).ok()
}

/// A value of an attribute, as a text for people.
pub(super) fn shown(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(holds) => Some(holds.to_string()),
        Value::Object(typed) => typed.get("$").and_then(shown),
        Value::Array(all) => {
            let all: Vec<String> = all.iter().filter_map(shown).collect();
            (!all.is_empty()).then(|| all.join(", "))
        }
        Value::Null => None,
    }
}

/// The words of a command line that backstory wrote: quoted for a shell. `None` if the line is more
/// than one simple command.
pub(crate) fn command_words(line: &str) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut rest = line.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b' ' => words.extend(word.take()),
            b'\'' => {
                let end = rest.iter().position(|byte| *byte == b'\'')?;
                word.get_or_insert_default().extend_from_slice(&rest[..end]);
                rest = &rest[end + 1..];
            }
            b'\\' => {
                let (escaped, after) = rest.split_first()?;
                word.get_or_insert_default().push(*escaped);
                rest = after;
            }
            b'|' | b'&' | b';' | b'<' | b'>' | b'(' | b')' | b'"' | b'`' | b'$' | b'\n' => {
                return None;
            }
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    (!words.is_empty()).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simple_command_has_its_words_and_any_other_line_has_none() {
        let words = command_words(r"sort 'a b' 'it'\''s' c\ d ''").unwrap();
        let words: Vec<&str> = words
            .iter()
            .map(|w| std::str::from_utf8(w).unwrap())
            .collect();
        assert_eq!(words, ["sort", "a b", "it's", "c d", ""]);
        for line in ["a | b", "a > b", "a && b", "'", "", "$X"] {
            assert_eq!(command_words(line), None, "{line}");
        }
    }

    #[test]
    fn times_are_those_of_xml_schema() {
        assert_eq!(time("1970-01-01T00:00:01.5Z"), Some(1_500_000_000));
        assert_eq!(time("1970-01-01T01:00:01+01:00"), Some(1_000_000_000));
        assert!(time("2012-04-25T13:44:00").is_some());
        for other in [
            "",
            "yesterday",
            "9999-99-99T00:00:00Z",
            "5000-01-01T00:00:00Z",
        ] {
            assert_eq!(time(other), None, "{other}");
        }
    }
}
