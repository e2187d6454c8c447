//! The positions of the small objects.
//!
//! The index of a pack is a shortcut. It is written after the pack's bytes are durable. If it is
//! missing, short or damaged, it is made again from the pack. Large objects need no index, because
//! their file is named after the digest.
//!
//! ```text
//! N.idx:   "bsidx\0\0\1", then for each object 60 bytes:
//!  0  32  digest
//! 32   8  offset of its record
//! 40   8  size
//! 48   8  bytes stored
//! 56   4  CRC-32 of the 56 before
//! ```

use std::io::{ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use backstory_files::regular;
use rustc_hash::FxHashMap;

use crate::record::{HEADER, Header, SMALL};
use crate::{Error, Result, layout};
use backstory_files::Digest;

/// The first bytes of every index.
pub const MAGIC: &[u8; 8] = b"bsidx\0\0\x01";

/// Bytes in an entry.
pub const ENTRY: usize = 60;

/// The position of a small object's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackPosition {
    pub pack: u32,
    /// Offset of its header in the pack.
    pub offset: u64,
    /// Bytes of the content.
    pub size: u64,
    /// Bytes as stored.
    pub stored: u64,
}

impl PackPosition {
    /// Offset of the next record.
    pub fn end(&self) -> u64 {
        self.offset
            .saturating_add(HEADER as u64)
            .saturating_add(self.stored)
    }
}

/// The index entry of an object.
pub fn entry(digest: &Digest, position: &PackPosition) -> [u8; ENTRY] {
    let mut bytes = [0; ENTRY];
    bytes[..32].copy_from_slice(&digest.0);
    for (at, number) in [
        (32, position.offset),
        (40, position.size),
        (48, position.stored),
    ] {
        bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
    }
    let check = crc32fast::hash(&bytes[..56]);
    bytes[56..].copy_from_slice(&check.to_le_bytes());
    bytes
}

fn parse(bytes: &[u8], pack: u32) -> Option<(Digest, PackPosition)> {
    let number = |at: usize| {
        bytes
            .get(at..at + 8)?
            .try_into()
            .map(u64::from_le_bytes)
            .ok()
    };
    let check = bytes.get(56..60)?.try_into().map(u32::from_le_bytes).ok()?;
    let position = PackPosition {
        pack,
        offset: number(32)?,
        size: number(40)?,
        stored: number(48)?,
    };
    let digest = Digest(bytes.get(..32)?.try_into().ok()?);
    (crc32fast::hash(&bytes[..56]) == check).then_some((digest, position))
}

/// The entries of an index, and its condition.
#[derive(Debug, Default)]
pub struct Listing {
    pub objects: Vec<(Digest, PackPosition)>,
    /// True if every byte is as it was written.
    pub whole: bool,
    /// True if the index exists.
    pub there: bool,
    /// True if the only fault is an incomplete last entry.
    pub torn: bool,
}

/// Reads the index of a pack.
pub fn read(dir: &Path, pack: u32) -> Result<Listing> {
    let path = layout::pack_index(dir, pack);
    let mut bytes = Vec::new();
    match regular::open(&path).and_then(|mut file| file.read_to_end(&mut bytes)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Listing::default()),
        Err(error) => return Err(Error::io("read", &path)(error)),
        Ok(_) => {}
    }
    let entries = bytes.strip_prefix(MAGIC);
    let mut found = Listing {
        whole: entries.is_some_and(|entries| entries.len() % ENTRY == 0),
        there: true,
        torn: false,
        objects: Vec::new(),
    };
    let mut valid = entries.is_some() || MAGIC.starts_with(&bytes);
    for bytes in entries.unwrap_or_default().chunks_exact(ENTRY) {
        match parse(bytes, pack) {
            Some(object) => found.objects.push(object),
            None => (found.whole, valid) = (false, false),
        }
    }
    found.torn = valid && !found.whole;
    Ok(found)
}

