//! Puts a content into the store.

use std::io::{self, Read};
use std::sync::MutexGuard;

use crate::batch::Batch;
use crate::pack_files::PackFiles;
use crate::packing::{CHUNK, LEVEL, large, small};
use crate::record::{Header, Method, SMALL};
use crate::{Contents, Error, Result, State, delta, layout};
use backstory_files::Digest;

impl Contents {
    /// Stores the bytes of `source`, and returns their digest and size. They are durable, and
    /// visible to others, after the next [`Contents::sync`].
    ///
    /// The first call after a sync waits for the batches of other writers to end.
    pub fn put(&self, source: &mut dyn Read) -> Result<(Digest, u64)> {
        self.put_after(source, &mut || None)
    }

    /// Stores a version of a file, as [`Contents::put`] does. `former` is called for a new content
    /// only, and returns the content of an earlier version. The new content is stored as the
    /// changes from it where that saves at least half of the space. The earlier content must have
    /// been stored before the last sync.
    pub fn put_after(
        &self,
        source: &mut dyn Read,
        former: &mut dyn FnMut() -> Option<Digest>,
    ) -> Result<(Digest, u64)> {
        let mut head = Vec::with_capacity(CHUNK);
        let read = (&mut *source).take(SMALL as u64 + 1).read_to_end(&mut head);
        read.map_err(Error::Source)?;
        if head.len() <= SMALL {
            return self.put_bytes_after(&head, former);
        }
        self.begin()?;
        self.put_large(head, source, former)
    }

    /// Stores a version of a file that the caller has read, as [`Contents::put_after`] does.
    pub fn put_bytes_after(
        &self,
        content: &[u8],
        former: &mut dyn FnMut() -> Option<Digest>,
    ) -> Result<(Digest, u64)> {
        self.begin()?;
        if content.len() > SMALL {
            return self.put_large(content.to_vec(), &mut io::empty(), former);
        }
        let digest = digest_of_bytes(content);
        let size = content.len() as u64;
        if self.is_put(&digest) {
            return Ok((digest, size));
        }
        let base = self.former(former)?;
        let mut state = self.state();
        let (whole, stored) = small(digest, content, &mut state.packer);
        let changes = base.and_then(|base| base.changes(&digest, content, whole.stored));
        match changes {
            Some((header, stored)) => self.add(state, &header, &stored)?,
            None => self.add(state, &whole, stored.as_deref().unwrap_or(content))?,
        }
        Ok((digest, size))
    }

    /// Adds an object to the batch.
    fn add(&self, mut state: MutexGuard<'_, State>, header: &Header, stored: &[u8]) -> Result<()> {
        self.batch(&mut state)?;
        // Another thread may have put it meanwhile, and a further content as changes from it. This
        // object could be stored as changes from that one.
        if state.has(&header.digest) {
            return Ok(());
        }
        self.batch(&mut state)?.small(header, stored)
    }

    /// Stores a content that begins with `head`, and does not fit into a pack as a whole.
    fn put_large(
        &self,
        mut head: Vec<u8>,
        rest: &mut dyn Read,
        former: &mut dyn FnMut() -> Option<Digest>,
    ) -> Result<(Digest, u64)> {
        if let Some(base) = self.former(former)? {
            let room = (delta::LARGEST + 1).saturating_sub(head.len());
            let read = (&mut *rest).take(room as u64).read_to_end(&mut head);
            read.map_err(Error::Source)?;
            if head.len() <= delta::LARGEST
                && let Some(put) = self.put_changes(&base, &head)?
            {
                return Ok(put);
            }
        }
        let mut state = self.state();
        large(&self.dir, self.batch(&mut state)?, &head, rest)
    }

    /// Stores a large content as changes, or finds it. `None` if changes save too little.
    fn put_changes(&self, base: &FormerContent, content: &[u8]) -> Result<Option<(Digest, u64)>> {
        let digest = digest_of_bytes(content);
        let size = content.len() as u64;
        if !self.is_put(&digest) && !layout::object(&self.dir, &digest).exists() {
            let whole = zstd::bulk::compress(content, LEVEL);
            let whole = whole.map_or(size, |whole| size.min(whole.len() as u64));
            let Some((header, stored)) = base.changes(&digest, content, whole) else {
                return Ok(None);
            };
            self.add(self.state(), &header, &stored)?;
        }
        Ok(Some((digest, size)))
    }

    /// Takes the writers' lock, unless a batch has it already.
    pub(crate) fn begin(&self) -> Result<()> {
        self.batch(&mut self.state()).map(|_| ())
    }

