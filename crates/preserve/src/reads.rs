//! The files that the run has read so far, learned from the records of recorders and guard.
//!
//! When a recorder opens a file for reading, it logs only the path. No recorded process can have
//! changed that file since, because a process that wants to must wait for this module. Therefore a
//! path still leads to the file that was read when it is resolved here, before the first change.
//! From then on the file is known by device and inode.
//!
//! Invariant: a content that was read and has not changed since is in the set. If that cannot be
//! decided any more, every file counts as read. Causes are an unknown directory, another root, lost
//! operations, records behind one that was never finished, or a directory that was moved.

mod records;
mod remembered_names;
pub(super) mod unfiltered;

use super::FileKey;
use super::hard_links::HardLinks;
use super::paths::{Paths, ThreadKey};
use backstory_abi::{CHUNK_DEEP, CHUNK_MAGIC, Chunk, DONE, RESERVED, Record, op};
use backstory_arena::ChunkSupply;
use backstory_files::{NearDirectories, executable};
use remembered_names::RememberedNames;
use rustc_hash::{FxHashMap, FxHashSet};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, StatxFlags};
use rustix::io::Errno;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most bytes of drained chunks that wait to be examined.
const PENDING: usize = 16 << 20;
/// Most programs that started since the last examination.
const STARTS: usize = 100_000;
/// Most files that are remembered.
const FILES: usize = 2 << 20;

/// The files that were read.
pub(super) struct Reads {
    arrived: Mutex<Arrived>,
    known: Mutex<ReadSet>,
}

/// Input that arrived since the last examination.
#[derive(Default)]
struct Arrived {
    /// Chunks that the drainer has taken out of the arena.
    chunks: Vec<Vec<u8>>,
    bytes: usize,
    /// Programs that started: time, process id, and current directory if it is known.
    starts: Vec<(u64, u32, Option<Vec<u8>>)>,
    overflown: bool,
}

/// The part of a chunk that has been examined.
struct Cursor {
    taken: u64,
    epoch: u64,
    at: usize,
}

#[derive(Default)]
struct ReadSet {
    cursors: FxHashMap<u32, Cursor>,
    paths: Paths,
    files: FxHashSet<FileKey>,
    /// Names that link(2) gave or used.
    names: HardLinks,
    /// New names of files. They are examined once more, because the rename may not have happened
    /// yet.
    renamed: Vec<Vec<u8>>,
    everything: bool,
    /// A chunk has records behind one that is not finished. A signal handler has written them, or
    /// the writer of the unfinished record was killed. Until they are examined, every file counts
    /// as read.
    hidden: bool,
    /// Files that are not yet in the arena's filter.
    fresh: Vec<FileKey>,
    /// Paths that were looked up in this examination, each of which led to a file. Another look
    /// would find the same.
    looked: FxHashSet<Vec<u8>>,
    /// Programs, and libraries that were loaded later, whose libraries were looked up in this
    /// examination.
    executed: FxHashSet<Vec<u8>>,
    /// The directories of this examination. Later their paths may lead to others.
    near: NearDirectories,
    /// Names that were looked up in earlier examinations.
    remembered: RememberedNames,
    /// Finds what the loader of a plain program reads, if programs start without the filter.
    loaded: Option<unfiltered::LoadedFiles>,
    /// The same for a library that a process loads while it runs.
    loaded_later: Option<unfiltered::LoadedFiles>,
    /// Threads that may have executed a program without the filter that is not there; true if a
    /// child on the thread's stack did. Until it is known that the calls failed, every file counts
    /// as read.
    missing: FxHashMap<ThreadKey, bool>,
}

/// Tells whether every read that the guard has seen has been logged.
pub(super) type Logged<'a> = &'a dyn Fn() -> bool;

