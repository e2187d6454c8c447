//! The bytes that left through one resource, and their comparison with those that leave now.
//!
//! In: the recorded writes in order, as bytes or digests, and the bytes of the new execution. Out:
//! the first difference. Invariant: how the bytes are cut into writes does not matter.

use crate::behind_start::{queue, state, sum};
use crate::file_writes::RecordedWrite;
use crate::related::is_of_word;
use crate::volatile::{CONTEXT, VolatileRules};
use backstory_deep::digest::xxh64;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Most bytes of either side that a report shows.
pub const SHOWN: usize = 64;

/// One recorded result of a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum OutputItem {
    /// These bytes left.
    Bytes(Vec<u8>),
    /// So many bytes with this XXH64 left.
    Digest(u64, u64),
    /// So many bytes left that the log does not have (`sendfile`).
    Unknown(u64),
    /// The write failed with this error number.
    Failed(i32),
    /// These signals interrupted the write behind the bytes before, and their handlers ran.
    Interrupted(Vec<i32>),
    /// The write before took a part of its bytes: the reader of a pipe went away.
    Short,
    /// The message before was the last that one call sent (`sendmmsg`).
    GroupEnd,
}

/// Where signals interrupted a recorded write or read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interruption {
    /// Number of bytes that leave before.
    pub after: u64,
    /// The signals, in the order of their handlers.
    pub signals: Vec<i32>,
    /// Time-stamp counter when the recorded call returned.
    pub time: u64,
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
    /// The name of the volatile part that it lies in. The comparison goes on behind that.
    pub volatile: Option<String>,
    /// The words in which both sides differ, the recorded one first. Empty if they are not known.
    pub words: (Vec<u8>, Vec<u8>),
    /// Ns from the date that came to the recorded one, if the first difference of these bytes lies
    /// in a date that follows the clock.
    pub apart: Option<i64>,
    /// Time-stamp counter when the recorded write returned.
    pub time: u64,
}

impl OutputDifference {
    /// A difference behind a volatile one in the same bytes, if there is one.
    fn behind(self, first: Option<&OutputDifference>) -> OutputDifference {
        match first {
            Some(first) => OutputDifference {
                apart: first.apart,
                ..self
            },
            None => self,
        }
    }
}

/// The recorded output of one resource.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ExpectedOutput {
    /// The recorded writes, each with the time-stamp counter when it returned.
    items: VecDeque<(OutputItem, u64)>,
    /// Position of each write in the resource, which other processes may write, too.
    starts: VecDeque<u64>,
    /// Bytes of all of them: a long output is asked for its rest at each call.
    total: u64,
    /// Bytes of all that were appended, also of those that are not here any more.
    recorded: u64,
    /// New bytes that the digest in front covers, as far as they have come.
    waiting: Vec<u8>,
    /// Bytes of the item in front that came and were equal.
    compared: usize,
    /// Position in the output, `waiting` not included.
    position: u64,
    /// True after a difference: nothing is compared any more.
    parted: bool,
    /// Bytes that came of which only the number was compared.
    counted: u64,
    /// Bytes before this position belong to requests that were fed for the sake of a later one.
    preparation: u64,
    /// The position of the first difference among these.
    differs_before: Option<u64>,
    /// More was recorded than is here.
    goes_on: bool,
    /// Bytes that came behind the part that is here, and were not compared.
    behind: u64,
    /// Bytes that left before this time are not waited for any more.
    waived: u64,
    /// The next input came at this time: recorded bytes behind it answer that input.
    until: Option<u64>,
}

