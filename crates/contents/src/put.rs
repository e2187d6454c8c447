//! Puts a content into the store.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use crate::batch::{Batch, ROOM};
use crate::record::{Header, Method, SMALL};
use crate::{Contents, Error, Result, layout};
use backstory_files::Digest;

/// zstd's level. A low one, so that background work does not keep a processor busy.
const LEVEL: i32 = 3;

/// Bytes read at a time.
const CHUNK: usize = 128 << 10;

impl Contents {
    /// Stores the bytes of `source`, and returns their digest and size. They are durable, and
    /// visible to others, after the next [`Contents::sync`].
    ///
    /// The first call after a sync waits for the batches of other writers to end.
    pub fn put(&self, source: &mut dyn Read) -> Result<(Digest, u64)> {
        let mut state = self.state();
        if state.batch.is_none() {
            let batch = Batch::begin(&self.dir, self.lock()?)?;
            // Contents that other writers put before this one had the lock.
            state.index = crate::index::load(&self.dir)?;
            state.batch = Some(batch);
        }
        let mut head = Vec::with_capacity(CHUNK);
        let read = source.take(SMALL as u64 + 1).read_to_end(&mut head);
        read.map_err(Error::Source)?;
        let state = &mut *state;
        let Some(batch) = &mut state.batch else {
            return Err(Error::None(self.dir.clone()));
        };
        if head.len() > SMALL {
            return large(&self.dir, batch, &head, source);
        }
        let digest = Digest(*blake3::hash(&head).as_bytes());
        if !state.index.contains_key(&digest) && !batch.holds(&digest) {
            let (header, stored) = small(digest, head.as_slice(), &mut state.packer);
            batch.small(&header, stored.as_deref().unwrap_or(&head))?;
        }
        Ok((digest, head.len() as u64))
    }

    /// Makes all contents that were put durable and readable, and releases the writers' lock.
    pub fn sync(&self) -> Result<()> {
        let mut state = self.state();
        if let Some(batch) = state.batch.take() {
            let small = batch.finish()?;
            state.index.extend(small);
        }
        Ok(())
    }
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

/// zstd's working memory, reused for the next small content. Making it takes longer than
/// compressing a few kB.
#[derive(Default)]
pub(crate) struct Packer(Option<zstd::bulk::Compressor<'static>>);

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Packer")
    }
}

impl Packer {
    fn pack(&mut self, content: &[u8]) -> io::Result<Vec<u8>> {
        let packer = match &mut self.0 {
            Some(packer) => packer,
            None => self.0.insert(zstd::bulk::Compressor::new(LEVEL)?),
        };
        packer.compress(content)
    }
}

/// The header of a small object, and its bytes if they are to be compressed.
fn small(digest: Digest, content: &[u8], packer: &mut Packer) -> (Header, Option<Vec<u8>>) {
    // If compression fails or saves hardly any space, the bytes are stored as they are.
    let packed = packer
        .pack(content)
        .ok()
        .filter(|packed| pays(packed.len(), content.len()));
    let stored = packed.as_deref().unwrap_or(content);
    let header = Header {
        method: if packed.is_some() {
            Method::Zstd
        } else {
            Method::Raw
        },
        size: content.len() as u64,
        stored: stored.len() as u64,
        check: crc32fast::hash(stored),
        digest,
    };
    (header, packed)
}

fn pays(packed: usize, content: usize) -> bool {
    packed + packed / 16 < content
}

/// Stores a content that begins with `head` in a file of its own.
fn large(dir: &Path, batch: &mut Batch, head: &[u8], rest: &mut dyn Read) -> Result<(Digest, u64)> {
    let path = layout::temporary(dir);
    let file = layout::new_file(&path)?;
    let written = write_large(&file, &path, head, rest);
    let known = |header: &Header| {
        layout::object(dir, &header.digest).exists() || batch.holds(&header.digest)
    };
    match written {
        Ok(header) if !known(&header) => {
            batch.large(file, path, &header)?;
            Ok((header.digest, header.size))
        }
        Ok(header) => {
            layout::remove(&path)?;
            Ok((header.digest, header.size))
        }
        Err(error) => {
            layout::remove(&path)?;
            Err(error)
        }
    }
}

fn write_large(file: &File, path: &Path, head: &[u8], rest: &mut dyn Read) -> Result<Header> {
    let fail = || Error::io("write", path);
    // The beginning shows whether a file is compressed already, as films and archives are.
    let sample = &head[..CHUNK.min(head.len())];
    let method = match zstd::bulk::compress(sample, LEVEL) {
        Ok(packed) if pays(packed.len(), sample.len()) => Method::Zstd,
        _ => Method::Raw,
    };
    let mut out = BufWriter::with_capacity(CHUNK, file);
    out.write_all(&ROOM).map_err(fail())?;
    let mut out = Counted {
        inner: out,
        sum: crc32fast::Hasher::new(),
        written: 0,
    };
    let (digest, size) = match method {
        Method::Raw => copy(head, rest, &mut out, path)?,
        Method::Zstd => {
            let mut encoder = zstd::stream::write::Encoder::new(&mut out, LEVEL).map_err(fail())?;
            let copied = copy(head, rest, &mut encoder, path)?;
            encoder.finish().map_err(fail())?;
            copied
        }
    };
    out.inner.flush().map_err(fail())?;
    Ok(Header {
        method,
        size,
        stored: out.written,
        check: out.sum.finalize(),
        digest,
    })
}

fn copy(
    head: &[u8],
    rest: &mut dyn Read,
    out: &mut dyn Write,
    path: &Path,
) -> Result<(Digest, u64)> {
    let mut hash = blake3::Hasher::new();
    let mut size = 0;
    let mut take = |bytes: &[u8]| {
        hash.update(bytes);
        size += bytes.len() as u64;
        out.write_all(bytes).map_err(Error::io("write", path))
    };
    take(head)?;
    let mut chunk = vec![0; CHUNK];
    loop {
        match rest.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => take(&chunk[..read])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::Source(error)),
        }
    }
    Ok((Digest(*hash.finalize().as_bytes()), size))
}

/// Counts the bytes written, and computes their checksum.
struct Counted<W> {
    inner: W,
    sum: crc32fast::Hasher,
    written: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.sum.update(&bytes[..written]);
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
