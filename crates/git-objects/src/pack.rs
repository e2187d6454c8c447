//! Objects in packs (gitformat-pack(5)).
//!
//! An index of version 2 begins with a table of 256 counts, by the first byte of an id. All ids in
//! order follow, then their checksums, and then their offsets in the pack. An offset of 2 GiB or
//! more stands in a further table.
//!
//! An object in a pack begins with its kind and size. A zlib stream follows, of the content or of a
//! delta. The base of a delta is named before the stream: by its distance in the pack, or by its
//! id.

use std::cmp::Ordering;
use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use backstory_files::regular;
use flate2::bufread::ZlibDecoder;

use crate::delta;
use crate::object::{Kind, LARGEST, Object, Stored, damaged, whole};
use crate::object_id::ObjectId;

/// The first bytes of an index.
const MAGIC: &[u8; 8] = b"\xfftOc\0\0\0\x02";

/// Where the table of counts begins in an index, and where the ids do.
const COUNTS: u64 = 8;
const IDS: u64 = COUNTS + 4 * 256;

/// The bytes of a checksum of a packed object, and of an offset.
const WORD: u64 = 4;

/// The most deltas between an object and its base. git makes at most 50 by default.
const CHAIN: usize = 512;

/// The most bytes that all deltas of an object make together. A small pack can have a chain that
/// makes [`LARGEST`] bytes again and again. No chain that git makes by default reaches this bound,
/// because each of its contents has at most [`LARGEST`] bytes.
const MOST_MADE: u64 = 64 * LARGEST;

