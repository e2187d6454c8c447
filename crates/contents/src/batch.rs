//! The contents that were put since the last sync.
//!
//! Small objects gather in memory and are appended to a pack by one write. Large ones are files
//! under temporary names. A sync makes the bytes durable first, then the names and the index. So
//! everything that is found after a crash is whole.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use backstory_files::regular;
use rustc_hash::FxHashMap;

use crate::index::{self, PackPosition};
use crate::record::{HEADER, Header};
use crate::{Error, Result, layout};
use backstory_files::Digest;

/// Bytes of small objects that gather in memory before they are written.
const GATHER: usize = 8 << 20;

/// A pack that has grown to this many bytes is not appended to any more.
const FULL: u64 = if cfg!(test) { 4096 } else { 256 << 20 };

/// Most large objects that wait for a sync. Each is an open file.
const WAITING: usize = 32;

/// Objects that are being put, with the writers' lock.
#[derive(Debug)]
pub struct Batch {
    dir: PathBuf,
    lock: Option<File>,
    /// Append only to new packs, because the last one is about to be removed.
    apart: bool,
    /// The last pack and its length, if it is known that its index names every byte of it.
    last: Option<(u32, u64)>,
    /// True if that is known of the last pack when the batch is finished.
    last_is_indexed: bool,
    /// The pack that is appended to, once there is an object.
    pack: Option<Pack>,
    small: FxHashMap<Digest, PackPosition>,
    large: FxHashMap<Digest, u64>,
    waiting: Vec<(File, PathBuf, Digest)>,
}

#[derive(Debug)]
struct Pack {
    number: u32,
    file: File,
    /// Length of the file. The gathered objects follow.
    length: u64,
    gathered: Vec<u8>,
    /// Index entries, to be written once the bytes are durable.
    entries: Vec<u8>,
}

impl Batch {
    /// A batch with the writers' lock, which the caller has taken.
    pub fn begin(dir: &Path, lock: File) -> Result<Batch> {
        if let Some(last) = layout::packs(dir)?.last() {
            index::complete(dir, *last)?;
        }
        Batch::begin_after(dir, lock, None)
    }

    /// The same. `last` is the last pack and its length, if its index is known to be complete.
    pub fn begin_after(dir: &Path, lock: File, last: Option<(u32, u64)>) -> Result<Batch> {
        layout::sweep(dir)?;
        Ok(Batch {
            dir: dir.to_owned(),
            lock: Some(lock),
            apart: false,
            last,
            last_is_indexed: last.is_some(),
            pack: None,
            small: FxHashMap::default(),
            large: FxHashMap::default(),
            waiting: Vec::new(),
        })
    }

    /// The same, appending to no existing pack.
    pub fn begin_apart(dir: &Path, lock: File) -> Result<Batch> {
        let mut batch = Batch::begin(dir, lock)?;
        batch.apart = true;
        Ok(batch)
    }

    /// True if the index of the last pack names every byte of it once the batch is finished.
    pub fn last_is_indexed(&self) -> bool {
        self.last_is_indexed
    }

    /// True if an object was put in this batch.
    pub fn holds(&self, digest: &Digest) -> bool {
        self.small.contains_key(digest) || self.large.contains_key(digest)
    }

    /// The size of an object that was put in this batch.
    pub fn size(&self, digest: &Digest) -> Option<u64> {
        let small = self.small.get(digest).map(|position| position.size);
        small.or_else(|| self.large.get(digest).copied())
    }

    /// Adds a small object.
    pub fn small(&mut self, header: &Header, stored: &[u8]) -> Result<()> {
        if self.pack.as_ref().is_some_and(Pack::is_full) {
            self.finish_pack()?;
        }
        let pack = match &mut self.pack {
            Some(pack) => pack,
            None => {
                let chosen = Pack::choose(&self.dir, self.apart, self.last.take())?;
                self.last_is_indexed = true;
                self.pack.insert(chosen)
            }
        };
        let position = PackPosition {
            pack: pack.number,
            offset: pack.length + pack.gathered.len() as u64,
            size: header.size,
            stored: header.stored,
        };
        pack.gathered.extend(header.encode());
        pack.gathered.extend(stored);
        pack.entries.extend(index::entry(&header.digest, &position));
        if pack.gathered.len() >= GATHER {
            pack.write(&self.dir)?;
        }
        self.small.insert(header.digest, position);
        Ok(())
    }

