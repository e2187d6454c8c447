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
#![allow(unsafe_code)]

use crate::Error;
use backstory_abi as abi;
use backstory_sys::{address_space, clock, processors, truncation};
use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::mm::{MapFlags, ProtFlags};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};

/// Bytes in one chunk.
pub const CHUNK: usize = abi::CHUNK_SIZE as usize;
const HEADER: usize = abi::ARENA_HEADER as usize;
/// Bytes in the first page. The filter behind it exists only if contents are stored.
const PAGE: usize = abi::ARENA_READS as usize;
const LOG: usize = abi::ARENA_LOG as usize;
const MAX: usize = abi::MAX_CHUNKS as usize;
/// Least number of chunks in an arena, for a limited address space (`ulimit -v`).
const FEWEST: usize = 64;

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

/// A mapped arena. Processes that are forked later share it.
pub struct Arena {
    base: *mut u8,
    file: OwnedFd,
    /// Its path in the file system. `None` for a memory file (memfd_create(2)).
    path: Option<PathBuf>,
    growing: Mutex<()>,
    /// Greatest number of chunks.
    max: usize,
    /// Number of chunks known to exist, to this process or to the process it was forked from.
    seen: AtomicU32,
    /// The arena is short of chunks if fewer than this are free.
    low: usize,
    /// The last attempt to add chunks failed.
    at_its_end: AtomicBool,
    /// The file was once shorter than this process had made it.
    cut_short: AtomicBool,
}

