//! Stores the contents of files, by their digest.
//!
//! In: bytes. Out: the same bytes, by the BLAKE3 digest that names them, or an error that reports
//! damage. A content is stored once, however many files and runs had it, and compressed where that
//! saves space. The next version of a file is stored as changes from the former one.
//! `docs/formats/contents.md` draws the layout.
//!
//! Invariants:
//!
//! - A content survives a power loss once [`Contents::sync`] has returned.
//! - A crash at any byte leaves a store that opens, with everything synced before.
//! - No bytes are returned whose digest is not the requested one.
//! - Any number of processes may read, and any number may write, one batch at a time.
//!
//! [`WorkMeter`] counts the bytes that a reader of contents works through, for a bar.
//!
//! Absent: the relation of contents to files and runs, which belongs to the store.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod batch;
mod delta;
mod elsewhere;
mod error;
mod gc;
mod index;
mod layout;
mod object;
mod pack_files;
mod packing;
mod put;
mod record;
#[cfg(test)]
mod tests;
pub mod transfer;
mod verify;
mod work_meter;

use backstory_files::Digest;
use rustc_hash::FxHashMap;
use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use elsewhere::{Place, PlacedContent};
pub use error::{Error, Result};
pub use gc::Reclaimed;
pub use object::Object;
pub use put::{digest_of, digest_through};
pub use verify::{Damage, Progress};
pub use work_meter::{MeteredRead, WorkMeter};

use batch::Batch;
use index::PackPosition;
use pack_files::PackFiles;

/// An open store of contents. Threads share it by reference.
#[derive(Debug)]
pub struct Contents {
    dir: PathBuf,
    state: Mutex<State>,
}

/// This process's knowledge of the directory.
#[derive(Debug, Default)]
struct State {
    /// The position of each small object, as last read. Empty before the first look-up.
    index: FxHashMap<Digest, PackPosition>,
    /// The packs after the last sync, if `index` has all of their objects and the last pack is
    /// whole.
    packs_at_sync: Option<PackFiles>,
    /// The objects put since the last sync. Holds the writers' lock.
    batch: Option<Batch>,
    packer: packing::Packer,
    last: object::LastPack,
}

/// The size of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ContentsSize {
    /// Number of different contents.
    pub objects: u64,
    /// Bytes of all contents.
    pub raw: u64,
    /// Bytes of all contents as stored, compressed.
    pub stored: u64,
    /// Bytes of the files that hold them, including headers, indexes and unused space.
    pub disk: u64,
    /// Number of packs of small objects.
    pub packs: u64,
    /// Number of objects in files of their own.
    pub files: u64,
    /// Number of contents that other stores have. They are not among the objects.
    pub elsewhere: u64,
    /// Bytes of these contents.
    pub elsewhere_raw: u64,
}

impl Contents {
    /// Opens the store at `dir`. Makes it, for its owner only, if it does not exist.
    pub fn create(dir: &Path) -> Result<Contents> {
        layout::make(dir)?;
        Contents::open(dir)
    }

    /// Opens the store at `dir`. The indexes are read once they are needed: most runs of a large
    /// store have no new contents.
    ///
    /// # Errors
    ///
    /// [`Error::None`] if it does not exist.
    pub fn open(dir: &Path) -> Result<Contents> {
        layout::check(dir)?;
        Ok(Contents {
            dir: dir.to_owned(),
            state: Mutex::default(),
        })
    }

    /// The directory of the store.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A panic in another thread leaves at worst a batch that is not synced.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The size of a content, if it can be read. Contents that another process put since are found,
    /// too, and those that another store has.
    pub fn size(&self, digest: &Digest) -> Result<Option<u64>> {
        match self.stored_size(digest)? {
            Some(size) => Ok(Some(size)),
            None => match object::open_elsewhere(&self.dir, digest) {
                Ok(object) => Ok(Some(object.size())),
                // A damaged note is found by `verify` and by readers of the content.
                Err(Error::NotKept(_) | Error::Elsewhere { .. } | Error::Damaged { .. }) => {
                    Ok(None)
                }
                Err(error) => Err(error),
            },
        }
    }

    /// The size of a content, if it is stored here.
    fn stored_size(&self, digest: &Digest) -> Result<Option<u64>> {
        let mut state = self.state();
        let in_batch = state.batch.as_ref().and_then(|batch| batch.size(digest));
        if let Some(size) =
            in_batch.or_else(|| state.index.get(digest).map(|position| position.size))
        {
            return Ok(Some(size));
        }
        match object::large_header(&layout::object(&self.dir, digest), digest) {
            Ok((_, header)) => return Ok(Some(header.size)),
            Err(Error::Gone { .. }) => {}
            Err(error) => return Err(error),
        }
        if state.batch.is_none() {
            state.index = index::load(&self.dir)?;
        }
        Ok(state.index.get(digest).map(|position| position.size))
    }

    /// True if this content can be read.
    pub fn has(&self, digest: &Digest) -> Result<bool> {
        Ok(self.size(digest)?.is_some())
    }

    /// The digests of all stored contents, in no order. Those of contents that other stores have
    /// are among them.
    pub fn digests(&self) -> Result<Vec<Digest>> {
        self.sync()?;
        let mut all: Vec<Digest> = index::load(&self.dir)?.into_keys().collect();
        let files = layout::files(&self.dir)?.into_iter();
        all.extend(files.map(|(digest, _)| digest));
        let notes = layout::notes(&self.dir)?;
        if !notes.is_empty() {
            let stored: HashSet<Digest> = all.iter().copied().collect();
            let notes = notes.into_iter().map(|(digest, _)| digest);
            all.extend(notes.filter(|digest| !stored.contains(digest)));
        }
        Ok(all)
    }

