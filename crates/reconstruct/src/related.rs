//! Which earlier requests have a rare word in common with a request: a key, a name, a session.
//!
//! In: the bytes of requests and answers. Out: the requests that moved a word which a request
//! received, too. A word that many requests have says nothing. Such a relation is a guess. One
//! that is fed for it, and is not needed, changes no verdict. Memory: [`MOST_WORDS`] in all.

use backstory_deep::digest::xxh64;
use backstory_deep::{Call, Content, Part};
use std::collections::{HashMap, HashSet};

/// Shortest word.
const SHORTEST: usize = 3;
/// Most words of one request, and of all.
const MOST_OF_ONE: usize = 64;
const MOST_WORDS: usize = 1 << 22;
/// Bytes of one call in which words are looked for.
const LOOKED_AT: usize = 4096;
/// A word that so many requests have is always rare.
const ALWAYS_RARE: usize = 16;
/// Otherwise one that at most this part of them has.
const RARE_PART: usize = 8;

/// The bit of a word that says whether it was received, and the bits of its digest.
const RECEIVED: u64 = 1;
const DIGEST: u64 = !RECEIVED;

/// The words of the requests of a run.
#[derive(Debug, Clone, Default)]
pub struct RequestWords {
    /// By [`backstory_deep::Request::id`]: the digest of each word. Its lowest bit says whether the
    /// word was received.
    by_id: HashMap<usize, Vec<u64>>,
    count: usize,
}

impl RequestWords {
    /// Takes a call of a request.
    pub fn take(&mut self, id: usize, part: Part, call: &Call) {
        let (content, received) = match part {
            Part::Received => (call.content_in(), true),
            Part::Sent => (call.content_out(), false),
            Part::Other => return,
        };
        let Some(Content::Bytes(bytes)) = content else {
            return;
        };
        let own = self.by_id.entry(id).or_default();
        let bytes = &bytes[..bytes.len().min(LOOKED_AT)];
        let words = bytes.split(|byte| !is_of_word(*byte));
        for word in words.filter(|word| word.len() >= SHORTEST) {
            if own.len() == MOST_OF_ONE || self.count == MOST_WORDS {
                return;
            }
            let word = xxh64(word) & DIGEST | u64::from(received);
            if !own.contains(&word) {
                own.push(word);
                self.count += 1;
            }
        }
    }

    /// Those of the earlier requests, given by number and id, that have a rare word of this one.
    pub fn related(&self, wanted: usize, earlier: &[(usize, usize)]) -> Vec<usize> {
        let words = |id: usize| self.by_id.get(&id).into_iter().flatten();
        let own: HashSet<u64> = words(wanted)
            .filter(|word| *word & RECEIVED != 0)
            .map(|word| word & DIGEST)
            .collect();
        let shared = |id: usize| -> HashSet<u64> {
            let all = words(id).map(|word| word & DIGEST);
            all.filter(|word| own.contains(word)).collect()
        };
        let mut frequency: HashMap<u64, usize> = HashMap::new();
        for (_, id) in earlier {
            for word in shared(*id) {
                *frequency.entry(word).or_default() += 1;
            }
        }
        let most = ALWAYS_RARE.max(earlier.len() / RARE_PART);
        let is_rare = |word: u64| frequency.get(&word).is_some_and(|count| *count <= most);
        let related = earlier
            .iter()
            .filter(|(_, id)| shared(*id).into_iter().any(is_rare));
        related.map(|(number, _)| *number).collect()
    }
}

/// Letters, digits, and what joins the parts of a name.
pub fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80 || b"_-:.".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::RequestWords;
    use backstory_abi::deep;
    use backstory_deep::{Call, Part, Section};

    fn moved(words: &mut RequestWords, id: usize, part: Part, bytes: &str) {
        let kind = match part {
            Part::Sent => deep::LEFT,
            _ => deep::ENTERED,
        };
        let section = Section {
            kind,
            arg: 1,
            bytes: bytes.into(),
        };
        let call = Call {
            sections: vec![section],
            ..Call::default()
        };
        words.take(id, part, &call);
    }

    #[test]
    fn requests_with_a_rare_word_in_common_are_related() {
        let mut words = RequestWords::default();
        let mut all = Vec::new();
        for id in 0..200 {
            moved(&mut words, id, Part::Received, &format!("SET key:{id} x"));
            all.push((id + 1, id));
        }
        // A word of an answer that comes back, as a session does.
        moved(&mut words, 7, Part::Sent, "session=abcdef;");
        moved(&mut words, 200, Part::Received, "GET key:3 SET abcdef");
        assert_eq!(words.related(200, &all), [4, 8]);
        assert_eq!(words.related(201, &all), [0usize; 0]);
    }

    #[test]
    fn what_a_request_sent_itself_relates_it_to_none() {
        let mut words = RequestWords::default();
        moved(&mut words, 0, Part::Sent, "welcome");
        moved(&mut words, 1, Part::Sent, "welcome");
        assert_eq!(words.related(1, &[(1, 0)]), [0usize; 0]);
    }
}
