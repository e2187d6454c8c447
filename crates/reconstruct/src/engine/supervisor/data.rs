//! Calls that move bytes.

use super::{MOST_SHOWN, Response, Supervisor};
use crate::engine::caller::{Buffer, NotifiedCall, room};
use crate::engine::filter::PLACE;
use crate::engine::standin::{Ends, waits};
use crate::input::Taken;
use crate::output::OutputItem;
use crate::resource::ResourceId;
use crate::sighting::Direction;
use backstory_sys as sys;
use libc::*;
use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

/// Most bytes that one `sendfile` moves.
const MOST_AT_ONCE: usize = 1 << 24;

/// A `struct msghdr` in the caller's memory.
pub(super) struct Message {
    at: u64,
    name: u64,
    buffers: Vec<Buffer>,
}

/// Size of a `struct mmsghdr`.
const MMSGHDR: u64 = 64;

impl Message {
    fn read(call: &NotifiedCall, at: u64) -> io::Result<Message> {
        Ok(Message {
            at,
            name: call.word(at)?,
            buffers: call.buffers(call.word(at + 16)?, call.word(at + 24)?)?,
        })
    }

    /// Writes what the kernel writes beside the bytes. `is_short`: the message has more bytes.
    fn finish(
        &self,
        call: &NotifiedCall,
        address: &[u8],
        control: &[u8],
        is_short: bool,
    ) -> io::Result<()> {
        if self.name != 0 {
            let room = call.int_at(self.at + 8)?.max(0) as usize;
            call.put(self.name, &address[..address.len().min(room)])?;
        }
        call.put(self.at + 8, &(address.len() as u32).to_le_bytes())?;
        let room = match call.word(self.at + 32)? {
            0 => 0,
            _ => usize::try_from(call.word(self.at + 40)?).unwrap_or(0),
        };
        // The end of the last message may be padding.
        let fits = control.len() <= room.saturating_add(7) / 8 * 8;
        let control = if fits {
            &control[..control.len().min(room)]
        } else {
            &[]
        };
        call.put(call.word(self.at + 32)?, control)?;
        call.put(self.at + 40, &(control.len() as u64).to_le_bytes())?;
        let cut = if fits { 0 } else { MSG_CTRUNC };
        let short = if is_short { MSG_TRUNC } else { 0 };
        call.put(self.at + 48, &(cut | short).to_le_bytes())
    }
}

impl Supervisor {
    /// The resources behind the descriptor in the first argument, if it is a stand-in.
    pub(super) fn ends(&self, call: &NotifiedCall) -> Option<Ends> {
        self.stand_ins.of(call.tid, call.int(0))
    }

    /// The buffers of a call that reads or writes, and the message that they belong to.
    pub(super) fn buffers(
        &self,
        call: &NotifiedCall,
    ) -> io::Result<(Vec<Buffer>, Option<Message>)> {
        Ok(match call.number {
            SYS_readv | SYS_writev | SYS_preadv | SYS_pwritev | SYS_preadv2 | SYS_pwritev2 => {
                (call.buffers(call.args[1], call.args[2])?, None)
            }
            SYS_recvmsg | SYS_sendmsg | SYS_recvmmsg | SYS_sendmmsg => {
                let message = Message::read(call, call.args[1])?;
                (message.buffers.clone(), Some(message))
            }
            _ => (vec![(call.args[1], call.length(2))], None),
        })
    }

