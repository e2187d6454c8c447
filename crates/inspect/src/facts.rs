//! The facts of one content, in the form that all formats share.
//!
//! | form | example |
//! | --- | --- |
//! | a value with a name | author, build id, protocol |
//! | a list of parts, each with a name | members of an archive, cells of a workbook |
//! | a text | paragraphs of a letter, instructions of a pickle |

use serde_json::{Map, Value, json};

use crate::visible;

/// The most parts, and the most lines of a text, that an answer lists.
const LISTED: usize = 500;

/// The facts about one content.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FileFacts {
    pub(crate) values: Vec<(String, Value)>,
    pub(crate) lists: Vec<PartList>,
    pub(crate) texts: Vec<TextBody>,
}

/// Parts of a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PartList {
    /// One part, and many of them: "cell", "cells".
    pub words: (&'static str, &'static str),
    pub parts: Vec<FilePart>,
    /// True if parts of two contents belong together by their names. Otherwise parts are aligned by
    /// their values, and a name is a position.
    pub is_keyed: bool,
}

/// A part of a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FilePart {
    pub name: String,
    pub value: Value,
}

/// A text inside of a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TextBody {
    /// One piece, and many of them: "paragraph", "paragraphs".
    pub words: (&'static str, &'static str),
    pub lines: Vec<String>,
}

impl FileFacts {
    /// Adds a value. `null` and an empty text are left out.
    pub(crate) fn value(&mut self, name: &str, value: impl Into<Value>) {
        let value = value.into();
        if !value.is_null() && value.as_str() != Some("") {
            self.values.push((name.to_owned(), value));
        }
    }

    /// Adds parts that keep their names from one content to the next.
    pub(crate) fn parts(
        &mut self,
        words: (&'static str, &'static str),
        parts: impl IntoIterator<Item = (String, Value)>,
    ) {
        self.list(words, parts, true);
    }

    /// Adds parts whose names are their positions.
    pub(crate) fn positions(
        &mut self,
        words: (&'static str, &'static str),
        parts: impl IntoIterator<Item = (String, Value)>,
    ) {
        self.list(words, parts, false);
    }

    fn list(
        &mut self,
        words: (&'static str, &'static str),
        parts: impl IntoIterator<Item = (String, Value)>,
        is_keyed: bool,
    ) {
        let parts = parts
            .into_iter()
            .map(|(name, value)| FilePart { name, value });
        self.lists.push(PartList {
            words,
            parts: parts.collect(),
            is_keyed,
        });
    }

    /// Adds a text.
    pub(crate) fn text(&mut self, words: (&'static str, &'static str), lines: Vec<String>) {
        self.texts.push(TextBody { words, lines });
    }

    /// The facts as an answer states them. Long lists are cut, and their lengths stated.
    pub fn json(&self) -> Map<String, Value> {
        let mut all = Map::new();
        for (name, value) in &self.values {
            all.insert(visible::cut(name, 80), visible::value(value));
        }
        for list in &self.lists {
            let parts = list.parts.iter().take(LISTED).map(|part| {
                let mut object = Map::new();
                object.insert(
                    "name".to_owned(),
                    Value::String(visible::cut(&part.name, 300)),
                );
                match visible::value(&part.value) {
                    Value::Object(fields) => object.extend(fields),
                    value => drop(object.insert("value".to_owned(), value)),
                }
                Value::Object(object)
            });
            let number = json!(list.parts.len());
            all.insert(format!("{}_number", list.words.1.replace(' ', "_")), number);
            all.insert(list.words.1.replace(' ', "_"), parts.collect());
        }
        for text in &self.texts {
            let lines = text.lines.iter().take(LISTED);
            let lines = lines.map(|line| Value::String(visible::cut(line, 200)));
            let number = json!(text.lines.len());
            all.insert(format!("{}_number", text.words.1.replace(' ', "_")), number);
            all.insert(text.words.1.replace(' ', "_"), lines.collect());
        }
        all
    }
}