impl ExpectedOutput {
    /// See [`RecordedProcess::behind_start`](crate::process::RecordedProcess::behind_start).
    pub(crate) fn behind_start(
        fresh: &ExpectedOutput,
        left: &ExpectedOutput,
        other: &ExpectedOutput,
    ) -> Option<ExpectedOutput> {
        if let Some(found) = state(fresh, left, other) {
            return Some(found);
        }
        let items = queue(&fresh.items, &left.items, &other.items)?;
        // Bytes of the first item have come.
        let is_within = left.compared > 0 || !left.waiting.is_empty();
        if is_within && items.front() != left.items.front() {
            return None;
        }
        Some(ExpectedOutput {
            items,
            starts: queue(&fresh.starts, &left.starts, &other.starts)?,
            total: sum(fresh.total, left.total, other.total)?,
            recorded: state(&fresh.recorded, &left.recorded, &other.recorded)?,
            waiting: state(&fresh.waiting, &left.waiting, &other.waiting)?,
            compared: state(&fresh.compared, &left.compared, &other.compared)?,
            position: state(&fresh.position, &left.position, &other.position)?,
            parted: state(&fresh.parted, &left.parted, &other.parted)?,
            counted: state(&fresh.counted, &left.counted, &other.counted)?,
            preparation: state(&fresh.preparation, &left.preparation, &other.preparation)?,
            differs_before: state(
                &fresh.differs_before,
                &left.differs_before,
                &other.differs_before,
            )?,
            goes_on: state(&fresh.goes_on, &left.goes_on, &other.goes_on)?,
            behind: state(&fresh.behind, &left.behind, &other.behind)?,
            waived: state(&fresh.waived, &left.waived, &other.waived)?,
            until: state(&fresh.until, &left.until, &other.until)?,
        })
    }

    /// Appends a recorded write.
    pub fn push(&mut self, item: OutputItem) {
        self.push_at(item, 0);
    }

    /// Appends a recorded write that returned at this time.
    pub fn push_at(&mut self, item: OutputItem, time: u64) {
        self.push_from(item, time, self.recorded);
    }

    /// The same for a write at this position of the resource.
    pub fn push_from(&mut self, item: OutputItem, time: u64, start: u64) {
        let bytes = length(&item);
        self.total += bytes;
        self.recorded = self.recorded.saturating_add(bytes);
        self.items.push_back((item, time));
        self.starts.push_back(start);
    }

    /// The same call sent a further message behind the last one, which ended no group then.
    pub fn continue_group(&mut self) {
        if matches!(self.items.back(), Some((OutputItem::GroupEnd, _))) {
            self.items.pop_back();
            self.starts.pop_back();
        }
    }

    /// Adds writes to the same resource. Nothing has been compared yet.
    pub fn join(&mut self, other: ExpectedOutput) {
        let own = self.items.drain(..).zip(self.starts.drain(..));
        let all = own.chain(other.items.into_iter().zip(other.starts));
        let mut all: Vec<_> = all.collect();
        all.sort_by_key(|((_, time), _)| *time);
        (self.items, self.starts) = all.into_iter().unzip();
        self.total += other.total;
        self.recorded = self.recorded.saturating_add(other.recorded);
    }

    /// The position in the resource of the bytes that come next.
    pub fn next_start(&self) -> u64 {
        let done = self.compared as u64 + self.waiting.len() as u64;
        let mut all = self.items.iter().zip(&self.starts);
        let next = all.find(|((item, _), _)| length(item) > 0);
        next.map_or(self.position(), |(_, start)| start + done)
    }

    /// True if the log lacks the bytes of writes that did not come yet, and their digests.
    pub fn has_unknown(&self) -> bool {
        let mut items = self.items.iter().map(|(item, _)| item);
        items.any(|item| matches!(item, OutputItem::Unknown(_)))
    }

    /// The time and length of each write.
    pub fn moves(&self) -> impl Iterator<Item = (u64, u64)> {
        self.items.iter().map(|(item, time)| (*time, length(item)))
    }

    /// The writes that moved bytes.
    pub(crate) fn writes(&self) -> impl Iterator<Item = RecordedWrite> {
        let all = self.items.iter().zip(&self.starts);
        let all = all.map(|((item, time), start)| RecordedWrite {
            time: *time,
            start: *start,
            length: length(item),
        });
        all.filter(|write| write.length > 0)
    }

    /// Gives each write of bytes another time, by its position and its time.
    pub fn date(&mut self, time_of: impl Fn(u64, u64) -> u64) {
        for ((item, time), start) in self.items.iter_mut().zip(&self.starts) {
            if length(item) > 0 {
                *time = time_of(*start, *time);
            }
        }
    }

    /// Sets the position of each write.
    pub fn set_starts(&mut self, starts: VecDeque<u64>) {
        self.starts = starts;
    }

    /// Keeps the writes whose time is accepted. Nothing has been compared yet.
    pub fn retain(&mut self, accepts: impl Fn(u64) -> bool) {
        let all = self.items.drain(..).zip(self.starts.drain(..));
        (self.items, self.starts) = all.filter(|((_, time), _)| accepts(*time)).unzip();
        self.total = self.items.iter().map(|(item, _)| length(item)).sum();
    }

