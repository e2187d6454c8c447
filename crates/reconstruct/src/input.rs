//! The bytes that entered through one resource, as a stream that reads of any length consume.
//!
//! In: the recorded reads in order. Out: for each read of the new execution, bytes of the same
//! stream. Invariant: however reads are cut, the joined bytes are the recorded bytes.
//!
//! A read never crosses the end of a recorded read. So an unchanged program gets the same lengths
//! as before, short reads included.

use crate::behind_start::{queue, state, sum};
use crate::output::Interruption;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// One recorded result of a read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum InputItem {
    /// Bytes of a stream.
    Bytes(Vec<u8>),
    /// A message: what does not fit into the reader's buffer is lost, as the kernel does it.
    Message {
        /// Its bytes, as far as the program took them.
        bytes: Vec<u8>,
        /// The address of its sender, maybe empty.
        address: Vec<u8>,
        /// The length of the message, as far as it is known. It is that of the bytes or more.
        whole: usize,
    },
    /// The read failed with `EAGAIN`: nothing was there at that moment.
    Absent,
    /// The end of the input.
    End,
    /// The read failed with this error number.
    Failed(i32),
    /// These signals interrupted the read before a byte came, and their handlers ran.
    Interrupted(Vec<i32>),
}

/// The result of a read of the new execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// So many bytes, with the address of the sender of a message. Only a message can have none.
    Bytes(Vec<u8>, Vec<u8>),
    /// `EAGAIN`.
    Absent,
    /// The end.
    End,
    /// This error.
    Failed(i32),
    /// The recorded program read no further.
    Exhausted,
}

/// The input of one resource.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct InputStream {
    items: VecDeque<InputItem>,
    /// Time-stamp counter at the end of each item's call.
    times: VecDeque<u64>,
    /// Position of each item's first byte in the resource, which other processes may read, too.
    starts: VecDeque<u64>,
    /// That of the bytes which were taken last.
    from: u64,
    /// Bytes of all items: a stream of many reads is asked for its rest at each call.
    total: u64,
    /// Bytes of all items that were appended, also of those that are not here any more.
    recorded: u64,
    /// That of the item which was taken last.
    last: u64,
    /// Bytes of the first item that were taken.
    taken: usize,
    /// Position in the stream.
    position: u64,
    /// The end was delivered. It is delivered again.
    ended: bool,
    /// Input up to this time has arrived, whatever the program has written.
    arrived: u64,
}

impl InputStream {
    /// See [`RecordedProcess::behind_start`](crate::process::RecordedProcess::behind_start).
    pub(crate) fn behind_start(
        fresh: &InputStream,
        left: &InputStream,
        other: &InputStream,
    ) -> Option<InputStream> {
        if let Some(found) = state(fresh, left, other) {
            return Some(found);
        }
        let items = queue(&fresh.items, &left.items, &other.items)?;
        // Bytes of the first item were taken, or input that has not been taken counts as arrived.
        let is_within = left.taken > 0 || left.arrived > left.last.max(fresh.arrived);
        if is_within && items.front() != left.items.front() {
            return None;
        }
        Some(InputStream {
            items,
            times: queue(&fresh.times, &left.times, &other.times)?,
            starts: queue(&fresh.starts, &left.starts, &other.starts)?,
            from: state(&fresh.from, &left.from, &other.from)?,
            total: sum(fresh.total, left.total, other.total)?,
            recorded: state(&fresh.recorded, &left.recorded, &other.recorded)?,
            last: state(&fresh.last, &left.last, &other.last)?,
            taken: state(&fresh.taken, &left.taken, &other.taken)?,
            position: state(&fresh.position, &left.position, &other.position)?,
            ended: state(&fresh.ended, &left.ended, &other.ended)?,
            arrived: state(&fresh.arrived, &left.arrived, &other.arrived)?,
        })
    }

    /// Appends a recorded read.
    pub fn push(&mut self, item: InputItem) {
        self.push_at(item, 0);
    }

    /// Appends a recorded read that returned at this time.
    pub fn push_at(&mut self, item: InputItem, time: u64) {
        self.push_from(item, time, self.recorded);
    }

