//! A line of SPADE's language, which is a vertex or an edge of the Open Provenance Model.
//!
//! A backslash before a space or colon makes it a part of the text. The language cannot express a
//! line feed, or a backslash at the end of a key or value: these characters become `?`.

use std::borrow::Cow;

use backstory_graph::model::Interval;

/// A vertex or an edge of the Open Provenance Model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpmElement {
    /// `type` comes first. A vertex has `id`, an edge `from` (the effect) and `to` (its cause).
    pub annotations: Vec<(Cow<'static, str>, Vec<u8>)>,
    /// When it happened, of an edge.
    pub interval: Option<Interval>,
}

impl OpmElement {
    pub(super) fn new(sort: &str) -> OpmElement {
        OpmElement {
            annotations: vec![("type".into(), sort.as_bytes().to_vec())],
            interval: None,
        }
    }

    pub(super) fn with(
        mut self,
        key: impl Into<Cow<'static, str>>,
        value: impl AsRef<[u8]>,
    ) -> OpmElement {
        self.annotations.push((key.into(), value.as_ref().to_vec()));
        self
    }

    /// True if it has the key, or the language gives the key a meaning.
    pub(super) fn knows(&self, key: &str) -> bool {
        matches!(key, "from" | "to") || self.annotations.iter().any(|(known, _)| known == key)
    }

    /// The line of SPADE's language, with its line feed.
    pub fn line(&self) -> Vec<u8> {
        let mut line = Vec::new();
        for (key, value) in &self.annotations {
            escaped(&opm_value(key.as_bytes()), &mut line);
            line.push(b':');
            escaped(&opm_value(value), &mut line);
            line.push(b' ');
        }
        line.pop();
        line.push(b'\n');
        line
    }
}

/// A key or value as SPADE's language can express it.
pub fn opm_value(value: &[u8]) -> Vec<u8> {
    let mut written: Vec<u8> = value
        .iter()
        .map(|byte| match byte {
            b'\n' | b'\r' => b'?',
            other => *other,
        })
        .collect();
    // It would hide the space behind it.
    if let Some(last @ b'\\') = written.last_mut() {
        *last = b'?';
    }
    written
}

fn escaped(text: &[u8], line: &mut Vec<u8>) {
    for byte in text {
        if matches!(byte, b' ' | b':') {
            line.push(b'\\');
        }
        line.push(*byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_or_value_is_one_word_whatever_it_contains() {
        let line = OpmElement::new("Process")
            .with("command line", r"a b:c\ d\e")
            .with("x", "y\nz\\")
            .with("a\ntype:b\\", "c");
        let text = String::from_utf8(line.line()).unwrap();
        assert_eq!(
            text,
            "type:Process command\\ line:a\\ b\\:c\\\\ d\\e x:y?z? a?type\\:b?:c\n"
        );
    }
}
