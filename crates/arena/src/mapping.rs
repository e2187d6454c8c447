//! The memory of an arena: the mapping of its file, and bounded access to the first page and to
//! chunks.
//!
//! Invariant: every access lies within the mapping. Bytes that other processes write are untrusted:
//! every offset is clipped before use, and the number of chunks is kept in this process.
#![allow(unsafe_code)]

use backstory_abi as abi;
use backstory_sys::{address_space, clock, truncation};
use rustix::mm::{MapFlags, ProtFlags};
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Bytes in one chunk.
pub const CHUNK: usize = abi::CHUNK_SIZE as usize;
pub(crate) const HEADER: usize = abi::ARENA_HEADER as usize;
/// Bytes in the first page. The filter behind it exists only if contents are stored.
pub(crate) const PAGE: usize = abi::ARENA_READS as usize;
const LOG: usize = abi::ARENA_LOG as usize;
const MAX: usize = abi::MAX_CHUNKS as usize;
/// Least number of chunks in an arena, for a limited address space (`ulimit -v`).
const FEWEST: usize = 64;

/// A mapped arena's memory. Processes that are forked later share it.
pub struct ArenaMapping {
    base: *mut u8,
    pub(crate) file: OwnedFd,
    /// Its path in the file system. `None` for a memory file (memfd_create(2)).
    path: Option<PathBuf>,
    /// Greatest number of chunks.
    pub(crate) max: usize,
    /// Number of chunks known to exist, to this process or to the process it was forked from.
    pub(crate) seen: AtomicU32,
}

// SAFETY: the memory stays mapped while the mapping lives. It is accessed only through atomics and
// bounded copies.
unsafe impl Send for ArenaMapping {}
// SAFETY: as above.
unsafe impl Sync for ArenaMapping {}

impl ArenaMapping {
    pub(crate) fn map(file: OwnedFd, path: Option<PathBuf>) -> io::Result<ArenaMapping> {
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
        Ok(ArenaMapping {
            base: base.cast(),
            file,
            path,
            max,
            seen: AtomicU32::new(0),
        })
    }

    /// Lets this process survive the truncation of the arena's file by a recorded program.
    pub fn survive_truncation(&self) {
        truncation::survive(self.base, length(self.max));
    }

    /// The number of pages that this process replaced after a program had cut the file short.
    pub(crate) fn replaced_pages(&self) -> u64 {
        truncation::replaced(self.base)
    }

    /// The first page.
    pub fn header(&self) -> &abi::Arena {
        // SAFETY: the page is mapped, allocated and aligned. Its changing fields are atomic.
        unsafe { &*self.base.cast::<abi::Arena>() }
    }

