//! Blocks of the known versions of a directory's files: name, kind, identity. All runs share them.
//!
//! ```text
//! record  := [number of versions]  tags  indexes  shared starts  shared ends  middles  identities
//!            the middles' bytes
//! tag     := kind | SAME_NAME (an earlier version of the directory has the name)
//!          | IDENT (the identity is known)
//! ```
//!
//! | column | a number for | the number is |
//! | --- | --- | --- |
//! | tags | each version | (one byte each, see `tag`) |
//! | indexes | versions with `SAME_NAME` | the version that has the name: its distance from this one (signed) |
//! | shared starts, shared ends | the other versions | bytes at the start (end) of the name that are those of the name before in the block |
//! | middles | the same | length of the rest of the name, whose bytes stand at the end of the record |
//! | identities | versions with `IDENT` | several columns: see [`identities`] |

mod identities;
#[cfg(test)]
mod tests;

use backstory_eventlog::event::Bytes;
use backstory_files::Ident;
use backstory_graph::model::EntityKind;

use super::similar::{SimilarReader, SimilarWriter};
use super::{RecordReader, RecordWriter, block};
use crate::{Error, Result};
use identities::{IdentityReader, IdentityWriter};

/// Versions in a block.
pub const BLOCK: u32 = 128;

const KIND: u8 = 15;
const SAME_NAME: u8 = 16;
const IDENT: u8 = 32;

/// The word for a block in messages about damage.
const WHAT: &str = "list of versions";

/// Kinds in the order of their stored numbers. New ones are only ever appended.
const KINDS: [EntityKind; 9] = [
    EntityKind::File,
    EntityKind::Directory,
    EntityKind::Symlink,
    EntityKind::Pipe,
    EntityKind::Socket,
    EntityKind::Missing,
    EntityKind::Device,
    EntityKind::Memory,
    EntityKind::Resource,
];

fn kind_number(kind: EntityKind) -> u8 {
    use EntityKind::*;
    match kind {
        File => 0,
        Directory => 1,
        Symlink => 2,
        Pipe => 3,
        Socket => 4,
        Missing => 5,
        Device => 6,
        Memory => 7,
        Resource => 8,
    }
}

fn kind_of(tag: u8) -> Result<EntityKind> {
    let kind = KINDS.get(usize::from(tag & KIND));
    kind.copied().ok_or(Error::Damaged(WHAT))
}

/// The name of a version, or the number of an earlier version that has the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionName<'a> {
    /// The name itself.
    Here(&'a [u8]),
    /// The name of an earlier version of the directory, by that version's index.
    As(u32),
}

/// A version as encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodedVersion<'a> {
    /// Its name.
    pub name: VersionName<'a>,
    /// Its kind.
    pub kind: EntityKind,
    /// Its identity.
    pub ident: Option<Ident>,
}

/// A version with its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Version {
    /// Last component of the path.
    pub name: Bytes,
    /// Its kind.
    pub kind: EntityKind,
    /// Its identity.
    pub ident: Option<Ident>,
}

/// Builds a block.
#[derive(Default)]
pub struct Builder {
    tags: Vec<u8>,
    indexes: Vec<u8>,
    names: SimilarWriter,
    identities: IdentityWriter,
}

impl Builder {
    /// Adds a version. At most [`BLOCK`].
    pub fn push(&mut self, name: VersionName<'_>, kind: EntityKind, ident: Option<&Ident>) {
        let position = self.tags.len() as i64;
        let mut tag = kind_number(kind);
        match name {
            VersionName::Here(name) => self.names.push(name),
            VersionName::As(index) => {
                tag |= SAME_NAME;
                self.indexes.signed(i64::from(index) - position);
            }
        }
        if let Some(ident) = ident {
            tag |= IDENT;
            self.identities.push(*ident);
        }
        self.tags.push(tag);
    }

    /// The block.
    pub fn finish(self) -> Vec<u8> {
        let mut record = Vec::with_capacity(self.tags.len() * 24);
        record.number(self.tags.len() as u64);
        record.extend_from_slice(&self.tags);
        record.extend_from_slice(&self.indexes);
        self.names.put_columns(&mut record);
        self.identities.put_columns(&mut record);
        self.names.put_bytes(&mut record);
        let mut out = Vec::with_capacity(record.len() / 2);
        block::put(&mut out, &record);
        out
    }
}

/// Decodes a block. Passes the position and the parts of each version to `each`.
pub fn decode(
    block: &[u8],
    mut each: impl FnMut(u32, CodedVersion<'_>) -> Result<()>,
) -> Result<()> {
    let record = block::take(&mut RecordReader::new(block, WHAT))?;
    let mut reader = RecordReader::new(&record, WHAT);
    let count = reader.size()?;
    if count > BLOCK as usize {
        return Err(reader.damaged());
    }
    let tags = reader.exactly(count)?;
    let with = |flag: u8| tags.iter().filter(|tag| **tag & flag != 0).count();
    let same_names = with(SAME_NAME);
    let mut indexes = reader.column(same_names)?;
    let mut names = SimilarReader::take(&mut reader, count - same_names)?;
    let mut identities = IdentityReader::take(&mut reader, with(IDENT))?;
    names.bytes = reader;
    for (position, &tag) in (0u32..).zip(tags) {
        let ident = match tag & IDENT {
            0 => None,
            _ => Some(identities.next()?),
        };
        let name = match tag & SAME_NAME {
            0 => VersionName::Here(names.next()?),
            _ => {
                let index = i64::from(position).wrapping_add(indexes.signed()?);
                VersionName::As(u32::try_from(index).map_err(|_| indexes.damaged())?)
            }
        };
        let kind = kind_of(tag)?;
        each(position, CodedVersion { name, kind, ident })?;
    }
    Ok(())
}
