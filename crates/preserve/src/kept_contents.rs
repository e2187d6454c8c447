//! The contents that a run has preserved: one for each state of a file.
//!
//! In: a file that is about to change, under the lock of that file. Out: the fields of the log
//! record, or nothing if this state has been preserved already.
//!
//! Invariant: the preserved contents take at most the run's limit, if it has one.

use crate::content_directory::{self, ContentDirectory};
use crate::{FileKey, PreserveResult, key};
use backstory_arena::ChunkSupply;
use backstory_files::Ident;
use backstory_guard::{ChangeKind, Effort, EffortExceeded, PreservedContent};
use backstory_sys::clock;
use rustix::fs::Statx;
use rustix::io::Errno;
use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// Number of locks: files with different locks are preserved at the same time.
const SHARDS: usize = 64;
/// Files remembered under each lock. With more, a content may be preserved twice.
const REMEMBERED: usize = 4096;
/// Largest file, in bytes, that a little effort copies.
const LITTLE: u64 = 64 << 10;
/// Largest file, in bytes, that is preserved because some of its content stays. Appending to a long
/// log must not copy it.
const PARTLY: u64 = 16 << 20;

/// The preserved content of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EarlierCopy {
    /// Size, modification time and status change time after preserving.
    state: (i64, i64, i64),
    /// True if any later change must have later time stamps.
    settled: bool,
    /// The number of a hard link. `None` if the content was copied.
    linked: Option<i32>,
}

/// The preserved contents of the files with one lock.
pub(crate) type Shard = HashMap<FileKey, EarlierCopy>;

/// The preserved contents of a run.
pub(crate) struct KeptContents {
    /// The start of the run, in ns since 1970.
    began: i64,
    place: ContentDirectory,
    /// Its arena gives the contents their numbers. Recorders take numbers, too.
    stock: Arc<ChunkSupply>,
    /// Most bytes that they may take. `u64::MAX` without a limit.
    limit: u64,
    /// Bytes that they take. A file that shares its blocks counts as a copy.
    held: AtomicU64,
    /// Locks, chosen by inode. Two threads that change one file wait for one copy.
    shards: [Mutex<Shard>; SHARDS],
}

impl KeptContents {
    /// None yet, of a run that begins now. They will lie in a directory at `path`.
    pub(crate) fn new(path: PathBuf, limit: Option<u64>, stock: &Arc<ChunkSupply>) -> KeptContents {
        KeptContents {
            began: clock::machine(),
            place: ContentDirectory::new(path),
            stock: Arc::clone(stock),
            limit: limit.unwrap_or(u64::MAX),
            held: AtomicU64::new(0),
            shards: std::array::from_fn(|_| Mutex::default()),
        }
    }

    /// The path of the directory.
    pub(crate) fn path(&self) -> &Path {
        self.place.path()
    }

    /// Makes the directory now, because its path may soon lead elsewhere.
    pub(crate) fn prepare(&self) {
        self.place.prepare();
    }

    /// Takes the lock of a file.
    pub(crate) fn shard(
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

    /// Preserves the content of a file within the limit. Returns its number and the method, or the
    /// reason for a failure.
    fn put(
        &self,
        how: (ChangeKind, Effort),
        file: BorrowedFd<'_>,
        before: &Statx,
    ) -> Result<Result<(i32, u32), Errno>, EffortExceeded> {
        let size = before.stx_size;
        let held = self.held.fetch_add(size, Ordering::Relaxed);
        let done = match held.saturating_add(size) > self.limit {
            true => Ok(Err(Errno::DQUOT)),
            false => self.link_or_copy(how, file, before),
        };
        if !matches!(done, Ok(Ok(_))) {
            self.held.fetch_sub(size, Ordering::Relaxed);
        }
        done
    }

    /// Links or copies a file into the directory.
    fn link_or_copy(
        &self,
        (kind, effort): (ChangeKind, Effort),
        file: BorrowedFd<'_>,
        before: &Statx,
    ) -> Result<Result<(i32, u32), Errno>, EffortExceeded> {
        let number = self.stock.arena.next_kept() as i32;
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
    pub(crate) fn keep(
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
}

/// The kind of change before which the content must be preserved, or `None`. `Part` only if nothing
/// but the part that stays is a reason.
pub(crate) fn wanted(
    shard: &Shard,
    (kind, file): (ChangeKind, FileKey),
    is_read: bool,
) -> Option<ChangeKind> {
    let linked = shard.get(&file).and_then(|earlier| earlier.linked);
    match kind {
        ChangeKind::Part if is_read || linked.is_some() => Some(ChangeKind::Write),
        kind @ (ChangeKind::Update | ChangeKind::Part) => Some(kind),
        kind => (is_read || linked.is_some()).then_some(kind),
    }
}

/// Checks whether a file may be copied with this effort.
fn affordable(effort: Effort, file: &Statx) -> Result<(), EffortExceeded> {
    match effort {
        Effort::Little if file.stx_size > LITTLE => Err(EffortExceeded),
        _ => Ok(()),
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
