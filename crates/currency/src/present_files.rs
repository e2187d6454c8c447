//! The files of this machine as they are now. Each is examined once for a whole judgement.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use backstory_contents::digest_of;
use backstory_eventlog::event::Bytes;
use backstory_files::{Digest, Ident, regular};
use backstory_query::try_present_identity;
use backstory_workflow::paths::to_path;
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
        let found = try_present_identity(to_path(path), true);
        self.idents.borrow_mut().insert(path.clone(), found);
        found
    }

    /// The identity of what is at the path itself, which may be a symbolic link.
    pub fn link(&self, path: &Bytes) -> Result<Ident, Errno> {
        if let Some(known) = self.links.borrow().get(path) {
            return *known;
        }
        let found = try_present_identity(to_path(path), false);
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
    let mut file = regular::open(to_path(path)).ok()?;
    digest_of(&mut file).ok().map(|(digest, _)| digest)
}

fn list(path: &[u8]) -> Option<PresentListing> {
    let real: PathBuf = fs::canonicalize(to_path(path)).ok()?;
    let entries = fs::read_dir(&real).ok()?.flatten();
    Some(PresentListing {
        names: entries.map(|entry| entry.file_name().into_vec()).collect(),
        real: real.into_os_string().into_vec().into(),
    })
}
