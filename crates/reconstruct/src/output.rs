//! The bytes that left through one resource, and their comparison with those that leave now.
//!
//! In: the recorded writes in order, as bytes or digests, and the bytes of the new execution. Out:
//! the first difference. Invariant: how the bytes are cut into writes does not matter.

use crate::volatile::volatile_digits;
use backstory_deep::digest::xxh64;
use std::collections::VecDeque;

/// Most bytes of either side that a report shows.
pub const SHOWN: usize = 64;

/// One recorded result of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputItem {
    /// These bytes left.
    Bytes(Vec<u8>),
    /// So many bytes with this XXH64 left.
    Digest(u64, u64),
    /// So many bytes left that the log does not have (`sendfile`).
    Unknown(u64),
    /// The write failed with this error number.
    Failed(i32),
}

/// The first difference between the recorded output and the new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputDifference {
    /// Position in the output of the resource. If the log has a digest only, the difference is at
    /// this byte or one of the next `within`.
    pub position: u64,
    /// Number of bytes that the difference lies within; 1 if the byte is known.
    pub within: u64,
    /// The recorded bytes from there on, if the log has them. Empty behind the recorded end.
    pub recorded: Option<Vec<u8>>,
    /// The new bytes from there on.
    pub came: Vec<u8>,
    /// Only digits of a date, a time or a random number differ. The comparison goes on behind them.
    pub volatile: bool,
}

/// The recorded output of one resource.
#[derive(Debug, Clone, Default)]
pub struct ExpectedOutput {
    items: VecDeque<OutputItem>,
    /// New bytes that the digest in front covers, as far as they have come.
    waiting: Vec<u8>,
    /// Bytes of the item in front that came and were equal.
    compared: usize,
    /// Position in the output, `waiting` not included.
    position: u64,
    /// True after a difference: nothing is compared any more.
    parted: bool,
    /// Time-stamp counters at the ends of the recorded writes, until the first byte comes.
    times: Vec<u64>,
    /// Bytes that came of which only the number was compared.
    counted: u64,
}

impl ExpectedOutput {
    /// Appends a recorded write.
    pub fn push(&mut self, item: OutputItem) {
        self.push_at(item, 0);
    }

    /// Appends a recorded write that returned at this time.
    pub fn push_at(&mut self, item: OutputItem, time: u64) {
        self.items.push_back(item);
        self.times.push(time);
    }

    /// Keeps the writes whose time is accepted. Nothing has been compared yet.
    pub fn retain(&mut self, accepts: impl Fn(u64) -> bool) {
        let all = self.items.drain(..).zip(self.times.drain(..));
        let (items, times) = all.filter(|(_, time)| accepts(*time)).unzip();
        (self.items, self.times) = (items, times);
    }

    /// Bytes that came of which the log has the number only (`sendfile`).
    pub fn counted(&self) -> u64 {
        self.counted
    }

    /// Number of bytes that came so far.
    pub fn position(&self) -> u64 {
        self.position + self.waiting.len() as u64
    }

    /// Number of recorded bytes that did not come yet.
    pub fn remaining(&self) -> u64 {
        let all: u64 = self.items.iter().map(length).sum();
        all - self.compared as u64 - self.waiting.len() as u64
    }

    /// The recorded write that the next bytes are compared with.
    pub fn next(&self) -> Option<&OutputItem> {
        self.items.front()
    }

    /// True if a difference was found.
    pub fn has_parted(&self) -> bool {
        self.parted
    }

    /// The error of the next recorded write, which is then taken.
    pub fn failure(&mut self) -> Option<i32> {
        match self.items.front() {
            Some(OutputItem::Failed(errno)) if self.waiting.is_empty() && self.compared == 0 => {
                let errno = *errno;
                self.items.pop_front();
                Some(errno)
            }
            _ => None,
        }
    }

    /// Compares bytes that leave now.
    ///
    /// Returns the first difference of them that is not volatile, or else the first volatile one.
    pub fn leave(&mut self, mut bytes: &[u8]) -> Option<OutputDifference> {
        let mut noted = None;
        while !bytes.is_empty() && !self.parted {
            let took = match self.items.front() {
                None => return Some(self.part(self.position, 1, Some(Vec::new()), bytes)),
                Some(OutputItem::Failed(_)) => {
                    self.items.pop_front();
                    continue;
                }
                Some(OutputItem::Bytes(recorded)) => {
                    let rest = recorded.get(self.compared..).unwrap_or_default();
                    let same = rest.iter().zip(bytes).take_while(|(a, b)| a == b).count();
                    if same < rest.len() && same < bytes.len() {
                        let shown: Vec<u8> = rest[same..].iter().copied().take(SHOWN).collect();
                        let at = self.position + same as u64;
                        let digits = volatile_digits(&shown, &bytes[same..]);
                        let difference = self.part(at, 1, Some(shown), &bytes[same..]);
                        if digits == 0 {
                            return Some(difference);
                        }
                        self.parted = false;
                        noted.get_or_insert(OutputDifference {
                            volatile: true,
                            ..difference
                        });
                        same + digits
                    } else {
                        same
                    }
                }
                Some(OutputItem::Unknown(length)) => {
                    let rest = *length - self.compared as u64;
                    let took = usize::try_from(rest).unwrap_or(usize::MAX).min(bytes.len());
                    self.counted += took as u64;
                    took
                }
                Some(OutputItem::Digest(length, digest)) => {
                    let (length, digest) = (*length, *digest);
                    let rest = length - self.waiting.len() as u64;
                    let took = usize::try_from(rest).unwrap_or(usize::MAX).min(bytes.len());
                    self.waiting.extend_from_slice(&bytes[..took]);
                    if self.waiting.len() as u64 == length {
                        let whole = std::mem::take(&mut self.waiting);
                        if xxh64(&whole) != digest {
                            return Some(self.part(self.position, length, None, &whole));
                        }
                        self.position += length;
                        self.items.pop_front();
                    }
                    bytes = &bytes[took..];
                    continue;
                }
            };
            self.compared += took;
            self.position += took as u64;
            bytes = &bytes[took..];
            if self.items.front().map(length) == Some(self.compared as u64) {
                self.items.pop_front();
                self.compared = 0;
            }
        }
        if self.parted {
            self.position += bytes.len() as u64;
        }
        noted
    }

    fn part(
        &mut self,
        position: u64,
        within: u64,
        recorded: Option<Vec<u8>>,
        came: &[u8],
    ) -> OutputDifference {
        self.parted = true;
        OutputDifference {
            position,
            within,
            recorded,
            came: came.iter().copied().take(SHOWN).collect(),
            volatile: false,
        }
    }

    /// The difference that the end of the process makes: recorded output that did not come.
    pub fn end(&mut self) -> Option<OutputDifference> {
        if self.parted || self.remaining() == 0 && self.waiting.is_empty() {
            return None;
        }
        let recorded = match self.items.iter().find(|item| length(item) > 0)? {
            OutputItem::Bytes(bytes) => {
                let rest = bytes.get(self.compared..).unwrap_or_default();
                Some(rest.iter().copied().take(SHOWN).collect())
            }
            _ => None,
        };
        let within = self.remaining() + self.waiting.len() as u64;
        let came = std::mem::take(&mut self.waiting);
        Some(self.part(self.position, within, recorded, &came))
    }
}

fn length(item: &OutputItem) -> u64 {
    match item {
        OutputItem::Bytes(bytes) => bytes.len() as u64,
        OutputItem::Digest(length, _) | OutputItem::Unknown(length) => *length,
        OutputItem::Failed(_) => 0,
    }
}
