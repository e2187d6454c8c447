//! Contents that another content-addressed store on this machine has, such as the cache of DVC.
//!
//! They are large. Instead of a second copy, a note says where the content lies:
//!
//! ```text
//! DIR/elsewhere/ab/DIGEST:
//!  0   4  "bsel"
//!  4   4  CRC-32 of the rest
//!  8   8  size of the content
//! 16   1  bytes of the name of the other store
//! 17      its name, and then the path of the file that has the content
//! ```
//!
//! Numbers are little-endian. A reader gets the bytes from that file, and checks them against the
//! digest like any other. The file of a git repository is that of a loose object. git may have put
//! the object into a pack.
//!
//! Invariants: a content that is stored here is never read from elsewhere. No content is stored as
//! changes from one that lies elsewhere, because the other store may remove it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use backstory_files::{Digest, regular};
use backstory_git_objects::{self as git_objects, open_blob};

use crate::{Contents, Error, Result, layout};

const MAGIC: &[u8; 4] = b"bsel";

/// The fault of a file that is there, but is not the content.
const OTHER: &str = "has another content";

/// Bytes before the name of the other store.
const HEAD: usize = 17;

/// Where a content lies that is not stored here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The other store in words, at most 255 bytes: `the cache of DVC`.
    pub store: String,
    /// The file that has exactly this content.
    pub path: PathBuf,
}

impl Place {
    /// Opens the content, and returns the number of bytes that the other store states.
    ///
    /// # Errors
    /// `NotFound` if the other store has it no more. `InvalidInput` for something else than a
    /// regular file.
    pub fn open(&self) -> io::Result<(u64, PlacedContent)> {
        if self.store == git_objects::STORE {
            let blob = open_blob(&self.path)?;
            return Ok((blob.size(), PlacedContent(Bytes::Blob(Box::new(blob)))));
        }
        let file = regular::open(&self.path)?;
        let size = file.metadata()?.len();
        Ok((size, PlacedContent(Bytes::File(file))))
    }
}

/// A content of another store that is being read. It may be another content by now.
pub struct PlacedContent(Bytes);

enum Bytes {
    File(File),
    Blob(Box<git_objects::Object>),
}

impl Read for PlacedContent {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Bytes::File(file) => file.read(buffer),
            Bytes::Blob(blob) => blob.read(buffer),
        }
    }
}

/// A note, as it lies in its file.
#[derive(Debug, PartialEq, Eq)]
pub struct Note {
    /// Bytes of the content.
    pub size: u64,
    pub place: Place,
}

impl Contents {
    /// Notes that the file at `place` has this content, of `size` bytes. The note is durable when
    /// the call returns, and replaces an earlier one. It is without effect while the content itself
    /// is stored.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn refer(&self, digest: &Digest, size: u64, place: &Place) -> Result<()> {
        // The writers' lock protects the temporary file.
        self.begin()?;
        let note = Note {
            size,
            place: place.clone(),
        };
        let target = layout::elsewhere(&self.dir, digest);
        let above = target.parent().unwrap_or(&self.dir);
        layout::make_dir(above)?;
        let beside = layout::temporary(&self.dir);
        let mut file = layout::new_file(&beside)?;
        layout::write_synced(&mut file, &beside, &note.encode())?;
        fs::rename(&beside, &target).map_err(Error::io("rename", &beside))?;
        for dir in [above, &self.dir.join("elsewhere"), &self.dir] {
            layout::sync_dir(dir)?;
        }
        Ok(())
    }

    /// False if no content was ever left in another store.
    pub fn has_places(&self) -> bool {
        self.dir.join("elsewhere").exists()
    }

    /// True if a content is not stored here, and a note says where it lies. The note can be
    /// damaged, and the other store can have lost the content.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn is_elsewhere(&self, digest: &Digest) -> Result<bool> {
        let is_noted = layout::elsewhere(&self.dir, digest).exists();
        Ok(is_noted && self.stored_size(digest)?.is_none())
    }

    /// The reason why a content that was left in another store cannot be read, as a part of a
    /// sentence. `None` for one that can be read, that is stored here, or that is unknown.
    ///
    /// The other store states the size of its file. The content itself is not read.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn lost(&self, digest: &Digest) -> Result<Option<String>> {
        if !self.is_elsewhere(digest)? {
            return Ok(None);
        }
        match open(&self.dir, digest) {
            Ok(_) | Err(Error::NotKept(_)) => Ok(None),
            Err(Error::Elsewhere {
                store, path, what, ..
            }) => Ok(Some(format!(
                "it was left in {store}, whose file {} {what}",
                path.display()
            ))),
            Err(Error::Damaged { .. }) => Ok(Some(
                "it was left in another store, and the note of its place is damaged".to_owned(),
            )),
            Err(error) => Err(error),
        }
    }

    /// The file of another store that a content is read from. `None` for a content that is stored
    /// here, for an unknown one, and if the note of the place is damaged.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn place(&self, digest: &Digest) -> Result<Option<Place>> {
        if !self.is_elsewhere(digest)? {
            return Ok(None);
        }
        match read(&self.dir, digest) {
            Err(Error::Damaged { .. }) => Ok(None),
            note => Ok(note?.map(|note| note.place)),
        }
    }
}

