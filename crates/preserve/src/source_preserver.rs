//! Preserves contents for a source that does the operations itself, as a mounted file system does.
//!
//! In: the files that are read, and the open files that are about to change. Out: the same as of
//! [`Preserver`](crate::Preserver).
//!
//! No path is resolved: the source may serve that path itself, and would wait for itself.
//!
//! Invariants:
//!
//! - A content that was read and has not changed since is preserved before it changes. If too many
//!   files were read, every file counts as read. Exception: a later write through the same open
//!   file does not preserve what was read in between.
//! - A reader does not wait for the copy of another thread. Exception: if all threads of the source
//!   copy, no thread is left that serves the reader.
//!
//! Absent: other names of a file that loses one. Its content is preserved with each of them.

use crate::kept_contents::{KeptContents, wanted};
use crate::{ChangeKind, FileKey, PreservedContent, content_directory, key};
use backstory_arena::ChunkSupply;
use backstory_files::Ident;
use backstory_guard::Effort;
use backstory_vocabulary::ContentsMode;
use std::collections::HashSet;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Number of sets: requests of files in different sets do not wait for each other.
const SETS: usize = 64;
/// Most files in one set.
const FILES: usize = 32 << 10;

/// Preserves the contents of a run whose records a source writes.
pub struct SourcePreserver {
    contents: ContentsMode,
    kept: KeptContents,
    stock: Arc<ChunkSupply>,
    read: ReadFiles,
}

impl SourcePreserver {
    /// Preserves contents in the directory `path`, as the mode `contents` says. They take at most
    /// `limit` bytes. The directory is made now: the source may soon hide its path.
    pub fn new(
        contents: ContentsMode,
        path: PathBuf,
        limit: Option<u64>,
        stock: &Arc<ChunkSupply>,
    ) -> SourcePreserver {
        let kept = KeptContents::new(path, limit, stock);
        kept.prepare();
        SourcePreserver {
            contents,
            kept,
            stock: Arc::clone(stock),
            read: ReadFiles::default(),
        }
    }

    /// Notes that a process reads a file, before it gets the content.
    pub fn note_read(&self, device: u64, inode: u64) {
        if self.contents == ContentsMode::Lazy {
            self.read.add((device as u32, inode));
        }
    }

    /// Preserves the content of a file (an `O_PATH` descriptor) that is about to change, if the
    /// mode demands it. `Part` is for every change that leaves a part of the content.
    pub fn preserve(&self, kind: ChangeKind, file: BorrowedFd<'_>) -> Option<PreservedContent> {
        let before = content_directory::look(file).ok()?;
        let key = key(&Ident::from(&before));
        let kind = match kind {
            ChangeKind::Part if !self.stock.arena.note_changed(key.0, key.1) => ChangeKind::Write,
            kind => kind,
        };
        let mut shard = self.kept.shard(key, Effort::Any).ok()?;
        let is_read = self.contents == ContentsMode::All || self.read.take(key);
        let kind = wanted(&shard, (kind, key), is_read)?;
        // The previous holder of the lock may have changed it meanwhile.
        let before = content_directory::look(file).ok()?;
        self.kept
            .keep(&mut shard, (kind, Effort::Any), file, &before)
            .ok()?
    }
}

/// The files whose present content was read.
struct ReadFiles {
    sets: [Mutex<HashSet<FileKey>>; SETS],
    /// Every file counts as read.
    everything: AtomicBool,
}

impl Default for ReadFiles {
    fn default() -> Self {
        ReadFiles {
            sets: std::array::from_fn(|_| Mutex::default()),
            everything: AtomicBool::new(false),
        }
    }
}

