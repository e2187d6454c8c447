//! A file that should still be a certain version. The file is opened once, and its status is read
//! before and after its content.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;

use backstory_contents as contents;
use backstory_eventlog::event::PreserveMethod;
use backstory_files::Ident;
use backstory_store::same_version;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, StatxFlags};

use super::allowance::Denial;
use super::differs;
use super::wanted::Preserved;

/// A clock tick of file systems. A status change this shortly after the end of a run was made
/// before the end.
const TICK: i64 = 10_000_000;

/// Why the content of a file is not the version, or could not be stored.
#[derive(Debug)]
pub enum Changed {
    /// The file changed while it was read.
    Meanwhile,
    /// The file could not be read.
    Unreadable(io::Error),
    /// The content takes more than half of the free space.
    NoRoom,
    /// The content could not be stored.
    Failed(contents::Error),
    /// A limit forbids it.
    Denied(Denial),
}

impl From<Denial> for Changed {
    fn from(denial: Denial) -> Changed {
        Changed::Denied(denial)
    }
}

/// An open file, and its identity when it was opened.
pub struct Source {
    file: File,
    before: Ident,
}

/// Opens the file at `path` if it still is this version, of a run that ended at `ended`. The error
/// says why not.
pub fn open(path: &Path, wanted: &Ident, ended: i64) -> Result<Source, String> {
    let source = open_any(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            "it was removed or replaced after the run, before its content could be taken".to_owned()
        }
        _ => format!("it cannot be opened: {error}"),
    })?;
    let now = &source.before;
    // The log of the run has the links and modes that changed within the run, as it has changes of
    // the content.
    let explained = now.ctime == wanted.ctime || now.ctime <= ended + TICK;
    match same_version(now, wanted) && explained {
        true => Ok(source),
        false => Err(differs(now, wanted).to_owned()),
    }
}

/// Opens the preserved file of a version.
pub fn open_preserved(path: &Path, kept: &Preserved) -> Result<Source, String> {
    let source =
        open_any(path).map_err(|error| format!("its preserved copy cannot be opened: {error}"))?;
    let now = &source.before;
    let same = match kept.how {
        Some(PreserveMethod::Link | PreserveMethod::OwnLink) => same_version(now, &kept.ident),
        _ => now.size == kept.ident.size,
    };
    match same {
        true => Ok(source),
        false => Err("it was changed in place after a link to it had been preserved".to_owned()),
    }
}

fn open_any(path: &Path) -> io::Result<Source> {
    // A pipe may lie at the path now. The open must not wait for its other end.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    // Where the kernel allows it, the access time does not change.
    let opened = rustix::fs::open(path, flags | OFlags::NOATIME, Mode::empty())
        .or_else(|_| rustix::fs::open(path, flags, Mode::empty()))?;
    let file = File::from(opened);
    let before = look(&file)?;
    match FileType::from_raw_mode(before.mode) {
        FileType::RegularFile => Ok(Source { file, before }),
        _ => Err(io::Error::new(
            io::ErrorKind::NotFound,
            "it is not a regular file now",
        )),
    }
}

fn look(file: &File) -> io::Result<Ident> {
    let mask = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let found = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, mask)?;
    Ok(Ident::from(&found))
}

impl Source {
    /// Checks that the file has not changed since it was opened.
    pub fn check(&self) -> Result<(), Changed> {
        let after = look(&self.file).map_err(Changed::Unreadable)?;
        let (a, b) = (&self.before, &after);
        match (a.size, a.mtime) == (b.size, b.mtime) {
            true => Ok(()),
            false => Err(Changed::Meanwhile),
        }
    }

    /// Bytes of the file when it was opened.
    pub fn size(&self) -> u64 {
        self.before.size.max(0) as u64
    }

    /// Seeks to the beginning.
    pub fn rewind(&mut self) -> io::Result<()> {
        self.file.rewind()
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }
}
