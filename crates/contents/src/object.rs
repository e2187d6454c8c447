//! Reads a content and checks it.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufReader, Cursor, ErrorKind, Read, Take};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use backstory_files::regular;

use crate::index::PackPosition;
use crate::record::{HEADER, Header, Method, SMALL};
use crate::{Error, Result, delta, elsewhere, layout};
use backstory_files::Digest;

/// A content that is being read. The last read of damaged bytes fails with
/// [`ErrorKind::InvalidData`]. Small contents are checked before the first read.
pub struct Object {
    size: u64,
    from: From,
}

enum From {
    Memory(Cursor<Vec<u8>>),
    File(Box<Checked>),
    Elsewhere(Box<elsewhere::Referred>),
}

impl Object {
    /// Bytes of the content.
    pub fn size(&self) -> u64 {
        self.size
    }
}

impl Read for Object {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.from {
            From::Memory(bytes) => bytes.read(buffer),
            From::File(checked) => checked.read(buffer),
            From::Elsewhere(referred) => referred.read(buffer),
        }
    }
}

/// The latest pack that was read. Contents that belong together mostly lie together. Opening a pack
/// takes longer than reading a few hundred bytes.
#[derive(Debug, Default)]
pub struct LastPack(Option<(u32, Arc<File>)>);

impl LastPack {
    /// The pack, opened unless it is the latest one.
    pub fn open(&mut self, dir: &Path, digest: &Digest, pack: u32) -> Result<Arc<File>> {
        let file = match self.0.take() {
            Some((last, file)) if last == pack => file,
            _ => Arc::new(open_file(&layout::pack(dir, pack), digest)?),
        };
        self.0 = Some((pack, Arc::clone(&file)));
        Ok(file)
    }
}

/// Reads the base of an object that is stored as changes.
pub type ReadBase<'a> = dyn Fn(&Digest) -> Result<Vec<u8>> + 'a;

/// Opens an object in a pack.
pub fn open_packed(
    dir: &Path,
    digest: &Digest,
    position: &PackPosition,
    base: &ReadBase<'_>,
) -> Result<Object> {
    let file = open_file(&layout::pack(dir, position.pack), digest)?;
    open_in(&file, dir, digest, position, base)
}

/// Opens an object in an open pack. `dir` and the pack's number serve its error messages.
pub fn open_in(
    file: &File,
    dir: &Path,
    digest: &Digest,
    position: &PackPosition,
    base: &ReadBase<'_>,
) -> Result<Object> {
    let damaged = |what| Error::Damaged {
        digest: *digest,
        path: layout::pack(dir, position.pack),
        what,
    };
    let (header, stored) = record_in(file, dir, digest, position)?;
    let base = match (header.method, delta::parse(&stored)) {
        (Method::Delta, None) => return Err(damaged("it names no base")),
        (Method::Delta, Some((named, ..))) => match base(&named) {
            Err(Error::NotKept(_) | Error::Gone { .. }) => {
                return Err(damaged(
                    "the content that it is stored as changes of is missing",
                ));
            }
            Err(Error::Damaged { path, .. }) => {
                return Err(Error::Damaged {
                    digest: *digest,
                    path,
                    what: "the content that it is stored as changes of is damaged",
                });
            }
            read => read?,
        },
        _ => Vec::new(),
    };
    let content = unpack(&header, &stored, &base).map_err(damaged)?;
    Ok(Object {
        size: header.size,
        from: From::Memory(Cursor::new(content)),
    })
}

/// The record of an object in a pack: its header, and its bytes as stored.
pub fn record(dir: &Path, digest: &Digest, position: &PackPosition) -> Result<(Header, Vec<u8>)> {
    let file = open_file(&layout::pack(dir, position.pack), digest)?;
    record_in(&file, dir, digest, position)
}

