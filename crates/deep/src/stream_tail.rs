//! The search for a text that several calls on a stream moved.
//!
//! In: the bytes of a stream, call by call. Out: the places where the text begins in an earlier
//! call than it ends. Memory: fewer bytes than the text has.

use memchr::memmem::Finder;

/// The last bytes of a stream, fewer than the text has.
#[derive(Debug, Default)]
pub struct StreamTail(Vec<u8>);

impl StreamTail {
    /// Forgets the bytes so far: the next ones do not follow them.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Takes the next bytes of the stream. Returns the places of the text that begin before them
    /// and end in them, as negative positions. The text has at least one byte.
    pub fn take(&mut self, next: &[u8], finder: &Finder<'_>) -> Vec<i64> {
        let tail = &mut self.0;
        let most = finder.needle().len().saturating_sub(1);
        let before = tail.len();
        tail.extend_from_slice(&next[..next.len().min(most)]);
        let places = finder.find_iter(tail).map(|at| at as i64 - before as i64);
        let across = places.filter(|at| *at < 0).collect();
        if next.len() > most {
            tail.clear();
            tail.extend_from_slice(&next[next.len() - most..]);
        } else {
            let over = tail.len().saturating_sub(most);
            tail.drain(..over);
        }
        across
    }
}
