//! Reads the memory that an io_uring shares with the kernel: the entries that are about to be
//! submitted.
//!
//! Invariant: the guard holds a ring (its descriptor and its mappings) only while the submitting
//! call waits. Otherwise the ring and the files in it would outlive the program's close of it.
#![allow(unsafe_code)]

use super::entry::{ENTRY, RingEntry};
use crate::memory::{ProcessMemory, Unreadable};
use backstory_sys as sys;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// `struct io_uring_params` in 32-bit words.
const PARAMS: usize = 30;
/// `IORING_OFF_SQES`
const ENTRIES_AT: i64 = 0x1000_0000;
/// Most entries that the kernel gives a ring.
const MOST: u32 = 32_768;
/// Bytes of the page that a ring's first words are in.
const FIRST: usize = 4096;

const CQSIZE: u32 = 1 << 3;
const SQE128: u32 = 1 << 10;
const CQE32: u32 = 1 << 11;
const NO_MMAP: u32 = 1 << 14;
const NO_SQARRAY: u32 = 1 << 16;
/// `IORING_SETUP_SQPOLL`: a kernel thread takes the entries without any call.
pub const SQPOLL: u32 = 1 << 1;
/// Flags from this bit on change the form of a ring in unknown ways, such as entries of two sizes
/// in one ring.
const UNKNOWN: u32 = !((1 << 19) - 1);

/// How a ring was set up, as its program requested it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingSetup {
    /// `IORING_SETUP_*`.
    pub flags: u32,
    /// The number of submission entries, as the kernel rounds it.
    pub entries: u32,
    completions: u32,
    /// Where the program placed the ring and its entries, if it did that itself.
    own: Option<[u64; 2]>,
}

impl RingSetup {
    /// Reads the arguments of `io_uring_setup`.
    pub fn read(
        entries: u32,
        at: u64,
        memory: &mut ProcessMemory,
    ) -> Result<RingSetup, Unreadable> {
        let mut bytes = [0; PARAMS * 4];
        memory.exact(at, &mut bytes)?;
        let word = |i: usize| {
            bytes
                .iter()
                .skip(4 * i)
                .take(4)
                .rev()
                .fold(0u32, |n, b| n << 8 | u32::from(*b))
        };
        let wide = |i: usize| u64::from(word(i)) | u64::from(word(i + 1)) << 32;
        let flags = word(2);
        let entries = entries.min(MOST).next_power_of_two();
        let completions = if flags & CQSIZE != 0 {
            word(1).min(2 * MOST).next_power_of_two()
        } else {
            2 * entries
        };
        Ok(RingSetup {
            flags,
            entries,
            completions,
            own: (flags & NO_MMAP != 0).then(|| [wide(28), wide(18)]),
        })
    }

    /// The settings that decide how the ring's memory is read.
    fn form(&self) -> (u32, Option<[u64; 2]>) {
        (
            self.flags & (SQE128 | CQE32 | NO_SQARRAY | SQPOLL | UNKNOWN),
            self.own,
        )
    }

    /// True if the ring's memory can be understood.
    pub fn known(&self) -> bool {
        self.flags & UNKNOWN == 0
    }
}

/// Offsets in a ring's memory, the same for all rings of this kernel.
#[derive(Debug, Clone, Copy)]
struct RingLayout {
    head: u32,
    tail: u32,
    entries: u32,
    completions: u32,
    /// Where the completions begin. The array of indexes follows them.
    events: u32,
    /// The same for completions of double size: the kernel may double what precedes them, too.
    wide_events: u32,
}

/// The parameters that the kernel returns for a ring with one entry, which is closed at once.
/// `None` if the supervisor may have no ring.
fn example(flags: u32) -> Option<[u32; PARAMS]> {
    let mut params = [0u32; PARAMS];
    params[2] = flags;
    // SAFETY: the kernel reads and writes one `struct io_uring_params`, which has that many words.
    let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, params.as_mut_ptr()) };
    if fd < 0 {
        return None;
    }
    // SAFETY: the call returned this new descriptor, which has no other owner.
    drop(unsafe { OwnedFd::from_raw_fd(fd as i32) });
    Some(params)
}

/// The layout of this kernel's rings, found once by rings of the supervisor's own.
fn layout() -> Option<RingLayout> {
    static LAYOUT: OnceLock<Option<RingLayout>> = OnceLock::new();
    *LAYOUT.get_or_init(|| {
        // Words 10 to 19 are `sq_off`, 20 to 29 `cq_off`; word 1 is the number of completions.
        let plain = example(0)?;
        let wide = example(CQE32).map_or(0, |wide| wide[16].saturating_sub(32 * wide[1]));
        Some(RingLayout {
            head: plain[10],
            tail: plain[11],
            entries: plain[13],
            completions: plain[23],
            events: plain[25],
            wide_events: wide,
        })
    })
}