/// The base of an object in an open pack and its depth, if the object is stored as changes.
pub fn base_in(file: &File, position: &PackPosition) -> Option<(Digest, u8)> {
    let mut bytes = [0; HEADER + delta::HEAD];
    // A record that is too short or damaged has no base. Its damage is found when it is read.
    file.read_exact_at(&mut bytes, position.offset).ok()?;
    let header = Header::decode(&bytes)?;
    let (base, depth, _) = delta::parse(&bytes[HEADER..])?;
    (header.method == Method::Delta).then_some((base, depth))
}

fn record_in(
    file: &File,
    dir: &Path,
    digest: &Digest,
    position: &PackPosition,
) -> Result<(Header, Vec<u8>)> {
    let damaged = |what| Error::Damaged {
        digest: *digest,
        path: layout::pack(dir, position.pack),
        what,
    };
    if position.stored > SMALL as u64 {
        return Err(damaged(
            "its index names more bytes than a small object has",
        ));
    }
    let mut bytes = vec![0; HEADER + position.stored as usize];
    file.read_exact_at(&mut bytes, position.offset)
        .map_err(|_| damaged("the file is shorter than it was"))?;
    let header =
        Header::decode(&bytes).ok_or_else(|| damaged("its header is not as it was written"))?;
    if (header.digest, header.stored, header.size) != (*digest, position.stored, position.size) {
        return Err(damaged("another object lies in its place"));
    }
    Ok((header, bytes.split_off(HEADER)))
}

/// The content of a record in a pack.
fn unpack(
    header: &Header,
    stored: &[u8],
    base: &[u8],
) -> std::result::Result<Vec<u8>, &'static str> {
    if crc32fast::hash(stored) != header.check {
        return Err("its bytes are not as they were written");
    }
    let unpacked = match (header.method, delta::parse(stored)) {
        (Method::Raw, _) => Ok(stored.to_vec()),
        // Never more than the size of a small content, whatever a header says.
        (Method::Zstd, _) => decompress(stored, header.size.min(SMALL as u64) as usize),
        (Method::Delta, Some((.., frame))) => delta::unpack(frame, base, header.size),
        (Method::Delta, None) => return Err("it names no base"),
    };
    let content = unpacked.map_err(|_| "it cannot be decompressed")?;
    if content.len() as u64 != header.size || *blake3::hash(&content).as_bytes() != header.digest.0
    {
        return Err("its content is not what its digest names");
    }
    Ok(content)
}

thread_local! {
    /// zstd's working memory, reused for the next small content. Making it takes longer than
    /// decompressing a few kB.
    static UNPACKER: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

fn decompress(stored: &[u8], size: usize) -> io::Result<Vec<u8>> {
    UNPACKER.with_borrow_mut(|unpacker| {
        let unpacker = match unpacker {
            Some(unpacker) => unpacker,
            none => none.insert(zstd::bulk::Decompressor::new()?),
        };
        unpacker.decompress(stored, size)
    })
}

/// Opens a content that another store has.
pub fn open_elsewhere(dir: &Path, digest: &Digest) -> Result<Object> {
    let (size, referred) = elsewhere::open(dir, digest)?;
    Ok(Object {
        size,
        from: From::Elsewhere(Box::new(referred)),
    })
}

/// Opens an object in a file of its own.
pub fn open_large(dir: &Path, digest: &Digest) -> Result<Object> {
    let path = layout::object(dir, digest);
    let (file, header) = large_header(&path, digest)?;
    let stored = BufReader::new(file).take(header.stored);
    let checked = Checked::new(path.clone(), header, stored).map_err(Error::io("read", &path))?;
    Ok(Object {
        size: header.size,
        from: From::File(Box::new(checked)),
    })
}

/// The header of a large object, and its file, positioned after the header.
pub fn large_header(path: &Path, digest: &Digest) -> Result<(File, Header)> {
    let mut file = open_file(path, digest)?;
    let mut bytes = [0; HEADER];
    let header = file
        .read_exact(&mut bytes)
        .ok()
        .and_then(|()| Header::decode(&bytes))
        .filter(|header| header.digest == *digest && header.method != Method::Delta);
    let header = header.ok_or_else(|| Error::Damaged {
        digest: *digest,
        path: path.to_owned(),
        what: "its header is not as it was written",
    })?;
    Ok((file, header))
}

/// Checks that a large object's file ends where its header says.
pub fn nothing_follows(path: &Path, digest: &Digest) -> Result<()> {
    let (_, header) = large_header(path, digest)?;
    match layout::length(path) == header.stored + HEADER as u64 {
        true => Ok(()),
        false => Err(Error::Damaged {
            digest: *digest,
            path: path.to_owned(),
            what: "the file is longer than it was",
        }),
    }
}

fn open_file(path: &Path, digest: &Digest) -> Result<File> {
    regular::open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::Gone {
            digest: *digest,
            path: path.to_owned(),
        },
        _ => Error::io("open", path)(error),
    })
}

