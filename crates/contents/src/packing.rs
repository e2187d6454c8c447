//! Makes the object of a content that is stored whole: packed for a pack, or in a file of its own.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use crate::batch::{Batch, ROOM};
use crate::record::{Header, Method, SMALL};
use crate::{Error, Result, layout};
use backstory_files::Digest;

/// zstd's level. A low one, so that background work does not keep a processor busy.
pub const LEVEL: i32 = 3;

/// Contents with fewer bytes are not compressed. That would save less than the header takes.
const TINY: usize = 128;

/// Bytes read at a time.
pub const CHUNK: usize = 128 << 10;

/// zstd's working memory, reused for the next small content. Making it takes longer than
/// compressing a few kB.
#[derive(Default)]
pub struct Packer(Option<zstd::bulk::Compressor<'static>>);

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Packer")
    }
}

impl Packer {
    /// The compressed bytes of a small content. `None` if it is to be stored as it is: compression
    /// fails, or saves hardly any space.
    fn pack(&mut self, content: &[u8]) -> Option<Vec<u8>> {
        if content.len() < TINY {
            return None;
        }
        let packer = match &mut self.0 {
            Some(packer) => packer,
            None => self.0.insert(zstd::bulk::Compressor::new(LEVEL).ok()?),
        };
        let packed = packer.compress(content).ok()?;
        pays(packed.len(), content.len()).then_some(packed)
    }
}

/// The header of a small object, and its bytes if they are to be compressed.
pub fn small(digest: Digest, content: &[u8], packer: &mut Packer) -> (Header, Option<Vec<u8>>) {
    let packed = packer.pack(content);
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

/// Stores a content in a batch without a base.
pub fn put_whole(dir: &Path, batch: &mut Batch, content: &[u8]) -> Result<()> {
    if content.len() > SMALL {
        return large(dir, batch, content, &mut io::empty()).map(|_| ());
    }
    let (header, stored) = small(
        Digest(*blake3::hash(content).as_bytes()),
        content,
        &mut Packer::default(),
    );
    batch.small(&header, stored.as_deref().unwrap_or(content))
}

/// Bytes that [`put_whole`] stores, without the header.
pub fn whole_length(content: &[u8]) -> u64 {
    let packed = match content.len() {
        0..=SMALL => Packer::default().pack(content),
        _ => zstd::stream::encode_all(content, LEVEL)
            .ok()
            .filter(|packed| pays(packed.len(), content.len())),
    };
    packed.map_or(content.len(), |packed| packed.len()) as u64
}

/// Stores a content that begins with `head` in a file of its own.
pub fn large(
    dir: &Path,
    batch: &mut Batch,
    head: &[u8],
    rest: &mut dyn Read,
) -> Result<(Digest, u64)> {
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
    let packed = zstd::bulk::compress(sample, LEVEL);
    let is_packed = packed.is_ok_and(|packed| pays(packed.len(), sample.len()));
    let mut out = BufWriter::with_capacity(CHUNK, file);
    out.write_all(&ROOM).map_err(fail())?;
    let mut out = Counted {
        inner: out,
        sum: crc32fast::Hasher::new(),
        written: 0,
    };
    let (digest, size) = if is_packed {
        let mut encoder = zstd::stream::write::Encoder::new(&mut out, LEVEL).map_err(fail())?;
        let copied = copy(head, rest, &mut encoder, path)?;
        encoder.finish().map_err(fail())?;
        copied
    } else {
        copy(head, rest, &mut out, path)?
    };
    out.inner.flush().map_err(fail())?;
    Ok(Header {
        method: if is_packed { Method::Zstd } else { Method::Raw },
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
