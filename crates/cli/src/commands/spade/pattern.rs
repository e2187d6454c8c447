//! Regular expressions of SPADE's query language: `~` and `regexp`.

use regex::bytes::{Regex, RegexBuilder};

/// Memory for a compiled expression, in bytes.
const MOST: usize = 1 << 20;

/// A regular expression that a value contains, as PostgreSQL's `~` has it.
#[derive(Debug, Clone)]
pub(super) struct Pattern(Regex);

impl Pattern {
    /// The expression, or the mistake in it.
    pub(super) fn of(text: &str) -> Result<Pattern, String> {
        // The program's regex crate has no tables of Unicode.
        let mut builder = RegexBuilder::new(text);
        let made = builder.unicode(false).size_limit(MOST).build();
        made.map(Pattern).map_err(|error| {
            let error = error.to_string();
            let cause = error.lines().last().unwrap_or_default();
            let cause = cause.trim_start_matches("error: ");
            format!("'{text}' is no regular expression: {cause}")
        })
    }

    /// The text of the expression.
    pub(super) fn text(&self) -> &str {
        self.0.as_str()
    }

    /// True if a value contains it.
    pub(super) fn is_in(&self, value: &[u8]) -> bool {
        self.0.is_match(value)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Pattern {}