    /// The same while further writes follow. The last one stays, with those of the same time.
    pub(crate) fn retain_before_last(&mut self, accepts: impl Fn(u64) -> bool) {
        let last = self.items.back().map(|(_, time)| *time);
        self.retain(|time| Some(time) == last || accepts(time));
    }

    /// Bytes of the recorded writes that the log has as bytes.
    pub(crate) fn stored_bytes(&self) -> u64 {
        let stored = self.items.iter().map(|(item, _)| match item {
            OutputItem::Bytes(bytes) => bytes.len() as u64,
            _ => 0,
        });
        stored.sum()
    }

    /// Bytes of all recorded writes, also of those that are not here any more.
    pub(crate) fn recorded_bytes(&self) -> u64 {
        self.recorded
    }

    /// Number of recorded writes whose bytes have not come.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// True if nothing is left.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The recorded output went on behind the items that are here: more output is no difference.
    pub fn goes_on(&mut self) {
        self.goes_on = true;
    }

    /// True if recorded bytes that left before this time have not come yet. Another output than
    /// the recorded one owes nothing.
    pub fn owes(&self, before: u64) -> bool {
        let mut bytes = self.items.iter().filter(|(item, _)| length(item) > 0);
        let next = bytes.next().map(|(_, time)| *time);
        !self.parted && next.is_some_and(|time| self.waived <= time && time < before)
    }

    /// Nobody waits any more for the bytes that have not come.
    pub fn waive(&mut self) {
        self.waived = u64::MAX;
    }

    /// The program got input that had come at this time, although recorded bytes that left before
    /// it have not come. If these only prepare a request, the difference is noted, and the
    /// comparison goes on behind them. So an answer of another length moves no later one.
    pub fn goes_on_behind(&mut self, time: u64) {
        self.waived = self.waived.max(time);
        while self.position < self.preparation
            && let Some((item, left)) = self.items.front()
            && *left < time
        {
            let rest = length(item) - self.compared as u64;
            if rest > 0 {
                self.differs_before.get_or_insert(self.position);
            }
            self.position += rest;
            self.compared = 0;
            self.waiting.clear();
            self.drop_first();
        }
    }

    /// The next input, which the program has not read yet, came at this time. Among bytes that
    /// prepare a request, those that come beyond the recorded answer are no answer to it.
    pub fn answers_until(&mut self, next_input: Option<u64>) {
        self.until = next_input;
    }

    /// True if the bytes that come now belong to an answer whose recorded bytes have all come.
    fn is_beyond_answer(&self) -> bool {
        let prepares = self.preparation > 0 && self.position <= self.preparation;
        let next = self.next_time();
        prepares && next.is_some_and(|time| self.until.is_some_and(|until| until < time))
    }

    /// Bytes that left until this time prepare the request that follows. A difference among them is
    /// noted, and the comparison goes on behind it.
    pub fn prepares_until(&mut self, time: u64) {
        let before = self.items.iter().filter(|(_, returned)| *returned <= time);
        self.preparation = before.map(|(item, _)| length(item)).sum();
    }

    /// The position of the first difference that did not matter.
    pub fn differs_before(&self) -> Option<u64> {
        self.differs_before
    }

    /// Bytes that came of which the log has the number only (`sendfile`).
    pub fn counted(&self) -> u64 {
        self.counted
    }

    /// Bytes that came behind the end of a record that was cut: nothing is compared with them.
    pub fn behind(&self) -> u64 {
        self.behind
    }

    /// Number of bytes that came and were compared, or that came behind a difference.
    pub fn compared_bytes(&self) -> u64 {
        self.position
            .saturating_sub(self.behind)
            .saturating_sub(self.counted)
            + self.waiting.len() as u64
    }

    /// Number of bytes that came so far.
    pub fn position(&self) -> u64 {
        self.position + self.waiting.len() as u64
    }

    /// Number of recorded bytes that did not come yet.
    pub fn remaining(&self) -> u64 {
        self.total - self.compared as u64 - self.waiting.len() as u64
    }

    /// The recorded write that the next bytes are compared with.
    pub fn next(&self) -> Option<&OutputItem> {
        self.items.front().map(|(item, _)| item)
    }

    /// Time-stamp counter when the recorded write returned that the next bytes belong to.
    pub fn next_time(&self) -> Option<u64> {
        self.items.front().map(|(_, time)| *time)
    }

