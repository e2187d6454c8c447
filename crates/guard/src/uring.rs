//! io_uring: what a program submits through a ring is logged as the calls that do the same.
//!
//! A ring's entries are read while the `io_uring_enter` that submits them waits, before the kernel takes them. An outcome is concluded
//! only for an entry that waits for no other and that nothing submitted with it changes; the others are attempts. What moves data
//! through descriptors needs no more than how they were opened, and is told to sharpen that.
//!
//! Not here: completions, which nothing is asked of. What can't be read, or is polled by the kernel, marks the run, once for each process.

use super::ask::Ask;
use super::caller::{Caller, MOMENT};
use super::coming::{Seen, may_read};
use super::decode::{Arguments, Named};
use super::descriptors;
use super::late::Late;
use super::memory::Memory;
use super::preserve::About;
use super::receiver::{Answer, Worker};
use super::record_writer::{Fields, Result as Outcome};
use super::shared::Notification;
use super::table::{ARCH_X86_64, Abi, Shape};
use super::uring_map::{Hidden, Ring, SQPOLL, Setup};
use super::uring_ops::{Entry, Meaning};
use super::write::{who, write};
use backstory_abi::op;
use backstory_arena::RecordSink;
use backstory_eventlog::reason::undecoded;
use backstory_sys::kernel as sys;
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Set-ups remembered: a ring whose own was forgotten is still known by the others, if all are of one form.
const SETUPS: usize = 1024;
/// Places of a thread's own table of rings.
const PLACES: usize = 16;
/// Files that are looked at when a ring is given them; more mark the run.
const FILES: u32 = 1024;
/// Uses of descriptors remembered, so as not to tell them again and again.
const USES: usize = 4096;

/// `IORING_ENTER_REGISTERED_RING`
const ENTER_REGISTERED: u64 = 1 << 4;
/// `IORING_REGISTER_USE_REGISTERED_RING`
const BY_PLACE: u32 = 1 << 31;

/// What is known of all rings.
#[derive(Debug, Default)]
pub(super) struct Rings(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    setups: VecDeque<(u32, Setup)>,
    /// By thread: the descriptors of the rings in its own table.
    places: HashMap<u32, [Option<i32>; PLACES]>,
    marked: HashSet<(u32, &'static str)>,
    /// Process, descriptor and operation; when it was told last.
    uses: HashMap<(u32, i32, u16), u64>,
}

impl Rings {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A process is met for the first time: what was known of its number is of another.
    pub(super) fn forget(&self, pid: u32) {
        let mut state = self.lock();
        if !state.setups.is_empty() || !state.marked.is_empty() {
            state.setups.retain(|known| known.0 != pid);
            state.marked.retain(|known| known.0 != pid);
            state.places.remove(&pid);
        }
    }

    fn set_up(&self, pid: u32, setup: Setup) {
        let mut state = self.lock();
        if state.setups.len() == SETUPS {
            state.setups.pop_front();
        }
        if !state.setups.contains(&(pid, setup)) {
            state.setups.push_back((pid, setup));
        }
    }

    /// The ways in which a process's rings were set up; if it has them from another, those of all.
    fn setups(&self, pid: u32) -> Vec<Setup> {
        let state = self.lock();
        let own = |mine: bool| {
            let known = state
                .setups
                .iter()
                .filter(move |known| !mine || known.0 == pid);
            known.map(|known| known.1).collect::<Vec<_>>()
        };
        Some(own(true))
            .filter(|own| !own.is_empty())
            .unwrap_or_else(|| own(false))
    }

    /// True if nothing that can't be decoded was told under this name of this process.
    pub(super) fn first_mark(&self, pid: u32, what: &'static str) -> bool {
        self.lock().marked.insert((pid, what))
    }

    /// True if the same was told a moment ago.
    fn told(&self, pid: u32, fields: &Fields, time: u64) -> bool {
        if !matches!(fields.op, op::READ | op::WRITE) {
            return false;
        }
        let mut state = self.lock();
        if state.uses.len() >= USES {
            state.uses.clear();
        }
        let before = state.uses.insert((pid, fields.fd, fields.op), time);
        let told = before.is_some_and(|before| time < before + MOMENT);
        if told && let Some(before) = before {
            state.uses.insert((pid, fields.fd, fields.op), before);
        }
        told
    }

    /// A descriptor's number means something else from now on.
    fn closed(&self, pid: u32, fd: i32) {
        let mut state = self.lock();
        for op in [op::READ, op::WRITE] {
            state.uses.remove(&(pid, fd, op));
        }
    }

    fn place(&self, tid: u32, place: u64) -> Option<i32> {
        let places = *self.lock().places.get(&tid)?;
        *places.get(usize::try_from(place).ok()?)?
    }

    /// A thread puts a ring into its own table, or (without one) takes it out; the kernel takes the first free place if it is asked for.
    fn put(&self, tid: u32, place: u32, ring: Option<i32>) {
        let mut state = self.lock();
        let places = state.places.entry(tid).or_default();
        let at = match place {
            u32::MAX => places.iter().position(Option::is_none),
            place => Some(place as usize),
        };
        if let Some(entry) = at.and_then(|at| places.get_mut(at)) {
            *entry = ring;
        }
    }
}

/// A call about a ring, and who makes it.
pub(super) struct RingCall<'a> {
    pub(super) call: &'a Notification,
    pub(super) caller: &'a Caller,
    pub(super) memory: &'a mut Memory,
    pub(super) time: u64,
}

