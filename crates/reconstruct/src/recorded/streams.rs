//! Arranges the bytes that calls moved, by resource.

use super::{Arranging, ended};
use crate::input::{self, InputItem};
use crate::output::OutputItem;
use crate::resource::ResourceId;
use backstory_abi::deep;
use backstory_deep::{Call, Content};
use libc::c_long;

impl Arranging {
    pub(super) fn read(&mut self, call: &Call) {
        self.note_mover(call);
        let id = self.table.get(&call.fd).copied();
        let messages = id.is_some_and(|id| self.run.resources[id].keeps_messages());
        // A call for messages takes one, also without room for its bytes.
        if call.a == 0 && call.result == 0 && !(messages && is_for_messages(call)) {
            return;
        }
        let handled = self.handled_during(call);
        let peeks = !matches!(
            c_long::from(call.number),
            libc::SYS_read | libc::SYS_readv | libc::SYS_pread64 | libc::SYS_preadv
        ) && call.b & libc::MSG_PEEK as u64 != 0;
        let id = self.behind(call.fd, 0);
        let whole = match messages && call.result >= 0 {
            true => self.length_of_message(id, call, peeks),
            false => 0,
        };
        let resource = &mut self.run.resources[id];
        let item = match (call.result, call.content_in()) {
            (result, _) if result == -i64::from(libc::EAGAIN) => InputItem::Absent,
            (result, _) if result == -i64::from(libc::EINTR) && !handled.is_empty() => {
                InputItem::Interrupted(handled)
            }
            (result, _) if result < 0 => InputItem::Failed(-result as i32),
            (
                _,
                Some(Content::File {
                    descriptor,
                    position,
                    length,
                    xxh64,
                }),
            ) => {
                resource.is_reference = true;
                self.start(id, call, length);
                let file = self.numbers.get(&descriptor).copied().unwrap_or(id);
                if self.in_outline {
                    return;
                }
                let references = self.process.references.entry(file).or_default();
                references.insert((position, length, xxh64));
                return;
            }
            (_, Some(Content::Bytes(bytes))) if messages => InputItem::Message {
                bytes: bytes.to_vec(),
                address: call.address().unwrap_or_default().to_vec(),
                whole,
            },
            (0.., None) if messages && call.a == 0 => InputItem::Message {
                bytes: Vec::new(),
                address: call.address().unwrap_or_default().to_vec(),
                whole,
            },
            (1.., Some(Content::Bytes(bytes))) => InputItem::Bytes(bytes.to_vec()),
            _ => InputItem::End,
        };
        let bytes = match &item {
            InputItem::Bytes(bytes) | InputItem::Message { bytes, .. } => Some(&bytes[..]),
            _ => None,
        };
        resource.has_bytes |= bytes.is_some();
        if let Some(bytes) = bytes.filter(|_| !peeks && !self.sought.is_empty()) {
            let position = self.process.received(id);
            self.seek(Some(id), bytes, (ended(call), position));
        }
        if let Some(bytes) = call.section(deep::CONTROL, 1).filter(|_| !peeks) {
            self.controlled(id, call, bytes);
        }
        if !peeks {
            if call.result >= 0 && !call.in_handler {
                self.last_reads.insert(call.tid, (call.time, ended(call)));
            }
            let start = self.start(id, call, u64::try_from(call.result).unwrap_or(0));
            self.note_work(id, call);
            if self.omits(id) {
                self.omit_read(id, call, &item);
                return;
            }
            self.keeps_bytes(input::length(&item));
            let input = &mut self.streams(id).input;
            match start {
                Some(start) => input.push_from(item, ended(call), start),
                None => input.push_at(item, ended(call)),
            }
        }
    }

    /// The length of the message that a call looks at or takes, as far as it is known. The call
    /// returned it, or a look before. MSG_TRUNC in the message says that there are more bytes.
    fn length_of_message(&mut self, id: ResourceId, call: &Call, peeks: bool) -> usize {
        let taken = match call.content_in() {
            Some(Content::Bytes(bytes)) => bytes.len(),
            _ => 0,
        };
        let flags = call.section(deep::MESSAGE, 1).and_then(<[u8]>::first_chunk);
        let flags = flags.map_or(0, |bytes| i32::from_le_bytes(*bytes));
        let cut = usize::from(flags & libc::MSG_TRUNC != 0);
        let returned = usize::try_from(call.result).unwrap_or(0);
        let known = self.looked_at.remove(&id).unwrap_or(0);
        let whole = known.max(returned).max(taken + cut);
        if peeks {
            self.looked_at.insert(id, whole);
        }
        whole
    }

    /// The position in a file at which a call moved so many bytes. `None`: it is no file.
    fn start(&mut self, id: ResourceId, call: &Call, length: u64) -> Option<u64> {
        if self.run.resources[id].kind != libc::S_IFREG {
            return None;
        }
        let own = match c_long::from(call.number) {
            libc::SYS_pread64 | libc::SYS_pwrite64 | libc::SYS_preadv | libc::SYS_pwritev => true,
            libc::SYS_preadv2 | libc::SYS_pwritev2 => call.b != u64::MAX,
            _ => false,
        };
        if own {
            return Some(call.b);
        }
        let next = self.offsets.entry(id).or_default();
        let start = match (c_long::from(call.number), call.b) {
            // The record has the position.
            (libc::SYS_read, 1..) => call.b - 1,
            _ => *next,
        };
        *next = start.saturating_add(length);
        Some(start)
    }

