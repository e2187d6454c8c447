//! An open object.

use std::fs::File;
use std::io::{self, BufReader, Cursor, ErrorKind, Read, Take};

use flate2::bufread::ZlibDecoder;

/// The most bytes of an object that is read into memory: a commit, a tree, or a blob that is stored
/// as changes.
pub const LARGEST: u64 = 32 << 20;

/// The kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A commit.
    Commit,
    /// A directory.
    Tree,
    /// The content of a file.
    Blob,
    /// A tag with a message.
    Tag,
}

/// An object that is being read. It has the number of bytes that it states, or fewer, or one more.
/// So no reader goes on for the gigabytes that a small file can hold.
pub struct Object {
    kind: Kind,
    size: u64,
    bytes: Bytes,
}

/// The bytes of an object in a file, from their beginning.
pub type Stored = ZlibDecoder<BufReader<File>>;

enum Bytes {
    Stored(Take<Stored>),
    Made(Cursor<Vec<u8>>),
}

impl Object {
    pub(crate) fn stored(kind: Kind, size: u64, bytes: Stored) -> Object {
        let bytes = Bytes::Stored(bytes.take(size.saturating_add(1)));
        Object { kind, size, bytes }
    }

    /// An object that was made from others.
    pub(crate) fn made(kind: Kind, content: Vec<u8>) -> Object {
        Object {
            kind,
            size: content.len() as u64,
            bytes: Bytes::Made(Cursor::new(content)),
        }
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The number of bytes that it states.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The whole content, of at most [`LARGEST`] bytes.
    pub(crate) fn content(self) -> io::Result<Vec<u8>> {
        let size = self.size;
        whole(self, size, LARGEST)
    }
}

impl Read for Object {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.bytes {
            Bytes::Stored(bytes) => bytes.read(buffer),
            Bytes::Made(bytes) => bytes.read(buffer),
        }
    }
}

/// Exactly `size` bytes, if these are all, and not more than `most`.
pub fn whole(bytes: impl Read, size: u64, most: u64) -> io::Result<Vec<u8>> {
    if size > most {
        return Err(damaged("an object of git has too many bytes"));
    }
    let mut content = Vec::new();
    bytes.take(size + 1).read_to_end(&mut content)?;
    match content.len() as u64 == size {
        true => Ok(content),
        false => Err(damaged("an object of git has another size than it states")),
    }
}

/// The error about an object that is not as git writes it.
pub fn damaged(what: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}
