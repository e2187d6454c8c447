//! The last input before a moment that holds a word, found while the log is read.
//!
//! In: words, and the bytes that enter each process. Out: for each word a process, a resource and a
//! position. Invariant: the result is that of a search in the whole arranged run, whose bytes are
//! not in memory here. Of inputs with the same time in several streams, any one is the result.

use super::Arranging;
use crate::resource::ResourceId;
use memchr::memmem::Finder;

/// A word, and its last input so far.
pub(crate) struct SoughtWord {
    finder: Finder<'static>,
    before: u64,
    /// The input that was found.
    pub found: Option<FoundInput>,
}

/// An input that holds a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FoundInput {
    /// The process, as an index.
    pub process: usize,
    /// The resource that it read from. `None`: the random numbers of the kernel.
    pub id: Option<ResourceId>,
    /// Time-stamp counter when the read returned.
    pub time: u64,
    /// The position of the word in what the process read from there.
    pub position: u64,
}

impl SoughtWord {
    /// A word that is looked for in the input until this time.
    pub fn new(word: &[u8], before: u64) -> SoughtWord {
        SoughtWord {
            finder: Finder::new(word).into_owned(),
            before,
            found: None,
        }
    }

    /// Takes the bytes of a read. `input`: where they begin.
    fn take(&mut self, bytes: &[u8], input: FoundInput) {
        let is_same = |found: &FoundInput| (found.process, found.id) == (input.process, input.id);
        let is_later = self.found.as_ref().is_none_or(|found| {
            input.time > found.time || input.time == found.time && is_same(found)
        });
        if input.time > self.before || !is_later {
            return;
        }
        if let Some(at) = self.finder.find(bytes) {
            let position = input.position.saturating_add(at as u64);
            self.found = Some(FoundInput { position, ..input });
        }
    }
}

impl Arranging {
    /// Looks for these words in all input.
    pub(crate) fn seeking(mut self, sought: Vec<SoughtWord>) -> Arranging {
        self.sought = sought;
        self
    }

    /// Looks for the words in the bytes of a read. The bytes have a time, and a position among
    /// those that the process read from there.
    pub(super) fn seek(
        &mut self,
        id: Option<ResourceId>,
        bytes: &[u8],
        (time, position): (u64, u64),
    ) {
        let input = FoundInput {
            process: self.run.processes.len(),
            id,
            time,
            position,
        };
        for word in &mut self.sought {
            word.take(bytes, input);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Arranging, SoughtWord};
    use crate::recorded::Scope;
    use backstory_abi::deep;
    use backstory_deep::{Call, Section};

    fn read(time: u64, text: &str) -> Call {
        let section = Section {
            kind: deep::ENTERED,
            arg: 1,
            bytes: text.into(),
        };
        Call {
            number: libc::SYS_read as u16,
            result: text.len() as i64,
            a: 100,
            time,
            sections: vec![section],
            ..Call::default()
        }
    }

    /// The position and time of the last input until this time that holds the word.
    fn last(scope: Scope, word: &str, before: u64) -> Option<(u64, u64)> {
        let words = vec![SoughtWord::new(word.as_bytes(), before)];
        let mut arranging = Arranging::default().of_scope(scope).seeking(words);
        arranging.enter(1, 10, 1);
        for (time, text) in [(10, "set yellow"), (20, "set purple"), (30, "yellow again")] {
            arranging.take(&read(time, text));
        }
        arranging.leave();
        let (_, sought) = arranging.finish_search();
        sought[0].found.map(|found| (found.position, found.time))
    }

    #[test]
    fn a_word_came_from_the_last_input_before_it_that_holds_it() {
        for (word, before, expected) in [
            ("yellow", 25, Some((4, 10))),
            ("yellow", 40, Some((20, 30))),
            ("purple", 15, None),
            ("purple", 20, Some((14, 20))),
        ] {
            assert_eq!(last(Scope::Outline, word, before), expected, "{word}");
            assert_eq!(last(Scope::Whole, word, before), expected, "{word}");
        }
    }
}
