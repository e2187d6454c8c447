//! The beginning of what went over a connection, fit to be shown.
//!
//! In: the bytes in portions. Out: at most [`MOST`] bytes with their secrets replaced, and the
//! length of all. Invariant: the text form has no control character, so it cannot act on a
//! terminal.

use crate::secrets::redacted;

/// Most bytes of an excerpt.
pub const MOST: usize = 4096;

/// The beginning of the bytes of one direction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Excerpt {
    /// Bytes that went over the connection.
    pub length: u64,
    /// The first of them, with secrets replaced by marks. Empty if the run has digests only.
    pub shown: Vec<u8>,
    /// True if there is more than is shown.
    pub is_cut: bool,
}

/// Collects the bytes of one direction.
#[derive(Debug, Default)]
pub struct Collected {
    length: u64,
    first: Vec<u8>,
}

impl Collected {
    /// Adds bytes of which only the length is known.
    pub fn add_unknown(&mut self, length: u64) {
        self.length += length;
    }

    /// Adds bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        let room = MOST.saturating_sub(self.first.len());
        // Bytes behind a portion that is not known would stand in a wrong position.
        if self.first.len() as u64 == self.length {
            self.first
                .extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
        self.length += bytes.len() as u64;
    }

    /// The excerpt.
    pub fn excerpt(self) -> Excerpt {
        Excerpt {
            is_cut: self.length > self.first.len() as u64,
            length: self.length,
            shown: redacted(&self.first),
        }
    }
}

impl Excerpt {
    /// The excerpt in lines that are safe to print.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<&[u8]> = self.shown.split(|byte| *byte == b'\n').collect();
        if lines.last().is_some_and(|last| last.is_empty()) {
            lines.pop();
        }
        lines.into_iter().map(escaped).collect()
    }

    /// The excerpt as one text, with line ends.
    pub fn text(&self) -> String {
        let parts: Vec<String> = self
            .shown
            .split(|byte| *byte == b'\n')
            .map(escaped)
            .collect();
        parts.join("\n")
    }
}

/// Bytes as text. Control characters, and bytes that are not UTF-8, are escaped as in C.
pub fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\r' => text.push_str("\\r"),
                '\n' => text.push_str("\\n"),
                '\t' => text.push_str("\\t"),
                '\\' => text.push_str("\\\\"),
                // Characters that change the direction of text, or have no width.
                '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => {
                    text.push_str(&format!("\\u{:04x}", character as u32));
                }
                c if c.is_control() || c == '\u{feff}' => {
                    text.push_str(&format!("\\x{:02x}", c as u32));
                }
                c => text.push(c),
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_bounded_and_knows_the_whole_length() {
        let mut collected = Collected::default();
        for _ in 0..100 {
            collected.add(&[b'x'; 1000]);
        }
        let excerpt = collected.excerpt();
        assert_eq!((excerpt.length, excerpt.shown.len()), (100_000, MOST));
        assert!(excerpt.is_cut);
    }

    #[test]
    fn bytes_behind_a_portion_that_is_only_a_digest_are_not_shown_in_its_position() {
        let mut collected = Collected::default();
        collected.add(b"one");
        collected.add_unknown(5);
        collected.add(b"two");
        let excerpt = collected.excerpt();
        assert_eq!((excerpt.length, &excerpt.shown[..]), (11, &b"one"[..]));
        assert!(excerpt.is_cut);
    }

    #[test]
    fn no_control_character_goes_to_a_terminal() {
        let all: Vec<u8> = (0..=255).chain("\u{202e}\u{9b}é".bytes()).collect();
        let excerpt = Excerpt {
            length: all.len() as u64,
            shown: all,
            is_cut: false,
        };
        let text = excerpt.text();
        assert!(
            !text.chars().any(|c| c.is_control() && c != '\n'),
            "{text:?}"
        );
        assert!(text.contains("\\x1b") && text.contains("\\u202e") && text.contains('é'));
        assert!(excerpt.lines().iter().all(|line| !line.contains('\n')));
    }
}
