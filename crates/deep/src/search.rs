//! Whether a deep log has a text: in its frames, in a record, or across the calls of a stream.
//!
//! In: a text. Out: true if any of these has it:
//!
//! - the bytes of the file, and of each chunk when it is decompressed
//! - the bytes that entered or left by one call
//! - the bytes that entered or left through one descriptor, by several calls of a process
//!
//! Memory: one chunk, one call, and for each open descriptor as many bytes as the text has.

use crate::call::{Call, Content};
use crate::log::{DeepLog, DeepProcess};
use crate::stream_tail::StreamTail;
use memchr::memmem::Finder;
use std::collections::HashMap;

impl DeepLog {
    /// True if the log has the text. A log with digests of what left has no bytes of it.
    pub fn has_text(&self, text: &[u8]) -> bool {
        let finder = Finder::new(text);
        let has = |bytes: &[u8]| finder.find(bytes).is_some();
        if text.is_empty() || has(self.bytes()) {
            return true;
        }
        let mut chunks = self.all_chunks();
        chunks.any(|chunk| self.records(chunk).is_some_and(|records| has(&records)))
            || self
                .processes()
                .iter()
                .any(|one| self.process_has(one, &finder))
    }

    fn process_has(&self, process: &DeepProcess, finder: &Finder<'_>) -> bool {
        let mut streams = HashMap::new();
        self.process_calls(process.epoch).any(|call| {
            let mut sections = call.sections.iter();
            sections.any(|section| finder.find(&section.bytes).is_some())
                || continued_has(&mut streams, &call, finder)
        })
    }
}

/// True if the text begins in an earlier call on the same descriptor, and ends in this one.
fn continued_has(
    streams: &mut HashMap<(i32, bool), StreamTail>,
    call: &Call,
    finder: &Finder<'_>,
) -> bool {
    const CLOSE: u16 = 3;
    if call.number == CLOSE {
        streams.remove(&(call.fd, false));
        streams.remove(&(call.fd, true));
        return false;
    }
    let parts = [(false, call.content_in()), (true, call.content_out())];
    parts.into_iter().any(|(leaves, content)| {
        let Some(Content::Bytes(bytes)) = content.filter(|_| call.fd >= 0) else {
            return false;
        };
        let tail = streams.entry((call.fd, leaves)).or_default();
        !tail.take(bytes, finder).is_empty()
    })
}