    /// True unless these bytes are others than the recorded ones that come next.
    pub fn fits(&self, bytes: &[u8]) -> bool {
        match self.next() {
            Some(OutputItem::Bytes(recorded)) => {
                let rest = recorded.get(self.compared..).unwrap_or_default();
                rest.iter().zip(bytes).all(|(a, b)| a == b)
            }
            Some(OutputItem::Digest(length, digest)) if self.waiting.is_empty() => {
                *length == bytes.len() as u64 && *digest == xxh64(bytes)
            }
            _ => true,
        }
    }

    /// True if a difference was found.
    pub fn has_parted(&self) -> bool {
        self.parted
    }

    fn drop_first(&mut self) {
        let first = self.items.pop_front();
        self.starts.pop_front();
        self.total -= first.map_or(0, |(item, _)| length(&item));
        // The bytes of a short write have come, so its end cuts no write any more.
        while matches!(self.next(), Some(OutputItem::Short | OutputItem::GroupEnd)) {
            self.items.pop_front();
            self.starts.pop_front();
        }
    }

    /// True if the next recorded write failed, which is not taken.
    pub fn is_at_failure(&self) -> bool {
        let mut items = self.items.iter().map(|(item, _)| item);
        let next = items.find(|item| {
            let is_mark = matches!(item, OutputItem::Short | OutputItem::GroupEnd);
            !is_mark && !matches!(item, OutputItem::Interrupted(_))
        });
        let is_whole = self.waiting.is_empty() && self.compared == 0;
        is_whole && matches!(next, Some(OutputItem::Failed(_)))
    }

    /// True if the call that sent the next message in the record sent no further one. The message
    /// has so many bytes.
    pub fn ends_group(&self, count: u64) -> bool {
        let end = self.compared as u64 + self.waiting.len() as u64 + count;
        let mut before = 0;
        let mut items = self.items.iter().map(|(item, _)| item);
        let found = items.find(|item| {
            before += length(item);
            before > end || before == end && **item == OutputItem::GroupEnd
        });
        !self.parted && found == Some(&OutputItem::GroupEnd)
    }

    /// The error of the next recorded write, which is then taken. An interruption before it did not
    /// come.
    pub fn failure(&mut self) -> Option<i32> {
        while matches!(self.next(), Some(OutputItem::Interrupted(_))) {
            self.drop_first();
        }
        match self.next() {
            Some(OutputItem::Failed(errno)) if self.waiting.is_empty() && self.compared == 0 => {
                let errno = *errno;
                self.drop_first();
                Some(errno)
            }
            _ => None,
        }
    }

    /// How many of so many bytes leave in one write: up to where a recorded write was short, or the
    /// resource was full (`EAGAIN`). `waits`: the descriptor is blocking, so that it is never full.
    pub fn until_full(&self, count: u64, waits: bool) -> u64 {
        if self.parted {
            return count;
        }
        let done = self.compared as u64 + self.waiting.len() as u64;
        let mut before = 0;
        for (item, _) in &self.items {
            let ends = match item {
                OutputItem::Short => true,
                OutputItem::Failed(libc::EAGAIN) => !waits,
                _ => false,
            };
            if ends && before > done {
                return count.min(before - done);
            }
            before += length(item);
            if before >= done.saturating_add(count) {
                break;
            }
        }
        count
    }

    /// Where signals interrupt a write of so many bytes. `None`: nowhere, or an error or the end of
    /// a short write comes before.
    pub fn interruption(&self, count: u64) -> Option<Interruption> {
        if self.parted || count == 0 {
            return None;
        }
        let done = self.compared as u64 + self.waiting.len() as u64;
        let mut before = 0u64;
        for (item, time) in &self.items {
            match item {
                OutputItem::Failed(_) | OutputItem::Short => return None,
                OutputItem::Interrupted(signals) => {
                    return Some(Interruption {
                        after: before.saturating_sub(done),
                        signals: signals.clone(),
                        time: *time,
                    });
                }
                _ => before += length(item),
            }
            if before >= done.saturating_add(count) {
                return None;
            }
        }
        None
    }

    /// The signals of the interruption in front have come.
    pub fn interrupted(&mut self) {
        if matches!(self.next(), Some(OutputItem::Interrupted(_))) {
            self.drop_first();
        }
    }

