//! A system call about a ring: set-up, registration, submission.

use super::entry::{EntryEffect, EntryHold, RingEntry};
use super::ring_memory::{RingSetup, RingUnreadable, SQPOLL, SubmittingRing};
use super::rings::TABLE_SIZE;
use super::submission::Submission;
use super::{double_word, word};
use crate::arguments::Arguments;
use crate::call_logger::CallLogger;
use crate::call_records::caller_ids;
use crate::caller::Caller;
use crate::change_preserver::ChangeSource;
use crate::conclusion::Conclusion;
use crate::decode::decode;
use crate::decoded_call::DecodedCall;
use crate::descriptor_list;
use crate::guard_state::GuardState;
use crate::memory::ProcessMemory;
use crate::notification_buffers::Notification;
use crate::pending_effect::{may_read, pending_effect};
use crate::record_writer::{RecordFields, RecordResult};
use crate::response::Response;
use crate::table::{ARCH_X86_64, Abi, CallShape};
use backstory_abi::op;
use backstory_arena::RecordSink;
use backstory_eventlog::reason::undecoded;
use backstory_vocabulary::DurabilityMode;
use std::cell::OnceCell;

/// Files that are looked up when a ring is given them. More files mark the run.
const FILES: u32 = 1024;
/// `IORING_ENTER_REGISTERED_RING`
const ENTER_REGISTERED: u64 = 1 << 4;
/// `IORING_REGISTER_USE_REGISTERED_RING`
const USE_REGISTERED: u32 = 1 << 31;

// `IORING_REGISTER_*`, those that the filter lets notify.
const REGISTER_FILES: u32 = 2;
const REGISTER_FILES_UPDATE: u32 = 6;
const REGISTER_FILES2: u32 = 13;
const REGISTER_RING_FDS: u32 = 20;
const UNREGISTER_RING_FDS: u32 = 21;

/// A call about a ring that waits for its response.
pub(crate) struct RingCall<'a, S> {
    pub(crate) state: &'a GuardState,
    pub(crate) logger: &'a mut CallLogger<S>,
    pub(crate) notification: &'a Notification,
    pub(crate) caller: &'a Caller,
    pub(crate) memory: &'a mut ProcessMemory,
    pub(crate) time: u64,
}