    /// The batch that takes new objects. Begins one if necessary.
    fn batch<'s>(&self, state: &'s mut State) -> Result<&'s mut Batch> {
        if state.batch.is_none() {
            let lock = self.lock()?;
            let files = PackFiles::of(&self.dir)?;
            if state.packs_at_sync.as_ref() == Some(&files) {
                let last = files.last();
                state.batch = Some(Batch::begin_after(&self.dir, lock, last)?);
            } else {
                let batch = Batch::begin(&self.dir, lock)?;
                // Contents that other writers put before this one had the lock.
                state.index = crate::index::load(&self.dir)?;
                state.batch = Some(batch);
            }
        }
        state
            .batch
            .as_mut()
            .ok_or_else(|| Error::None(self.dir.clone()))
    }

    /// True if a pack has this content, or the batch. The indexes must have been read.
    pub(crate) fn is_put(&self, digest: &Digest) -> bool {
        let state = self.state();
        let in_batch = state
            .batch
            .as_ref()
            .is_some_and(|batch| batch.holds(digest));
        in_batch || state.index.contains_key(digest)
    }

    /// The earlier version that the caller names, if another content can be stored as changes of
    /// it.
    fn former(&self, named: &mut dyn FnMut() -> Option<Digest>) -> Result<Option<FormerContent>> {
        let Some(digest) = named() else {
            return Ok(None);
        };
        // To read it would end the batch, whose end is a sync.
        let is_in_batch = |batch: &Batch| batch.holds(&digest);
        if self.state().batch.as_ref().is_some_and(is_in_batch) {
            return Ok(None);
        }
        let depth = self.base_of(&digest).map_or(0, |(_, depth)| depth);
        if depth >= delta::DEEPEST {
            return Ok(None);
        }
        match self.bytes(&digest) {
            Ok(bytes) if !bytes.is_empty() => Ok(Some(FormerContent {
                digest,
                depth,
                bytes,
            })),
            // A content that is not stored, too large or damaged serves as no base. The new content
            // is stored whole.
            Ok(_) | Err(Error::NotKept(_) | Error::Gone { .. } | Error::Damaged { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes all contents that were put durable and readable, and releases the writers' lock.
    pub fn sync(&self) -> Result<()> {
        let mut state = self.state();
        if let Some(batch) = state.batch.take() {
            let last_is_indexed = batch.last_is_indexed();
            let (small, _lock) = batch.finish()?;
            state.index.extend(small);
            // The next batch need not read the indexes again, unless another writer comes between.
            state.packs_at_sync = match last_is_indexed {
                true => PackFiles::of(&self.dir).ok(),
                false => None,
            };
        }
        Ok(())
    }
}

impl State {
    /// True if a pack has this content, or the batch.
    fn has(&self, digest: &Digest) -> bool {
        let in_batch = self.batch.as_ref().is_some_and(|batch| batch.holds(digest));
        in_batch || self.index.contains_key(digest)
    }
}

/// An earlier version of a file, to compare a new one with.
pub(crate) struct FormerContent {
    pub digest: Digest,
    /// The number of bases between it and a whole content.
    pub depth: u8,
    pub bytes: Vec<u8>,
}

impl FormerContent {
    /// The object of `content` as changes from this one. `None` if that saves less than half of the
    /// `whole` bytes, or is too long for a pack.
    fn changes(&self, digest: &Digest, content: &[u8], whole: u64) -> Option<(Header, Vec<u8>)> {
        let (header, stored) = self.object(digest, content).ok()?;
        let pays = stored.len() <= SMALL && header.stored * 2 <= whole;
        pays.then_some((header, stored))
    }

    /// The object of `content` as changes from this one, however long it is.
    pub fn object(&self, digest: &Digest, content: &[u8]) -> io::Result<(Header, Vec<u8>)> {
        let stored = delta::pack(&self.digest, self.depth + 1, &self.bytes, content)?;
        let header = Header {
            method: Method::Delta,
            size: content.len() as u64,
            stored: stored.len() as u64,
            check: crc32fast::hash(&stored),
            digest: *digest,
        };
        Ok((header, stored))
    }
}

fn digest_of_bytes(bytes: &[u8]) -> Digest {
    Digest(*blake3::hash(bytes).as_bytes())
}

/// The digest and size of the bytes of `source`, without storing them.
pub fn digest_of(source: &mut dyn Read) -> io::Result<(Digest, u64)> {
    let mut hash = blake3::Hasher::new();
    let size = io::copy(source, &mut hash)?;
    Ok((Digest(*hash.finalize().as_bytes()), size))
}

/// The digest and size of the bytes of `source`. Each part is passed to `each` as it is read. A
/// caller with many files needs only one `buffer`.
pub fn digest_through(
    source: &mut dyn Read,
    buffer: &mut [u8],
    each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<(Digest, u64)> {
    let (mut hash, mut size) = (blake3::Hasher::new(), 0);
    loop {
        match source.read(buffer) {
            Ok(0) => return Ok((Digest(*hash.finalize().as_bytes()), size)),
            Ok(read) => {
                hash.update(&buffer[..read]);
                size += read as u64;
                each(&buffer[..read])?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