    /// Compares bytes that leave now.
    ///
    /// Returns the first difference of them that is not volatile, or else the first volatile one.
    pub fn leave(&mut self, bytes: &[u8], rules: &VolatileRules) -> Option<OutputDifference> {
        let mut bytes = bytes;
        let mut noted: Option<OutputDifference> = None;
        while !bytes.is_empty() && !self.parted {
            if self.is_beyond_answer() {
                self.differs_before.get_or_insert(self.position);
                return noted;
            }
            let took = match self.next() {
                None if self.goes_on => {
                    self.position += bytes.len() as u64;
                    self.behind += bytes.len() as u64;
                    return noted;
                }
                None => {
                    let difference = self.part(self.position, 1, Some(Vec::new()), bytes);
                    return Some(difference.behind(noted.as_ref()));
                }
                Some(
                    OutputItem::Failed(_)
                    | OutputItem::Interrupted(_)
                    | OutputItem::Short
                    | OutputItem::GroupEnd,
                ) => {
                    self.drop_first();
                    continue;
                }
                Some(OutputItem::Bytes(recorded)) => {
                    let rest = recorded.get(self.compared..).unwrap_or_default();
                    let same = rest.iter().zip(bytes).take_while(|(a, b)| a == b).count();
                    if same < rest.len() && same < bytes.len() {
                        let shown: Vec<u8> = rest[same..].iter().copied().take(SHOWN).collect();
                        let at = self.position + same as u64;
                        if at < self.preparation {
                            self.differs_before.get_or_insert(at);
                            self.advance(same + 1);
                            bytes = &bytes[same + 1..];
                            continue;
                        }
                        let from = (self.compared + same).saturating_sub(CONTEXT);
                        let then = recorded.get(from..).unwrap_or_default();
                        let before = self.compared + same - from;
                        let now = [&then[..before], &bytes[same..]].concat();
                        let part = rules.part(then, &now, before);
                        let words = (word_at(then, before), word_at(&now, before));
                        let apart = rules.apart(then, &now, before);
                        let difference = OutputDifference {
                            words,
                            apart,
                            ..self.part(at, 1, Some(shown), &bytes[same..])
                        };
                        let Some(part) = part else {
                            return Some(difference.behind(noted.as_ref()));
                        };
                        self.parted = false;
                        noted.get_or_insert(OutputDifference {
                            volatile: Some(part.name),
                            ..difference
                        });
                        same + part.length
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
                        let differs = xxh64(&whole) != digest;
                        if differs && self.position + length <= self.preparation {
                            self.differs_before.get_or_insert(self.position);
                        } else if differs {
                            let difference = self.part(self.position, length, None, &whole);
                            return Some(difference.behind(noted.as_ref()));
                        }
                        self.position += length;
                        self.drop_first();
                    }
                    bytes = &bytes[took..];
                    continue;
                }
            };
            self.advance(took);
            bytes = &bytes[took..];
        }
        if self.parted {
            self.position += bytes.len() as u64;
        }
        noted
    }

    /// So many bytes of the item in front have come.
    fn advance(&mut self, count: usize) {
        self.compared += count;
        self.position += count as u64;
        if self.next().map(length) == Some(self.compared as u64) {
            self.drop_first();
            self.compared = 0;
        }
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
            volatile: None,
            words: (Vec::new(), Vec::new()),
            apart: None,
            time: self.next_time().unwrap_or(0),
        }
    }

    /// The difference that the end of the process makes: recorded output that did not come.
    pub fn end(&mut self) -> Option<OutputDifference> {
        if self.parted || self.remaining() == 0 && self.waiting.is_empty() {
            return None;
        }
        let recorded = match self
            .items
            .iter()
            .map(|(item, _)| item)
            .find(|item| length(item) > 0)?
        {
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

/// The word around a position: a key, a number, a name.
fn word_at(bytes: &[u8], at: usize) -> Vec<u8> {
    let (before, behind) = bytes.split_at(at.min(bytes.len()));
    let is_end = |byte: &u8| !is_of_word(*byte);
    let from = before.iter().rposition(is_end).map_or(0, |end| end + 1);
    let to = behind.iter().position(is_end).unwrap_or(behind.len());
    bytes[from..before.len() + to].to_vec()
}

/// Bytes of a write.
pub(crate) fn length(item: &OutputItem) -> u64 {
    match item {
        OutputItem::Bytes(bytes) => bytes.len() as u64,
        OutputItem::Digest(length, _) | OutputItem::Unknown(length) => *length,
        OutputItem::Failed(_)
        | OutputItem::Interrupted(_)
        | OutputItem::Short
        | OutputItem::GroupEnd => 0,
    }
}