    pub(super) fn read(&mut self, call: &NotifiedCall, index: usize) -> io::Result<Response> {
        let Some(Ends { read: id, .. }) = self.ends(call) else {
            self.sees_native(call, index, Direction::Received);
            return Ok(Response::Continue);
        };
        self.start_may_end(id);
        if let Some(part) = &mut self.part {
            part.touches(id);
        }
        let (buffers, message) = self.buffers(call)?;
        let flags = match call.number {
            SYS_recvfrom | SYS_recvmmsg => call.int(3),
            SYS_recvmsg => call.int(2),
            _ => 0,
        };
        let blocks = flags & MSG_DONTWAIT == 0 && waits(call.tid, call.int(0));
        let peek = flags & MSG_PEEK != 0;
        if blocks
            && !peek
            && let Some(interruption) = self.read_interruption(call, index, id)
        {
            if self.awaits_signals(call, index, id, &interruption) {
                return Ok(Response::Park);
            }
            self.matchers[index].interrupted_read(id, &interruption);
            return Ok(Response::Errno(EINTR));
        }
        let is_ahead = self.matchers[index].is_ahead(id) && self.holds_back(call, false);
        if is_ahead || self.is_behind(index, id) {
            return Ok(match blocks {
                true => Response::Park,
                false => Response::Errno(EAGAIN),
            });
        }
        if self.awaits_bytes(call, index, id, blocks)
            || self.awaits_own_bytes(call, index, id, blocks)
        {
            // A read without waiting has bytes in the record, so it waits for these, too.
            return Ok(Response::Park);
        }
        let next = self.matchers[index].streams(id).input.next_whole();
        if blocks && let Some(parked) = self.awaits_turn(call, index, next) {
            return Ok(parked);
        }
        if !peek && next.is_some_and(|read| self.child_ends_in_read(call, index, read)) {
            return Ok(Response::Park);
        }
        self.leaves_interruption(call, index, id, blocks);
        let whole = self.matchers[index].streams(id).input.next_message();
        let taken = self.matchers[index].read(id, room(&buffers), blocks, peek);
        let from = self.matchers[index].streams(id).input.last_start();
        self.places.moved(call, Direction::Received, id, from);
        let (mut bytes, address) = match taken {
            Taken::Bytes(bytes, address) => (bytes, address),
            Taken::Absent => return Ok(Response::Errno(EAGAIN)),
            Taken::End => (Vec::new(), Vec::new()),
            Taken::Failed(errno) => return Ok(Response::Errno(errno)),
            Taken::Exhausted if !blocks => return Ok(Response::Errno(EAGAIN)),
            // A file never waits.
            Taken::Exhausted if self.resources[id].is_opened_file() => (Vec::new(), Vec::new()),
            Taken::Exhausted => {
                let label = self.resources[id].label();
                return Ok(self.beyond_the_record(call, index, label));
            }
        };
        self.reads_from_itself(id, from, &mut bytes, peek);
        call.scatter(&buffers, &bytes)?;
        if !peek {
            self.sees(call.int(0), index, id, Direction::Received, &bytes);
        }
        // The program may ask for the length of the message, whatever the buffers take.
        let is_short = whole.is_some_and(|whole| whole > bytes.len());
        let length = match whole {
            Some(whole) if is_short && flags & MSG_TRUNC != 0 => whole,
            _ => bytes.len(),
        };
        match (&message, call.number) {
            (Some(message), number) => {
                let control = self.control_messages(call, index, id, flags)?;
                message.finish(call, &address, &control, is_short)?;
                if number == SYS_recvmmsg {
                    call.put(message.at + 56, &(length as u32).to_le_bytes())?;
                    return Ok(Response::Value(1));
                }
            }
            (None, SYS_recvfrom) => self.put_address(call, call.args[4], call.args[5], &address)?,
            _ => {}
        }
        Ok(Response::Value(length as i64))
    }

    /// Writes a socket address and its length, as the kernel does.
    pub(super) fn put_address(
        &self,
        call: &NotifiedCall,
        at: u64,
        length_at: u64,
        address: &[u8],
    ) -> io::Result<()> {
        if at == 0 || length_at == 0 {
            return Ok(());
        }
        let room = call.int_at(length_at)?.max(0) as usize;
        call.put(at, &address[..address.len().min(room)])?;
        call.put(length_at, &(address.len() as u32).to_le_bytes())
    }

    pub(super) fn write(&mut self, call: &NotifiedCall, index: usize) -> io::Result<Response> {
        let Some(Ends { write: id, .. }) = self.ends(call) else {
            self.sees_native(call, index, Direction::Sent);
            self.compare_written(call, index)?;
            self.note_unheard(call, index);
            return Ok(Response::Continue);
        };
        if self.is_tools_pipe(call, index, id) {
            return Ok(Response::Continue);
        }
        if call.number == SYS_sendmmsg {
            return self.write_messages(call, index, id);
        }
        let (buffers, _) = self.buffers(call)?;
        let interruption = self.write_interruption(call, index, id, room(&buffers));
        if let Some(interruption) = &interruption
            && self.awaits_signals(call, index, id, interruption)
        {
            return Ok(Response::Park);
        }
        let mut bytes = call.gather(&buffers)?;
        let expected = &self.matchers[index].streams(id).output;
        let next = expected.next_time();
        if !expected.fits(&bytes)
            && let Some(parked) = self.awaits_turn(call, index, next)
        {
            return Ok(parked);
        }
        if let Some(interruption) = interruption {
            bytes.truncate(usize::try_from(interruption.after).unwrap_or(usize::MAX));
            let response = match bytes.is_empty() {
                true => Response::Errno(EINTR),
                false => self.leave(call, index, id, &bytes),
            };
            self.matchers[index].interrupted(id, &interruption);
            return self.passes_descriptors(call, id, response);
        }
        bytes.truncate(self.leaving(call, index, id, bytes.len()));
        let response = self.leave(call, index, id, &bytes);
        self.passes_descriptors(call, id, response)
    }