/// One record of a chunk.
struct Taken<'c> {
    time: u64,
    thread: ThreadKey,
    bytes: &'c [u8],
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Reads {
    /// An empty set, but for the files that the command inherits open for reading.
    pub(super) fn new<'a>(inherited: impl Iterator<Item = &'a [u8]>) -> Reads {
        let mut known = ReadSet::default();
        for path in inherited {
            known.read(path, false);
        }
        known.forget_places();
        Reads {
            arrived: Mutex::default(),
            known: Mutex::new(known),
        }
    }

    /// Takes the bytes of a chunk that is about to leave the arena.
    pub(super) fn leaves(&self, bytes: &[u8]) {
        let mut arrived = lock(&self.arrived);
        if arrived.bytes + bytes.len() > PENDING {
            arrived.overflown = true;
            (arrived.chunks, arrived.bytes) = (Vec::new(), 0);
        }
        if !arrived.overflown {
            arrived.bytes += bytes.len();
            arrived.chunks.push(bytes.to_vec());
        }
    }

    /// Takes chunks back whose last records belong to the next examination.
    fn come_back(&self, left: &[&Vec<u8>]) {
        let mut arrived = lock(&self.arrived);
        arrived.bytes += left.iter().map(|chunk| chunk.len()).sum::<usize>();
        // The older chunk of two with the same number has to come first.
        let left = left.iter().map(|chunk| (*chunk).clone());
        drop(arrived.chunks.splice(0..0, left));
    }

    /// Takes the current directory of a program that starts.
    pub(super) fn starts(&self, time: u64, pid: u32, directory: Option<Vec<u8>>) {
        let mut arrived = lock(&self.arrived);
        if arrived.starts.len() < STARTS {
            arrived.starts.push((time, pid, directory));
        } else {
            arrived.overflown = true;
        }
    }

    /// Removes a file that is about to change. Returns whether its content was read. The next
    /// content is unread.
    pub(super) fn take(&self, stock: &ChunkSupply, file: FileKey, all: Logged<'_>) -> bool {
        let mut known = lock(&self.known);
        self.catch_up(&mut known, stock, all);
        let unclear = known.everything || known.hidden || !known.missing.is_empty();
        known.files.remove(&file) || unclear || stock.arena.is_shared(file.0, file.1)
    }

    /// Puts a file back after [`Reads::take`], because it does not change yet and may have been
    /// read.
    pub(super) fn put_back(&self, file: FileKey) {
        lock(&self.known).files.insert(file);
    }

    /// Returns whether this file, which has been read, keeps a name that the run knows when it
    /// loses `path`. Its content then stays until the other name goes, too. From now on `path` does
    /// not count, whether or not the removal succeeds.
    pub(super) fn stays(&self, file: FileKey, path: &[u8]) -> bool {
        lock(&self.known).names.stays(file, path)
    }

    /// Examines all records that were logged so far.
    pub(super) fn look(&self, stock: &ChunkSupply, all: Logged<'_>) {
        self.catch_up(&mut lock(&self.known), stock, all);
    }

    /// Examines all records, and publishes in the arena how many possible reads the filter covers.
    /// This holds only if `all` confirms, after the count was read, that no record waits to be
    /// logged. A receiver counts a read before it lets the reader go on, and logs it afterwards.
    fn catch_up(&self, known: &mut ReadSet, stock: &ChunkSupply, all: Logged<'_>) {
        let arena = &stock.arena;
        let reported = arena.reported();
        let until = known.present();
        let whole = self.look_at_records(known, stock, until);
        for (device, inode) in known.fresh.drain(..) {
            arena.note_read(device, inode);
        }
        if known.everything {
            arena.publish_filtered(0);
        } else if whole && !known.hidden && known.missing.is_empty() && all() {
            arena.publish_filtered(reported);
        }
    }

    /// Examines the records of operations until a time. Returns false if later ones are left, and
    /// with them perhaps some that were logged before.
    fn look_at_records(&self, known: &mut ReadSet, stock: &ChunkSupply, until: u64) -> bool {
        if known.everything {
            lock(&self.arrived).chunks.clear();
            return true;
        }
        known.hidden = false;
        let mut whole = true;
        let mut records = Vec::new();
        // The arena comes first: a chunk that leaves it meanwhile has been announced before.
        let mut live = Vec::new();
        for index in stock.arena.owned() {
            let head = stock.arena.chunk_header(index);
            if head.flags & CHUNK_DEEP != 0 {
                continue; // its records are of another kind
            }
            if head.magic == CHUNK_MAGIC
                && let Some(at) = known.news(&head)
            {
                let mut bytes = Vec::new();
                stock.arena.records_from(index, at, &mut bytes);
                live.push((head, at, bytes));
            }
        }
        let arrived = std::mem::take(&mut *lock(&self.arrived));
        // A later chunk with the number of one that is left waits, too: both have one cursor.
        let (mut left, mut waiting) = (Vec::new(), FxHashSet::default());
        for chunk in &arrived.chunks {
            let head = Chunk::read(chunk).filter(|head| head.magic == CHUNK_MAGIC);
            let Some((head, at)) = head.and_then(|head| Some((head, known.news(&head)?))) else {
                continue;
            };
            let bytes = chunk.get(at..).unwrap_or_default();
            if waiting.contains(&head.index)
                || !known.collect((&head, at), bytes, until, &mut records)
            {
                waiting.insert(head.index);
                left.push(chunk);
            }
        }
        // No record of these chunks will be finished any more.
        known.everything |= std::mem::take(&mut known.hidden);
        for (head, at, bytes) in &live {
            // Unless the chunk has left meanwhile and was examined as a whole.
            if !waiting.contains(&head.index) && known.news(head) == Some(*at) {
                whole &= known.collect((head, *at), bytes, until, &mut records);
            }
        }
        if !left.is_empty() {
            whole = false;
            self.come_back(&left);
        }
        let lost = stock.arena.header().lost.load(Ordering::Acquire) > 0;
        if arrived.overflown || lost {
            known.everything = true;
            return true;
        }
        records.sort_by_key(|record: &Taken<'_>| record.time);
        for path in std::mem::take(&mut known.renamed) {
            known.read(&path, true);
        }
        let mut starts = arrived.starts;
        starts.sort_by_key(|(time, ..)| *time);
        let later = starts.split_off(starts.partition_point(|(time, ..)| *time <= until));
        lock(&self.arrived).starts.extend(later);
        let mut starts = starts.into_iter().peekable();
        for record in &records {
            while let Some((_, pid, directory)) = starts.next_if(|(time, ..)| *time <= record.time)
            {
                known.paths.starts(pid, directory);
            }
            known.apply(record);
        }
        starts.for_each(|(_, pid, directory)| known.paths.starts(pid, directory));
        known.forget_places();
        known.everything |= known.files.len() > FILES;
        whole
    }
}

