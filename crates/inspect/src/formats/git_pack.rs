//! Packs of git and their indexes: which objects a packed repository has.
//!
//! A pack is a head (`PACK`, version, number of objects), the objects, and a SHA-1 checksum. An
//! object is a head of variable length (type, size) and a zlib stream. The stream is the object
//! itself, or a delta to another object of the pack. The id of an object is the SHA-1 checksum of
//! `TYPE SIZE\0CONTENT`, so each delta is applied.
//!
//! Absent: packs of repositories that use SHA-256.

use std::collections::HashMap;
use std::io::Read as _;
use std::rc::Rc;

use backstory_git_objects::delta::applied;
use backstory_inspection::file_parts::{NoPart, PartAnswer, PartName, PartPlace};
use flate2::bufread::ZlibDecoder;
use serde_json::{Value, json};
use sha1::{Digest, Sha1};

use crate::{FileFacts, Inspector, NamedContent, Read, UnreadableContent};

pub struct GitPack;

/// The length of an id.
const ID: usize = 20;

/// The length of a pack's head.
const HEAD: usize = 12;

/// The most bytes of an object, and of the objects that are kept to apply deltas to.
const LARGEST: usize = 48 << 20;

/// The most deltas between an object and its base, as in git.
const CHAIN: usize = 4095;

impl Inspector for GitPack {
    fn facts(&self, content: NamedContent<'_>) -> Read<FileFacts> {
        match content.bytes.starts_with(b"PACK") {
            true => pack(content.bytes),
            false => Ok(PackIndex::read(content.bytes)?.facts()),
        }
    }

    /// The id of an object in an index, by its first digits.
    fn part(&self, content: NamedContent<'_>, name: &PartName) -> PartAnswer {
        match (content.bytes.starts_with(b"PACK"), name) {
            (false, PartName::Member(digits)) => PackIndex::read(content.bytes)
                .map_err(|error| NoPart::Unreadable(error.to_string()))?
                .place(digits),
            _ => Err(NoPart::OtherKind),
        }
    }
}

fn wrong(why: impl Into<String>) -> UnreadableContent {
    UnreadableContent(why.into())
}

fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_be_bytes(*bytes))
}

/// An index of version 2: a table of 256 numbers, then the sorted ids of all objects.
struct PackIndex<'b> {
    ids: &'b [[u8; ID]],
    /// The checksum of the pack.
    pack: &'b [u8],
}

/// Where the ids of an index begin.
const IDS: usize = 8 + 256 * 4;

impl PackIndex<'_> {
    fn read(bytes: &[u8]) -> Read<PackIndex<'_>> {
        if !bytes.starts_with(b"\xfftOc\0\0\0\x02") {
            return Err(wrong("it is no index of version 2"));
        }
        let cut = || wrong("the index ends too early");
        let many = number(bytes, IDS - 4).ok_or_else(cut)? as usize;
        let body = bytes.len().checked_sub(2 * ID).ok_or_else(cut)?;
        let end = many
            .checked_mul(ID)
            .and_then(|length| length.checked_add(IDS));
        let end = end.filter(|&end| end <= body).ok_or_else(cut)?;
        let checksum = Sha1::digest(&bytes[..body + ID]);
        if checksum[..] != bytes[body + ID..] {
            return Err(wrong("its checksum is another one"));
        }
        Ok(PackIndex {
            ids: bytes[IDS..end].as_chunks::<ID>().0,
            pack: &bytes[body..body + ID],
        })
    }

    fn facts(&self) -> FileFacts {
        let mut facts = FileFacts::default();
        facts.value("pack", hex(self.pack));
        let ids = self.ids.iter().map(|id| (hex(id), Value::Null));
        facts.parts(("object", "objects"), ids);
        facts
    }

    /// The id that begins with these hexadecimal digits.
    fn place(&self, prefix: &str) -> PartAnswer {
        let is_hex = prefix.bytes().all(|byte| byte.is_ascii_hexdigit());
        if prefix.is_empty() || !is_hex {
            return Err(NoPart::Misnamed(
                "a member of an index of git is named by hexadecimal digits".to_owned(),
            ));
        }
        let prefix = prefix.to_ascii_lowercase();
        let ids = self.ids.iter().enumerate();
        let mut found = ids.filter(|(_, id)| hex(&id[..]).starts_with(&prefix));
        let Some((at, id)) = found.next() else {
            return Err(NoPart::Absent(format!("no object begins with {prefix}")));
        };
        match found.count() {
            0 => Ok(PartPlace {
                name: Some(hex(id)),
                ..PartPlace::exact(IDS + at * ID..IDS + (at + 1) * ID)
            }),
            more => Err(NoPart::Misnamed(format!(
                "{} objects begin with {prefix}: give more digits",
                more + 1
            ))),
        }
    }
}

