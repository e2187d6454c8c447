//! The arena: a file in shared memory, cut into chunks. Recorders, receivers and the supervisor
//! write their records into these chunks.
//!
//! Invariants:
//!
//! - The `free` bit of a chunk is set only while the chunk's memory is allocated and all zero.
//!   Otherwise a recorded program would die of SIGBUS, or take old records for its own.
//! - Bytes that recorders write are untrusted, the first page included. Every offset is clipped
//!   before use. The number of chunks is kept in this process and never read from the arena.
//!
//! Absent: the ownership of chunks and the moment of draining (`drain`), and the meaning of
//! records.

use crate::Error;
use crate::mapping::{ArenaMapping, CHUNK, HEADER, PAGE, length};
use backstory_abi as abi;
use backstory_sys::processors;
use rustix::fs::{FallocateFlags, Mode, OFlags};
use std::io;
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Chunks that exist before the command starts. Allocating one takes 20 µs, which delays the
/// command. No command needs more in its first millisecond, and the drainer adds chunks after that.
const INITIAL: usize = 6;
/// Most chunks that are added at a time. Below that, the number of chunks is doubled. Each chunk is
/// allocated and freed again, which dominates the cost of recording a short command.
const MORE: usize = 48;
/// If fewer chunks are free, more are made. On a large machine the bound is higher, because all
/// processors may take a chunk at the same moment.
const LOW: usize = 24;
/// Free chunks wanted for each processor.
const PER_PROCESSOR: usize = 4;

/// A run's arena. Processes that are forked later share it.
pub struct Arena {
    mapping: ArenaMapping,
    growing: Mutex<()>,
    /// The arena is short of chunks if fewer than this are free.
    low: usize,
    /// The last attempt to add chunks failed.
    at_its_end: AtomicBool,
    /// The file was once shorter than this process had made it.
    cut_short: AtomicBool,
}

impl Arena {
    /// The path of a run's arena in the file system. `None` if `id` is not a valid run id.
    pub fn name(id: &str) -> Option<PathBuf> {
        let plain = !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        plain.then(|| PathBuf::from(format!("/dev/shm/backstory-{id}.arena")))
    }

    /// Makes an arena for a run, in `/dev/shm` where possible.
    ///
    /// # Errors
    ///
    /// The file cannot be created, sized or mapped.
    pub fn create(id: &str, flags: u32) -> Result<Arena, Error> {
        let path = PathBuf::from(format!("/dev/shm/backstory-{id}.arena"));
        let named = create_file(&path).and_then(|file| {
            let ready = Arena::set_up(file, Some(path.clone()), flags);
            ready.inspect_err(|_| drop(std::fs::remove_file(&path)))
        });
        named.or_else(|_| {
            let file = rustix::fs::memfd_create(
                format!("backstory-{id}.arena"),
                rustix::fs::MemfdFlags::CLOEXEC,
            )
            .map_err(Error::system("make an arena in memory"))?;
            Arena::set_up(file, None, flags).map_err(Error::system("make an arena in memory"))
        })
    }

    fn around(mapping: ArenaMapping) -> Arena {
        Arena {
            mapping,
            growing: Mutex::new(()),
            low: LOW.max(PER_PROCESSOR * processors()),
            at_its_end: AtomicBool::new(false),
            cut_short: AtomicBool::new(false),
        }
    }