    /// The same response, after the descriptors of a message have left with its bytes.
    fn passes_descriptors(
        &mut self,
        call: &NotifiedCall,
        id: ResourceId,
        response: Response,
    ) -> io::Result<Response> {
        if call.number == SYS_sendmsg && matches!(response, Response::Value(_)) {
            self.note_passed(call, id, call.args[1])?;
        }
        Ok(response)
    }

    /// How many bytes of a write leave. A write ends where the recorded one was short. One that
    /// does not wait also ends where the resource was full in the record.
    fn leaving(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        id: ResourceId,
        count: usize,
    ) -> usize {
        let waits = waits_for_room(call);
        let output = &self.matchers[index].streams(id).output;
        let room = usize::try_from(output.until_full(count as u64, waits)).unwrap_or(count);
        match room >= count || self.takes_all_or_none(id, count) {
            true => count,
            false => room,
        }
    }

    /// True if a write of so many bytes is never cut: the kernel cuts no message, and no short
    /// write to a pipe.
    pub(super) fn takes_all_or_none(&self, id: ResourceId, count: usize) -> bool {
        let resource = &self.resources[id];
        resource.keeps_messages() || resource.kind == S_IFIFO && count <= PIPE_BUF
    }

    /// `sendmmsg` ends as the kernel's does: before a message that fails or that a signal
    /// interrupts, and behind one of which only a part leaves. It also ends behind the last message
    /// that the recorded call sent.
    fn write_messages(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        id: ResourceId,
    ) -> io::Result<Response> {
        let count = call.args[2].min(1024);
        for number in 0..count {
            // The error is that of the next call.
            if number > 0 && self.matchers[index].streams(id).output.is_at_failure() {
                return Ok(Response::Value(number as i64));
            }
            let at = call.args[1] + number * MMSGHDR;
            let message = Message::read(call, at)?;
            let mut bytes = call.gather(&message.buffers)?;
            let whole = bytes.len();
            let interruption = self.write_interruption(call, index, id, whole);
            if let Some(interruption) = interruption.filter(|one| one.after == 0) {
                // The interruption is that of the next call.
                if number > 0 {
                    return Ok(Response::Value(number as i64));
                }
                if self.awaits_signals(call, index, id, &interruption) {
                    return Ok(Response::Park);
                }
                self.matchers[index].interrupted(id, &interruption);
                return Ok(Response::Errno(EINTR));
            }
            bytes.truncate(self.leaving(call, index, id, whole));
            let output = &self.matchers[index].streams(id).output;
            let is_last = output.ends_group(bytes.len() as u64);
            call.put(at + 56, &(bytes.len() as u32).to_le_bytes())?;
            if let failed @ Response::Errno(_) = self.leave(call, index, id, &bytes) {
                return Ok(match number {
                    0 => failed,
                    _ => Response::Value(number as i64),
                });
            }
            self.note_passed(call, id, at)?;
            if is_last || bytes.len() < whole {
                return Ok(Response::Value(number as i64 + 1));
            }
        }
        Ok(Response::Value(count as i64))
    }

