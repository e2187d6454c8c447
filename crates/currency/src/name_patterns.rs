//! The names that a program can have taken from a directory that it listed, by the patterns in its
//! text.
//!
//! In: patterns, or the texts of rules. Out: whether a name may be one of them. A text that has
//! another way to match names matches more than it says.

use std::rc::Rc;

use backstory_wildcards::matches;
use backstory_workflow::paths::{base_name, contains};

/// Words by which rules of builders match names.
const MATCHING: [&[u8]; 6] = [
    b"glob",
    b"GLOB",
    b"Glob",
    b"run_command",
    b"(shell",
    b"{shell",
];

/// Patterns of names.
#[derive(Debug, Clone, Default)]
pub struct NamePatterns {
    /// Any name may match.
    all: bool,
    patterns: Vec<Vec<u8>>,
    /// Texts that match names in a way that is not read.
    texts: Vec<Rc<Vec<u8>>>,
}

impl NamePatterns {
    /// All names.
    pub fn all() -> NamePatterns {
        NamePatterns {
            all: true,
            ..NamePatterns::default()
        }
    }

    /// The names that match one of some patterns with `*` and `?`.
    pub fn of<'p>(patterns: impl IntoIterator<Item = &'p str>) -> NamePatterns {
        let patterns = patterns.into_iter();
        NamePatterns {
            patterns: patterns.map(|pattern| pattern.into()).collect(),
            ..NamePatterns::default()
        }
    }

    /// The names that the rules of a builder may match.
    pub fn of_rules(mut texts: Vec<Rc<Vec<u8>>>) -> NamePatterns {
        let mut patterns: Vec<Vec<u8>> = Vec::new();
        texts.retain(|text| {
            let known = wildcards(text);
            let all = known.iter().flatten();
            patterns.extend(all.map(|pattern| pattern.to_vec()));
            known.is_none() || MATCHING.iter().any(|word| contains(text, word))
        });
        NamePatterns {
            patterns,
            texts,
            ..NamePatterns::default()
        }
    }

    /// True if no name can be one of these.
    pub fn match_nothing(&self) -> bool {
        !self.all && self.patterns.is_empty() && self.texts.is_empty()
    }

    /// True if a name may be one of these.
    pub fn may_match(&self, name: &[u8]) -> bool {
        if self.all || self.patterns.iter().any(|pattern| matches(pattern, name)) {
            return true;
        }
        let ending = name.iter().rposition(|&byte| byte == b'.');
        let ending = ending.map_or(&name[..0], |dot| &name[dot..]);
        // A pattern names the ending of a file, or matches any name.
        self.texts.iter().any(|text| {
            ending.is_empty()
                || contains(text, ending)
                || contains(text, b"*)")
                || contains(text, b"**")
        })
    }
}

/// The patterns of names in calls of make's function `wildcard`, one for each directory level.
/// `None`: one has a variable.
fn wildcards(text: &[u8]) -> Option<Vec<&[u8]>> {
    let mut found: Vec<&[u8]> = Vec::new();
    for at in memchr::memmem::find_iter(text, b"wildcard") {
        let call = text[at..]
            .split(|byte| matches!(byte, b')' | b'}'))
            .next()?;
        if contains(call, b"$") || contains(call, b"[") {
            return None;
        }
        let words = call.split(u8::is_ascii_whitespace).skip(1);
        for word in words.filter(|word| !word.is_empty()) {
            let parts = word.split(|byte| *byte == b'/');
            found.extend(parts.filter(|part| part.iter().any(|byte| b"*?".contains(byte))));
            found.push(base_name(word));
        }
    }
    Some(found)
}