    /// Adds a large object. It was written to `path`, after space for its header.
    pub fn large(&mut self, file: File, path: PathBuf, header: &Header) -> Result<()> {
        file.write_all_at(&header.encode(), 0)
            .map_err(Error::io("write", &path))?;
        self.large.insert(header.digest, header.size);
        self.waiting.push((file, path, header.digest));
        if self.waiting.len() >= WAITING {
            self.finish_large()?;
        }
        Ok(())
    }

    fn finish_large(&mut self) -> Result<()> {
        let mut dirs = Vec::new();
        for (file, path, digest) in self.waiting.drain(..) {
            file.sync_data().map_err(Error::io("sync", &path))?;
            let target = layout::object(&self.dir, &digest);
            if let Some(dir) = target.parent().filter(|dir| !dirs.iter().any(|d| d == dir)) {
                layout::make_dir(dir)?;
                dirs.push(dir.to_owned());
            }
            fs::rename(&path, &target).map_err(Error::io("rename", &path))?;
        }
        if !dirs.is_empty() {
            dirs.push(self.dir.join("objects"));
        }
        dirs.iter().try_for_each(|dir| layout::sync_dir(dir))
    }

    fn finish_pack(&mut self) -> Result<()> {
        match self.pack.take() {
            Some(pack) => pack.finish(&self.dir),
            None => Ok(()),
        }
    }

    /// Makes everything durable and readable. Returns the positions of the small objects, and the
    /// writers' lock for further work.
    pub fn finish(mut self) -> Result<(FxHashMap<Digest, PackPosition>, Option<File>)> {
        self.finish_large()?;
        self.finish_pack()?;
        Ok((std::mem::take(&mut self.small), self.lock.take()))
    }
}

impl Drop for Batch {
    /// Discards everything that was not synced. An unindexed record in a pack is found and used
    /// later, or its space reclaimed.
    fn drop(&mut self) {
        for (_, path, _) in self.waiting.drain(..) {
            // If it stays behind, the next writer removes it.
            let _ = fs::remove_file(path);
        }
    }
}

impl Pack {
    /// The last pack, if it has room and is whole; else a new one. `known` is the last pack and its
    /// length, if it is whole.
    fn choose(dir: &Path, apart: bool, known: Option<(u32, u64)>) -> Result<Pack> {
        let last = layout::packs(dir)?.last().copied();
        if let Some(number) = last.filter(|_| !apart) {
            let length = layout::length(&layout::pack(dir, number));
            // A pack that a crash left longer than its index says is not appended to: nothing is
            // ever overwritten.
            if length < FULL
                && (known == Some((number, length)) || index::is_complete(dir, number, length)?)
            {
                return Pack::open(dir, number, length);
            }
        }
        let number = last.map_or(1, |last| last + 1);
        layout::new_file(&layout::pack(dir, number))?;
        Pack::open(dir, number, 0)
    }

    fn open(dir: &Path, number: u32, length: u64) -> Result<Pack> {
        let path = layout::pack(dir, number);
        let file = regular::open_with(OpenOptions::new().write(true), &path);
        Ok(Pack {
            number,
            file: file.map_err(Error::io("open", &path))?,
            length,
            gathered: Vec::new(),
            entries: Vec::new(),
        })
    }

    fn is_full(&self) -> bool {
        self.length + self.gathered.len() as u64 >= FULL
    }

    fn write(&mut self, dir: &Path) -> Result<()> {
        let path = layout::pack(dir, self.number);
        self.file
            .write_all_at(&self.gathered, self.length)
            .map_err(Error::io("write", &path))?;
        self.length += self.gathered.len() as u64;
        self.gathered.clear();
        Ok(())
    }

    fn finish(mut self, dir: &Path) -> Result<()> {
        self.write(dir)?;
        let path = layout::pack(dir, self.number);
        self.file.sync_data().map_err(Error::io("sync", &path))?;
        let path = layout::pack_index(dir, self.number);
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600);
        let mut index =
            regular::open_with(&mut options, &path).map_err(Error::io("open", &path))?;
        let new = layout::length(&path) == 0;
        let entries = if new {
            [index::MAGIC, &self.entries[..]].concat()
        } else {
            self.entries
        };
        index
            .write_all(&entries)
            .and_then(|()| index.sync_data())
            .map_err(Error::io("write", &path))?;
        match new {
            true => layout::sync_dir(&dir.join("packs")),
            false => Ok(()),
        }
    }
}

/// Space for a header at the beginning of a large object's file.
pub const ROOM: [u8; HEADER] = [0; HEADER];
