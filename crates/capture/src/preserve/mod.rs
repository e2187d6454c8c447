//! Keeps contents that are about to change.
//!
//! In: a file that somebody is about to write to, truncate, replace or remove, and who waits for us. Out: its content as a file in the
//! run's directory `ID.kept`, and what the log says of it.
//!
//! Invariant: a content that has been kept stays as it was. A second name of a file is enough only where the file loses a name and
//! has no other; if it is changed after all, a copy takes the name's place first.
//!
//! Absent: whose call it is and how it waits (`guard`), what is done with what was kept (after the run).

mod paths;
mod place;
mod reads;

use crate::Contents;
use crate::clock;
use crate::guard::{Change, ChangeKind, Found, Keep, Kept};
use crate::header::Inherited;
use crate::stock::Stock;
use backstory_eventlog::event::Ident;
use backstory_eventlog::slot::slot_ident;
use place::Place;
use reads::{FileKey, Reads};
use rustix::fs::Statx;
use rustix::io::Errno;
use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Files that are looked after at the same time.
const SHARDS: usize = 64;
/// Files remembered in each; of more, a content may be kept twice.
const REMEMBERED: usize = 4096;
/// ns that the file systems' clock may stand still: a change within that time leaves the same time stamps.
const TICK: i64 = 20_000_000;
/// Files that are interfaces, not contents, or memory that is shared on purpose.
const NO_CONTENTS: [&[u8]; 3] = [b"/proc/", b"/sys/", b"/dev/"];

/// What was kept of a file.
#[derive(Debug, Clone, Copy)]
struct Earlier {
    /// Size, modification and status change after that.
    state: (i64, i64, i64),
    /// Any later change has later time stamps.
    settled: bool,
    /// It was not copied: this number is the file itself.
    linked: Option<i32>,
}

type Shard = HashMap<FileKey, Earlier>;

/// Keeps the contents of one run.
pub(crate) struct Preserver {
    contents: Contents,
    place: Place,
    next: AtomicI32,
    stock: Arc<Stock>,
    reads: Arc<Reads>,
    /// By device and inode. Who works on a file holds its shard: two who change one file wait for one copy.
    shards: [Mutex<Shard>; SHARDS],
}

impl Preserver {
    /// Keeps what `contents` says in the directory `path`, which is made when there is something to keep. What is logged in the
    /// arena of `stock` from now on is known to it.
    pub(crate) fn new(
        contents: Contents,
        path: PathBuf,
        inherited: &[Inherited],
        stock: &Arc<Stock>,
    ) -> Preserver {
        let open = inherited.iter().filter(|i| i.access != libc::O_WRONLY);
        let reads = Arc::new(Reads::new(open.map(|i| &i.target[..])));
        if contents == Contents::Lazy {
            let told = Arc::clone(&reads);
            stock.tell_leaving(Box::new(move |chunk| told.leaves(chunk)));
        }
        Preserver {
            contents,
            place: Place::new(path),
            next: AtomicI32::new(0),
            stock: Arc::clone(stock),
            reads,
            shards: std::array::from_fn(|_| Mutex::default()),
        }
    }

    fn shard(&self, file: FileKey) -> MutexGuard<'_, Shard> {
        let shard = &self.shards[file.1 as usize % SHARDS];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The content of this file, which is about to change, must not be lost. Asked once before each change.
    fn wants(&self, shard: &Shard, change: &Change<'_>, file: FileKey) -> bool {
        let linked = shard.get(&file).is_some_and(|earlier| earlier.linked.is_some());
        let read =
            self.contents == Contents::All || self.reads.take(&self.stock, file, &|| change.all_logged());
        read || linked || change.kind == ChangeKind::Update || !change.all_logged()
    }

