//! Preserves contents that are about to change.
//!
//! In: a file that a process is about to write to, truncate, replace or remove; the process waits
//! for this crate. Out: the file's content as a file in the run's directory `ID.kept`, and the
//! fields of the log record about it.
//!
//! ```text
//! guard ──> Preserver ───────┐  reads: which files the records say were read
//!                            ├──> kept_contents ──> content_directory ──> ID.kept/N
//! mount ──> SourcePreserver ─┘  the source says itself which files are read
//! ```
//!
//! Invariant: a preserved content stays as it was. A hard link is enough only if the file loses a
//! name and has no other. If the file is changed nevertheless, a copy replaces the link first.
//!
//! Absent: the system call and its waiting (`guard`), and the use of the preserved contents after
//! the run (`contents`).

mod content_directory;
mod hard_links;
mod kept_contents;
mod paths;
mod reads;
mod source_preserver;

use backstory_arena::ChunkSupply;
use backstory_files::Ident;
use backstory_guard::{
    ContentChange, ContentPreserver, Effort, EffortExceeded, FindFile, FoundFile,
};
use backstory_vocabulary::ContentsMode;
use kept_contents::{KeptContents, Shard, wanted};
use reads::Reads;
use rustix::fs::Statx;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::{Arc, Once};

pub use backstory_guard::{ChangeKind, PreservedContent};
pub use reads::unfiltered::{LoadedFiles, UnfilteredStart};
pub use source_preserver::SourcePreserver;

/// Directories of files that are kernel interfaces, or memory that is shared on purpose.
const NO_CONTENTS: [&[u8]; 3] = [b"/proc/", b"/sys/", b"/dev/"];

/// A file: the low half of its device number, and its inode number.
type FileKey = (u32, u64);

/// Preserves the contents of one run.
pub struct Preserver {
    contents: ContentsMode,
    kept: KeptContents,
    stock: Arc<ChunkSupply>,
    reads: Arc<Reads>,
    /// Whether the arena has the path of the directory: from its first content on.
    published: Once,
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
            kept: KeptContents::new(path, None, stock),
            stock: Arc::clone(stock),
            reads,
            published: Once::new(),
        }
    }

    /// The command starts without the guard's filter. To be called before it does.
    pub fn starts_without_filter(&self, start: UnfilteredStart) {
        if self.contents == ContentsMode::Lazy {
            self.reads.starts_without_filter(start);
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
        let is_read = self.contents == ContentsMode::All
            || self.reads.take(&self.stock, file, &|| change.all_logged())
            || !change.all_logged();
        wanted(shard, (change.kind, file), is_read)
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
        let kept = self.kept.keep(shard, how, found.file.as_fd(), before);
        match &kept {
            // Done while this thread holds the lock.
            Err(_) => self.reads.put_back(file),
            Ok(Some(content)) if content.error == 0 => self
                .published
                .call_once(|| self.stock.arena.keeps_in(self.kept.path())),
            Ok(_) => {}
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

impl ContentPreserver for Preserver {
    fn preserve(
        &self,
        change: &ContentChange<'_>,
        effort: Effort,
        find: FindFile<'_>,
    ) -> PreserveResult {
        let file = (change.device, change.inode);
        let mut shard = self.kept.shard(file, effort)?;
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
        let mut shard = self.kept.shard(actual, effort)?;
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