    /// Fills in the header of a new arena, before another process maps it.
    pub(crate) fn begin_header(&self) {
        let header = self.base.cast::<abi::Arena>();
        // SAFETY: the header page exists, and no other process has mapped it yet.
        unsafe {
            (*header).magic = abi::ARENA_MAGIC;
            (*header).version = abi::ABI_VERSION;
            (*header).started = clock::counter();
        }
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

    /// The memory of the first chunk as words. In a run with `--guard=auto`, it is no chunk but a
    /// table. `None`: it does not exist.
    pub fn table(&self) -> Option<&[AtomicU64]> {
        let at = HEADER;
        // SAFETY: the chunk exists, so it is mapped and allocated. It is aligned, and accessed as
        // atomics only: it never becomes free, so it is no chunk of a recorder.
        (self.chunks() > 0).then(|| unsafe {
            std::slice::from_raw_parts(self.base.add(at).cast::<AtomicU64>(), CHUNK / 8)
        })
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

    /// Publishes the directory of preserved contents, which exists now, behind the path that
    /// [`Arena::feeds`] stored. Recorders then link files there. Called once.
    pub fn keeps_in(&self, directory: &Path) {
        let name = directory.as_os_str().as_bytes();
        let at = LOG + self.fed().map_or(0, |part| part.as_os_str().len()) + 1;
        if directory.is_absolute() && at + name.len() < PAGE {
            // SAFETY: the range lies within the first page, behind the path of the log. The page
            // ends with a zero. No process reads the range before the offset is published.
            unsafe { std::ptr::copy_nonoverlapping(name.as_ptr(), self.base.add(at), name.len()) };
            self.header().kept_path.store(at as u32, Ordering::Release);
        }
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

    /// Copies as many bytes from the beginning of a chunk as `into` has, which fit into a chunk.
    pub fn beginning(&self, index: usize, into: &mut [u8]) {
        self.copy(index, into);
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

    /// Writes into a chunk that the caller owns.
    pub fn write(&self, index: usize, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= CHUNK, "beyond the chunk");
        // SAFETY: within the chunk. The caller is its only writer.
        unsafe {
            let place = self.chunk(index).add(at);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len());
        }
    }

    /// Zeroes the used bytes of a chunk that has no owner.
    pub(crate) fn zero(&self, index: usize, used: usize) {
        // SAFETY: the range lies within the chunk, which has no owner any more.
        unsafe { std::ptr::write_bytes(self.chunk(index), 0, used.min(CHUNK)) };
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

    /// The word of one bit of the filter, and the mask of the bit. The filter exists only if
    /// contents are stored.
    pub(crate) fn filter_word(&self, bit: u32) -> (&AtomicU64, u64) {
        let at = PAGE + bit as usize / 64 * 8;
        // SAFETY: the filter is allocated before the chunks if contents are stored. The word is
        // aligned, and every access is atomic.
        let word = unsafe { &*self.base.add(at).cast::<AtomicU64>() };
        (word, 1 << (bit % 64))
    }

    /// Overwrites the first page from its beginning, as any recorded program can. Used by
    /// `fuzz_entry`.
    pub fn scribble(&self, bytes: &[u8]) {
        let length = bytes.len().min(PAGE);
        // SAFETY: within the first page, which exists.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.base, length) };
    }

    /// Removes the arena's name, and those of the sockets beside it. The memory lives on while a
    /// process maps it.
    pub fn remove(&self) {
        if let Some(path) = &self.path {
            // A failure has no remedy here; a later recovery removes the files.
            let _ = std::fs::remove_file(path);
            if self.header().flags.load(Ordering::Acquire) & abi::ARENA_AUTO != 0 {
                remove_sockets(path);
            }
        }
    }
}

/// The path that [`ArenaMapping::feeds`] stored in the arena of another recording. `None` if that
/// cannot be read.
pub fn log_of_arena(arena: &Path) -> Option<PathBuf> {
    let mut page = vec![0; PAGE];
    std::fs::File::open(arena)
        .ok()?
        .read_exact(&mut page)
        .ok()?;
    let name = page[LOG..].split(|byte| *byte == 0).next()?;
    (!name.is_empty()).then(|| PathBuf::from(OsString::from_vec(name.to_vec())))
}

/// The path of the supervisor's socket beside an arena.
pub fn socket_path(arena: &Path) -> PathBuf {
    with_suffix(arena, abi::SOCKET_SUFFIX)
}

/// The path of the keeper's socket beside an arena.
pub fn keeper_socket_path(arena: &Path) -> PathBuf {
    with_suffix(arena, abi::KEEPER_SUFFIX)
}

/// Removes the names of the sockets beside an arena. They may be gone already.
pub fn remove_sockets(arena: &Path) {
    let _ = std::fs::remove_file(socket_path(arena));
    let _ = std::fs::remove_file(keeper_socket_path(arena));
}

fn with_suffix(arena: &Path, suffix: &str) -> PathBuf {
    let mut path = arena.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

impl Drop for ArenaMapping {
    fn drop(&mut self) {
        truncation::forget(self.base);
        // SAFETY: mapped by `map` with this length. Borrows of the header cannot outlive `self`.
        let _ = unsafe { rustix::mm::munmap(self.base.cast(), length(self.max)) };
    }
}

/// Bytes of an arena with this number of chunks.
pub(crate) const fn length(chunks: usize) -> usize {
    HEADER + chunks * CHUNK
}

/// Memory that a test owns, so that Miri knows its bounds.
#[cfg(test)]
pub(crate) struct TestMemory(*mut [u64]);

#[cfg(test)]
impl TestMemory {
    pub(crate) fn new(chunks: usize) -> TestMemory {
        TestMemory(Box::into_raw(
            vec![0u64; length(chunks) / 8].into_boxed_slice(),
        ))
    }

    /// A mapping of this memory, which must not be dropped.
    pub(crate) fn mapping(&self, chunks: usize) -> ArenaMapping {
        ArenaMapping {
            base: self.0.cast(),
            file: std::fs::File::open("/dev/null").expect("it exists").into(),
            path: None,
            max: chunks,
            seen: AtomicU32::new(chunks as u32),
        }
    }
}

#[cfg(test)]
impl Drop for TestMemory {
    fn drop(&mut self) {
        // SAFETY: made by `into_raw` in `new`, and freed only here.
        drop(unsafe { Box::from_raw(self.0) });
    }
}