    /// The same for a read at this position of the resource.
    pub fn push_from(&mut self, item: InputItem, time: u64, start: u64) {
        let bytes = length(&item) as u64;
        self.total += bytes;
        self.recorded = self.recorded.saturating_add(bytes);
        self.starts.push_back(start);
        self.items.push_back(item);
        self.times.push_back(time);
    }

    /// The time at which the bytes that were taken last had come.
    pub fn last_time(&self) -> u64 {
        self.last
    }

    /// The position in the resource of the bytes that were taken or looked at last.
    pub fn last_start(&self) -> u64 {
        self.from
    }

    /// The recorded bytes, each with its position in the resource. Nothing has been taken yet.
    pub fn pieces(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let all = self.starts.iter().copied().zip(&self.items);
        all.filter_map(|(start, item)| match item {
            InputItem::Bytes(bytes) | InputItem::Message { bytes, .. } => Some((start, &**bytes)),
            _ => None,
        })
    }

    /// The time and length of each read.
    pub fn moves(&self) -> impl Iterator<Item = (u64, u64)> {
        let lengths = self.items.iter().map(|item| length(item) as u64);
        self.times.iter().copied().zip(lengths)
    }

    /// Sets the position of each read.
    pub fn set_starts(&mut self, starts: VecDeque<u64>) {
        self.starts = starts;
    }

    /// Keeps the reads whose time is accepted. Nothing has been taken yet.
    pub fn retain(&mut self, accepts: impl Fn(u64) -> bool) {
        let times = self.times.drain(..).zip(self.starts.drain(..));
        let all = self.items.drain(..).zip(times);
        let all = all.filter(|(_, (time, _))| accepts(*time));
        let (items, times): (_, Vec<_>) = all.unzip();
        self.items = items;
        (self.times, self.starts) = times.into_iter().unzip();
        self.count();
    }

    /// The same while further reads follow. The last one stays, with those of the same time.
    pub(crate) fn retain_before_last(&mut self, accepts: impl Fn(u64) -> bool) {
        let last = self.times.back().copied();
        self.retain(|time| Some(time) == last || accepts(time));
    }

    /// Bytes of all recorded reads, also of those that are not here any more.
    pub(crate) fn recorded_bytes(&self) -> u64 {
        self.recorded
    }

    /// Number of recorded reads that nothing has taken yet.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// True if nothing is left.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Leaves out so many reads, of which nothing was taken yet.
    pub fn skip(&mut self, count: usize) {
        self.items.drain(..count.min(self.items.len()));
        self.times.drain(..count.min(self.times.len()));
        self.starts.drain(..count.min(self.starts.len()));
        self.count();
    }

    fn count(&mut self) {
        self.total = self.items.iter().map(|item| length(item) as u64).sum();
    }

    fn drop_first(&mut self) {
        let first = self.items.pop_front();
        self.total -= first.as_ref().map_or(0, length) as u64;
        self.times.pop_front();
        self.starts.pop_front();
    }

    /// So many recorded bytes from this position of the resource on. `None`: something else is
    /// there, or the program has taken some of them.
    pub fn recorded_at(&self, start: u64, length: usize) -> Option<Vec<u8>> {
        let mut found = Vec::new();
        let mut untaken = self.taken;
        for (item, begin) in self.items.iter().zip(&self.starts) {
            let InputItem::Bytes(bytes) = item else {
                continue;
            };
            let next = usize::try_from((start + found.len() as u64).checked_sub(*begin)?).ok()?;
            if next < std::mem::take(&mut untaken) {
                return None;
            }
            let rest = bytes.get(next..).unwrap_or_default();
            found.extend_from_slice(&rest[..rest.len().min(length - found.len())]);
            if found.len() == length {
                return Some(found);
            }
        }
        None
    }

    /// Number of bytes that were taken so far.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Number of bytes that nothing has taken yet.
    pub fn remaining(&self) -> u64 {
        self.total - self.taken as u64
    }

    /// True if the recorded program read no further than this.
    pub fn is_exhausted(&self) -> bool {
        self.items.is_empty() && !self.ended
    }

    /// True if a read would return at once. `EAGAIN` counts as not ready, and a signal as no input.
    pub fn is_ready(&self) -> bool {
        match self.items.iter().find(|item| !is_interruption(item)) {
            Some(InputItem::Absent) => false,
            Some(_) => true,
            None => self.ended,
        }
    }