impl<S: RecordSink> Worker<S> {
    /// A call about a ring.
    pub(super) fn ring(&mut self, shape: Shape, at: RingCall<'_>, late: &mut Vec<Late>) -> Answer {
        match shape {
            Shape::RingSetup => self.ring_set_up(at),
            Shape::RingRegister => self.ring_registers(at),
            _ => return self.ring_submits(at, late),
        }
        Answer::Continue
    }

    fn ring_mark(&mut self, at: &RingCall<'_>, what: &'static str) {
        if self.common.rings.first_mark(at.caller.pid, what) {
            let ask = Ask::Opaque(what);
            let stamp = (at.time, who(at.caller, at.call));
            write(
                &mut self.out,
                stamp,
                &ask,
                &ask.unknown(),
                &self.common.environments,
            );
        }
    }

    fn ring_set_up(&mut self, at: RingCall<'_>) {
        // What can't be read makes the call fail.
        let Ok(setup) = Setup::read(at.call.args[0] as u32, at.call.args[1], at.memory) else {
            return;
        };
        self.common.rings.set_up(at.caller.pid, setup);
        if setup.flags & SQPOLL != 0 {
            self.ring_mark(&at, undecoded::RING_POLLED);
        }
        if !setup.known() {
            self.ring_mark(&at, undecoded::RING_FORM);
        }
    }

    fn ring_registers(&mut self, at: RingCall<'_>) {
        let [_, what, address, count, ..] = at.call.args;
        let (place, count) = (what as u32 & !BY_PLACE, count as u32);
        match place {
            20 | 21 => {
                for i in 0..u64::from(count.min(PLACES as u32)) {
                    let mut update = [0; 16];
                    if at
                        .memory
                        .exact(address.wrapping_add(16 * i), &mut update)
                        .is_err()
                    {
                        return;
                    }
                    let (offset, ring) = (word(&update, 0), word(&update, 8) as i32);
                    let ring = Some(ring).filter(|_| place == 20);
                    self.common.rings.put(at.caller.tid, offset, ring);
                }
            }
            2 => self.ring_files(at, address, count),
            _ => {
                // The structures for updates and for files with tags.
                let mut block = [0; 32];
                let size = if place == 6 { 16 } else { 32 };
                if at.memory.exact(address, &mut block[..size]).is_err() {
                    return;
                }
                let wide = |at| u64::from(word(&block, at)) | u64::from(word(&block, at + 4)) << 32;
                match place {
                    6 => self.ring_files(at, wide(8), count),
                    13 => self.ring_files(at, wide(16), word(&block, 0)),
                    _ => self.ring_files(at, wide(8), word(&block, 24)),
                }
            }
        }
    }

