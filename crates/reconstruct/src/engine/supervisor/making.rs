//! Calls that make a descriptor.

use super::native::{is_missing, is_only_recorded};
use super::{Response, Supervisor};
use crate::divergence::DivergenceKind;
use crate::engine::caller::NotifiedCall;
use crate::engine::standin::{Ends, set_waits};
use crate::matcher::is_of_libc;
use crate::process::Made;
use crate::resource::{ResourceId, address_words, is_address_list, is_kernels, is_shared_memory};
use backstory_sys as sys;
use libc::*;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

impl Supervisor {
    /// Adds a descriptor to the caller, whose call returns it.
    fn add(&self, call: &NotifiedCall, own: &OwnedFd, flags: i32) -> io::Result<Response> {
        // The flags of `open`, `socket`, `accept4` and `pipe2` have the same values.
        if flags & O_NONBLOCK != 0 {
            set_waits(own, false)?;
        }
        let closes = flags & O_CLOEXEC != 0;
        sys::add_descriptor(
            self.listener.as_fd(),
            call.id,
            own.as_fd(),
            None,
            closes,
            true,
        )?;
        Ok(Response::Sent)
    }

    fn stand_in(
        &mut self,
        call: &NotifiedCall,
        id: ResourceId,
        flags: i32,
    ) -> io::Result<Response> {
        let own = self.stand_ins.make(id, &self.resources[id])?;
        self.add(call, &own, flags)
    }

    pub(super) fn open(&mut self, call: &NotifiedCall, index: usize) -> io::Result<Response> {
        if self.is_opened_to_load(call) {
            return Ok(Response::Continue);
        }
        let (at, flags) = match call.number {
            SYS_open => (call.args[0], call.int(1)),
            SYS_creat => (call.args[0], O_WRONLY | O_CREAT | O_TRUNC),
            SYS_openat2 => (call.args[1], call.int_at(call.args[2])?),
            _ => (call.args[1], call.int(2)),
        };
        let path = call.string(at)?;
        let recorded = self.recorded_name(call, index, at, &path);
        let path = recorded.unwrap_or(path);
        let directory = match call.number {
            SYS_open | SYS_creat => AT_FDCWD,
            _ => call.int(0),
        };
        let made = self.matchers[index].open(&path);
        if made.is_none() && flags & O_CREAT == 0 && self.has_no_further_call(call, index) {
            let native = self.native_status(call, directory, &path, true);
            if native.is_err() && self.looks_too_early(call, index) {
                return Ok(Response::Park);
            }
        }
        if let Some(Made::Resource(id)) = made
            && flags & O_DIRECTORY != 0
        {
            // The record knows its kind only if it was read as a file.
            self.resources[id].kind = S_IFDIR;
        }
        if let Some(Made::Resource(id)) = made {
            self.check_content(call, index, id, &path);
        }
        match made {
            Some(Made::Resource(_)) if is_address_list(&path) => Ok(Response::Continue),
            Some(Made::Resource(id)) if self.is_unread(index, id) && exists(&path) => {
                Ok(Response::Continue)
            }
            // It was there before the run, and is no file of the root.
            Some(Made::Resource(id))
                if is_shared_memory(&path) && flags & O_CREAT == 0 && !exists(&path) =>
            {
                self.stand_in(call, id, flags)
            }
            Some(Made::Resource(id)) if !self.resources[id].is_native() => {
                self.stand_in(call, id, flags)
            }
            Some(Made::Failed(errno)) if is_kernels(&path) => Ok(Response::Errno(errno)),
            Some(Made::Failed(errno))
                if is_only_recorded(errno, || {
                    let follows = flags & O_NOFOLLOW == 0;
                    let native = self.native_status(call, directory, &path, follows);
                    native.is_err_and(|error| is_missing(&error))
                }) =>
            {
                Ok(Response::Errno(errno))
            }
            _ => Ok(Response::Continue),
        }
    }

    /// True for a file of the kernel without recorded reads and writes, of children neither. libc
    /// opens some, as for the number of processors. It reads them by calls that no recorder sees.
    fn is_unread(&self, index: usize, id: ResourceId) -> bool {
        let own = self.matchers[index].rest.streams.get(&id);
        let users = self.users.get(&id).copied().unwrap_or(0);
        is_kernels(&self.resources[id].name)
            && users == usize::from(own.is_some())
            && own.is_none_or(|s| s.input.is_exhausted() && s.output.remaining() == 0)
    }

    pub(super) fn socket(&mut self, call: &NotifiedCall, index: usize) -> io::Result<Response> {
        let flags = call.int(1) & (SOCK_CLOEXEC | SOCK_NONBLOCK);
        let key = (call.int(0), call.int(1) & !flags);
        let thread = self.recorded_thread(call.tid, index);
        match self.matchers[index].socket(key, thread) {
            Some(Made::Resource(id)) => self.stand_in(call, id, flags),
            Some(Made::Failed(errno)) => Ok(Response::Errno(errno)),
            // The namespace has no network, so the program gets no connection by it.
            None => Ok(Response::Continue),
        }
    }

