//! The marks of a shell's command lines, and their queue.
//!
//! In: marks that the guard's receivers got. Out: the same marks, in order, for the drainer's
//! thread. The shell waits until its mark is dropped.
//!
//! | mark after the prefix | meaning |
//! | --- | --- |
//! | `begin` | a line begins, whose text follows at its end |
//! | `begin/TEXT` | a line with this text begins |
//! | `end/STATUS` | the line has ended with this status |
//! | `hook/STATUS` | the same. It ended before the shell last opened [`HOOK_OPENS`] |
//! | `text/TEXT` | the text of the line that has just ended |
//! | `private` | the line that has just ended is not to be recorded |

use super::clock_reading;
use backstory_abi::LINE_MARK;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// The spelling of the null device in bash's hook, for its messages: see the mark `hook`.
pub(crate) const HOOK_OPENS: &[u8] = b"/dev//null";

/// A mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LineMark {
    /// A line begins. `None`: its text follows.
    Begin(Option<Vec<u8>>),
    /// The line has ended with this status.
    End(i32),
    /// The same, by a hook that had opened the null device for itself.
    HookEnd(i32),
    /// The text of the line that has ended.
    Text(Vec<u8>),
    /// The line that has ended is not to be recorded.
    Private,
}

impl LineMark {
    /// The mark that a path is. `None` for every other path.
    pub(crate) fn of(path: &[u8]) -> Option<LineMark> {
        let mark = path.strip_prefix(LINE_MARK.as_bytes())?;
        let (verb, rest) = match mark.iter().position(|byte| *byte == b'/') {
            Some(slash) => (&mark[..slash], Some(&mark[slash + 1..])),
            None => (mark, None),
        };
        let status = || std::str::from_utf8(rest?).ok()?.parse().ok();
        match (verb, rest) {
            (b"begin", text) => Some(LineMark::Begin(text.map(<[u8]>::to_vec))),
            (b"end", _) => status().map(LineMark::End),
            (b"hook", _) => status().map(LineMark::HookEnd),
            (b"text", Some(text)) => Some(LineMark::Text(text.to_vec())),
            (b"private", None) => Some(LineMark::Private),
            _ => None,
        }
    }
}

/// A mark whose maker waits until this is dropped.
pub(crate) struct WaitingMark {
    /// The mark.
    pub mark: LineMark,
    /// Time-stamp counter of its receipt. The shell does nothing since then.
    pub time: u64,
    /// Lets the shell go on when dropped.
    pub _parked: Box<dyn Send>,
}

/// The marks that the drainer has not taken yet.
#[derive(Default)]
pub(crate) struct MarkQueue(Mutex<VecDeque<WaitingMark>>);

impl MarkQueue {
    /// Adds a mark that was just received.
    pub(crate) fn push(&self, mark: LineMark, parked: Box<dyn Send>) {
        let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        queue.push_back(WaitingMark {
            mark,
            time: clock_reading(),
            _parked: parked,
        });
    }

    /// Takes the oldest mark.
    pub(crate) fn pop(&self) -> Option<WaitingMark> {
        let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        queue.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_has_the_text_as_it_was_typed() {
        let of = |mark: &str| LineMark::of([LINE_MARK, mark].concat().as_bytes());
        let text = "cat /etc//passwd |\n wc -l; echo %2f/";
        assert_eq!(
            of(&format!("begin/{text}")),
            Some(LineMark::Begin(Some(text.into())))
        );
        assert_eq!(
            of(&format!("text/{text}")),
            Some(LineMark::Text(text.into()))
        );
        assert_eq!(of("begin"), Some(LineMark::Begin(None)));
        assert_eq!(of("begin/"), Some(LineMark::Begin(Some(Vec::new()))));
        assert_eq!(of("end/130"), Some(LineMark::End(130)));
        assert_eq!(of("hook/0"), Some(LineMark::HookEnd(0)));
        assert_eq!(of("private"), Some(LineMark::Private));
        for other in ["end", "end/", "end/x", "text", "private/", "beginning", ""] {
            assert_eq!(of(other), None, "{other}");
        }
        assert_eq!(LineMark::of(b"/dev/null/backstory/begin/x"), None);
    }
}
