//! Keeps contents that are about to change.
//!
//! In: a file that somebody is about to write to, truncate, replace or remove, and who waits for us. Out: its content as a file in the
//! run's directory `ID.kept`, and what the log says of it.
//!
//! Invariant: a content that has been kept stays as it was. A second name of a file is enough only where the file loses a name and
//! has no other; if it is changed after all, a copy takes the name's place first.
//!
//! Absent: whose call it is and how it waits (`guard`), what is done with what was kept (after the run).

mod place;

use crate::Contents;
use crate::clock;
use crate::guard::{Change, ChangeKind, Keep, Kept};
use backstory_eventlog::event::Ident;
use backstory_eventlog::slot::slot_ident;
use place::Place;
use rustix::fs::Statx;
use rustix::io::Errno;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

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
    size: i64,
    mtime: i64,
    ctime: i64,
    /// Any later change has later time stamps.
    settled: bool,
    /// It was not copied: this number is the file itself.
    linked: Option<i32>,
}

type Shard = HashMap<(u64, u64), Earlier>;

/// Keeps the contents of one run.
pub(crate) struct Preserver {
    contents: Contents,
    place: Place,
    next: AtomicI32,
    /// By device and inode. Who works on a file holds its shard: two who change one file wait for one copy.
    shards: [Mutex<Shard>; SHARDS],
}

impl Preserver {
    /// Keeps what `contents` says in the directory `path`, which is made when there is something to keep.
    pub(crate) fn new(contents: Contents, path: PathBuf) -> Preserver {
        Preserver {
            contents,
            place: Place::new(path),
            next: AtomicI32::new(0),
            shards: std::array::from_fn(|_| Mutex::default()),
        }
    }

    fn shard(&self, inode: u64) -> MutexGuard<'_, Shard> {
        let shard = &self.shards[inode as usize % SHARDS];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a file's content. Returns its number, how, and whether it is a link.
    fn put(&self, change: &Change<'_>, before: &Statx) -> Result<(i32, u32), Errno> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let only_name = change.kind == ChangeKind::Remove && before.stx_nlink == 1;
        if only_name && self.place.link(change.file, number).is_ok() {
            return Ok((number, place::LINK));
        }
        let how = self.place.copy(change.file, before, number)?;
        Ok((number, how))
    }
}

impl Keep for Preserver {
    fn wants(&self, _kind: ChangeKind, _device: u32, _inode: u64) -> bool {
        self.contents != Contents::Off
    }

    fn keep(&self, change: &Change<'_>) -> Option<Kept> {
        if NO_CONTENTS.iter().any(|place| change.path.starts_with(place)) {
            return None;
        }
        let key = (change.ident.dev, change.ident.ino);
        let mut shard = self.shard(change.ident.ino);
        // What was seen from outside may be older than the wait for the shard.
        let before = place::look(change.file).ok()?;
        let now = state(&before);
        let earlier = shard.get(&key).copied();
        if let Some(earlier) = earlier {
            if let Some(number) = earlier.linked.filter(|_| change.kind != ChangeKind::Remove) {
                // If this fails, the log's size and times tell that the link is not what was kept.
                let _ = self.place.replace(change.file, &before, number);
                shard.insert(
                    key,
                    Earlier {
                        linked: None,
                        ..earlier
                    },
                );
            }
            if earlier.settled && (earlier.size, earlier.mtime, earlier.ctime) == now {
                return None;
            }
        }
        if !place::is_regular(&before) || before.stx_size == 0 {
            return None;
        }
        let ident = slot_ident(&Ident::from(&before));
        let kept = match self.put(change, &before) {
            Ok((number, how)) => Kept {
                ident,
                number,
                how,
                error: 0,
            },
            Err(errno) => Kept {
                ident,
                number: -1,
                how: 0,
                error: errno.raw_os_error(),
            },
        };
        if kept.error == 0 {
            if shard.len() >= REMEMBERED {
                shard.clear();
            }
            shard.insert(key, remember(&kept, change, now));
        }
        Some(kept)
    }

    fn names_change(&self) {}
}

/// Size, modification and status change.
fn state(st: &Statx) -> (i64, i64, i64) {
    let ident = Ident::from(st);
    (ident.size, ident.mtime, ident.ctime)
}

fn remember(kept: &Kept, change: &Change<'_>, before: (i64, i64, i64)) -> Earlier {
    let linked = (kept.how == place::LINK).then_some(kept.number);
    // A link changes the status.
    let (size, mtime, ctime) = match linked {
        Some(_) => place::look(change.file).map_or(before, |st| state(&st)),
        None => before,
    };
    Earlier {
        size,
        mtime,
        ctime,
        settled: before.2 + TICK < clock::now(),
        linked,
    }
}