    /// Descriptors go into a ring, which keeps the files open when the descriptors have been closed: they are opened once more.
    fn ring_files(&mut self, at: RingCall<'_>, address: u64, count: u32) {
        if count > FILES {
            self.ring_mark(&at, undecoded::RING_FILES);
        }
        let mut numbers = vec![0; 4 * count.min(FILES) as usize];
        if at.memory.exact(address, &mut numbers).is_err() {
            return;
        }
        let common = self.common.clone();
        for number in (0..numbers.len())
            .step_by(4)
            .map(|i| word(&numbers, i) as i32)
        {
            let name =
                arguments(&[0; 6], &mut *at.memory, at.caller, &common.callers).name(number, b"");
            let flags = descriptors::flags(at.caller.tid, number).unwrap_or(0);
            // Pipes and sockets have no path, nor has what was deleted.
            if number < 0 || name.inside.is_empty() || flags & libc::O_PATH as u32 != 0 {
                continue;
            }
            let flags = flags as i32 & libc::O_ACCMODE;
            let ask = Ask::Open {
                name,
                flags,
                mode: 0,
            };
            let mut conclusion = ask.unknown();
            conclusion.fields.result = Outcome::Predicted(0);
            let stamp = (at.time, who(at.caller, at.call));
            write(
                &mut self.out,
                stamp,
                &ask,
                &conclusion,
                &common.environments,
            );
            self.count(may_read(&ask), false);
        }
    }

    fn ring_submits(&mut self, at: RingCall<'_>, late: &mut Vec<Late>) -> Answer {
        let common = self.common.clone();
        let [ring, count, _, flags, ..] = at.call.args;
        let (fd, by_place) = match flags & ENTER_REGISTERED {
            0 => (Some(ring as i32), false),
            _ => (common.rings.place(at.caller.tid, ring), true),
        };
        let setups = common.rings.setups(at.caller.pid);
        let ring = Ring {
            setups: &setups,
            fd,
            tid: at.caller.tid,
            pid: at.caller.pid,
        };
        let entries = ring.pending(count as u32, at.memory);
        if !sys::still_waits(common.listener.as_fd(), at.call.id) {
            return Answer::Continue;
        }
        let entries = match entries {
            Ok(entries) => entries,
            Err(Hidden::NoRing) if !by_place => return Answer::Continue,
            Err(_) => {
                self.ring_mark(&at, undecoded::RING_HIDDEN);
                return Answer::Continue;
            }
        };
        common
            .holders
            .acts(&mut self.out, &common.occasion(at.caller, at.call, at.time));
        let mut batch = Batch::default();
        for entry in &entries {
            let at = RingCall {
                memory: &mut *at.memory,
                ..at
            };
            self.ring_entry(at, entry, &mut batch, late);
        }
        match batch.lost.is_empty() {
            true => Answer::Continue,
            false => self.preserve(at.call, at.time, About::Seen(batch.lost)),
        }
    }

    fn ring_entry(
        &mut self,
        at: RingCall<'_>,
        entry: &Entry,
        batch: &mut Batch,
        late: &mut Vec<Late>,
    ) {
        let waits = std::mem::replace(&mut batch.linked, entry.links());
        let certain = !waits && entry.immediate();
        match entry.meaning() {
            Meaning::Nothing => {}
            Meaning::Opaque(what) => self.ring_mark(&at, what),
            Meaning::Files { at: address, count } => self.ring_files(at, address, count),
            Meaning::Descriptor(fields) => self.ring_descriptor(&at, fields, certain),
            Meaning::Message { at: header, fields } => {
                if carries_descriptors(header, fields.op, at.memory) {
                    self.ring_mark(&at, undecoded::RING_PASSES);
                }
                if fields.fd >= 0 {
                    self.ring_descriptor(&at, fields, certain);
                }
            }
            Meaning::Call { nr, args } => {
                // As if its submitter had made the call itself.
                let call = Notification {
                    nr: nr as u32,
                    arch: ARCH_X86_64,
                    args,
                    ..*at.call
                };
                let Some(shape) = Abi::X64.row(call.nr).and_then(|row| row.guard.shape()) else {
                    return;
                };
                let callers = &self.common.clone().callers;
                let ask = Ask::read(
                    shape,
                    Abi::X64,
                    &mut arguments(&args, at.memory, at.caller, callers),
                );
                // What can't be read makes the entry fail.
                let Ok(ask) = ask else { return };
                if matches!(ask, Ask::Look { .. }) && !self.common.watch.lookups
                    || ask.names().into_iter().flatten().any(|name| name.empty)
                {
                    return;
                }
                let coming = self.about_to_lose(at.caller, &ask, at.time);
                batch.lost.extend(coming.lost);
                let certain = certain && !batch.changes(&ask);
                batch.note(&ask);
                let (reads, before) = (may_read(&ask), late.len());
                if certain {
                    self.log(
                        &call,
                        at.caller.clone(),
                        at.time,
                        (ask, coming.looked),
                        late,
                    );
                } else {
                    let stamp = (at.time, who(at.caller, &call));
                    write(
                        &mut self.out,
                        stamp,
                        &ask,
                        &ask.unknown(),
                        &self.common.environments,
                    );
                }
                self.count(reads, late.len() > before);
            }
        }
    }

