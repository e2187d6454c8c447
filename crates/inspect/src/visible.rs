//! Makes strings of foreign origin fit to be shown.

use backstory_inspection::answer::is_control;
use serde_json::{Map, Value};

/// The most characters of a string in an answer.
const LONGEST: usize = 400;

/// The text with control characters escaped, and cut after `most` characters.
pub fn cut(text: &str, most: usize) -> String {
    let mut shown = String::new();
    for (at, char) in text.chars().enumerate() {
        if at == most {
            shown.push('…');
            break;
        }
        match char {
            '\t' | '\n' | '\r' => shown.push(' '),
            char if is_control(char) => shown.extend(char.escape_default()),
            char => shown.push(char),
        }
    }
    shown
}

/// The value with all its strings made visible.
pub fn value(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(cut(text, LONGEST)),
        Value::Array(values) => Value::Array(values.iter().map(self::value).collect()),
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(name, one)| (cut(name, LONGEST), self::value(one)))
                .collect::<Map<_, _>>(),
        ),
        other => other.clone(),
    }
}

/// The value in a sentence.
pub fn word(value: &Value) -> String {
    /// The most characters of a value in a sentence.
    const WORD: usize = 60;
    match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) if text.is_empty() => "\"\"".to_owned(),
        Value::String(text) => cut(text, WORD),
        other => cut(&other.to_string(), WORD),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_long_texts_cut() {
        assert_eq!(cut("a\tb\u{1b}[2J\u{202e}", 20), "a b\\u{1b}[2J\\u{202e}");
        assert_eq!(cut("äöü", 2), "äö…");
        let wild = serde_json::json!({"a\u{7}": ["\u{0}"]});
        assert_eq!(value(&wild), serde_json::json!({"a\\u{7}": ["\\u{0}"]}));
    }
}