impl ReadSet {
    /// Ends an examination: until the next one, the paths may lead to others.
    fn forget_places(&mut self) {
        self.looked.clear();
        self.executed.clear();
        self.near = NearDirectories::default();
        self.remembered.end();
    }

    /// Adds a file that was read.
    fn add(&mut self, file: FileKey) {
        if self.files.insert(file) {
            self.fresh.push(file);
        }
    }

    /// The offset of the first record of a chunk that was not examined yet.
    fn news(&self, head: &Chunk) -> Option<usize> {
        let cursor = self.cursors.get(&head.index);
        let same = cursor.filter(|c| (c.taken, c.epoch) == (head.taken, head.epoch));
        let at = same.map_or(Chunk::SIZE, |c| c.at);
        ((at as u64) < head.next).then_some(at)
    }

    /// Collects the records that matter, until a time. `bytes` is the content of the chunk from
    /// offset `start` on. Returns false if later records are left.
    fn collect<'c>(
        &mut self,
        (head, start): (&Chunk, usize),
        bytes: &'c [u8],
        until: u64,
        records: &mut Vec<Taken<'c>>,
    ) -> bool {
        let (mut at, mut whole) = (0, true);
        let mut begun = None;
        // An unfinished record is examined next time. Its thread has read no byte yet.
        while let Some(record) = bytes.get(at..).and_then(Record::read) {
            let end = at + usize::from(record.size);
            if end < at + Record::SIZE
                || end > bytes.len()
                || ![RESERVED, DONE].contains(&record.state)
            {
                self.hidden |= hides_others(&bytes[at..], &record);
                break;
            }
            if record.time > until {
                whole = false;
                break;
            }
            if records::matters(&record) {
                // A process writes that it begins within its first call, whose time is earlier.
                if let Some(start) = begun {
                    let start: &mut Taken<'_> = &mut records[start];
                    start.time = start.time.min(record.time);
                }
                begun = (record.op == op::START).then_some(records.len()).or(begun);
                records.push(Taken {
                    time: record.time,
                    thread: ThreadKey::of(head),
                    bytes: &bytes[at..end],
                });
            }
            at = end;
        }
        let cursor = Cursor {
            taken: head.taken,
            epoch: head.epoch,
            at: start + at,
        };
        self.cursors.insert(head.index, cursor);
        whole
    }

    /// Remembers the file that a path leads to. With `moved`, the path is a new name, and a final
    /// link is not followed. Returns false if the path leads to no file.
    fn read(&mut self, path: &[u8], moved: bool) -> bool {
        if super::is_interface(path) {
            self.everything |= leads_elsewhere(path);
            return true;
        }
        if !moved {
            if let Some(file) = self.remembered.file(path) {
                self.add(file);
                return true;
            }
            if self.looked.contains(path) {
                return true;
            }
        }
        let follow = if moved {
            AtFlags::SYMLINK_NOFOLLOW
        } else {
            AtFlags::empty()
        };
        let flags = AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC | follow;
        let (directory, name) = self.near.locate(path);
        let mask = StatxFlags::TYPE | StatxFlags::INO;
        let st = match rustix::fs::statx(directory, name, flags, mask) {
            Ok(st) => st,
            Err(Errno::NAMETOOLONG) => {
                // The reader resolved the path from a directory that is being moved.
                self.everything = true;
                return true;
            }
            Err(_) => return false,
        };
        let device = rustix::fs::makedev(st.stx_dev_major, st.stx_dev_minor);
        match FileType::from_raw_mode(st.stx_mode.into()) {
            FileType::RegularFile => {
                self.add((device as u32, st.stx_ino));
            }
            // Files read below it may now be elsewhere.
            FileType::Directory | FileType::Symlink if moved => self.everything = true,
            _ => {}
        }
        if !moved {
            self.looked.insert(path.to_vec());
        }
        true
    }

    /// Remembers the interpreter of a script, or the loader of a program, which the kernel opens
    /// itself. A program that executes `/proc/self/exe` was executed by another name before.
    /// Resolved here, that path would name this process.
    fn read_interpreter(&mut self, path: &[u8]) {
        let mut head = [0; executable::HEAD];
        let length = match super::is_interface(path) {
            true => 0,
            false => read_head(path, &mut head).unwrap_or(0),
        };
        let named = head.get(..length).and_then(executable::interpreter);
        if let Some(named) = named.filter(|named| named.starts_with(b"/")) {
            self.read(named, false);
        }
    }
}

