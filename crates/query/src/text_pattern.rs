//! Patterns of texts that are no paths: names, hosts, command lines.

use globset::{GlobBuilder, GlobMatcher};

use crate::{Error, Result};

/// A pattern of a whole text. `*` matches anything, also spaces and slashes.
#[derive(Debug, Clone)]
pub struct TextPattern {
    glob: GlobMatcher,
}

impl TextPattern {
    /// Parses a pattern. [`Error::BadPattern`] if it cannot be parsed.
    pub fn new(pattern: &str) -> Result<TextPattern> {
        let glob = GlobBuilder::new(pattern)
            .literal_separator(false)
            .backslash_escape(true)
            .build()
            .map_err(|e| Error::BadPattern(pattern.to_owned(), e.kind().to_string()))?;
        Ok(TextPattern {
            glob: glob.compile_matcher(),
        })
    }

    /// True if the whole text matches.
    pub fn matches(&self, text: &str) -> bool {
        self.glob.is_match(text)
    }

    /// True if the command line matches, or the base name of one of its words. So `make` matches
    /// `/usr/bin/make -j8`, and `train.py` matches `python src/train.py`.
    pub fn matches_command<'w>(&self, words: impl IntoIterator<Item = &'w [u8]>) -> bool {
        let words: Vec<String> = words
            .into_iter()
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect();
        let base = |word: &String| self.matches(word.rsplit('/').next().unwrap_or(word));
        self.matches(&words.join(" ")) || words.iter().any(base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_matches_as_a_line_or_by_one_of_its_words() {
        let command = |pattern: &str| {
            let words: [&[u8]; 3] = [b"/usr/bin/python3", b"src/train.py", b"--lr=0.1"];
            TextPattern::new(pattern).unwrap().matches_command(words)
        };
        assert!(command("python3") && command("train.py") && command("*train.py --lr=*"));
        assert!(!command("python") && !command("src") && !command("train"));
        assert!(matches!(TextPattern::new("[a"), Err(Error::BadPattern(..))));
    }
}