impl ReadFiles {
    fn set(&self, file: FileKey) -> MutexGuard<'_, HashSet<FileKey>> {
        let set = &self.sets[file.1 as usize % SETS];
        set.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, file: FileKey) {
        if self.everything.load(Ordering::Relaxed) {
            return;
        }
        let mut set = self.set(file);
        if set.insert(file) && set.len() > FILES {
            self.everything.store(true, Ordering::Relaxed);
            *set = HashSet::new();
        }
    }

    /// Removes a file that is about to change. Returns whether its content was read. The next
    /// content is unread.
    fn take(&self, file: FileKey) -> bool {
        self.set(file).remove(&file) || self.everything.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstory_arena::Arena;
    use rustix::fs::{CWD, Mode, OFlags};
    use std::fs;
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    struct Case {
        dir: tempfile::TempDir,
        preserver: SourcePreserver,
        supply: Arc<ChunkSupply>,
    }

    impl Case {
        fn of(contents: ContentsMode, limit: Option<u64>) -> Case {
            let dir = tempfile::tempdir().unwrap();
            let id = format!("source-{}", dir.path().display()).replace('/', "-");
            let supply = ChunkSupply::new(Arena::create(&id, 0).unwrap());
            let kept = dir.path().join("kept");
            Case {
                preserver: SourcePreserver::new(contents, kept, limit, &supply),
                supply,
                dir,
            }
        }

        /// A file that was there before the run.
        fn old(&self, name: &str, content: &str) -> std::path::PathBuf {
            let path = self.dir.path().join(name);
            fs::write(&path, content).unwrap();
            path
        }

        fn read(&self, path: &Path) {
            let of = fs::metadata(path).unwrap();
            self.preserver.note_read(of.dev(), of.ino());
        }

        fn preserve(&self, kind: ChangeKind, path: &Path) -> Option<PreservedContent> {
            self.preserver.preserve(kind, at(path).as_fd())
        }

        fn kept(&self, number: i32) -> String {
            let path = self.dir.path().join("kept").join(number.to_string());
            fs::read_to_string(path).unwrap()
        }
    }

    impl Drop for Case {
        fn drop(&mut self) {
            self.supply.arena.remove();
        }
    }

    fn at(path: &Path) -> OwnedFd {
        rustix::fs::openat(CWD, path, OFlags::PATH, Mode::empty()).unwrap()
    }

    #[test]
    fn a_content_that_was_read_is_preserved_before_it_changes() {
        let case = Case::of(ContentsMode::Lazy, None);
        let file = case.old("file", "before");
        assert_eq!(case.preserve(ChangeKind::Write, &file), None);
        case.read(&file);
        let kept = case.preserve(ChangeKind::Write, &file).unwrap();
        assert_eq!(case.kept(kept.number), "before");
        // The next content is unread.
        assert_eq!(case.preserve(ChangeKind::Write, &file), None);
    }

    #[test]
    fn every_version_is_preserved_with_all() {
        let case = Case::of(ContentsMode::All, None);
        let file = case.old("file", "one");
        let first = case.preserve(ChangeKind::Write, &file).unwrap();
        fs::write(&file, "two, longer").unwrap();
        let second = case.preserve(ChangeKind::Remove, &file).unwrap();
        assert_eq!(case.kept(first.number), "one");
        assert_eq!(case.kept(second.number), "two, longer");
    }

    #[test]
    fn a_content_over_the_limit_is_not_preserved_and_the_record_says_so() {
        let case = Case::of(ContentsMode::All, Some(10));
        let (small, large) = (case.old("small", "12345"), case.old("large", "1234567"));
        assert!(case.preserve(ChangeKind::Write, &small).unwrap().number >= 0);
        let refused = case.preserve(ChangeKind::Write, &large).unwrap();
        assert_eq!((refused.number, refused.error), (-1, libc::EDQUOT));
        // A refused content takes no room.
        let last = case.old("last", "12345");
        assert!(case.preserve(ChangeKind::Write, &last).unwrap().number >= 0);
    }

    #[test]
    fn with_too_many_files_each_counts_as_read() {
        let read = ReadFiles::default();
        for inode in 0..=FILES as u64 {
            read.add((1, inode * SETS as u64));
        }
        assert!(read.take((2, 7)));
    }
}