impl Note {
    /// The error about a content that the other store does not have as it was.
    fn lost(&self, digest: &Digest, what: &str) -> Error {
        Error::Elsewhere {
            digest: *digest,
            store: self.place.store.clone(),
            path: self.place.path.clone(),
            what: what.to_owned(),
        }
    }

    fn encode(&self) -> Vec<u8> {
        let name = self.place.store.as_bytes();
        let name = &name[..name.len().min(usize::from(u8::MAX))];
        let mut rest = self.size.to_le_bytes().to_vec();
        rest.push(name.len() as u8);
        rest.extend(name);
        rest.extend(self.place.path.as_os_str().as_bytes());
        let mut bytes = MAGIC.to_vec();
        bytes.extend(crc32fast::hash(&rest).to_le_bytes());
        bytes.extend(rest);
        bytes
    }

    /// `None` if these bytes are not as they were written.
    fn decode(bytes: &[u8]) -> Option<Note> {
        let (head, rest) = bytes.split_first_chunk::<8>()?;
        let whole = head[..4] == *MAGIC && head[4..] == crc32fast::hash(rest).to_le_bytes();
        let size = u64::from_le_bytes(*rest.first_chunk()?);
        let length = usize::from(*rest.get(8)?);
        let (store, path) = bytes.get(HEAD..)?.split_at_checked(length)?;
        whole.then(|| Note {
            size,
            place: Place {
                store: String::from_utf8_lossy(store).into_owned(),
                path: OsStr::from_bytes(path).into(),
            },
        })
    }
}

/// The note of a content, if there is one.
pub fn read(dir: &Path, digest: &Digest) -> Result<Option<Note>> {
    let path = layout::elsewhere(dir, digest);
    let bytes = match regular::read(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        read => read.map_err(Error::io("read", &path))?,
    };
    let note = Note::decode(&bytes).ok_or(Error::Damaged {
        digest: *digest,
        path,
        what: "the note of its place is not as it was written",
    })?;
    Ok(Some(note))
}

/// Opens a content where its note says that it lies.
///
/// # Errors
/// [`Error::NotKept`] without a note, [`Error::Elsewhere`] if the file is gone or another one.
pub fn open(dir: &Path, digest: &Digest) -> Result<(u64, Referred)> {
    let note = read(dir, digest)?.ok_or(Error::NotKept(*digest))?;
    // Every fault lies in the other store, and not in this one.
    let unread = |error: io::Error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => note.lost(digest, "is gone"),
        ErrorKind::InvalidInput => note.lost(digest, "is not a regular file any more"),
        _ => note.lost(digest, &format!("cannot be read ({error})")),
    };
    let (size, content) = note.place.open().map_err(unread)?;
    if size != note.size {
        return Err(note.lost(digest, OTHER));
    }
    let referred = Referred {
        digest: *digest,
        note,
        content,
        hash: blake3::Hasher::new(),
        read: 0,
    };
    Ok((referred.note.size, referred))
}

/// Reads a file of another store, and compares it with the digest at its end.
pub struct Referred {
    digest: Digest,
    note: Note,
    content: PlacedContent,
    hash: blake3::Hasher,
    read: u64,
}

impl Referred {
    fn failed(&self, what: &str) -> io::Error {
        io::Error::new(ErrorKind::InvalidData, self.note.lost(&self.digest, what))
    }
}

impl Read for Referred {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let read = self
            .content
            .read(buffer)
            .map_err(|error| match error.kind() {
                ErrorKind::Interrupted => error,
                _ => self.failed(&format!("cannot be read ({error})")),
            })?;
        self.hash.update(&buffer[..read]);
        self.read += read as u64;
        let named = || self.hash.finalize().as_bytes() == &self.digest.0;
        match self.read > self.note.size || (read == 0 && !named()) {
            true => Err(self.failed(OTHER)),
            false => Ok(read),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note() -> Note {
        Note {
            size: 70_000,
            place: Place {
                store: "the cache of DVC".to_owned(),
                path: OsStr::from_bytes(b"/w/.dvc/cache/\xff").into(),
            },
        }
    }

    #[test]
    fn a_note_comes_back_and_no_flipped_bit_or_cut_passes() {
        let bytes = note().encode();
        assert_eq!(Note::decode(&bytes), Some(note()));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Note::decode(&flipped), None, "bit {bit}");
        }
        for cut in 0..bytes.len() {
            assert_eq!(Note::decode(&bytes[..cut]), None, "cut at {cut}");
        }
    }
}