/// Decompresses, and compares with the digest at the end.
struct Checked {
    path: PathBuf,
    header: Header,
    bytes: Decoder,
    hash: blake3::Hasher,
    read: u64,
}

type Stored = Summed<Take<BufReader<File>>>;

enum Decoder {
    Raw(Stored),
    Zstd(zstd::stream::read::Decoder<'static, BufReader<Stored>>),
}

impl Checked {
    fn new(path: PathBuf, header: Header, stored: Take<BufReader<File>>) -> io::Result<Checked> {
        let stored = Summed {
            inner: stored,
            sum: crc32fast::Hasher::new(),
            read: 0,
        };
        let bytes = match header.method {
            Method::Raw => Decoder::Raw(stored),
            Method::Zstd => Decoder::Zstd(zstd::stream::read::Decoder::new(stored)?.single_frame()),
            // Changes are small, and lie in packs.
            Method::Delta => return Err(ErrorKind::InvalidData.into()),
        };
        Ok(Checked {
            path,
            header,
            bytes,
            hash: blake3::Hasher::new(),
            read: 0,
        })
    }

    /// Checks, at the end, every stored byte and the content.
    fn verdict(&mut self) -> io::Result<()> {
        let stored = match &mut self.bytes {
            Decoder::Raw(stored) => stored,
            Decoder::Zstd(decoder) => decoder.get_mut().get_mut(),
        };
        io::copy(stored, &mut io::sink())?;
        let as_written =
            stored.read == self.header.stored && stored.sum.clone().finalize() == self.header.check;
        let named = self.hash.finalize().as_bytes() == &self.header.digest.0;
        match as_written && named && self.read == self.header.size {
            true => Ok(()),
            false => Err(self.damaged()),
        }
    }

    fn damaged(&self) -> io::Error {
        io::Error::new(
            ErrorKind::InvalidData,
            Error::Damaged {
                digest: self.header.digest,
                path: self.path.clone(),
                what: "its bytes are not as they were written",
            },
        )
    }
}

impl Read for Checked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let read = match &mut self.bytes {
            Decoder::Raw(stored) => stored.read(buffer),
            Decoder::Zstd(decoder) => decoder.read(buffer),
        };
        // The decompressor's own message does not help the reader of a file.
        let read = read.map_err(|error| match error.kind() {
            ErrorKind::Interrupted => error,
            _ => self.damaged(),
        })?;
        self.hash.update(&buffer[..read]);
        self.read += read as u64;
        if self.read > self.header.size {
            return Err(self.damaged());
        }
        if read == 0 {
            self.verdict()?;
        }
        Ok(read)
    }
}

/// Computes the checksum of the bytes that pass.
struct Summed<R> {
    inner: R,
    sum: crc32fast::Hasher,
    read: u64,
}

impl<R: Read> Read for Summed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.sum.update(&buffer[..read]);
        self.read += read as u64;
        Ok(read)
    }
}