impl<S: RecordSink> RingCall<'_, S> {
    /// Logs what the call does.
    pub(crate) fn handle(mut self, shape: CallShape) -> Response {
        match shape {
            CallShape::RingSetup => self.set_up(),
            CallShape::RingRegister => self.register(),
            _ => return self.submit(),
        }
        Response::Continue
    }

    /// Marks the run: the process does something through a ring that cannot be decoded.
    fn mark(&mut self, what: &'static str) {
        if self.state.rings.first_mark(self.caller.pid, what) {
            self.log_attempt(&DecodedCall::Opaque(what));
        }
    }

    fn log_attempt(&mut self, decoded: &DecodedCall) {
        let (notification, caller) = (self.notification, self.caller);
        self.logger
            .log_attempt(self.state, notification, caller, self.time, decoded);
    }

    fn set_up(&mut self) {
        let [entries, params, ..] = self.notification.args;
        // Where the parameters cannot be read the kernel fails the call.
        let Ok(setup) = RingSetup::read(entries as u32, params, self.memory) else {
            return;
        };
        self.state.rings.add_setup(self.caller.pid, setup);
        if setup.flags & SQPOLL != 0 {
            self.mark(undecoded::RING_POLLED);
        }
        if !setup.known() {
            self.mark(undecoded::RING_FORM);
        }
    }

    fn register(&mut self) {
        let [_, what, address, count, ..] = self.notification.args;
        let (operation, count) = (what as u32 & !USE_REGISTERED, count as u32);
        match operation {
            REGISTER_RING_FDS | UNREGISTER_RING_FDS => {
                self.register_rings(address, count, operation == REGISTER_RING_FDS);
            }
            REGISTER_FILES => self.log_files(address, count),
            _ => {
                // The structures for updates and for files with tags.
                let mut block = [0; 32];
                let size = if operation == REGISTER_FILES_UPDATE {
                    16
                } else {
                    32
                };
                if self.memory.exact(address, &mut block[..size]).is_err() {
                    return;
                }
                match operation {
                    REGISTER_FILES_UPDATE => self.log_files(double_word(&block, 8), count),
                    REGISTER_FILES2 => self.log_files(double_word(&block, 16), word(&block, 0)),
                    _ => self.log_files(double_word(&block, 8), word(&block, 24)),
                }
            }
        }
    }

    /// The thread adds rings to its own table, or removes them.
    fn register_rings(&mut self, address: u64, count: u32, adds: bool) {
        for i in 0..u64::from(count.min(TABLE_SIZE as u32)) {
            let mut update = [0; 16];
            let at = address.wrapping_add(16 * i);
            if self.memory.exact(at, &mut update).is_err() {
                return;
            }
            let (index, ring) = (word(&update, 0), word(&update, 8) as i32);
            let ring = Some(ring).filter(|_| adds);
            self.state.rings.register(self.caller.tid, index, ring);
        }
    }

    /// Logs that the files of these descriptors are opened: a ring holds them even when the
    /// descriptors have been closed.
    fn log_files(&mut self, address: u64, count: u32) {
        if count > FILES {
            self.mark(undecoded::RING_FILES);
        }
        let mut numbers = vec![0; 4 * count.min(FILES) as usize];
        if self.memory.exact(address, &mut numbers).is_err() {
            return;
        }
        for i in (0..numbers.len()).step_by(4) {
            self.log_file(word(&numbers, i) as i32);
        }
    }

    fn log_file(&mut self, number: i32) {
        let name = self.arguments(&[0; 6]).name(number, b"");
        let flags = descriptor_list::flags(self.caller.tid, number).unwrap_or(0);
        // Pipes, sockets and deleted files have no path.
        if number < 0 || name.inside.is_empty() || flags & libc::O_PATH as u32 != 0 {
            return;
        }
        let decoded = DecodedCall::Open {
            name,
            flags: flags as i32 & libc::O_ACCMODE,
            mode: 0,
        };
        let mut conclusion = Conclusion::unknown(&decoded);
        conclusion.fields.result = RecordResult::Predicted(0);
        let at = (self.time, self.notification, self.caller);
        self.logger.log_as(self.state, at, &decoded, &conclusion);
        self.state.count(may_read(&decoded), false);
    }

    fn submit(mut self) -> Response {
        let [ring, count, _, flags, ..] = self.notification.args;
        let (fd, registered) = match flags & ENTER_REGISTERED {
            0 => (Some(ring as i32), false),
            _ => (self.state.rings.registered(self.caller.tid, ring), true),
        };
        let setups = self.state.rings.setups(self.caller.pid);
        let ring = SubmittingRing {
            setups: &setups,
            fd,
            tid: self.caller.tid,
            pid: self.caller.pid,
        };
        let entries = ring.pending(count as u32, self.memory);
        if !self.state.still_waits(self.notification.id) {
            return Response::Continue;
        }
        let entries = match entries {
            Ok(entries) => entries,
            Err(RingUnreadable::NoRing) if !registered => return Response::Continue,
            // A held call waits, whatever its entries are.
            Err(_) => {
                self.mark(undecoded::RING_HIDDEN);
                return Response::Continue;
            }
        };
        self.logger.commits = self.logger.commits && entries.iter().any(|entry| self.waits(entry));
        // An entry may change a file.
        self.time = self.logger.time_of_change(self.state, self.time);
        let tracked = self
            .state
            .tracked(self.caller, self.notification, self.time);
        self.state
            .descriptors
            .before_call(&mut self.logger.out, &tracked);
        let mut submission = Submission::default();
        for entry in &entries {
            self.log_entry(entry, &mut submission);
        }
        match submission.changes.is_empty() {
            true => Response::Continue,
            false => {
                let source = ChangeSource::Guard(submission.changes);
                self.logger
                    .preserve(self.state, self.notification, self.time, source)
            }
        }
    }

    /// True if an entry waits until the log is durable, in a run that wants this.
    fn waits(&self, entry: &RingEntry) -> bool {
        const THROUGH: i32 = libc::O_DSYNC | libc::O_DIRECT;
        match entry.hold() {
            EntryHold::No => false,
            EntryHold::Durable => true,
            EntryHold::Writes(_) if self.state.settings.durability == DurabilityMode::Sync => true,
            EntryHold::Writes(None) => true,
            EntryHold::Writes(Some(fd)) => descriptor_list::flags(self.caller.tid, fd)
                .is_none_or(|flags| flags & THROUGH as u32 != 0),
        }
    }

    fn log_entry(&mut self, entry: &RingEntry, submission: &mut Submission) {
        let waits = std::mem::replace(&mut submission.linked, entry.links());
        let certain = !waits && entry.immediate();
        match entry.effect() {
            EntryEffect::Nothing => {}
            EntryEffect::Opaque(what) => self.mark(what),
            EntryEffect::Files { at, count } => self.log_files(at, count),
            EntryEffect::Descriptor(fields) => self.log_descriptor(fields, certain),
            EntryEffect::Message { at, fields } => {
                if carries_descriptors(at, fields.op, self.memory) {
                    self.mark(undecoded::RING_PASSES);
                }
                if fields.fd >= 0 {
                    self.log_descriptor(fields, certain);
                }
            }
            EntryEffect::Call { nr, args } => self.log_call(nr as u32, args, certain, submission),
        }
    }

    /// Logs an entry as if the submitting thread made the system call itself.
    fn log_call(&mut self, nr: u32, args: [u64; 6], certain: bool, submission: &mut Submission) {
        let notification = Notification {
            nr,
            arch: ARCH_X86_64,
            args,
            ..*self.notification
        };
        let Some(shape) = Abi::X64.row(nr).and_then(|row| row.guard.shape()) else {
            return;
        };
        // Where the arguments cannot be read the entry fails.
        let Ok(decoded) = decode(shape, Abi::X64, &mut self.arguments(&args)) else {
            return;
        };
        let unwatched = matches!(decoded, DecodedCall::Look { .. }) && !self.state.settings.lookups;
        if unwatched || decoded.has_empty_path() {
            return;
        }
        let (state, caller, time) = (self.state, self.caller, self.time);
        let effect = pending_effect(state, &mut self.logger.resolver, caller, &decoded, time);
        submission.changes.extend(effect.change);
        let certain = certain && !submission.touches(&decoded);
        submission.note(&decoded);
        let (reads, before) = (may_read(&decoded), self.logger.deferred.len());
        if certain {
            let decoded = (decoded, effect.prior);
            self.logger
                .log(state, &notification, caller.clone(), time, decoded);
        } else {
            self.logger
                .log_attempt(state, &notification, caller, time, &decoded);
        }
        state.count(reads, self.logger.deferred.len() > before);
    }

    fn log_descriptor(&mut self, fields: RecordFields, certain: bool) {
        let rings = &self.state.rings;
        if fields.op == op::CLOSE {
            rings.closed(self.caller.pid, fields.fd);
        }
        if rings.logged_lately(self.caller.pid, &fields, self.time) {
            return;
        }
        let result = if certain {
            fields.result
        } else {
            RecordResult::Unknown
        };
        let strings: &[&[u8]] = match fields.op {
            op::TRUNCATE | op::META => &[b""],
            _ => &[],
        };
        let fields = RecordFields { result, ..fields };
        let ids = caller_ids(self.caller, self.notification);
        self.logger.out.put(self.time, ids, &fields, strings);
    }

    fn arguments<'b>(&'b mut self, args: &'b [u64; 6]) -> Arguments<'b> {
        Arguments {
            args,
            memory: self.memory,
            caller: self.caller,
            callers: &self.state.callers,
            cwd: OnceCell::new(),
        }
    }
}

/// True if a message may carry descriptors: a sent message says so, a received one may if it has
/// room for them.
fn carries_descriptors(header: u64, operation: u16, memory: &mut ProcessMemory) -> bool {
    // `struct msghdr`: the address and the length of the ancillary data are its fifth and sixth
    // words of eight bytes.
    let mut words = [0; 16];
    let mut first = [0; 16];
    if memory.exact(header.wrapping_add(32), &mut words).is_err() {
        return false;
    }
    let (control, length) = (double_word(&words, 0), double_word(&words, 8));
    // A `struct cmsghdr` and one descriptor.
    if length < 20 {
        return false;
    }
    let rights = [libc::SOL_SOCKET as u32, libc::SCM_RIGHTS as u32];
    operation == op::READ
        || memory.exact(control, &mut first).is_ok()
            && [word(&first, 8), word(&first, 12)] == rights
}