    pub(super) fn accept(&mut self, call: &NotifiedCall, index: usize) -> io::Result<Response> {
        let Some(Ends { read: listener, .. }) = self.ends(call) else {
            return Ok(self.accept_unrecorded(call, index));
        };
        let flags = if call.number == SYS_accept4 {
            call.int(3)
        } else {
            0
        };
        if self.is_behind(index, listener) {
            return Ok(match crate::engine::standin::waits(call.tid, call.int(0)) {
                true => Response::Park,
                false => Response::Errno(EAGAIN),
            });
        }
        let next = self.matchers[index].streams(listener).accepted.front();
        let next = next.map(|accepted| accepted.time);
        if crate::engine::standin::waits(call.tid, call.int(0))
            && let Some(parked) = self.awaits_turn(call, index, next)
        {
            return Ok(parked);
        }
        if self.attempts.is_some()
            && self.matchers[index].streams(listener).has_connection()
            && self.takes_snapshot(call, index, Some(listener))
        {
            return Ok(Response::Sent);
        }
        let matcher = &mut self.matchers[index];
        let accepted = matcher.streams(listener).accepted.pop_front();
        let time = accepted.as_ref().map_or(0, |accepted| accepted.time);
        let (made, address) = match accepted {
            Some(accepted) => {
                matcher.reached(accepted.time);
                (accepted.made, accepted.address)
            }
            None if !crate::engine::standin::waits(call.tid, call.int(0)) => {
                return Ok(Response::Errno(EAGAIN));
            }
            None => {
                let label = self.resources[listener].label();
                return Ok(match self.beyond_the_record(call, index, label) {
                    Response::Value(_) => Response::Errno(ECONNABORTED),
                    other => other,
                });
            }
        };
        matcher.matched += 1;
        match made {
            Made::Resource(id) => {
                self.end_start();
                if let Some(part) = &mut self.part {
                    part.touches(id);
                    part.accepts(index, time);
                }
                self.put_address(call, call.args[1], call.args[2], &address)?;
                self.stand_in(call, id, flags)
            }
            Made::Failed(errno) => Ok(Response::Errno(errno)),
        }
    }

    pub(super) fn connect(&mut self, call: &NotifiedCall, index: usize) -> io::Result<Response> {
        let Some(Ends { write: id, .. }) = self.ends(call) else {
            return Ok(Response::Continue);
        };
        let address = call.bytes(call.args[1], call.length(2).min(128))?;
        let wanted = address_words(&address);
        if self.is_libcs_socket(call, index, id, wanted.as_deref()) {
            return Ok(Response::Continue);
        }
        let resource = &self.resources[id];
        let matcher = &mut self.matchers[index];
        let queue = &mut matcher.streams(id).connected;
        let recorded = match queue.len() {
            0 => None,
            1 => queue.front().cloned(),
            _ => queue.pop_front(),
        };
        let (result, peer) = recorded.unzip();
        let other =
            wanted.is_some() && matches!(&peer, Some(Some(peer)) if wanted.as_ref() != Some(peer));
        if other || result.is_none() {
            let object = "connect".to_owned();
            let mut divergence = matcher.blank(DivergenceKind::NewRequest, object);
            divergence.recorded = match peer.as_ref().unwrap_or(&resource.peer) {
                Some(peer) => format!("a connection to {peer}"),
                None => "no connection".to_owned(),
            };
            divergence.came = match wanted {
                Some(wanted) => format!("a connection to {wanted}"),
                None => "a connection to another address".to_owned(),
            };
            matcher.diverge(divergence);
            return Ok(Response::Errno(ECONNREFUSED));
        }
        matcher.matched += 1;
        Ok(match result {
            Some(0) => Response::Value(0),
            // The next `connect` on a blocking socket, or of another attempt, has connected.
            Some(error) if error < 0 => Response::Errno(-error as i32),
            _ => Response::Value(0),
        })
    }

    /// True if libc made this socket inside itself, and connects it now. Its call took a recorded
    /// socket, which is the program's again. The kernel refuses the connection: the root has
    /// nothing at that address.
    fn is_libcs_socket(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        id: ResourceId,
        wanted: Option<&str>,
    ) -> bool {
        let matcher = &mut self.matchers[index];
        let next = matcher.streams(id).connected.front();
        let is_peer = |peer: &str| Some(peer) == wanted;
        let is_recorded = next.is_some_and(|(_, peer)| peer.as_deref().is_none_or(is_peer));
        if is_recorded || !wanted.is_some_and(is_of_libc) || !matcher.return_socket(id) {
            return false;
        }
        self.stand_ins.forget(call.tid, call.int(0));
        true
    }

    pub(super) fn pair(&mut self, call: &NotifiedCall, index: usize) -> io::Result<Response> {
        let sockets = call.number == SYS_socketpair;
        if !sockets {
            self.note_pipe(call);
        }
        let number = if sockets { SYS_socketpair } else { SYS_pipe2 } as u16;
        let thread = self.recorded_thread(call.tid, index);
        let Some((one, two)) = self.matchers[index].pair(number, thread) else {
            return Ok(Response::Continue);
        };
        if self.resources[one].is_native() {
            return Ok(Response::Continue);
        }
        let (pair, flags, at) = match sockets {
            true => (
                self.stand_ins.sockets(one, two, call.int(1))?,
                call.int(1),
                call.args[3],
            ),
            false => {
                let ends = Ends {
                    read: one,
                    write: two,
                };
                let flags = if call.number == SYS_pipe2 {
                    call.int(1)
                } else {
                    0
                };
                (self.stand_ins.pipe(ends)?, flags, call.args[0])
            }
        };
        let mut numbers = Vec::new();
        for own in [&pair.0, &pair.1] {
            if flags & O_NONBLOCK != 0 {
                set_waits(own, false)?;
            }
            let closes = flags & O_CLOEXEC != 0;
            let listener = self.listener.as_fd();
            let fd = sys::add_descriptor(listener, call.id, own.as_fd(), None, closes, false)?;
            numbers.extend(fd.to_le_bytes());
        }
        call.put(at, &numbers)?;
        Ok(Response::Value(0))
    }
}

fn exists(path: &[u8]) -> bool {
    std::fs::metadata(OsStr::from_bytes(path)).is_ok()
}
