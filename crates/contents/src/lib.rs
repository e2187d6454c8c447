//! What files held: contents by their digest.
//!
//! In: bytes. Out: the same bytes, by the BLAKE3 digest that names them, or an error that says they are damaged. A content is kept
//! once, however many files and runs had it, compressed where that pays. The layout is drawn in `docs/formats/contents.md`.
//!
//! Invariants: what [`Contents::sync`] has returned for survives the death of the machine; a crash at any byte leaves a store that
//! opens, with everything synced before; nothing is handed out whose digest is not the one asked for; any number of
//! processes may read, and any number may write, one batch at a time.
//!
//! Absent on purpose: which file of which run had a content. That is the store's.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod batch;
mod error;
mod gc;
mod index;
mod layout;
mod object;
pub mod packages;
mod put;
mod record;
#[cfg(test)]
mod tests;
pub mod transfer;
mod verify;

use backstory_files::Digest;
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use error::{Error, Result};
pub use gc::Reclaimed;
pub use object::Object;
pub use put::{digest_of, digest_through};
pub use verify::{Damage, Progress};

use batch::Batch;
use index::Place;

/// A store of contents, opened. Shared by reference between threads.
#[derive(Debug)]
pub struct Contents {
    dir: PathBuf,
    state: Mutex<State>,
}

/// What this process knows of the directory.
#[derive(Debug, Default)]
struct State {
    /// Where each small object is, as of the last look.
    index: HashMap<Digest, Place>,
    /// What was put since the last sync; holds the writers' lock.
    batch: Option<Batch>,
    packer: put::Packer,
    last: object::LastPack,
}

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Different contents.
    pub objects: u64,
    /// Bytes of all of them.
    pub raw: u64,
    /// Bytes they take, compressed.
    pub stored: u64,
    /// Bytes of the files they lie in, with headers, indexes and what is no longer used.
    pub disk: u64,
    /// Packs of small objects.
    pub packs: u64,
    /// Objects that lie in a file of their own.
    pub files: u64,
}

impl Contents {
    /// Opens the store at `dir`, making it, for its owner only, if it is not there.
    pub fn create(dir: &Path) -> Result<Contents> {
        layout::make(dir)?;
        Contents::open(dir)
    }

    /// Opens the store at `dir`. [`Error::None`] if there is none.
    pub fn open(dir: &Path) -> Result<Contents> {
        layout::check(dir)?;
        let state = State {
            index: index::load(dir)?,
            batch: None,
            packer: put::Packer::default(),
            last: object::LastPack::default(),
        };
        Ok(Contents {
            dir: dir.to_owned(),
            state: Mutex::new(state),
        })
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A panic in another thread leaves at worst a batch that is not synced.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this content is kept, and its size. What another process put since is found, too.
    pub fn size(&self, digest: &Digest) -> Result<Option<u64>> {
        let mut state = self.state();
        let in_batch = state.batch.as_ref().and_then(|batch| batch.size(digest));
        if let Some(size) = in_batch.or_else(|| state.index.get(digest).map(|place| place.size)) {
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
        Ok(state.index.get(digest).map(|place| place.size))
    }

    /// Whether this content is kept.
    pub fn has(&self, digest: &Digest) -> Result<bool> {
        Ok(self.size(digest)?.is_some())
    }

    /// All contents that are kept, in no order.
    pub fn digests(&self) -> Result<Vec<Digest>> {
        self.sync()?;
        let mut all: Vec<Digest> = index::load(&self.dir)?.into_keys().collect();
        all.extend(
            layout::files(&self.dir)?
                .into_iter()
                .map(|(digest, _)| digest),
        );
        Ok(all)
    }

    /// Reads a content. The bytes are checked on the way: whoever reads to the end without an error has what the digest names.
    pub fn read(&self, digest: &Digest) -> Result<Object> {
        self.settle(digest)?;
        if let Some(opened) = self.packed(digest) {
            match opened {
                // Garbage collection may have moved it to another pack since we looked.
                Err(Error::Gone { .. } | Error::Damaged { .. }) => {}
                opened => return opened,
            }
        }
        match object::open_large(&self.dir, digest) {
            Err(Error::Gone { .. }) => {}
            opened => return opened,
        }
        let index = index::load(&self.dir)?;
        let place = index.get(digest).copied();
        self.state().index = index;
        let place = place.ok_or(Error::NotKept(*digest))?;
        object::open_packed(&self.dir, digest, &place)
    }

    /// Opens it where it was in a pack, as of the last look. What is read from a pack that was open already is checked as any other.
    fn packed(&self, digest: &Digest) -> Option<Result<Object>> {
        let mut state = self.state();
        let place = state.index.get(digest).copied()?;
        let file = state.last.open(&self.dir, digest, place.pack);
        drop(state);
        Some(file.and_then(|file| object::open_in(&file, &self.dir, digest, &place)))
    }

    /// What is in a batch becomes readable when it is synced.
    fn settle(&self, digest: &Digest) -> Result<()> {
        let waiting = self
            .state()
            .batch
            .as_ref()
            .is_some_and(|batch| batch.holds(digest));
        if waiting { self.sync() } else { Ok(()) }
    }

    /// How much is kept.
    pub fn stats(&self) -> Result<Stats> {
        let index = index::load(&self.dir)?;
        let mut stats = Stats {
            objects: index.len() as u64,
            ..Stats::default()
        };
        for place in index.values() {
            stats.raw += place.size;
            stats.stored += place.stored;
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
        Ok(stats)
    }

    /// Takes the writers' lock.
    fn lock(&self) -> Result<File> {
        layout::lock(&self.dir)
    }
}
