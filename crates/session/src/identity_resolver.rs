//! Looks up, after a run, the identities of paths, and stores the results in the run's log.

use crate::Error;
use backstory_eventlog::Writer;
use backstory_eventlog::record::RecordBuilder;
use backstory_files::binfmt::Registration;
use backstory_files::executable;
use backstory_files::regular;
use backstory_files::{Ident, NearDirectories};
use backstory_sys::long_path as deep;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, StatxFlags};
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Records are appended in pieces of about this many bytes, which bounds the memory.
const PIECE: usize = 256 * 1024;

/// Looks up identities while the graph asks for them, and appends each to the finalized log.
///
/// A path is looked up without following a final link. Unless it is a link, the result also holds
/// for its target.
#[derive(Debug)]
pub struct IdentityResolver {
    log: PathBuf,
    writer: Writer,
    builder: RecordBuilder,
    records: Vec<u8>,
    /// The latest path, and its identity or errno.
    last: Option<(Vec<u8>, Result<Ident, i32>)>,
    near: NearDirectories,
    /// The registrations of `binfmt_misc`, read when the first program is looked up.
    formats: Option<Vec<Registration>>,
    failed: Option<Error>,
}

impl IdentityResolver {
    /// Starts resolving a finalized log.
    ///
    /// # Errors
    ///
    /// The log cannot be opened or appended to.
    pub fn begin(log: &Path) -> Result<IdentityResolver, Error> {
        Ok(IdentityResolver {
            log: log.to_owned(),
            writer: Writer::reopen(log).map_err(Error::log("open", log))?,
            builder: RecordBuilder::new(),
            records: Vec::new(),
            last: None,
            near: NearDirectories::default(),
            formats: None,
            failed: None,
        })
    }

    /// The identity of the file at `path`, or of its target with `follow`. `None` if there is no
    /// file, or if this user may not see it.
    pub fn of(&mut self, path: &[u8], follow: bool) -> Option<Ident> {
        let bare = match &self.last {
            Some((last, found)) if last == path => *found,
            _ => {
                let found = identity_near(&mut self.near, path);
                self.keep(path, false, &found);
                self.last = Some((path.to_vec(), found));
                found
            }
        };
        let is_link = |i: &Ident| FileType::from_raw_mode(i.mode) == FileType::Symlink;
        if follow && bare.as_ref().is_ok_and(is_link) {
            let found = identity(CWD, path, AtFlags::empty());
            self.keep(path, true, &found);
            return found.ok();
        }
        bare.ok()
    }

    fn keep(&mut self, path: &[u8], follow: bool, found: &Result<Ident, i32>) {
        let time = backstory_sys::clock::counter();
        let record = self
            .builder
            .identity(time, path, follow, found.as_ref().map_err(|e| *e));
        self.records.extend_from_slice(record);
        self.append_if_many();
    }

    /// The interpreter of the program at `path`, as its first bytes name it now. `None` if the
    /// program needs none, does not exist or cannot be read.
    pub fn interpreter(&mut self, path: &[u8]) -> Option<Vec<u8>> {
        let head = head_of(path)?;
        let formats = self.formats.get_or_insert_with(registered);
        let mut special = formats
            .iter()
            .filter_map(|format| format.interpreter(path, &head));
        let found = special
            .next()
            .or_else(|| executable::interpreter(&head))?
            .to_vec();
        let record = self
            .builder
            .runs(backstory_sys::clock::counter(), path, &found);
        self.records.extend_from_slice(record);
        self.append_if_many();
        Some(found)
    }

    /// The text of the symbolic link at `path`. `None` if the path is no link, or if its text
    /// cannot be read.
    pub fn link_text(&mut self, path: &[u8]) -> Option<Vec<u8>> {
        let text = rustix::fs::readlink(path, Vec::new()).ok()?.into_bytes();
        let time = backstory_sys::clock::counter();
        let record = self.builder.link_text(time, path, &text);
        self.records.extend_from_slice(record);
        self.append_if_many();
        Some(text)
    }

    fn append_if_many(&mut self) {
        if self.records.len() >= PIECE && self.failed.is_none() {
            let done = self.writer.idents(&self.records);
            self.failed = done.map_err(Error::log("append to", &self.log)).err();
            self.records.clear();
        }
    }

    /// Appends the remaining records, and the mark that the log's identities are resolved.
    pub fn finish(mut self) -> Result<(), Error> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self
                .writer
                .resolved(&self.records)
                .map_err(Error::log("append to", &self.log)),
        }
    }
}

/// The first bytes of the program at `path`. Opens nothing but a regular file, and never waits.
fn head_of(path: &[u8]) -> Option<Vec<u8>> {
    let file = regular::open(OsStr::from_bytes(path)).ok()?;
    let mut head = Vec::new();
    file.take(executable::HEAD as u64)
        .read_to_end(&mut head)
        .ok()?;
    Some(head)
}

/// The registrations of `binfmt_misc`. Empty if it is not mounted.
fn registered() -> Vec<Registration> {
    let Ok(entries) = fs::read_dir("/proc/sys/fs/binfmt_misc") else {
        return Vec::new();
    };
    let texts = entries.filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok());
    texts
        .filter_map(|text| Registration::parse(&text))
        .collect()
}

/// The identity of the file at a path, without following a final link.
fn identity_near(near: &mut NearDirectories, path: &[u8]) -> Result<Ident, i32> {
    if let Some((piece, rest)) = deep::split(path) {
        return identity_below(piece, rest, AtFlags::SYMLINK_NOFOLLOW);
    }
    let (directory, name) = near.locate(path);
    identity(directory, name, AtFlags::SYMLINK_NOFOLLOW)
}

/// The identity of a file with a long path: `rest`, from a directory on the way.
fn identity_below(piece: &[u8], mut rest: &[u8], flags: AtFlags) -> Result<Ident, i32> {
    let how = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = |dir: BorrowedFd<'_>, path: &[u8]| {
        rustix::fs::openat(dir, path, how, Mode::empty()).map_err(rustix::io::Errno::raw_os_error)
    };
    let mut at = open(CWD, piece)?;
    while let Some((piece, more)) = deep::split(rest) {
        at = open(at.as_fd(), piece)?;
        rest = more;
    }
    identity(at, rest, flags)
}

/// The identity of a file, or the errno of the look-up.
fn identity(dir: impl rustix::fd::AsFd, path: &[u8], flags: AtFlags) -> Result<Ident, i32> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    // An automount point is described as it is, because a look-up must not mount anything.
    let stat = rustix::fs::statx(dir, path, flags | AtFlags::NO_AUTOMOUNT, wanted);
    stat.map(|s| Ident::from(&s))
        .map_err(rustix::io::Errno::raw_os_error)
}