/// One mapping of a ring's memory.
struct RingMapping {
    at: NonNull<u8>,
    length: usize,
}

impl RingMapping {
    fn new(ring: BorrowedFd<'_>, length: usize, offset: i64) -> io::Result<RingMapping> {
        let (protection, flags) = (libc::PROT_READ, libc::MAP_SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                protection,
                flags,
                ring.as_raw_fd(),
                offset,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let at = NonNull::new(at.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(RingMapping { at, length })
    }

    fn read(&self, at: u64, out: &mut [u8]) -> Result<(), Unreadable> {
        let start = usize::try_from(at).map_err(|_| Unreadable::Fault)?;
        let end = start.checked_add(out.len()).ok_or(Unreadable::Fault)?;
        if end > self.length {
            return Err(Unreadable::Fault);
        }
        for (i, byte) in out.iter_mut().enumerate() {
            // SAFETY: inside the mapping, which lives as long as `self`; others may write to it, so
            // it is read as an atomic.
            let place = unsafe { AtomicU8::from_ptr(self.at.as_ptr().add(start + i)) };
            *byte = place.load(Ordering::Relaxed);
        }
        Ok(())
    }

    fn word(&self, at: u64) -> Result<u32, Unreadable> {
        let start = usize::try_from(at).map_err(|_| Unreadable::Fault)?;
        let end = start.checked_add(4).ok_or(Unreadable::Fault)?;
        if start % 4 != 0 || end > self.length {
            return Err(Unreadable::Fault);
        }
        // SAFETY: aligned, inside the mapping, which lives as long as `self`; others may write to
        // it, so it is read as an atomic.
        let place = unsafe { AtomicU32::from_ptr(self.at.as_ptr().add(start).cast()) };
        Ok(place.load(Ordering::Acquire))
    }
}

impl Drop for RingMapping {
    fn drop(&mut self) {
        // SAFETY: exactly what `new` mapped; no reference outlives `self`.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.length) };
    }
}

/// Where a ring's memory is read.
enum RingMemory<'a> {
    Mapped(RingMapping),
    /// In the program's own memory, from this address on.
    Program(&'a mut ProcessMemory, u64),
}

impl RingMemory<'_> {
    fn read(&mut self, at: u64, out: &mut [u8]) -> Result<(), Unreadable> {
        match self {
            RingMemory::Mapped(map) => map.read(at, out),
            RingMemory::Program(memory, start) => memory.exact(start.wrapping_add(at), out),
        }
    }

    fn word(&mut self, at: u64) -> Result<u32, Unreadable> {
        if let RingMemory::Mapped(map) = self {
            return map.word(at);
        }
        let mut bytes = [0; 4];
        self.read(at, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }
}

/// A ring whose submitting call waits.
pub struct SubmittingRing<'a> {
    /// The set-ups that the ring may have.
    pub setups: &'a [RingSetup],
    /// The ring's descriptor in the program, if it has one.
    pub fd: Option<i32>,
    /// The submitting thread.
    pub tid: u32,
    /// Its process.
    pub pid: u32,
}

/// Why a ring's entries cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RingUnreadable {
    /// There is no such ring: the call will fail.
    NoRing,
    /// The memory cannot be read, or its form is not known.
    Unknown,
}

impl From<Unreadable> for RingUnreadable {
    fn from(_: Unreadable) -> RingUnreadable {
        RingUnreadable::Unknown
    }
}