/// The types of objects. The numbers between are deltas, or not used.
const TYPES: [&str; 5] = ["", "commit", "tree", "blob", "tag"];

fn pack(bytes: &[u8]) -> Read<FileFacts> {
    let cut = || wrong("the pack ends too early");
    let body = bytes.len().checked_sub(ID).filter(|&body| body >= HEAD);
    let body = body.ok_or_else(cut)?;
    let version = number(bytes, 4).ok_or_else(cut)?;
    let many = number(bytes, 8).ok_or_else(cut)?;
    if !matches!(version, 2 | 3) {
        return Err(wrong(format!("git has no packs of version {version}")));
    }
    if Sha1::digest(&bytes[..body])[..] != bytes[body..] {
        return Err(wrong("its checksum is another one, or no SHA-1 checksum"));
    }
    let mut reader = PackReader {
        bytes: &bytes[..body],
        kept: HashMap::new(),
        kept_bytes: 0,
        offsets: HashMap::new(),
    };
    let mut objects = Vec::new();
    let mut waiting = Vec::new();
    let mut at = HEAD;
    for _ in 0..many {
        let (entry, end) = reader.entry(at)?;
        match reader.named(at, entry)? {
            Some(object) => objects.push(object),
            None => waiting.push(at),
        }
        at = end;
    }
    // A delta may stand before the object that it names.
    loop {
        let mut still = Vec::new();
        for &at in &waiting {
            let (entry, _) = reader.entry(at)?;
            match reader.named(at, entry)? {
                Some(object) => objects.push(object),
                None => still.push(at),
            }
        }
        if still.len() == waiting.len() {
            break;
        }
        waiting = still;
    }
    let mut facts = FileFacts::default();
    for kind in &TYPES[1..] {
        let of_kind = objects.iter().filter(|(_, told)| told["type"] == *kind);
        facts.value(&format!("{kind}s"), of_kind.count());
    }
    if !waiting.is_empty() {
        facts.value("deltas_to_objects_of_other_packs", waiting.len());
    }
    objects.sort_by(|a, b| a.0.cmp(&b.0));
    facts.parts(("object", "objects"), objects);
    Ok(facts)
}

/// An object with its type, a place in [`TYPES`].
struct PackedObject {
    kind: usize,
    content: Vec<u8>,
}

/// An entry of a pack: an object, or a delta to one.
enum PackEntry {
    Whole(PackedObject),
    /// The instructions of a delta, and where its base is.
    Delta(Vec<u8>, DeltaBase),
}

enum DeltaBase {
    Offset(usize),
    Id([u8; ID]),
}

struct PackReader<'p> {
    bytes: &'p [u8],
    /// Objects by their offsets, to apply deltas to.
    kept: HashMap<usize, Rc<PackedObject>>,
    kept_bytes: usize,
    offsets: HashMap<[u8; ID], usize>,
}