    /// Compares bytes that leave.
    fn leave(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        id: ResourceId,
        bytes: &[u8],
    ) -> Response {
        let fd = match call.number {
            SYS_splice | SYS_copy_file_range => call.int(2),
            _ => call.int(0),
        };
        self.sees(fd, index, id, Direction::Sent, bytes);
        let next = self.matchers[index].streams(id).output.next_time();
        self.passes(call, index, next);
        let to = self.matchers[index].streams(id).output.next_start();
        self.places.moved(call, Direction::Sent, id, to);
        if self.is_killed_here(index, id) {
            return self.kill_as_recorded(call, index, EPIPE);
        }
        let recorded = self.writes_to_itself(index, id, to, bytes);
        let compared = recorded.as_deref().unwrap_or(bytes);
        let resource = &self.resources[id];
        if let Some(errno) = self.matchers[index].write((id, resource), compared, &self.rules) {
            let quiet = matches!(call.number, SYS_sendto | SYS_sendmsg | SYS_sendmmsg)
                && call.int(if call.number == SYS_sendmsg { 2 } else { 3 }) & MSG_NOSIGNAL != 0;
            if errno == EPIPE
                && !quiet
                && let Some(group) = self.groups.get(&call.tid)
            {
                let _ = sys::kill(*group as sys::Pid, SIGPIPE);
            }
            return Response::Errno(errno);
        }
        self.matchers[index].complains(id, fd, bytes);
        if self.shows == Some(id) {
            let shown = &mut self.result.output;
            let room = MOST_SHOWN.saturating_sub(shown.len());
            shown.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
        Response::Value(bytes.len() as i64)
    }

    /// Bytes that move in the kernel from one descriptor to another.
    pub(super) fn transfer(&mut self, call: &NotifiedCall, index: usize) -> io::Result<Response> {
        let (target, source) = match call.number {
            SYS_sendfile => (call.int(0), call.int(1)),
            _ => (call.int(2), call.int(0)),
        };
        let to = self.stand_ins.of(call.tid, target);
        let from = self.stand_ins.of(call.tid, source);
        if to.is_none() && from.is_none() {
            return Ok(Response::Continue);
        }
        let Some(to) = to.filter(|_| call.number == SYS_sendfile || from.is_none()) else {
            // Programs then read and write.
            return Ok(Response::Errno(EINVAL));
        };
        let (position, length) = match call.number {
            SYS_sendfile => (call.args[2], call.length(3)),
            _ => (call.args[1], call.length(4)),
        };
        // Where the recorded call moved less, so does this one.
        let expected = &self.matchers[index].streams(to.write).output;
        let most = match expected.next() {
            Some(OutputItem::Unknown(length)) => usize::try_from(*length).unwrap_or(usize::MAX),
            _ => MOST_AT_ONCE,
        };
        let most = most.min(length).min(MOST_AT_ONCE);
        let bytes = match from {
            Some(from) => {
                let taken = self.matchers[index].read(from.read, most, true, false);
                let start = self.matchers[index].streams(from.read).input.last_start();
                self.places
                    .moved(call, Direction::Received, from.read, start);
                match taken {
                    Taken::Bytes(bytes, _) => bytes,
                    _ => Vec::new(),
                }
            }
            None => match self.source_bytes(call, source, position, most)? {
                Some(bytes) => bytes,
                None => return Ok(Response::Park),
            },
        };
        Ok(self.leave(call, index, to.write, &bytes))
    }

    /// Bytes of a file at the position that a call names, or at its own one, which moves on. A pipe
    /// has none. `None`: it is empty, and the caller waits for bytes or for its end.
    fn source_bytes(
        &self,
        call: &NotifiedCall,
        fd: i32,
        named: u64,
        most: usize,
    ) -> io::Result<Option<Vec<u8>>> {
        let file: File = self.copy_of(call, fd)?.into();
        let mut bytes = vec![0; most];
        if FileType::from_raw_mode(fstat(&file)?.st_mode) == FileType::Fifo {
            if sys::poll(file.as_fd(), POLLIN, 0) & (POLLIN | POLLHUP) == 0 {
                let at_once = OFlags::NONBLOCK | OFlags::WRONLY;
                let waits = !fcntl_getfl(&file)?.intersects(at_once)
                    && (call.number != SYS_splice || call.int(5) & SPLICE_F_NONBLOCK as i32 == 0);
                return match waits {
                    true => Ok(None),
                    false => Err(io::Error::from_raw_os_error(EAGAIN)),
                };
            }
            let count = rustix::io::read(&file, &mut bytes[..])?;
            bytes.truncate(count);
            return Ok(Some(bytes));
        }
        let position = match named {
            0 => rustix::fs::tell(&file)?,
            at => call.word(at)?,
        };
        let count = file.read_at(&mut bytes, position)?;
        bytes.truncate(count);
        let after = position + count as u64;
        match named {
            0 => drop(rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(after))?),
            at => call.put(at, &after.to_le_bytes())?,
        }
        Ok(Some(bytes))
    }

    /// A process without a deep record must not wait for a stand-in, which no process serves.
    pub(super) fn shallow_data(&mut self, call: &NotifiedCall) -> io::Result<Response> {
        let reads = match call.number {
            PLACE if self.ends(call).is_some() => return Ok(Response::Errno(EBADF)),
            PLACE => return self.place(call),
            SYS_read | SYS_readv | SYS_pread64 | SYS_preadv | SYS_preadv2 | SYS_recvfrom
            | SYS_recvmsg => true,
            SYS_write | SYS_writev | SYS_pwrite64 | SYS_pwritev | SYS_pwritev2 | SYS_sendto
            | SYS_sendmsg => false,
            _ => return Ok(Response::Continue),
        };
        if self.ends(call).is_none() {
            return Ok(Response::Continue);
        }
        if reads {
            return Ok(Response::Value(0));
        }
        let group = self.groups.get(&call.tid);
        let process = group.and_then(|group| self.live.get_mut(group));
        if process.is_some_and(|process| std::mem::take(&mut process.is_added)) {
            // Its output is not compared.
            self.result.shallow += 1;
        }
        let (buffers, _) = self.buffers(call)?;
        Ok(Response::Value(room(&buffers) as i64))
    }
}

/// True if a write waits while its resource is full.
pub(super) fn waits_for_room(call: &NotifiedCall) -> bool {
    let flags = match call.number {
        SYS_sendto | SYS_sendmmsg => call.int(3),
        SYS_sendmsg => call.int(2),
        _ => 0,
    };
    flags & MSG_DONTWAIT == 0 && waits(call.tid, call.int(0))
}