// SAFETY: the memory stays mapped while the arena lives. It is accessed only through atomics and
// bounded copies.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

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

    /// Stores the path of the log that this arena belongs to. A later process that finds an
    /// abandoned arena can then finish that log. Called before the first fork.
    pub fn feeds(&self, part: &Path) {
        let name = part.as_os_str().as_bytes();
        if name.len() < PAGE - LOG {
            // SAFETY: the range lies within the first page, behind the fields that other processes
            // write.
            unsafe { std::ptr::copy_nonoverlapping(name.as_ptr(), self.base.add(LOG), name.len()) };
        }
    }

    /// The path that [`Arena::feeds`] stored. `None` if it stored no path.
    pub fn fed(&self) -> Option<PathBuf> {
        let mut name = vec![0; PAGE - LOG];
        // SAFETY: the range lies within the first page, as above.
        unsafe { std::ptr::copy_nonoverlapping(self.base.add(LOG), name.as_mut_ptr(), name.len()) };
        name.truncate(name.iter().position(|b| *b == 0)?);
        (!name.is_empty()).then(|| PathBuf::from(OsString::from_vec(name)))
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
        let arena = Arena::map(file, path)?;
        let header = arena.base.cast::<abi::Arena>();
        // SAFETY: the header page exists, and no other process has mapped it yet.
        unsafe {
            (*header).magic = abi::ARENA_MAGIC;
            (*header).version = abi::ABI_VERSION;
            (*header).started = clock::counter();
        }
        arena.header().told.store(1, Ordering::Release);
        arena.header().flags.store(flags, Ordering::Release);
        arena.grow(INITIAL);
        // With fewer chunks the first programs would wait for each other. If `/dev/shm` has no
        // room, memfd_create(2) may have some.
        if arena.chunks() < INITIAL {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
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
        let arena = Arena::map(file, Some(path.to_owned())).map_err(Error::file("map", path))?;
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

    fn map(file: OwnedFd, path: Option<PathBuf>) -> io::Result<Arena> {
        let mut max = MAX;
        let base = loop {
            // SAFETY: a new mapping without other references.
            let mapped = unsafe {
                rustix::mm::mmap(
                    std::ptr::null_mut(),
                    length(max),
                    ProtFlags::READ | ProtFlags::WRITE,
                    MapFlags::SHARED,
                    &file,
                    0,
                )
            };
            match mapped {
                Err(rustix::io::Errno::NOMEM) if max > FEWEST => max /= 4,
                Ok(base) if max > FEWEST && !address_space::is_left() => {
                    // SAFETY: mapped above, with this length.
                    unsafe { rustix::mm::munmap(base, length(max)) }?;
                    max /= 4;
                }
                other => break other?,
            }
        };
        Ok(Arena {
            base: base.cast(),
            file,
            path,
            growing: Mutex::new(()),
            max,
            seen: AtomicU32::new(0),
            low: LOW.max(PER_PROCESSOR * processors()),
            at_its_end: AtomicBool::new(false),
            cut_short: AtomicBool::new(false),
        })
    }

    /// Lets this process survive the truncation of the arena's file by a recorded program.
    pub fn survive_truncation(&self) {
        truncation::survive(self.base, length(self.max));
    }

    /// The first page.
    pub fn header(&self) -> &abi::Arena {
        // SAFETY: the page is mapped, allocated and aligned. Its changing fields are atomic.
        unsafe { &*self.base.cast::<abi::Arena>() }
    }

    /// The arena's file.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Its name in the file system, if it has one.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The path that recorded programs use: the arena's own, or that of the keeper's descriptor.
    pub fn public_path(&self, keeper: i32) -> OsString {
        match &self.path {
            Some(path) => path.as_os_str().to_owned(),
            None => format!("/proc/{keeper}/fd/{}", self.file.as_raw_fd()).into(),
        }
    }

    /// The number of chunks that exist. Every program of the run can write into the first page.
    /// Therefore the number there is only a hint to ask the file for its length again, because
    /// another process may have added chunks.
    pub fn chunks(&self) -> usize {
        let seen = self.seen.load(Ordering::Acquire);
        if self.header().chunks.load(Ordering::Acquire) <= seen {
            return seen as usize;
        }
        let length = rustix::fs::fstat(&self.file).map_or(0, |s| s.st_size as usize);
        let exist = (length.saturating_sub(HEADER) / CHUNK).min(self.max) as u32;
        self.seen.fetch_max(exist, Ordering::AcqRel).max(exist) as usize
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
    /// magic number of the header included. If a page was touched in between, [`crate::truncated`]
    /// replaces and counts it.
    pub fn is_cut_short(&self) -> bool {
        let seen = self.seen.load(Ordering::Acquire) as usize;
        let too_short = || {
            let stat = rustix::fs::fstat(&self.file);
            seen > 0 && stat.is_ok_and(|stat| (stat.st_size as usize) < length(seen))
        };
        let cut =
            truncation::replaced() > 0 || too_short() || self.header().magic != abi::ARENA_MAGIC;
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

    fn chunk(&self, index: usize) -> *mut u8 {
        assert!(index < self.chunks(), "a chunk that does not exist");
        // SAFETY: within the mapping, by the assertion.
        unsafe { self.base.add(HEADER + index * CHUNK) }
    }

    /// Copies the first bytes of a chunk.
    fn copy(&self, index: usize, into: &mut [u8]) {
        assert!(into.len() <= CHUNK);
        // SAFETY: within the chunk. The owner may write at the same time, so each byte is the old
        // or the new one. Readers of the copy do not trust its bytes.
        unsafe { std::ptr::copy_nonoverlapping(self.chunk(index), into.as_mut_ptr(), into.len()) }
    }

    /// The present header of a chunk.
    pub fn chunk_header(&self, index: usize) -> abi::Chunk {
        let mut bytes = [0; abi::Chunk::SIZE];
        self.copy(index, &mut bytes);
        abi::Chunk::read(&bytes).unwrap_or_default()
    }

    /// Copies the header and the records of a chunk, up to the last reservation that fits.
    pub fn contents(&self, index: usize, into: &mut Vec<u8>) {
        let next = self.chunk_header(index).next as usize;
        fence(Ordering::Acquire);
        into.resize(next.clamp(abi::Chunk::SIZE, CHUNK), 0);
        self.copy(index, into);
    }

    /// Copies the records of a chunk from offset `at` on, up to the last reservation that fits.
    pub fn records_from(&self, index: usize, at: usize, into: &mut Vec<u8>) {
        let next = (self.chunk_header(index).next as usize).clamp(abi::Chunk::SIZE, CHUNK);
        fence(Ordering::Acquire);
        let at = at.min(next);
        into.resize(next - at, 0);
        // SAFETY: as in `copy`.
        unsafe {
            std::ptr::copy_nonoverlapping(self.chunk(index).add(at), into.as_mut_ptr(), into.len())
        }
    }

    /// Zeroes the used bytes of a chunk without an owner, and marks the chunk free.
    pub fn give_back(&self, index: usize, used: usize) {
        // SAFETY: within the chunk, which has no owner any more.
        unsafe { std::ptr::write_bytes(self.chunk(index), 0, used.min(CHUNK)) };
        self.clear(&self.header().full, index);
        self.set(&self.header().free, index);
    }

    /// Writes into a chunk that the caller owns.
    pub fn write(&self, index: usize, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= CHUNK, "beyond the chunk");
        // SAFETY: within the chunk. The caller is its only writer.
        unsafe {
            let place = self.chunk(index).add(at);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len());
        }
    }

    /// Publishes the end of the records that the caller has written to a chunk.
    pub fn set_next(&self, index: usize, next: usize) {
        const AT: usize = std::mem::offset_of!(abi::Chunk, next);
        // SAFETY: an aligned field within the chunk's header.
        let field = unsafe { &*self.chunk(index).add(AT).cast::<AtomicU64>() };
        field.store(next as u64, Ordering::Release);
    }

    /// Stores the owner of a chunk: a process id in the supervisor's pid namespace.
    pub fn announce(&self, index: usize, pid: u32) {
        const AT: usize = std::mem::offset_of!(abi::Chunk, host_pid);
        if index < self.chunks() {
            // SAFETY: as in `set_next`.
            let field = unsafe { &*self.chunk(index).add(AT).cast::<AtomicU32>() };
            field.store(pid, Ordering::Release);
        }
    }

    /// Adds to the count of operations that could not be logged.
    pub fn add_lost(&self, count: u64) {
        self.header().lost.fetch_add(count, Ordering::AcqRel);
    }

    /// Counts one logged operation that may be a read. A process that is about to change a file
    /// must then ask the supervisor. Called after the operation is logged.
    pub fn read_more(&self) {
        self.header().told.fetch_add(1, Ordering::AcqRel);
    }

    /// The number of possible reads that have been logged so far.
    pub fn told(&self) -> u64 {
        self.header().told.load(Ordering::Acquire)
    }

    /// Publishes that the filter contains all files read by the first `told` possible reads. Zero
    /// means that the filter is not complete any more. Only one thread may call this at a time.
    pub fn reads_are_known(&self, told: u64) {
        self.header().known.store(told, Ordering::Release);
    }

    /// The word of one bit of the filter, and the mask of the bit. The filter exists only if
    /// contents are stored.
    fn filter(&self, bit: u32) -> (&AtomicU64, u64) {
        let at = PAGE + bit as usize / 64 * 8;
        // SAFETY: the filter is allocated before the chunks if contents are stored. The word is
        // aligned, and every access is atomic.
        let word = unsafe { &*self.base.add(at).cast::<AtomicU64>() };
        (word, 1 << (bit % 64))
    }

    fn put(&self, device: u32, inode: u64) {
        for (word, bit) in abi::reads_bits(device, inode).map(|bit| self.filter(bit)) {
            word.fetch_or(bit, Ordering::AcqRel);
        }
    }

    /// Adds a file to the filter of files that were read. Only valid if contents are stored.
    pub fn note_read(&self, device: u32, inode: u64) {
        self.put(device, inode);
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
    pub fn is_lent(&self, device: u32, inode: u64) -> bool {
        self.has(device, inode ^ abi::READS_LENT)
    }

    fn has(&self, device: u32, inode: u64) -> bool {
        abi::reads_bits(device, inode).into_iter().all(|bit| {
            let (word, bit) = self.filter(bit);
            word.load(Ordering::Acquire) & bit != 0
        })
    }

    /// Closes the arena: from now on recorders take no chunk and log nothing.
    pub fn close(&self) {
        self.header()
            .flags
            .fetch_or(abi::ARENA_CLOSED, Ordering::AcqRel);
    }

    /// Overwrites the first page from its beginning, as any recorded program can. Used by
    /// `fuzz_entry`.
    pub fn scribble(&self, bytes: &[u8]) {
        let length = bytes.len().min(PAGE);
        // SAFETY: within the first page, which exists.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.base, length) };
    }

    /// Removes the arena's name. The memory lives on while a process maps it.
    pub fn remove(&self) {
        if let Some(path) = &self.path {
            // A failure has no remedy here; a later recovery removes the file.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this length. Borrows of the header cannot outlive `self`.
        let _ = unsafe { rustix::mm::munmap(self.base.cast(), length(self.max)) };
    }
}

/// Bytes of an arena with this number of chunks.
const fn length(chunks: usize) -> usize {
    HEADER + chunks * CHUNK
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
mod tests {
    use super::*;

    fn arena(name: &str) -> Arena {
        let arena = Arena::create(&format!("unit-{name}-{}", std::process::id()), 0).unwrap();
        arena.remove();
        arena
    }

    #[test]
    fn no_value_in_the_first_page_makes_a_reader_leave_the_arena() {
        let arena = arena("scribbled");
        let before = arena.chunks();
        for byte in [0xff, 0] {
            arena.scribble(&[byte; HEADER]);
            assert_eq!(arena.chunks(), before);
            assert!(arena.owned().iter().all(|index| *index < before));
            while let Some(index) = arena.take() {
                assert!(index < before);
                arena.write(index, 0, &[1]);
            }
            arena.announce(usize::MAX, 1);
        }
        arena.keep_stocked();
        assert!(arena.grow(1) <= 1);
    }

    #[test]
    fn no_value_in_a_chunk_makes_a_reader_leave_the_chunk() {
        const CHUNKS: usize = 2;
        // Memory that the test owns, so that Miri knows its bounds.
        let memory = Box::into_raw(vec![0u64; length(CHUNKS) / 8].into_boxed_slice());
        let arena = std::mem::ManuallyDrop::new(Arena {
            base: memory.cast(),
            file: std::fs::File::open("/dev/null").unwrap().into(),
            path: None,
            growing: Mutex::new(()),
            max: CHUNKS,
            seen: AtomicU32::new(CHUNKS as u32),
            low: 0,
            at_its_end: AtomicBool::new(false),
            cut_short: AtomicBool::new(false),
        });
        for index in 0..CHUNKS {
            arena.set(&arena.header().free, index);
        }
        arena.set(&arena.header().free, CHUNKS);
        assert_eq!(
            [arena.take(), arena.take(), arena.take()],
            [Some(0), Some(1), None]
        );
        let mut bytes = Vec::new();
        for next in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, usize::MAX] {
            arena.set_next(1, next);
            arena.announce(1, u32::MAX);
            arena.contents(1, &mut bytes);
            assert!((abi::Chunk::SIZE..=CHUNK).contains(&bytes.len()));
            for at in [0, abi::Chunk::SIZE, CHUNK, CHUNK + 1, usize::MAX] {
                arena.records_from(1, at, &mut bytes);
                assert!(bytes.len() <= CHUNK);
            }
        }
        arena.write(1, CHUNK - 8, &[0xff; 8]);
        arena.announce(CHUNKS, 1);
        for device in [0, 1, u32::MAX] {
            let changed = || arena.note_changed(device, u64::MAX - u64::from(device));
            assert_eq!([changed(), changed()], [true, false]);
        }
        arena.give_back(1, usize::MAX);
        assert_eq!(arena.take(), Some(1));
        assert_eq!(arena.chunk_header(1), abi::Chunk::default());
        // SAFETY: made by `into_raw` above. The arena is not used any more.
        drop(unsafe { Box::from_raw(memory) });
    }

    #[test]
    fn an_arena_that_is_cut_short_is_read_as_zeros() {
        let arena = arena("short");
        arena.survive_truncation();
        let index = arena.take().unwrap();
        arena.write(index, 0, &[1; 64]);
        rustix::fs::ftruncate(&arena.file, 0).unwrap();
        assert_eq!(arena.chunk_header(index), abi::Chunk::default());
        arena.write(index, 0, &[1; 64]);
        arena.keep_stocked();
        assert!(arena.any_free() || arena.take().is_none());
        assert!(truncation::replaced() > 0);
    }

    #[test]
    fn an_arena_cut_to_nothing_just_before_it_is_enlarged_is_known_to_be_cut() {
        let arena = arena("regrown");
        let index = arena.take().unwrap();
        arena.write(index, 0, &[1; 64]);
        let old = arena.chunks();
        assert!(!arena.is_cut_short());
        // The test cuts the file between two steps of `grow`. No page is touched while it is too
        // short.
        rustix::fs::ftruncate(&arena.file, 0).unwrap();
        assert_eq!(arena.allocate(old, 1), 1);
        assert_eq!(arena.chunk_header(index), abi::Chunk::default());
        assert!(arena.is_cut_short());
    }

    #[test]
    fn an_arena_whose_chunks_were_cut_off_is_known_to_be_cut_after_it_is_enlarged() {
        let arena = arena("chunkless");
        let index = arena.take().unwrap();
        rustix::fs::ftruncate(&arena.file, HEADER as u64).unwrap();
        assert_eq!(arena.grow(1), 1);
        assert_eq!(arena.chunk_header(index), abi::Chunk::default());
        assert!(arena.is_cut_short());
    }

    #[test]
    fn the_arena_is_its_owners_only_whatever_the_umask() {
        let id = format!("unit-mode-{}", std::process::id());
        let before = rustix::process::umask(Mode::empty());
        let arena = Arena::create(&id, 0).unwrap();
        rustix::process::umask(before);
        let mode = rustix::fs::fstat(&arena.file).unwrap().st_mode;
        arena.remove();
        assert_eq!(mode & 0o7777, 0o600);
    }

    #[test]
    fn a_file_at_the_arenas_path_is_neither_used_nor_changed() {
        let dir = tempfile::tempdir().unwrap();
        let victim = dir.path().join("victim");
        std::fs::write(&victim, "precious").unwrap();
        let id = format!("unit-planted-{}", std::process::id());
        let place = Arena::name(&id).unwrap();
        std::os::unix::fs::symlink(&victim, &place).unwrap();
        let arena = Arena::create(&id, 0).unwrap();
        assert_eq!(arena.path(), None, "a memory file stands in");
        assert!(Arena::open(&place).is_err(), "links are not followed");
        assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
        assert!(place.is_symlink());
        std::fs::remove_file(&place).unwrap();
    }

    #[test]
    fn only_a_regular_file_of_the_user_is_opened_as_a_leftover_arena() {
        let id = format!("unit-left-{}", std::process::id());
        let arena = Arena::create(&id, 0).unwrap();
        let place = arena.path().unwrap().to_owned();
        assert!(Arena::open(&place).is_ok());
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&place, Some(65_533), None).unwrap();
            assert!(Arena::open(&place).is_err(), "somebody else's");
        }
        arena.remove();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &place,
            rustix::fs::FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        assert!(Arena::open(&place).is_err(), "a pipe");
        std::fs::remove_file(&place).unwrap();
        std::fs::create_dir(&place).unwrap();
        assert!(Arena::open(&place).is_err(), "a directory");
        std::fs::remove_dir(&place).unwrap();
    }

    #[test]
    fn only_a_run_id_names_an_arena() {
        assert!(Arena::name("7g3kq0zt").is_some());
        for id in ["", "../../etc/x", "a/b", "a b"] {
            assert_eq!(Arena::name(id), None, "{id}");
        }
    }
}