    /// Keeps a file's content. Returns its number, and how.
    fn put(&self, kind: ChangeKind, file: BorrowedFd<'_>, before: &Statx) -> Result<(i32, u32), Errno> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let only_name = kind == ChangeKind::Remove && before.stx_nlink == 1;
        if only_name && self.place.link(file, number).is_ok() {
            return Ok((number, place::LINK));
        }
        let how = self.place.copy(file, before, number)?;
        Ok((number, how))
    }

    /// Keeps what is there now, unless it has been kept already.
    fn keep_now(&self, shard: &mut Shard, kind: ChangeKind, file: BorrowedFd<'_>) -> Option<Kept> {
        let before = place::look(file).ok()?;
        let ident = Ident::from(&before);
        let key = (ident.dev as u32, ident.ino);
        if !place::is_regular(&before) || before.stx_size == 0 {
            return None;
        }
        if let Some(earlier) = shard.get(&key).copied() {
            if let Some(number) = earlier.linked.filter(|_| kind != ChangeKind::Remove) {
                // If this fails, the log's size and times tell that the link is not what was kept.
                let _ = self.place.replace(file, &before, number);
                shard.insert(
                    key,
                    Earlier {
                        linked: None,
                        ..earlier
                    },
                );
            }
            if earlier.settled && earlier.state == state(&ident) {
                return None;
            }
        }
        let (number, how, error) = match self.put(kind, file, &before) {
            Ok((number, how)) => (number, how, 0),
            Err(errno) => (-1, 0, errno.raw_os_error()),
        };
        let kept = Kept {
            ident: slot_ident(&ident),
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
        Some(kept)
    }
}

impl Keep for Preserver {
    fn can_go(&self, change: &Change<'_>) -> bool {
        let file = (change.device, change.inode);
        // Who works on a file, or is about to, has not taken its mark away yet, or holds the shard.
        let shard = &self.shards[file.1 as usize % SHARDS];
        let lazy =
            self.contents == Contents::Lazy && change.all_logged() && change.kind != ChangeKind::Update;
        lazy && !self.reads.has(&self.stock, file, &|| change.all_logged())
            && shard
                .try_lock()
                .is_ok_and(|shard| shard.get(&file).is_none_or(|earlier| earlier.linked.is_none()))
    }

    fn keep(&self, change: &Change<'_>, find: &mut dyn FnMut() -> Option<Found>) -> Option<Kept> {
        let file = (change.device, change.inode);
        let mut shard = self.shard(file);
        if !self.wants(&shard, change, file) {
            return None;
        }
        let found = find()?;
        if NO_CONTENTS.iter().any(|place| found.path.starts_with(place)) {
            return None;
        }
        // Another may have been put in its place since it was asked for.
        let there = Ident::from(&place::look(found.file.as_fd()).ok()?);
        let actual = (there.dev as u32, there.ino);
        if actual != file {
            drop(shard);
            shard = self.shard(actual);
            if !self.wants(&shard, change, actual) {
                return None;
            }
        }
        self.keep_now(&mut shard, change.kind, found.file.as_fd())
    }

    fn names_change(&self) {
        if self.contents == Contents::Lazy {
            self.reads.look(&self.stock, &|| false);
        }
    }

    fn may_have_read(&self) {
        self.stock.arena.read_more();
    }

    fn starts(&self, time: u64, pid: u32, directory: Option<Vec<u8>>) {
        if self.contents == Contents::Lazy {
            self.reads.starts(time, pid, directory);
        }
    }
}

/// Size, modification and status change.
fn state(ident: &Ident) -> (i64, i64, i64) {
    (ident.size, ident.mtime, ident.ctime)
}

fn remember(kept: &Kept, file: BorrowedFd<'_>, before: &Ident) -> Earlier {
    let linked = (kept.how == place::LINK).then_some(kept.number);
    // A link changes the status.
    let now = linked
        .and_then(|_| place::look(file).ok())
        .map(|st| Ident::from(&st));
    Earlier {
        state: state(now.as_ref().unwrap_or(before)),
        settled: before.ctime + TICK < clock::now(),
        linked,
    }
}