    fn set_up(file: OwnedFd, path: Option<PathBuf>, flags: u32) -> io::Result<Arena> {
        let begun = match flags & abi::ARENA_KEEP {
            0 => PAGE,
            _ => HEADER,
        };
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, begun as u64)?;
        // Every recording process holds this lock through a shared descriptor; recorded processes
        // never hold it. If the lock is refused, this arena is only exempt from sweeping.
        let _ = rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockShared);
        let arena = Arena::around(ArenaMapping::map(file, path)?);
        arena.begin_header();
        arena.header().reported.store(1, Ordering::Release);
        arena.header().flags.store(flags, Ordering::Release);
        arena.grow(INITIAL);
        // With fewer chunks the first programs would wait for each other. If `/dev/shm` has no
        // room, memfd_create(2) may have some.
        if arena.chunks() < INITIAL {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        if flags & abi::ARENA_AUTO != 0 {
            // From now on the first chunk is the table of verdicts.
            arena.take();
        }
        Ok(arena)
    }

    /// Maps an arena that another process left behind.
    ///
    /// # Errors
    ///
    /// The file cannot be opened or mapped, is damaged, or has another version.
    pub fn open(path: &Path) -> Result<Arena, Error> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::open(path, flags, Mode::empty())
            .map_err(io::Error::from)
            .map_err(Error::file("open", path))?;
        let damaged = || Error::Damaged {
            path: path.to_owned(),
        };
        let stat = rustix::fs::fstat(&file).map_err(|_| damaged())?;
        let ours = stat.st_uid == rustix::process::geteuid().as_raw()
            && stat.st_mode & libc::S_IFMT == libc::S_IFREG;
        let length = stat.st_size;
        if !ours || length < HEADER as i64 {
            return Err(damaged());
        }
        let mapping = ArenaMapping::map(file, Some(path.to_owned()));
        let arena = Arena::around(mapping.map_err(Error::file("map", path))?);
        let header = arena.header();
        if header.magic != abi::ARENA_MAGIC || header.version != abi::ABI_VERSION {
            return Err(damaged());
        }
        arena.seen.store(
            ((length as usize - HEADER) / CHUNK).min(arena.max) as u32,
            Ordering::Release,
        );
        Ok(arena)
    }

    /// Adds up to `more` chunks, fewer where memory is short. Returns the number added.
    pub fn grow(&self, more: usize) -> usize {
        let _one_at_a_time = self.growing.lock();
        let old = self.chunks();
        // The next allocation would hide a cut: the file becomes long again, with a hole of zeros.
        self.is_cut_short();
        let wanted = more;
        let more = self.allocate(old, more.min(self.max - old));
        self.seen.fetch_max((old + more) as u32, Ordering::AcqRel);
        self.header()
            .chunks
            .store((old + more) as u32, Ordering::Release);
        for index in old..old + more {
            self.set(&self.header().free, index);
        }
        if wanted > 0 {
            self.at_its_end.store(more == 0, Ordering::Release);
        }
        more
    }

    /// Allocates memory for up to `more` chunks after the first `old`. Returns how many of them
    /// fitted.
    fn allocate(&self, old: usize, mut more: usize) -> usize {
        while more > 0 {
            let at = HEADER + old * CHUNK;
            let length = (more * CHUNK) as u64;
            match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), at as u64, length) {
                Ok(()) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => more /= 2,
            }
        }
        more
    }

    /// True if a program truncated the arena's file, so that records are lost. The file is either
    /// still too short, or was enlarged again. In the second case the cut part reads as zeros, the
    /// magic number of the header included. If a page was touched in between, the handler of SIGBUS
    /// replaces and counts it.
    pub fn is_cut_short(&self) -> bool {
        let seen = self.seen.load(Ordering::Acquire) as usize;
        let too_short = || {
            let stat = rustix::fs::fstat(&self.file);
            seen > 0 && stat.is_ok_and(|stat| (stat.st_size as usize) < length(seen))
        };
        let cut =
            self.replaced_pages() > 0 || too_short() || self.header().magic != abi::ARENA_MAGIC;
        self.cut_short.fetch_or(cut, Ordering::AcqRel) || cut
    }

    /// Adds chunks if recorders asked for them or if few are free.
    pub fn keep_stocked(&self) {
        let wanted = self.header().wanted.swap(0, Ordering::AcqRel) != 0;
        if wanted || self.scarce() {
            self.grow(self.chunks().clamp(1, MORE));
        }
    }

    /// Stores whether a thread that needs a chunk would wait in vain. That is so if no chunk is
    /// free, no chunk can be added and none was just drained (`drained` is zero).
    pub fn tell_if_dry(&self, drained: usize) {
        let dry = drained == 0 && self.at_its_end.load(Ordering::Acquire) && !self.any_free();
        self.header().dry.store(dry.into(), Ordering::Release);
    }

    /// The state that [`Arena::tell_if_dry`] stored last.
    pub fn is_dry(&self) -> bool {
        self.header().dry.load(Ordering::Acquire) != 0
    }

    /// True if few chunks are free.
    pub fn scarce(&self) -> bool {
        self.free_chunks() < self.low
    }

    /// True if at least one chunk is free.
    pub fn any_free(&self) -> bool {
        let mut words = self.header().free.iter();
        words.any(|w| w.load(Ordering::Relaxed) != 0)
    }

    fn free_chunks(&self) -> usize {
        let words = self.header().free.iter();
        words
            .map(|w| w.load(Ordering::Relaxed).count_ones() as usize)
            .sum()
    }

    /// Takes the lowest free chunk, which is the one most likely to be in the cache.
    pub fn take(&self) -> Option<usize> {
        for (w, word) in self.header().free.iter().enumerate() {
            let mut seen = word.load(Ordering::Relaxed);
            while seen != 0 {
                let bit = seen.trailing_zeros();
                let before = word.fetch_and(!(1 << bit), Ordering::AcqRel);
                let index = w * 64 + bit as usize;
                // Only a hostile program can have set a bit beyond the last chunk.
                if before & (1 << bit) != 0 && index < self.chunks() {
                    return Some(index);
                }
                seen = word.load(Ordering::Relaxed);
            }
        }
        None
    }

    /// The chunks that have an owner, lowest first.
    pub fn owned(&self) -> Vec<usize> {
        let chunks = self.chunks();
        let mut owned = Vec::new();
        for (w, word) in self.header().free.iter().enumerate() {
            let mut taken = !word.load(Ordering::Acquire);
            while taken != 0 {
                let index = w * 64 + taken.trailing_zeros() as usize;
                if index >= chunks {
                    return owned;
                }
                owned.push(index);
                taken &= taken - 1;
            }
        }
        owned
    }

    /// Sets the bit of a chunk.
    pub fn set(&self, bitmap: &[AtomicU64], index: usize) {
        bitmap[index / 64].fetch_or(1 << (index % 64), Ordering::AcqRel);
    }

    /// Clears the bit of a chunk.
    pub fn clear(&self, bitmap: &[AtomicU64], index: usize) {
        bitmap[index / 64].fetch_and(!(1 << (index % 64)), Ordering::AcqRel);
    }

    /// The bit of a chunk.
    pub fn is_set(&self, bitmap: &[AtomicU64], index: usize) -> bool {
        bitmap[index / 64].load(Ordering::Acquire) & (1 << (index % 64)) != 0
    }

    /// Zeroes the used bytes of a chunk without an owner, and marks the chunk free.
    pub fn give_back(&self, index: usize, used: usize) {
        self.zero(index, used);
        self.clear(&self.header().full, index);
        self.set(&self.header().free, index);
    }

    /// Adds to the count of operations that could not be logged.
    pub fn add_lost(&self, count: u64) {
        self.header().lost.fetch_add(count, Ordering::AcqRel);
    }

    /// Counts one logged operation that may be a read. A process that is about to change a file
    /// must then ask the supervisor. Called after the operation is logged.
    pub fn report_read(&self) {
        self.header().reported.fetch_add(1, Ordering::AcqRel);
    }

    /// The number of possible reads that have been logged so far.
    pub fn reported(&self) -> u64 {
        self.header().reported.load(Ordering::Acquire)
    }

    /// Publishes that the filter contains all files read by the first `reported` possible reads.
    /// Zero means that the filter is not complete any more. One thread at a time may call this.
    pub fn publish_filtered(&self, reported: u64) {
        self.header().filtered.store(reported, Ordering::Release);
    }

    /// A new number for a preserved content.
    pub fn next_kept(&self) -> u32 {
        self.header().kept.fetch_add(1, Ordering::Relaxed)
    }

    fn put(&self, device: u32, inode: u64) {
        for (word, bit) in abi::reads_bits(device, inode).map(|bit| self.filter_word(bit)) {
            word.fetch_or(bit, Ordering::AcqRel);
        }
    }

    /// Adds a file to the filter of files that were read. Only valid if contents are stored.
    pub fn note_read(&self, device: u32, inode: u64) {
        self.put(device, inode);
    }

    /// Makes the filter contain every file, as read and as changed: recorders then ask before each
    /// change. Only valid if contents are stored.
    pub fn note_everything(&self) {
        for bit in (0..abi::READS_BITS).step_by(64) {
            self.filter_word(bit).0.store(u64::MAX, Ordering::Release);
        }
    }

    /// Marks a file as changed by a process that may not be its creator. Returns false if it was
    /// marked before. Only valid if contents are stored.
    pub fn note_changed(&self, device: u32, inode: u64) -> bool {
        let news = !self.has(device, inode ^ abi::READS_CHANGED);
        self.put(device, inode ^ abi::READS_CHANGED);
        news
    }

    /// True if another process may have read the file through a descriptor passed by its creator.
    /// Only valid if contents are stored.
    pub fn is_shared(&self, device: u32, inode: u64) -> bool {
        self.has(device, inode ^ abi::READS_SHARED)
    }

    fn has(&self, device: u32, inode: u64) -> bool {
        abi::reads_bits(device, inode).into_iter().all(|bit| {
            let (word, bit) = self.filter_word(bit);
            word.load(Ordering::Acquire) & bit != 0
        })
    }

    /// Closes the arena: from now on recorders take no chunk and log nothing.
    pub fn close(&self) {
        self.header()
            .flags
            .fetch_or(abi::ARENA_CLOSED, Ordering::AcqRel);
    }
}

impl Deref for Arena {
    type Target = ArenaMapping;

    fn deref(&self) -> &ArenaMapping {
        &self.mapping
    }
}

fn create_file(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?;
    // The first touch of a page costs a hundred times more in a disk file than in tmpfs.
    const TMPFS: i64 = 0x0102_1994;
    if rustix::fs::fstatfs(&file)?.f_type as i64 != TMPFS {
        std::fs::remove_file(path)?;
        return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
    }
    rustix::fs::fchmod(&file, Mode::RUSR | Mode::WUSR)?; // independent of the umask
    Ok(file)
}

#[cfg(test)]
mod tests;