    pub(super) fn write(&mut self, call: &Call) {
        self.note_mover(call);
        let id = self.behind(call.fd, 0);
        self.run.resources[id].is_written = true;
        let is_message = call.result >= 0 && c_long::from(call.number) == libc::SYS_sendmsg;
        // The record has the messages of `sendmmsg`, which all have the time of its beginning.
        let group = is_message.then_some((id, call.tid, call.time));
        let goes_on = is_message && self.message_group == group;
        self.message_group = group;
        let item = match (call.result, call.content_out()) {
            (result, _) if result < 0 => OutputItem::Failed(-result as i32),
            (_, Some(Content::Bytes(bytes))) => OutputItem::Bytes(bytes.to_vec()),
            (_, Some(Content::Digest { length, xxh64 })) => OutputItem::Digest(length, xxh64),
            (result, _) => OutputItem::Unknown(result as u64),
        };
        let start = self.start(id, call, u64::try_from(call.result).unwrap_or(0));
        let signals = self.interrupting(call);
        self.note_work(id, call);
        if self.omits(id) {
            self.omit_write(id, call, &item);
            return;
        }
        if let OutputItem::Bytes(bytes) = &item {
            self.keeps_bytes(bytes.len());
        }
        let output = &mut self.streams(id).output;
        match start {
            Some(start) => output.push_from(item, ended(call), start),
            None if signals.is_empty() => {
                if goes_on {
                    output.continue_group();
                }
                output.push_at(item, ended(call));
                if took_part(call) {
                    output.push_at(OutputItem::Short, ended(call));
                }
                if is_message {
                    output.push_at(OutputItem::GroupEnd, ended(call));
                }
            }
            None => {
                if call.result > 0 {
                    output.push_at(item, ended(call));
                }
                output.push_at(OutputItem::Interrupted(signals), ended(call));
            }
        }
    }

    /// The signals that interrupted a write: it took a part of its bytes or none, and their
    /// handlers ran during it.
    fn interrupting(&mut self, call: &Call) -> Vec<i32> {
        let handled = self.handled_during(call);
        match took_part(call) || call.result == -i64::from(libc::EINTR) {
            true => handled,
            false => Vec::new(),
        }
    }

    /// The signals whose handlers ran during a read or write.
    fn handled_during(&mut self, call: &Call) -> Vec<i32> {
        if call.in_handler {
            return Vec::new();
        }
        let handled = self.handled.remove(&call.tid).unwrap_or_default();
        let during = call.time..=ended(call);
        let handled = handled.into_iter();
        let handled = handled.filter(|(_, began)| during.contains(began));
        handled.map(|(signal, _)| signal).collect()
    }

    /// `tee` or `vmsplice`: the pipes that it uses.
    pub(super) fn spliced(&mut self, call: &Call) {
        let ends = match c_long::from(call.number) {
            libc::SYS_tee => [call.fd, call.a as i32],
            _ => [call.fd, -1],
        };
        for id in ends.iter().filter_map(|fd| self.table.get(fd)) {
            self.run.resources[*id].is_spliced = true;
        }
    }

    /// Bytes that moved in the kernel: their number is known.
    pub(super) fn moved(&mut self, call: &Call) {
        for fd in [call.fd, call.a as i32] {
            if let Some(id) = self.table.get(&fd) {
                self.run.resources[*id].is_spliced = true;
            }
        }
        if let Ok(length) = u64::try_from(call.result) {
            let target = self.behind(call.a as i32, 0);
            let resource = &mut self.run.resources[target];
            resource.is_written |= !resource.is_own_pipe();
            let item = OutputItem::Unknown(length);
            match self.omits(target) {
                true => self.omit_write(target, call, &item),
                false => self.streams(target).output.push_at(item, ended(call)),
            }
        }
    }

    /// Remembers which thread moved bytes, or made or accepted something.
    pub(super) fn note_mover(&mut self, call: &Call) {
        let id = self.table.get(&call.fd).copied();
        if !self.in_outline && !id.is_some_and(|id| self.omits(id)) {
            self.process.movers.insert(ended(call), call.tid);
        }
    }

    /// Remembers when the process first moved bytes on a connection. If a request `begins`, also
    /// which connection that was: requests name it by time and descriptor.
    pub(super) fn note_move(&mut self, call: &Call, begins: bool) {
        let fd = match c_long::from(call.number) {
            libc::SYS_sendfile => call.a as i32,
            _ => call.fd,
        };
        if call.result > 0
            && let Some(id) = self.table.get(&fd)
            && self.run.resources[*id].is_connection()
        {
            let first = self.process.first_contact.get_or_insert(call.time);
            *first = call.time.min(*first);
            if begins {
                self.process.moves.insert((call.time, fd), *id);
            }
        }
    }
}

/// True for a call that a socket gives a message.
fn is_for_messages(call: &Call) -> bool {
    matches!(
        c_long::from(call.number),
        libc::SYS_recvfrom | libc::SYS_recvmsg | libc::SYS_recvmmsg
    )
}

/// True for a write that took a part of its bytes.
fn took_part(call: &Call) -> bool {
    u64::try_from(call.result).is_ok_and(|taken| 0 < taken && taken < call.a)
}