    /// The time at which the next input came.
    pub fn next_input(&self) -> Option<u64> {
        let mut all = self.items.iter().zip(&self.times);
        let next = all.find(|(item, _)| **item != InputItem::Absent && !is_interruption(item));
        next.map(|(_, time)| *time)
    }

    /// The same, unless it has been declared to be there.
    pub fn next_arrival(&self) -> Option<u64> {
        self.next_input().filter(|time| *time > self.arrived)
    }

    /// The time at which the next input came, unless the program has taken a part of it.
    pub fn next_whole(&self) -> Option<u64> {
        self.times.front().copied().filter(|_| self.taken == 0)
    }

    /// The position in the resource behind the bytes, or at the end, that the next read gets.
    /// `None`: the program has a part of these bytes, or gets nothing. `waits`: the reader's
    /// descriptor is blocking.
    pub fn next_end(&self, waits: bool) -> Option<u64> {
        let all = self.items.iter().zip(&self.starts);
        let mut all = all
            .filter(|(item, _)| !is_interruption(item) && (**item != InputItem::Absent || !waits));
        let (item, start) = all.next().filter(|_| self.taken == 0)?;
        let gets = matches!(item, InputItem::End) || length(item) > 0;
        gets.then_some(start + length(item) as u64)
    }

    /// The next input that is neither an absence nor an interruption.
    fn next_item(&self) -> Option<&InputItem> {
        let mut all = self.items.iter();
        all.find(|item| !is_interruption(item) && **item != InputItem::Absent)
    }

    /// The length of the next message. `None`: the next input is no message.
    pub fn next_message(&self) -> Option<usize> {
        match self.next_item()? {
            InputItem::Message { bytes, whole, .. } => Some(bytes.len().max(*whole)),
            _ => None,
        }
    }

    /// True if a read without room is about the next message. It is a look, or the message is one
    /// of which the recorded program took no bytes.
    fn needs_no_room(&self, peek: bool) -> bool {
        let next = self.next_item();
        matches!(next, Some(InputItem::Message { bytes, .. }) if peek || bytes.is_empty())
    }

    /// The time at which the bytes came of which the program has taken none yet.
    pub fn next_unread(&self) -> Option<u64> {
        let begun = usize::from(self.taken > 0);
        let all = self.items.iter().zip(&self.times).skip(begun);
        let mut next = all.filter(|(item, _)| length(item) > 0);
        next.next().map(|(_, time)| *time)
    }

    /// The next input is there from now on, although the program has not written all that it wrote
    /// before this input came.
    pub fn declare_arrived(&mut self) {
        self.arrived = self.next_arrival().unwrap_or(self.arrived);
    }

    /// Time passes: input that was not there at first arrives. A signal before it still comes.
    pub fn arrive(&mut self) {
        let mut at = 0;
        while let Some(item) = self.items.get(at) {
            match item {
                InputItem::Absent => {
                    self.items.remove(at);
                    self.times.remove(at);
                    self.starts.remove(at);
                }
                InputItem::Interrupted(_) => at += 1,
                _ => return,
            }
        }
    }

    /// The signals that interrupt the next read, if its descriptor is blocking.
    pub fn interruption(&self) -> Option<Interruption> {
        let mut all = self.items.iter().zip(&self.times);
        let next = all.find(|(item, _)| **item != InputItem::Absent)?;
        match next {
            (InputItem::Interrupted(signals), time) => Some(Interruption {
                after: 0,
                signals: signals.clone(),
                time: *time,
            }),
            _ => None,
        }
    }

    /// The signals of the next interruption have come.
    pub fn interrupted(&mut self) {
        while self.items.front() == Some(&InputItem::Absent) {
            self.drop_first();
        }
        if self.items.front().is_some_and(is_interruption) {
            self.drop_first();
        }
    }

    /// The signals before the next input interrupt the read of another thread, so they come behind
    /// that input. With `waits`, this reader's descriptor is blocking. Without any further input,
    /// nothing moves.
    pub fn postpone_interruption(&mut self, waits: bool) {
        if waits {
            self.arrive();
        }
        let signals = self.items.iter().take_while(|item| is_interruption(item));
        let next = signals.count();
        if 0 < next && next < self.items.len() {
            self.items.make_contiguous()[..=next].rotate_right(1);
            self.times.make_contiguous()[..=next].rotate_right(1);
            self.starts.make_contiguous()[..=next].rotate_right(1);
        }
    }

