//! Preserves contents that are about to change.
//!
//! In: a file that a process is about to write to, truncate, replace or remove; the process waits
//! for this crate. Out: the file's content as a file in the run's directory `ID.kept`, and the
//! fields of the log record about it.
//!
//! Invariant: a preserved content stays as it was. A hard link is enough only if the file loses a
//! name and has no other. If the file is changed nevertheless, a copy replaces the link first.
//!
//! Absent: the system call and its waiting (`guard`), and the use of the preserved contents after
//! the run (`contents`).

mod content_directory;
mod hard_links;
mod paths;
mod reads;

use backstory_arena::ChunkSupply;
use backstory_files::Ident;
use backstory_guard::{
    ChangeKind, ContentChange, ContentPreserver, Effort, EffortExceeded, FindFile, FoundFile,
    PreservedContent,
};
use backstory_sys::clock;
use backstory_vocabulary::ContentsMode;
use content_directory::ContentDirectory;
use reads::Reads;
use rustix::fs::Statx;
use rustix::io::Errno;
use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// Number of locks: files with different locks are preserved at the same time.
const SHARDS: usize = 64;
/// Files remembered under each lock. With more, a content may be preserved twice.
const REMEMBERED: usize = 4096;
/// ns that the file systems' clock may stand still: a change within that time leaves the same time
/// stamps.
const LITTLE: u64 = 64 << 10;
/// Largest file, in bytes, that is preserved because some of its content stays. Appending to a long
/// log must not copy it.
const PARTLY: u64 = 16 << 20;
/// Directories of files that are kernel interfaces, or memory that is shared on purpose.
const NO_CONTENTS: [&[u8]; 3] = [b"/proc/", b"/sys/", b"/dev/"];

/// The preserved content of a file.
#[derive(Debug, Clone, Copy)]
struct EarlierCopy {
    /// Size, modification time and status change time after preserving.
    state: (i64, i64, i64),
    /// True if any later change must have later time stamps.
    settled: bool,
    /// The number of a hard link. `None` if the content was copied.
    linked: Option<i32>,
}

/// A file: the low half of its device number, and its inode number.
type FileKey = (u32, u64);

type Shard = HashMap<FileKey, EarlierCopy>;

/// Preserves the contents of one run.
pub struct Preserver {
    contents: ContentsMode,
    /// The start of the run, in ns since 1970.
    began: i64,
    place: ContentDirectory,
    next: AtomicI32,
    stock: Arc<ChunkSupply>,
    reads: Arc<Reads>,
    /// Locks, chosen by device and inode. Two threads that change one file wait for one copy.
    shards: [Mutex<Shard>; SHARDS],
}

impl Preserver {
    /// Preserves contents in the directory `path`, as the mode `contents` says. The directory is
    /// made when it is first needed. `open` are the files that the command inherits open for
    /// reading. The preserver learns of all records that are written to the arena of `stock` from
    /// now on.
    pub fn new<'a>(
        contents: ContentsMode,
        path: PathBuf,
        open: impl Iterator<Item = &'a [u8]>,
        stock: &Arc<ChunkSupply>,
    ) -> Preserver {
        let reads = Arc::new(Reads::new(open));
        match contents {
            ContentsMode::Off => {}
            ContentsMode::Lazy => {
                let known = Arc::clone(&reads);
                stock.on_leaving(Box::new(move |chunk| known.leaves(chunk)));
            }
            ContentsMode::All => stock.arena.note_everything(),
        }
        Preserver {
            contents,
            began: clock::machine(),
            place: ContentDirectory::new(path),
            next: AtomicI32::new(0),
            stock: Arc::clone(stock),
            reads,
            shards: std::array::from_fn(|_| Mutex::default()),
        }
    }

    fn shard(
        &self,
        file: FileKey,
        effort: Effort,
    ) -> Result<MutexGuard<'_, Shard>, EffortExceeded> {
        let shard = &self.shards[file.1 as usize % SHARDS];
        match effort {
            Effort::Any => Ok(shard.lock().unwrap_or_else(PoisonError::into_inner)),
            Effort::Little => match shard.try_lock() {
                Err(TryLockError::WouldBlock) => Err(EffortExceeded),
                Err(TryLockError::Poisoned(shard)) => Ok(shard.into_inner()),
                Ok(shard) => Ok(shard),
            },
        }
    }

    /// Decides whether the content of a file that is about to change must be preserved. Returns the
    /// kind of change, or `Part` if that is the only reason. Called once before each change.
    fn wants(
        &self,
        shard: &Shard,
        change: &ContentChange<'_>,
        file: FileKey,
    ) -> Option<ChangeKind> {
        let linked = shard
            .get(&file)
            .is_some_and(|earlier| earlier.linked.is_some());
        let read = self.contents == ContentsMode::All
            || self.reads.take(&self.stock, file, &|| change.all_logged());
        match change.kind {
            ChangeKind::Part if read || linked || !change.all_logged() => Some(ChangeKind::Write),
            kind @ (ChangeKind::Update | ChangeKind::Part) => Some(kind),
            kind => (read || linked || !change.all_logged()).then_some(kind),
        }
    }

    /// Preserves the content of a file. Returns its number and the method, or the reason for a
    /// failure.
    fn put(
        &self,
        (kind, effort): (ChangeKind, Effort),
        file: BorrowedFd<'_>,
        before: &Statx,
    ) -> Result<Result<(i32, u32), Errno>, EffortExceeded> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let only_name = kind == ChangeKind::Remove && before.stx_nlink == 1;
        if only_name && self.place.link(file, number).is_ok() {
            return Ok(Ok((number, content_directory::LINK)));
        }
        if kind == ChangeKind::Part && before.stx_size > PARTLY {
            return Ok(Err(Errno::FBIG));
        }
        affordable(effort, before)?;
        let copied = self.place.copy(file, before, number);
        Ok(copied.map(|how| (number, how)))
    }

    /// Preserves the present content, unless it has been preserved already. `before` is the file's
    /// state when the lock was taken.
    fn keep_now(
        &self,
        shard: &mut Shard,
        (kind, effort): (ChangeKind, Effort),
        file: BorrowedFd<'_>,
        before: &Statx,
    ) -> PreserveResult {
        let ident = Ident::from(before);
        let key = key(&ident);
        // A file that the run itself made is made again when the run is repeated.
        let made = kind == ChangeKind::Part && ident.birth >= self.began;
        if !content_directory::is_regular(before) || before.stx_size == 0 || made {
            return Ok(None);
        }
        if let Some(earlier) = shard.get(&key).copied() {
            if let Some(number) = earlier.linked.filter(|_| kind != ChangeKind::Remove) {
                affordable(effort, before)?;
                // If this fails, the size and times in the log show that the link is not the
                // preserved content.
                let _ = self.place.replace(file, before, number);
                shard.insert(
                    key,
                    EarlierCopy {
                        linked: None,
                        ..earlier
                    },
                );
            }
            if earlier.settled && earlier.state == state(&ident) {
                return Ok(None);
            }
        }
        let (number, how, error) = match self.put((kind, effort), file, before)? {
            Ok((number, how)) => (number, how, 0),
            Err(errno) => (-1, 0, errno.raw_os_error()),
        };
        let kept = PreservedContent {
            ident,
            number,
            how,
            error,
        };
        if error == 0 {
            if shard.len() >= REMEMBERED {
                shard.clear();
            }
            shard.insert(key, remember(&kept, file, &ident));
        }
        Ok(Some(kept))
    }

    /// Preserves the content of `found`, whose state was `before` when its lock `shard` was taken.
    fn keep_it(
        &self,
        shard: &mut Shard,
        how: (ChangeKind, Effort),
        found: &FoundFile,
        before: &Statx,
    ) -> PreserveResult {
        let file = key(&Ident::from(before));
        let stays = || self.contents == ContentsMode::Lazy && self.reads.stays(file, &found.path);
        if how.0 == ChangeKind::Remove && before.stx_nlink > 1 && stays() {
            self.reads.put_back(file);
            return Ok(None);
        }
        let kept = self.keep_now(shard, how, found.file.as_fd(), before);
        if kept.is_err() {
            // Done while this thread holds the lock.
            self.reads.put_back(file);
        }
        kept
    }
}