    /// Opens a content for reading. The bytes are checked while they are read. A reader that
    /// reaches the end without an error has the bytes that the digest names.
    ///
    /// A content that is not stored is read where another store has it.
    ///
    /// # Errors
    /// [`Error::NotKept`] for an unknown content, [`Error::Elsewhere`] for one that the other store
    /// has no more.
    pub fn read(&self, digest: &Digest) -> Result<Object> {
        match self.read_through(digest, delta::DEEPEST) {
            Err(Error::NotKept(_)) => object::open_elsewhere(&self.dir, digest),
            opened => opened,
        }
    }

    /// Opens a stored content that at most `bases` others describe.
    fn read_through(&self, digest: &Digest, bases: u8) -> Result<Object> {
        self.settle(digest)?;
        let base = |base: &Digest| self.base(base, bases);
        if let Some(opened) = self.packed(digest, &base) {
            match opened {
                // Garbage collection may have moved it to another pack meanwhile.
                Err(Error::Gone { .. } | Error::Damaged { .. }) => {}
                opened => return opened,
            }
        }
        match object::open_large(&self.dir, digest) {
            Err(Error::Gone { .. }) => {}
            opened => return opened,
        }
        let mut state = self.state();
        // With the lock, so that it is not older than what a sync adds meanwhile.
        state.index = index::load(&self.dir)?;
        let position = state.index.get(digest).copied();
        drop(state);
        let position = position.ok_or(Error::NotKept(*digest))?;
        object::open_packed(&self.dir, digest, &position, &base)
    }

    /// The base of a content and its own depth, if it is known to be stored as changes.
    fn base_of(&self, digest: &Digest) -> Option<(Digest, u8)> {
        let mut state = self.state();
        let position = state.index.get(digest).copied()?;
        let file = state.last.open(&self.dir, digest, position.pack).ok()?;
        object::base_in(&file, &position)
    }

    /// The bytes of a content that may have changes, and at most [`delta::LARGEST`] of them.
    fn bytes(&self, digest: &Digest) -> Result<Vec<u8>> {
        self.base(digest, delta::DEEPEST)
    }

    /// The bytes of a content that another one is stored as changes of.
    fn base(&self, digest: &Digest, bases: u8) -> Result<Vec<u8>> {
        let damaged = |what| Error::Damaged {
            digest: *digest,
            path: self.dir.join("packs"),
            what,
        };
        let Some(further) = bases.checked_sub(1) else {
            return Err(damaged(
                "too many contents are stored as changes of each other",
            ));
        };
        let mut object = self.read_through(digest, further)?;
        if object.size() > delta::LARGEST as u64 {
            return Err(damaged("a content of this size has no changes"));
        }
        let mut bytes = Vec::with_capacity(object.size() as usize);
        object
            .read_to_end(&mut bytes)
            .map_err(Error::io("read", &self.dir))?;
        Ok(bytes)
    }

    /// Opens a content at its last known position in a pack. Its bytes are checked like any other.
    fn packed(&self, digest: &Digest, base: &object::ReadBase<'_>) -> Option<Result<Object>> {
        let mut state = self.state();
        let position = state.index.get(digest).copied()?;
        let file = state.last.open(&self.dir, digest, position.pack);
        drop(state);
        Some(file.and_then(|file| object::open_in(&file, &self.dir, digest, &position, base)))
    }

    /// Syncs the batch if it contains this content, which becomes readable by that.
    fn settle(&self, digest: &Digest) -> Result<()> {
        let waiting = self
            .state()
            .batch
            .as_ref()
            .is_some_and(|batch| batch.holds(digest));
        if waiting { self.sync() } else { Ok(()) }
    }

    /// Bytes of the files that hold the contents, as [`Contents::stats`] has them. Reads no file.
    pub fn disk(&self) -> Result<u64> {
        let mut disk = 0;
        for pack in layout::packs(&self.dir)? {
            disk += layout::length(&layout::pack(&self.dir, pack));
            disk += layout::length(&layout::pack_index(&self.dir, pack));
        }
        for (_, path) in [layout::files(&self.dir)?, layout::notes(&self.dir)?].concat() {
            disk += layout::length(&path);
        }
        Ok(disk)
    }

    /// Computes the size of the store.
    pub fn stats(&self) -> Result<ContentsSize> {
        let index = index::load(&self.dir)?;
        let mut stats = ContentsSize {
            objects: index.len() as u64,
            ..ContentsSize::default()
        };
        for position in index.values() {
            stats.raw += position.size;
            stats.stored += position.stored;
        }
        for pack in layout::packs(&self.dir)? {
            stats.packs += 1;
            stats.disk += layout::length(&layout::pack(&self.dir, pack));
            stats.disk += layout::length(&layout::pack_index(&self.dir, pack));
        }
        for (digest, path) in layout::files(&self.dir)? {
            if let Ok((_, header)) = object::large_header(&path, &digest) {
                stats.objects += 1;
                stats.raw += header.size;
                stats.stored += header.stored;
            }
            stats.files += 1;
            stats.disk += layout::length(&path);
        }
        for (digest, path) in layout::notes(&self.dir)? {
            let is_stored =
                index.contains_key(&digest) || layout::object(&self.dir, &digest).exists();
            if let Ok(Some(note)) = elsewhere::read(&self.dir, &digest)
                && !is_stored
            {
                stats.elsewhere += 1;
                stats.elsewhere_raw += note.size;
            }
            stats.disk += layout::length(&path);
        }
        Ok(stats)
    }

    /// Takes the writers' lock.
    fn lock(&self) -> Result<File> {
        layout::lock(&self.dir)
    }
}