impl SubmittingRing<'_> {
    /// The entries that submitting `count` entries takes.
    pub fn pending(
        &self,
        count: u32,
        memory: &mut ProcessMemory,
    ) -> Result<Vec<RingEntry>, RingUnreadable> {
        let layout = layout().ok_or(RingUnreadable::Unknown)?;
        let Some(fd) = self.fd else {
            return self.own_memory(None, count, memory, &layout);
        };
        let process = sys::pidfd_open(self.tid, true).or_else(|_| sys::pidfd_open(self.pid, false));
        let ring = process.and_then(|process| sys::pidfd_getfd(process.as_fd(), fd));
        let ring = match ring {
            Ok(ring) => ring,
            Err(e) if e.raw_os_error() == Some(libc::EBADF) => return Err(RingUnreadable::NoRing),
            Err(_) => return Err(RingUnreadable::Unknown),
        };
        let Ok(first) = RingMapping::new(ring.as_fd(), FIRST, 0) else {
            return self.own_memory(Some(ring), count, memory, &layout);
        };
        let (entries, completions) = (
            first.word(layout.entries.into())?,
            first.word(layout.completions.into())?,
        );
        let setup =
            self.setup(|s| s.own.is_none() && (s.entries, s.completions) == (entries, completions));
        let setup = setup
            .or_else(|| self.setup(|s| s.own.is_none()))
            .ok_or(RingUnreadable::Unknown)?;
        let end = array(&layout, &setup, completions) + 4 * u64::from(entries);
        let head = match end {
            end if setup.flags & NO_SQARRAY != 0 || end <= FIRST as u64 => first,
            end => RingMapping::new(ring.as_fd(), end as usize, 0)
                .map_err(|_| RingUnreadable::Unknown)?,
        };
        let length = entries as usize * stride(&setup);
        let body = RingMapping::new(ring.as_fd(), length, ENTRIES_AT)
            .map_err(|_| RingUnreadable::Unknown)?;
        take(
            &mut RingMemory::Mapped(head),
            &mut RingMemory::Mapped(body),
            &setup,
            count,
            &layout,
        )
    }

    /// The set-up that fits, if all that fit have one form.
    fn setup(&self, fits: impl Fn(&RingSetup) -> bool) -> Option<RingSetup> {
        let mut fitting = self.setups.iter().filter(|s| s.known() && fits(s));
        let one = fitting.next()?;
        fitting
            .all(|other| other.form() == one.form())
            .then_some(*one)
    }

    /// The entries of a ring in memory that the program provided. `ring` is held until they have
    /// been read.
    fn own_memory(
        &self,
        ring: Option<OwnedFd>,
        count: u32,
        memory: &mut ProcessMemory,
        layout: &RingLayout,
    ) -> Result<Vec<RingEntry>, RingUnreadable> {
        let setup = self
            .setup(|s| s.own.is_some())
            .ok_or(RingUnreadable::Unknown)?;
        let [rings, entries] = setup.own.ok_or(RingUnreadable::Unknown)?;
        let mut second = ProcessMemory::of(self.tid);
        let (mut head, mut body) = (
            RingMemory::Program(memory, rings),
            RingMemory::Program(&mut second, entries),
        );
        let taken = take(&mut head, &mut body, &setup, count, layout);
        drop(ring);
        taken
    }
}

/// Where the array of indexes begins.
fn array(layout: &RingLayout, setup: &RingSetup, completions: u32) -> u64 {
    let (start, event) = match setup.flags & CQE32 {
        0 => (layout.events, 16),
        _ => (layout.wide_events, 32),
    };
    (u64::from(start) + event * u64::from(completions)).next_multiple_of(64)
}

fn stride(setup: &RingSetup) -> usize {
    if setup.flags & SQE128 != 0 {
        2 * ENTRY
    } else {
        ENTRY
    }
}

fn take(
    head: &mut RingMemory<'_>,
    body: &mut RingMemory<'_>,
    setup: &RingSetup,
    count: u32,
    layout: &RingLayout,
) -> Result<Vec<RingEntry>, RingUnreadable> {
    let (first, last) = (
        head.word(layout.head.into())?,
        head.word(layout.tail.into())?,
    );
    let (entries, completions) = (
        head.word(layout.entries.into())?,
        head.word(layout.completions.into())?,
    );
    if !entries.is_power_of_two() || entries > MOST {
        return Err(RingUnreadable::Unknown);
    }
    let polled = setup.flags & SQPOLL != 0;
    let waiting = last.wrapping_sub(first).min(entries);
    let array = array(layout, setup, completions);
    let mut out = Vec::with_capacity(waiting.min(count) as usize);
    // The kernel thread takes all entries.
    for i in 0..if polled { waiting } else { waiting.min(count) } {
        let index = first.wrapping_add(i) & (entries - 1);
        let index = match setup.flags & NO_SQARRAY {
            0 => head.word(array + 4 * u64::from(index))?,
            _ => index,
        };
        // The kernel drops such an entry.
        if index >= entries {
            continue;
        }
        let mut bytes = [0; ENTRY];
        body.read(u64::from(index) * stride(setup) as u64, &mut bytes)?;
        out.push(RingEntry::new(bytes));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_beyond_a_rings_memory_is_read() {
        let mut words = [1u32, 2, 3, 4];
        let length = size_of_val(&words);
        let at = NonNull::from(&mut words).cast();
        // The memory belongs to this test, so `drop` must not unmap it.
        let map = std::mem::ManuallyDrop::new(RingMapping { at, length });
        assert_eq!(map.word(12), Ok(4));
        let mut bytes = [0; 8];
        assert_eq!(map.read(8, &mut bytes), Ok(()));
        assert_eq!(bytes, [3, 0, 0, 0, 4, 0, 0, 0]);
        for far in [16, 1 << 40, u64::MAX - 3, u64::MAX - 7] {
            assert_eq!(map.word(far), Err(Unreadable::Fault), "{far}");
            assert_eq!(map.read(far, &mut bytes), Err(Unreadable::Fault), "{far}");
        }
        assert_eq!(map.word(13), Err(Unreadable::Fault), "not aligned");
        assert_eq!(map.read(9, &mut bytes), Err(Unreadable::Fault));
    }
}
