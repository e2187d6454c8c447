//! An inspector's answer, and the checks that it passes before it is printed or stored.
//!
//! The answer is one JSON object:
//!
//! | field | meaning |
//! | --- | --- |
//! | `inspector`, `version` | the inspector |
//! | `facts` | an object, if the question had one content |
//! | `sentences`, `changes` | plain sentences and an object, if the question had two contents |
//! | `error` | why the inspector could not read the file |

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The most bytes of an answer.
pub const LONGEST: usize = 1 << 20;

/// The most sentences, and the most characters of a sentence.
const SENTENCES: usize = 1000;
const SENTENCE: usize = 2000;

/// An inspector's report about one content, or about the changes between two.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The inspector's name.
    pub inspector: String,
    /// Its version.
    pub version: u32,
    /// Facts of one content, by name.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub facts: Map<String, Value>,
    /// The changes in plain sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sentences: Vec<String>,
    /// The changes in detail.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub changes: Map<String, Value>,
    /// Why the inspector could not read the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Answer {
    /// Reads and checks the bytes that a worker wrote.
    ///
    /// # Errors
    /// A sentence that says which part of the answer is wrong.
    pub fn read(bytes: &[u8], inspector: &str, version: u32) -> Result<Answer, String> {
        let answer: Answer =
            serde_json::from_slice(bytes).map_err(|error| format!("it is malformed: {error}"))?;
        if (answer.inspector.as_str(), answer.version) != (inspector, version) {
            return Err(format!(
                "it is of version {} of {:?}, and version {version} of {inspector:?} was asked",
                answer.version, answer.inspector
            ));
        }
        if answer.sentences.len() > SENTENCES {
            return Err(format!("it has more than {SENTENCES} sentences"));
        }
        let long = |sentence: &String| sentence.chars().count() > SENTENCE;
        if answer.sentences.iter().any(long) {
            return Err(format!(
                "it has a sentence of more than {SENTENCE} characters"
            ));
        }
        let texts = answer.sentences.iter().chain(&answer.error);
        let is_printable = texts.map(String::as_str).all(is_printable)
            && [&answer.facts, &answer.changes]
                .into_iter()
                .all(is_printable_map);
        match is_printable {
            true => Ok(answer),
            false => Err("it contains control characters".to_owned()),
        }
    }

    /// The first sentences in one line, for a place with little room.
    pub fn one_line(&self) -> String {
        one_line(&self.sentences)
    }
}

/// The first of an answer's sentences in one line.
pub fn one_line(sentences: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown = &sentences[..sentences.len().min(SHOWN)];
    let more = if sentences.len() > SHOWN { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// True for a character that a terminal would obey, or that reorders the text around it.
pub fn is_control(char: char) -> bool {
    let reorders = matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    char.is_control()
        || reorders
        || matches!(char, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}')
}

fn is_printable(text: &str) -> bool {
    !text.chars().any(is_control)
}

fn is_printable_map(map: &Map<String, Value>) -> bool {
    map.iter()
        .all(|(name, value)| is_printable(name) && is_printable_value(value))
}

fn is_printable_value(value: &Value) -> bool {
    match value {
        Value::String(text) => is_printable(text),
        Value::Array(values) => values.iter().all(is_printable_value),
        Value::Object(map) => is_printable_map(map),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        Answer::read(text.as_bytes(), "csv", 1).unwrap_err()
    }

    #[test]
    fn an_honest_answer_is_read() {
        let text =
            r#"{"inspector":"csv","version":1,"sentences":["3 cells changed","`dt` 0.1 → 0.01"]}"#;
        let answer = Answer::read(text.as_bytes(), "csv", 1).unwrap();
        assert_eq!(answer.one_line(), "3 cells changed, `dt` 0.1 → 0.01");
    }

    #[test]
    fn a_lie_is_refused() {
        assert!(refusal("not json").contains("malformed"));
        assert!(refusal(r#"{"inspector":"csv","version":1} and more"#).contains("malformed"));
        assert!(refusal(r#"{"inspector":"csv","version":1,"shell":"x"}"#).contains("malformed"));
        assert!(refusal(r#"{"inspector":"csv","version":2}"#).contains("version 2"));
        assert!(refusal(r#"{"inspector":"elf","version":1}"#).contains("\"elf\""));
        let escape = r#"{"inspector":"csv","version":1,"sentences":["\u001b[2J"]}"#;
        assert!(refusal(escape).contains("control characters"));
        let deep = r#"{"inspector":"csv","version":1,"facts":{"a":[{"b\u202e":1}]}}"#;
        assert!(refusal(deep).contains("control characters"));
        let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(refusal(&nested).contains("malformed"));
        let many = vec!["\"x\""; 1001].join(",");
        let many = format!(r#"{{"inspector":"csv","version":1,"sentences":[{many}]}}"#);
        assert!(refusal(&many).contains("1000 sentences"));
    }
}