/// Opens the object that a pack has.
pub fn open(objects: &Path, id: &ObjectId) -> io::Result<Object> {
    let mut failure = io::Error::new(ErrorKind::NotFound, "no pack of git has the object");
    let entries = fs::read_dir(objects.join("pack")).into_iter().flatten();
    for entry in entries.flatten() {
        let index = entry.path();
        if index.extension().is_none_or(|extension| extension != "idx") {
            continue;
        }
        match Pack::open(&index).and_then(|pack| pack.object(id)) {
            Ok(Some(object)) => return Ok(object),
            Ok(None) => {}
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

struct Pack {
    index: File,
    path: PathBuf,
}

/// An entry of a pack. Its bytes are read from their beginning.
struct Entry {
    role: EntryRole,
    size: u64,
    bytes: Stored,
}

enum EntryRole {
    Whole(Kind),
    /// A delta, and where its base is.
    Delta(Base),
}

enum Base {
    Offset(u64),
    Id(ObjectId),
}

impl Pack {
    fn open(index: &Path) -> io::Result<Pack> {
        Ok(Pack {
            index: regular::open(index)?,
            path: index.with_extension("pack"),
        })
    }

    fn object(&self, id: &ObjectId) -> io::Result<Option<Object>> {
        let Some(at) = self.offset(id)? else {
            return Ok(None);
        };
        self.read(at, id.bytes().len()).map(Some)
    }

    /// The offset of an object in the pack.
    fn offset(&self, id: &ObjectId) -> io::Result<Option<u64>> {
        let mut magic = [0; MAGIC.len()];
        self.index.read_exact_at(&mut magic, 0)?;
        let Some(&first) = id.bytes().first().filter(|_| magic == *MAGIC) else {
            return Ok(None);
        };
        let until = |byte: u8| word(&self.index, COUNTS + WORD * u64::from(byte));
        let all = until(u8::MAX)?;
        let mut low = first.checked_sub(1).map_or(Ok(0), until)?;
        let mut high = until(first)?;
        if low > high || high > all {
            return Err(damaged("the index of a pack is damaged"));
        }
        let width = id.bytes().len() as u64;
        let mut found = vec![0; id.bytes().len()];
        while low < high {
            let middle = low + (high - low) / 2;
            self.index.read_exact_at(&mut found, IDS + middle * width)?;
            match found.as_slice().cmp(id.bytes()) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return self.offset_of(middle, all, width).map(Some),
            }
        }
        Ok(None)
    }

    /// The offset of the object with this number, in an index of `all` ids of `width` bytes.
    fn offset_of(&self, number: u64, all: u64, width: u64) -> io::Result<u64> {
        const FURTHER: u64 = 1 << 31;
        let offsets = IDS + all * (width + WORD);
        let offset = word(&self.index, offsets + WORD * number)?;
        if offset < FURTHER {
            return Ok(offset);
        }
        let at = offsets + WORD * all + 2 * WORD * (offset - FURTHER);
        let mut bytes = [0; 8];
        self.index.read_exact_at(&mut bytes, at)?;
        Ok(u64::from_be_bytes(bytes))
    }

    /// The object at an offset. `width` is the number of bytes of an id.
    fn read(&self, mut at: u64, width: usize) -> io::Result<Object> {
        let (mut deltas, mut room, mut made) = (Vec::new(), LARGEST, 0_u64);
        let (kind, size, bytes) = loop {
            let entry = self.entry(at, width)?;
            let base = match entry.role {
                EntryRole::Whole(kind) => break (kind, entry.size, entry.bytes),
                EntryRole::Delta(base) => base,
            };
            if deltas.len() == CHAIN {
                return Err(damaged("an object of git has too many deltas"));
            }
            let delta = whole(entry.bytes, entry.size, room)?;
            room -= delta.len() as u64;
            made = made.saturating_add(delta::result_size(&delta).map_err(damaged)? as u64);
            if made > MOST_MADE {
                return Err(damaged(
                    "the deltas of an object of git make too many bytes",
                ));
            }
            deltas.push(delta);
            at = match base {
                Base::Offset(at) => at,
                Base::Id(id) => self
                    .offset(&id)?
                    .ok_or_else(|| damaged("the base of a delta is in another pack"))?,
            };
        };
        if deltas.is_empty() {
            return Ok(Object::stored(kind, size, bytes));
        }
        let mut content = whole(bytes, size, LARGEST)?;
        while let Some(delta) = deltas.pop() {
            content = delta::applied(&content, &delta, LARGEST as usize).map_err(damaged)?;
        }
        Ok(Object::made(kind, content))
    }

    /// The entry at an offset.
    fn entry(&self, at: u64, width: usize) -> io::Result<Entry> {
        let mut file = regular::open(&self.path)?;
        file.seek(SeekFrom::Start(at))?;
        let mut bytes = BufReader::new(file);
        let mut last = byte(&mut bytes)?;
        let number = last >> 4 & 7;
        let mut size = u64::from(last & 15);
        let mut shift = 4;
        while last & 0x80 != 0 {
            if shift > 53 {
                return Err(damaged("an object in a pack has an absurd size"));
            }
            last = byte(&mut bytes)?;
            size |= u64::from(last & 0x7f) << shift;
            shift += 7;
        }
        let role = match number {
            1 => EntryRole::Whole(Kind::Commit),
            2 => EntryRole::Whole(Kind::Tree),
            3 => EntryRole::Whole(Kind::Blob),
            4 => EntryRole::Whole(Kind::Tag),
            6 => {
                let base = at.checked_sub(distance(&mut bytes)?);
                let base = base.filter(|&base| base < at);
                EntryRole::Delta(Base::Offset(
                    base.ok_or_else(|| damaged("a delta in a pack has no base"))?,
                ))
            }
            7 => {
                let mut id = vec![0; width];
                bytes.read_exact(&mut id)?;
                let id = ObjectId::new(&id);
                EntryRole::Delta(Base::Id(
                    id.ok_or_else(|| damaged("a delta in a pack has no base"))?,
                ))
            }
            _ => return Err(damaged("an object in a pack has no known kind")),
        };
        Ok(Entry {
            role,
            size,
            bytes: ZlibDecoder::new(bytes),
        })
    }
}

/// The distance from a delta back to its base.
fn distance(bytes: &mut impl Read) -> io::Result<u64> {
    let mut last = byte(bytes)?;
    let mut distance = u64::from(last & 0x7f);
    while last & 0x80 != 0 {
        if distance >> 55 != 0 {
            return Err(damaged("a delta in a pack has no base"));
        }
        last = byte(bytes)?;
        distance = (distance + 1) << 7 | u64::from(last & 0x7f);
    }
    Ok(distance)
}

fn byte(bytes: &mut impl Read) -> io::Result<u8> {
    let mut byte = [0];
    bytes.read_exact(&mut byte)?;
    Ok(byte[0])
}

/// A number of four bytes in an index.
fn word(index: &File, at: u64) -> io::Result<u64> {
    let mut bytes = [0; WORD as usize];
    index.read_exact_at(&mut bytes, at)?;
    Ok(u64::from(u32::from_be_bytes(bytes)))
}