impl Listing {
    /// Offset behind the last object.
    pub fn end(&self) -> u64 {
        let ends = self.objects.iter().map(|(_, position)| position.end());
        ends.max().unwrap_or(0)
    }
}

/// The objects of a pack, from its index or, for the rest, from the pack itself.
pub fn of_pack(dir: &Path, pack: u32) -> Result<Vec<(Digest, PackPosition)>> {
    let known = read(dir, pack)?;
    let from = known.end();
    let (mut objects, from) = match known.whole {
        true => (known.objects, from),
        false => (Vec::new(), 0),
    };
    if layout::length(&layout::pack(dir, pack)) > from {
        objects.extend(scan(dir, pack, from)?);
    }
    Ok(objects)
}

/// True if the index of a pack is as it was written, and names every byte of the pack, which has
/// this length.
pub fn is_complete(dir: &Path, pack: u32, length: u64) -> Result<bool> {
    let known = read(dir, pack)?;
    Ok(known.whole && known.end() == length)
}

/// Completes the index of a pack that a killed writer left behind. Whole records are objects like
/// any other. A damaged index is not changed, so that verification reports it. Requires the lock.
pub fn complete(dir: &Path, pack: u32) -> Result<()> {
    let known = read(dir, pack)?;
    let torn_only = known.whole || known.torn || !known.there;
    let end = known.end();
    if !torn_only || (known.whole && layout::length(&layout::pack(dir, pack)) <= end) {
        return Ok(());
    }
    let mut objects = known.objects;
    let more = scan(dir, pack, end)?;
    if known.whole && more.is_empty() {
        return Ok(());
    }
    objects.extend(more);
    let mut bytes = MAGIC.to_vec();
    objects
        .iter()
        .for_each(|(digest, position)| bytes.extend(entry(digest, position)));
    let (beside, path) = (layout::temporary(dir), layout::pack_index(dir, pack));
    let mut file = layout::new_file(&beside)?;
    layout::write_synced(&mut file, &beside, &bytes)?;
    std::fs::rename(&beside, &path).map_err(Error::io("write", &path))?;
    layout::sync_dir(&dir.join("packs"))
}

/// The whole records of a pack, from an offset on. Other bytes are skipped.
pub fn scan(dir: &Path, pack: u32, from: u64) -> Result<Vec<(Digest, PackPosition)>> {
    let path = layout::pack(dir, pack);
    let fail = || Error::io("read", &path);
    let file = match regular::open(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened.map_err(fail())?,
    };
    let length = file.metadata().map_err(fail())?.len();
    let mut bytes = vec![0; usize::try_from(length.saturating_sub(from)).unwrap_or(0)];
    file.read_exact_at(&mut bytes, from).map_err(fail())?;
    let (mut at, mut found) = (0, Vec::new());
    while at + HEADER <= bytes.len() {
        match record_at(&bytes[at..]) {
            Some(header) => {
                let position = PackPosition {
                    pack,
                    offset: from + at as u64,
                    size: header.size,
                    stored: header.stored,
                };
                found.push((header.digest, position));
                at += HEADER + header.stored as usize;
            }
            None => at += 1,
        }
    }
    Ok(found)
}

/// The header of the record at the beginning of these bytes, if the record is whole.
fn record_at(bytes: &[u8]) -> Option<Header> {
    let header = Header::decode(bytes)?;
    let stored = usize::try_from(header.stored)
        .ok()
        .filter(|stored| *stored <= SMALL)?;
    let end = HEADER.checked_add(stored)?;
    (crc32fast::hash(bytes.get(HEADER..end)?) == header.check).then_some(header)
}

/// The small objects of all packs.
pub fn load(dir: &Path) -> Result<FxHashMap<Digest, PackPosition>> {
    let mut index = FxHashMap::default();
    for pack in layout::packs(dir)? {
        index.extend(of_pack(dir, pack)?);
    }
    Ok(index)
}