    fn ring_descriptor(&mut self, at: &RingCall<'_>, fields: Fields, certain: bool) {
        let rings = &self.common.rings;
        if fields.op == op::CLOSE {
            rings.closed(at.caller.pid, fields.fd);
        }
        let result = if certain {
            fields.result
        } else {
            Outcome::Unknown
        };
        if rings.told(at.caller.pid, &fields, at.time) {
            return;
        }
        let strings: &[&[u8]] = match fields.op {
            op::TRUNCATE | op::META => &[b""],
            _ => &[],
        };
        let fields = Fields { result, ..fields };
        self.out
            .put(at.time, who(at.caller, at.call), &fields, strings);
    }
}

/// Whether a message may carry descriptors: one that is sent says so, one that is received may if it has room for them.
fn carries_descriptors(header: u64, operation: u16, memory: &mut Memory) -> bool {
    // `struct msghdr`: the ancillary data's address and length are its fifth and sixth words of eight bytes.
    let mut words = [0; 16];
    let mut first = [0; 16];
    if memory.exact(header.wrapping_add(32), &mut words).is_err() {
        return false;
    }
    let wide = |bytes: &[u8], at| u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32;
    let (control, length) = (wide(&words, 0), wide(&words, 8));
    // A `struct cmsghdr` and one descriptor.
    if length < 20 {
        return false;
    }
    let rights = [libc::SOL_SOCKET as u32, libc::SCM_RIGHTS as u32];
    operation == op::READ
        || memory.exact(control, &mut first).is_ok()
            && [word(&first, 8), word(&first, 12)] == rights
}

/// What the entries before one do.
#[derive(Default)]
struct Batch {
    linked: bool,
    /// Names that mean something else afterwards.
    touched: Vec<Vec<u8>>,
    /// Contents that are about to be lost.
    lost: Vec<Seen>,
}

impl Batch {
    /// True if what a call names may be changed by what was submitted before it.
    fn changes(&self, ask: &Ask) -> bool {
        let below = |name: &Named, touched: &[u8]| {
            let rest = name.inside.strip_prefix(touched);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        };
        let touched =
            |name: &Named| name.inside.is_empty() || self.touched.iter().any(|t| below(name, t));
        !self.touched.is_empty() && ask.names().into_iter().flatten().any(touched)
    }

    fn note(&mut self, ask: &Ask) {
        let changes = match ask {
            Ask::Look { .. } | Ask::Address { .. } => false,
            Ask::Open { flags, .. } => flags & libc::O_CREAT != 0,
            _ => true,
        };
        if changes {
            let names = ask.names().into_iter().flatten();
            self.touched.extend(names.map(|name| name.inside.clone()));
        }
    }
}

fn arguments<'a>(
    args: &'a [u64; 6],
    memory: &'a mut Memory,
    caller: &'a Caller,
    callers: &'a super::caller::Callers,
) -> Arguments<'a> {
    Arguments {
        args,
        memory,
        caller,
        callers,
        cwd: OnceCell::new(),
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes.iter().skip(at).take(4);
    bytes.rev().fold(0, |n, b| n << 8 | u32::from(*b))
}