    /// Takes at most `room` bytes. With `waits`, the reader's descriptor is blocking, so recorded
    /// `EAGAIN`s do not matter. With `peek`, nothing is consumed.
    pub fn take(&mut self, room: usize, waits: bool, peek: bool) -> Taken {
        if waits {
            self.arrive();
        }
        if room == 0 && self.is_ready() && !self.needs_no_room(peek) {
            return Taken::End;
        }
        let taken = loop {
            break match self.items.front() {
                // Its signals have not come, and do not come any more.
                Some(InputItem::Interrupted(_)) => {
                    self.drop_first();
                    continue;
                }
                None if self.ended => return Taken::End,
                None => return Taken::Exhausted,
                Some(InputItem::Bytes(bytes)) => {
                    let rest = bytes.get(self.taken..).unwrap_or_default();
                    let some = rest.get(..room.min(rest.len())).unwrap_or_default();
                    Taken::Bytes(some.to_vec(), Vec::new())
                }
                Some(InputItem::Message { bytes, address, .. }) => {
                    let some = bytes.get(..room.min(bytes.len())).unwrap_or_default();
                    Taken::Bytes(some.to_vec(), address.clone())
                }
                Some(InputItem::Absent) => Taken::Absent,
                Some(InputItem::End) => Taken::End,
                Some(InputItem::Failed(errno)) => Taken::Failed(*errno),
            };
        };
        let start = self.starts.front().copied().unwrap_or(self.from);
        self.from = start + self.taken as u64;
        if !peek {
            self.consume(&taken);
        }
        taken
    }

    fn consume(&mut self, taken: &Taken) {
        self.last = self.times.front().copied().unwrap_or(self.last);
        let whole = match (self.items.front(), taken) {
            (Some(InputItem::Bytes(all)), Taken::Bytes(some, _)) => {
                self.taken += some.len();
                self.position += some.len() as u64;
                self.taken >= all.len()
            }
            (Some(InputItem::Message { bytes, .. }), _) => {
                self.position += bytes.len() as u64;
                true
            }
            (Some(InputItem::End), _) => {
                self.ended = true;
                true
            }
            _ => true,
        };
        if whole {
            self.drop_first();
            self.taken = 0;
        }
    }

    /// Replaces the bytes by others, for the question what the program would have done with them.
    /// The recorded end and errors after the last byte stay.
    pub fn replace(&mut self, bytes: Vec<u8>) {
        let last = self.items.iter().rposition(|item| length(item) > 0);
        let rest = self.items.split_off(last.map_or(0, |last| last + 1));
        self.items = VecDeque::new();
        if !bytes.is_empty() {
            self.items.push_back(InputItem::Bytes(bytes));
        }
        self.items.extend(rest);
        self.times = self.items.iter().map(|_| 0).collect();
        self.starts = self.times.clone();
        self.taken = 0;
        self.count();
    }

    /// Replaces the bytes that came at accepted times by others, which come with the first of them.
    /// Nothing has been taken yet.
    pub fn replace_at(&mut self, bytes: Vec<u8>, accepts: impl Fn(u64) -> bool) {
        let mut other = Some(bytes);
        let times = self.times.drain(..).zip(self.starts.drain(..));
        let all: Vec<_> = self.items.drain(..).zip(times).collect();
        for (mut item, (time, start)) in all {
            if length(&item) > 0 && accepts(time) {
                let Some(new) = other.take().filter(|new| !new.is_empty()) else {
                    continue;
                };
                match &mut item {
                    InputItem::Bytes(own) => *own = new,
                    InputItem::Message { bytes, whole, .. } => {
                        *whole = new.len();
                        *bytes = new;
                    }
                    _ => continue,
                }
            }
            self.items.push_back(item);
            self.times.push_back(time);
            self.starts.push_back(start);
        }
        self.count();
    }
}

fn is_interruption(item: &InputItem) -> bool {
    matches!(item, InputItem::Interrupted(_))
}

/// Bytes of a read.
pub(crate) fn length(item: &InputItem) -> usize {
    match item {
        InputItem::Bytes(bytes) | InputItem::Message { bytes, .. } => bytes.len(),
        _ => 0,
    }
}