type PreserveResult = Result<Option<PreservedContent>, EffortExceeded>;

fn key(ident: &Ident) -> FileKey {
    (ident.dev as u32, ident.ino)
}

/// True below a directory whose files are kernel interfaces.
fn is_interface(path: &[u8]) -> bool {
    NO_CONTENTS.iter().any(|place| path.starts_with(place))
}

/// Checks whether a file may be copied with this effort.
fn affordable(effort: Effort, file: &Statx) -> Result<(), EffortExceeded> {
    match effort {
        Effort::Little if file.stx_size > LITTLE => Err(EffortExceeded),
        _ => Ok(()),
    }
}

impl ContentPreserver for Preserver {
    fn preserve(
        &self,
        change: &ContentChange<'_>,
        effort: Effort,
        find: FindFile<'_>,
    ) -> PreserveResult {
        let file = (change.device, change.inode);
        let mut shard = self.shard(file, effort)?;
        let Some(kind) = self.wants(&shard, change, file) else {
            return Ok(None);
        };
        let found = find().inspect_err(|_| self.reads.put_back(file))?;
        let Some(found) = found.filter(|found| !is_interface(&found.path)) else {
            return Ok(None);
        };
        let Ok(there) = content_directory::look(found.file.as_fd()) else {
            return Ok(None);
        };
        // Another file may have taken its place since the request.
        let actual = key(&Ident::from(&there));
        if actual == file {
            return self.keep_it(&mut shard, (kind, effort), &found, &there);
        }
        self.reads.put_back(file);
        drop(shard);
        let mut shard = self.shard(actual, effort)?;
        let wanted = self.wants(&shard, change, actual);
        // The previous holder of the lock may have changed it meanwhile.
        match (wanted, content_directory::look(found.file.as_fd())) {
            (Some(kind), Ok(there)) => self.keep_it(&mut shard, (kind, effort), &found, &there),
            _ => Ok(None),
        }
    }

    fn note_change(&self, device: u32, inode: u64) -> bool {
        self.stock.arena.note_changed(device, inode)
    }

    fn names_will_change(&self) {
        if self.contents == ContentsMode::Lazy {
            self.reads.look(&self.stock, &|| false);
        }
    }

    fn note_possible_read(&self) {
        self.stock.arena.report_read();
    }

    fn program_starts(&self, time: u64, pid: u32, directory: Option<Vec<u8>>) {
        if self.contents == ContentsMode::Lazy {
            self.reads.starts(time, pid, directory);
        }
    }
}

/// Size, modification time and status change time.
fn state(ident: &Ident) -> (i64, i64, i64) {
    (ident.size, ident.mtime, ident.ctime)
}

fn remember(kept: &PreservedContent, file: BorrowedFd<'_>, before: &Ident) -> EarlierCopy {
    let linked = (kept.how == content_directory::LINK).then_some(kept.number);
    // Making a link changes the status change time.
    let now = linked
        .and_then(|_| content_directory::look(file).ok())
        .map(|st| Ident::from(&st));
    EarlierCopy {
        state: state(now.as_ref().unwrap_or(before)),
        settled: before.ctime < clock::files(),
        linked,
    }
}
