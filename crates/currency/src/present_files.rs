//! The files of this machine as they are now. Each is examined once for a whole judgement.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use backstory_contents::digest_of;
use backstory_eventlog::event::Bytes;
use backstory_files::{Digest, Ident, regular};
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use rustix::io::Errno;

/// The files that were found at paths. An entry is never examined twice, so all questions of one
/// judgement get the same answer.
#[derive(Debug, Default)]
pub struct PresentFiles {
    idents: RefCell<HashMap<Bytes, Result<Ident, Errno>>>,
    links: RefCell<HashMap<Bytes, Result<Ident, Errno>>>,
    digests: RefCell<HashMap<Bytes, Option<Digest>>>,
    listings: RefCell<HashMap<Bytes, Option<PresentListing>>>,
}

/// A directory as it is now.
#[derive(Debug, Clone)]
pub struct PresentListing {
    /// Its path, with all links followed.
    pub real: Bytes,
    /// The names in it.
    pub names: BTreeSet<Vec<u8>>,
}

impl PresentFiles {
    /// The identity of the file that the path leads to. An error says why it cannot be examined.
    pub fn ident(&self, path: &Bytes) -> Result<Ident, Errno> {
        if let Some(known) = self.idents.borrow().get(path) {
            return *known;
        }
        let found = look(path, AtFlags::empty());
        self.idents.borrow_mut().insert(path.clone(), found);
        found
    }

    /// The identity of what is at the path itself, which may be a symbolic link.
    pub fn link(&self, path: &Bytes) -> Result<Ident, Errno> {
        if let Some(known) = self.links.borrow().get(path) {
            return *known;
        }
        let found = look(path, AtFlags::SYMLINK_NOFOLLOW);
        self.links.borrow_mut().insert(path.clone(), found);
        found
    }

    /// The digest of the content. `None` if the file cannot be read.
    pub fn digest(&self, path: &Bytes) -> Option<Digest> {
        if let Some(known) = self.digests.borrow().get(path) {
            return *known;
        }
        let digest = held(path);
        self.digests.borrow_mut().insert(path.clone(), digest);
        digest
    }

    /// The directory at the path, if it can be listed.
    pub fn listing(&self, path: &Bytes) -> Option<PresentListing> {
        if let Some(known) = self.listings.borrow().get(path) {
            return known.clone();
        }
        let found = list(path);
        self.listings
            .borrow_mut()
            .insert(path.clone(), found.clone());
        found
    }
}

/// The digest of a file's present content.
pub fn held(path: &[u8]) -> Option<Digest> {
    let mut file = regular::open(path_of(path)).ok()?;
    digest_of(&mut file).ok().map(|(digest, _)| digest)
}

fn look(path: &[u8], flags: AtFlags) -> Result<Ident, Errno> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    statx(CWD, path_of(path), flags, wanted).map(|found| Ident::from(&found))
}

fn list(path: &[u8]) -> Option<PresentListing> {
    let real: PathBuf = fs::canonicalize(path_of(path)).ok()?;
    let entries = fs::read_dir(&real).ok()?.flatten();
    Some(PresentListing {
        names: entries.map(|entry| entry.file_name().into_vec()).collect(),
        real: real.into_os_string().into_vec().into(),
    })
}

/// A recorded path for the operating system.
pub fn path_of(path: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(path))
}