/// True for a path of a kernel interface that may lead to a file elsewhere. It has `..`, or a link
/// of a process to a directory or a descriptor (proc_pid_cwd(5), proc_pid_fd(5)). Resolved here, a
/// link of `/proc/self` would be one of this process.
fn leads_elsewhere(path: &[u8]) -> bool {
    let mut parts = path.split(|byte| *byte == b'/').peekable();
    while let Some(part) = parts.next() {
        let is_link = match part {
            b".." => return true,
            b"cwd" | b"root" | b"fd" | b"map_files" => path.starts_with(b"/proc/"),
            _ => false,
        };
        if is_link && parts.peek().is_some() && !path.starts_with(b"/proc/sys/") {
            return true;
        }
    }
    false
}

/// True if something stands behind an unfinished record, which begins these bytes. Memory that no
/// record has reached is zero.
fn hides_others(bytes: &[u8], unfinished: &Record) -> bool {
    let size = Some(usize::from(unfinished.size)).filter(|size| *size >= Record::SIZE);
    let behind = bytes.get(size.unwrap_or(0)..);
    behind.is_none_or(|behind| behind.iter().any(|byte| *byte != 0))
}

/// Reads the first bytes of a file without waiting. Returns their number.
fn read_head(path: &[u8], head: &mut [u8]) -> Result<usize, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    let mut length = 0;
    while let Some(rest) = head.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match rustix::io::read(&file, rest) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(length)
}

#[cfg(test)]
mod tests;
