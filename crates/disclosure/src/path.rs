//! The path that a mark is.
//!
//! Invariant: the path exists nowhere, is short enough for the kernel, and is cut at a character.

/// Every mark begins so.
pub const PREFIX: &str = "/dev/null/backstory";

/// The most bytes of a mark.
const LONGEST: usize = 4000;

/// A mark that is being written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkPath(Vec<u8>);

impl MarkPath {
    /// A statement about the present activity of this process.
    pub fn new(verb: &str) -> MarkPath {
        MarkPath(PREFIX.as_bytes().to_vec()).plain(verb)
    }

    /// A statement about the activity with the last of these handles. For a begin, the one before
    /// is the handle of the activity around it.
    pub fn inside(handles: &[&str], verb: &str) -> MarkPath {
        let mut mark = MarkPath(PREFIX.as_bytes().to_vec());
        for handle in handles {
            mark = mark.plain("in").word(handle);
        }
        mark.plain(verb)
    }

    /// A statement by a child process about the present activity of its parent.
    pub fn of_parent(parent: u32, handles: &[&str], verb: &str) -> MarkPath {
        let rest = MarkPath::inside(handles, verb).0;
        let head = format!("{PREFIX}/for/{parent}");
        MarkPath([head.as_bytes(), &rest[PREFIX.len()..]].concat())
    }

    fn plain(mut self, word: &str) -> MarkPath {
        self.0.push(b'/');
        self.0.extend_from_slice(word.as_bytes());
        self
    }

    /// Appends a word. Slashes, control characters, blanks and `%` are encoded.
    #[must_use]
    pub fn word(mut self, word: &str) -> MarkPath {
        if self.0.len() >= LONGEST {
            return self;
        }
        self.0.push(b'/');
        let mut buffer = [0; 4];
        for character in word.chars() {
            let encoded: Vec<u8> = character
                .encode_utf8(&mut buffer)
                .bytes()
                .flat_map(|byte| match byte {
                    0..=32 | 127 | b'/' | b'%' => format!("%{byte:02x}").into_bytes(),
                    plain => vec![plain],
                })
                .collect();
            if self.0.len() + encoded.len() > LONGEST {
                break;
            }
            self.0.extend(encoded);
        }
        self
    }

    /// The path. It has no NUL.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_written() {
        use backstory_graph::marks::{Statement, mark};
        let said = |path: MarkPath| mark(path.as_bytes()).map(|mark| mark.statement);
        let note = said(MarkPath::new("note").word("a/b\n%").word("é \0"));
        let words = |key: &str, value: &str| {
            Statement::Note(key.as_bytes().into(), value.as_bytes().into())
        };
        assert_eq!(note, Some(words("a/b\n%", "é \0")));
        let read = mark(MarkPath::of_parent(7, &["a", "b"], "end").as_bytes()).unwrap();
        assert_eq!(read.parent, Some(7));
        assert_eq!(
            (read.handle.as_deref(), read.around.as_deref()),
            (Some(&b"b"[..]), Some(&b"a"[..]))
        );
    }

    #[test]
    fn a_long_word_is_cut_at_a_character() {
        let mark = MarkPath::new("note").word("k").word(&"é".repeat(5000));
        assert!(mark.as_bytes().len() <= LONGEST);
        assert!(std::str::from_utf8(mark.as_bytes()).is_ok());
    }
}