impl PackReader<'_> {
    /// The entry at an offset, and the offset behind it.
    fn entry(&self, at: usize) -> Read<(PackEntry, usize)> {
        let cut = || wrong(format!("the object at {at} ends too early"));
        let mut rest = self.bytes.get(at..).ok_or_else(cut)?;
        let mut byte = || {
            let (first, behind) = rest.split_first()?;
            rest = behind;
            Some(*first)
        };
        let mut last = byte().ok_or_else(cut)?;
        let kind = usize::from(last >> 4 & 7);
        let mut size = usize::from(last & 15);
        let mut shift = 4;
        while last & 0x80 != 0 {
            last = byte().ok_or_else(cut)?;
            if shift > 32 {
                return Err(wrong(format!("the object at {at} has an absurd size")));
            }
            size |= usize::from(last & 0x7f) << shift;
            shift += 7;
        }
        if size > LARGEST {
            return Err(wrong(format!("the object at {at} has {size} bytes")));
        }
        let base = match kind {
            1..=4 => None,
            6 => {
                let mut last = byte().ok_or_else(cut)?;
                let mut back = usize::from(last & 0x7f);
                while last & 0x80 != 0 {
                    last = byte().ok_or_else(cut)?;
                    back = back
                        .checked_add(1)
                        .filter(|back| back >> 40 == 0)
                        .ok_or_else(cut)?;
                    back = back << 7 | usize::from(last & 0x7f);
                }
                let base = at
                    .checked_sub(back)
                    .filter(|&base| base < at && base >= HEAD);
                Some(DeltaBase::Offset(base.ok_or_else(|| {
                    wrong(format!("the delta at {at} has no base"))
                })?))
            }
            7 => {
                let (id, behind) = rest.split_first_chunk::<ID>().ok_or_else(cut)?;
                rest = behind;
                Some(DeltaBase::Id(*id))
            }
            _ => return Err(wrong(format!("the object at {at} has no known type"))),
        };
        let mut content = Vec::new();
        let mut decoder = ZlibDecoder::new(rest);
        let read = (&mut decoder)
            .take(size as u64 + 1)
            .read_to_end(&mut content);
        read.map_err(|error| wrong(format!("the object at {at}: {error}")))?;
        if content.len() != size {
            return Err(wrong(format!(
                "the object at {at} has another size than it says"
            )));
        }
        let end = self.bytes.len() - rest.len() + decoder.total_in() as usize;
        let entry = match base {
            None => PackEntry::Whole(PackedObject { kind, content }),
            Some(base) => PackEntry::Delta(content, base),
        };
        Ok((entry, end))
    }

    /// The id of the object at an offset, with its type and size. `None` if the base of a delta is
    /// not known yet.
    fn named(&mut self, at: usize, entry: PackEntry) -> Read<Option<(String, Value)>> {
        let Some(object) = self.resolved(at, entry)? else {
            return Ok(None);
        };
        let kind = TYPES[object.kind];
        let mut digest = Sha1::new();
        digest.update(format!("{kind} {}\0", object.content.len()));
        digest.update(&object.content);
        let id: [u8; ID] = digest.finalize().into();
        self.offsets.insert(id, at);
        let told = json!({"type": kind, "size": object.content.len()});
        self.keep(at, object);
        Ok(Some((hex(&id), told)))
    }

    /// The object that an entry stands for.
    fn resolved(&self, at: usize, entry: PackEntry) -> Read<Option<Rc<PackedObject>>> {
        let mut deltas = Vec::new();
        let mut delta_bytes = 0;
        let mut entry = entry;
        let mut object = loop {
            let (delta, base) = match entry {
                PackEntry::Whole(object) => break Rc::new(object),
                PackEntry::Delta(delta, base) => (delta, base),
            };
            delta_bytes += delta.len();
            deltas.push(delta);
            if deltas.len() > CHAIN || delta_bytes > LARGEST {
                return Err(wrong(format!("the object at {at} has too many deltas")));
            }
            let base = match base {
                DeltaBase::Offset(base) => base,
                DeltaBase::Id(id) => match self.offsets.get(&id) {
                    Some(&base) => base,
                    None => return Ok(None),
                },
            };
            if let Some(object) = self.kept.get(&base) {
                break object.clone();
            }
            entry = self.entry(base)?.0;
        };
        while let Some(delta) = deltas.pop() {
            let content = applied(&object.content, &delta, LARGEST);
            let content = content.map_err(|why| wrong(format!("the delta at {at}: {why}")))?;
            let kind = object.kind;
            object = Rc::new(PackedObject { kind, content });
        }
        Ok(Some(object))
    }

    /// Keeps an object for the deltas to it. They mostly follow soon.
    fn keep(&mut self, at: usize, object: Rc<PackedObject>) {
        self.kept_bytes += object.content.len();
        if self.kept_bytes > LARGEST {
            self.kept.clear();
            self.kept_bytes = object.content.len();
        }
        self.kept.insert(at, object);
    }
}
