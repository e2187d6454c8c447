//! Marks with which a program names its activities: a cell of a notebook, a test, a block.
//!
//! A mark is the attempt to open a path that cannot exist. Every process can make one, in any
//! language and without a library, and it costs a microsecond where nothing records. The log has it
//! in order with all other operations of the process.
//!
//! | path | meaning |
//! | --- | --- |
//! | `/dev/null/backstory/begin/WORD/WORD…` | an activity begins inside the present one |
//! | `/dev/null/backstory/next/WORD/WORD…` | the activity that a mark began ends, and another begins |
//! | `/dev/null/backstory/end` | the activity ends that the last mark began |
//!
//! The words are the activity's name, as arguments are a program's. `%` and two digits stand for a
//! byte; `%2f` is a slash.
//!
//! The graph has an extended record of kind `nested` for each activity that began by a mark. Its
//! payload is [`NESTED`], or [`RESUMED`] if the activity goes on as the one before the marks.
//! Invariant: a path that is no mark is never taken for one.

use backstory_eventlog::event::Bytes;
use backstory_eventlog::percent::decoded;

/// The kind of the record.
pub const KIND: &[u8] = b"nested";

/// The payload for an activity that a mark named.
pub const NESTED: &[u8] = b"nested";

/// The payload for an activity that goes on after a marked one.
pub const RESUMED: &[u8] = b"resumed";

/// The most activities inside each other.
pub const DEEPEST: usize = 64;

const PREFIX: &[u8] = b"/dev/null/backstory/";

/// A mark, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActivityMark {
    /// An activity begins inside the present one.
    Begin(Vec<Bytes>),
    /// The activity ends that the last mark began, and another begins.
    Next(Vec<Bytes>),
    /// The activity ends that the last mark began.
    End,
}

/// The mark that a path is.
pub fn mark(path: &[u8]) -> Option<ActivityMark> {
    let mut parts = path.strip_prefix(PREFIX)?.split(|&byte| byte == b'/');
    let verb = parts.next()?;
    let words: Vec<Bytes> = parts.map(|part| decoded(part).into()).collect();
    match (verb, words.is_empty()) {
        (b"begin", false) => Some(ActivityMark::Begin(words)),
        (b"next", false) => Some(ActivityMark::Next(words)),
        (b"end", true) => Some(ActivityMark::End),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_has_the_words_of_the_activity() {
        let words = |words: &[&[u8]]| words.iter().map(|&word| word.into()).collect();
        let begin = mark(b"/dev/null/backstory/begin/In [3]/a%2fb%0a100%/");
        assert_eq!(
            begin,
            Some(ActivityMark::Begin(words(&[b"In [3]", b"a/b\n100%", b""])))
        );
        assert_eq!(mark(b"/dev/null/backstory/end"), Some(ActivityMark::End));
        for other in ["begin", "end/x", "", "begins/x"] {
            let path = [PREFIX, other.as_bytes()].concat();
            assert_eq!(mark(&path), None, "{other}");
        }
        assert_eq!(mark(b"/dev/null"), None);
    }
}
