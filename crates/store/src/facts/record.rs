//! Encodes records of the journal. The rows of the database have the same bytes, without the first
//! one.
//!
//! ```text
//! record    := 1 fact | 2 snapshot | 3 run
//! fact      := device  inode  size  mtime  birth  (0 | 1 digest)  available
//! available := 0 (stored) | 1 package | 2 reason | 3 package (and stored)
//! package   := manager  name  version  verified
//! snapshot  := run  entry*
//! entry     := path  mode  [5 count looked*]  what
//! what      := 0 | 1 target | 3 target mtime | 2 count (name kind)* | 4 count (name kind shared)*
//! looked    := bytes shared with the name before  rest of the name  mode ^ mode before  size
//!              mtime - mtime before
//! ```
//!
//! Invariant: a number that no program has written yet is damage, never something else.

mod snapshot;
#[cfg(test)]
mod tests;

use backstory_files::{Digest, Ident};

use super::{Availability, DirectorySnapshot, Fact, JournalRecord, Package};
use crate::Result;
use crate::codec::{RecordReader, RecordWriter};

impl JournalRecord {
    /// Appends it to `out`.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            JournalRecord::Fact(fact) => {
                out.push(1);
                fact.encode(out);
            }
            JournalRecord::Run(snapshot) => {
                out.push(2);
                snapshot.encode(out);
            }
            JournalRecord::Forgotten(run) => {
                out.push(3);
                out.bytes(run.as_bytes());
            }
        }
    }

    /// The record that has these bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Result<JournalRecord> {
        let mut reader = RecordReader::new(bytes, "fact about contents");
        let record = match reader.byte()? {
            1 => JournalRecord::Fact(Fact::decode(&mut reader)?),
            2 => JournalRecord::Run(DirectorySnapshot::decode(&mut reader)?),
            3 => JournalRecord::Forgotten(text(&mut reader)?),
            _ => return Err(reader.damaged()),
        };
        match reader.is_empty() {
            true => Ok(record),
            false => Err(reader.damaged()),
        }
    }
}

impl Fact {
    /// Appends it to `out`.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let ident = &self.ident;
        out.number(ident.dev);
        out.number(ident.ino);
        out.signed(ident.size);
        out.signed(ident.mtime);
        out.signed(ident.birth);
        match &self.digest {
            Some(digest) => {
                out.push(1);
                out.extend(digest.0);
            }
            None => out.push(0),
        }
        match &self.availability {
            Availability::Stored => out.push(0),
            Availability::Package(package) => {
                out.push(1);
                package.encode(out);
            }
            Availability::Missing(reason) => {
                out.push(2);
                out.bytes(reason.as_bytes());
            }
            Availability::StoredPackage(package) => {
                out.push(3);
                package.encode(out);
            }
        }
    }

    /// Reads what [`Fact::encode`] wrote.
    pub(crate) fn decode(reader: &mut RecordReader<'_>) -> Result<Fact> {
        let ident = Ident {
            dev: reader.number()?,
            ino: reader.number()?,
            size: reader.signed()?,
            mtime: reader.signed()?,
            birth: reader.signed()?,
            ctime: 0,
            mode: 0,
            nlink: 0,
        };
        let digest = match reader.byte()? {
            0 => None,
            1 => {
                let bytes = reader.exactly(32)?.try_into();
                Some(Digest(bytes.map_err(|_| reader.damaged())?))
            }
            _ => return Err(reader.damaged()),
        };
        let availability = match reader.byte()? {
            0 => Availability::Stored,
            1 => Availability::Package(Package::decode(reader)?),
            2 => Availability::Missing(text(reader)?),
            3 => Availability::StoredPackage(Package::decode(reader)?),
            _ => return Err(reader.damaged()),
        };
        Ok(Fact {
            ident,
            digest,
            availability,
        })
    }
}

impl Package {
    fn encode(&self, out: &mut Vec<u8>) {
        for text in [&self.manager, &self.name, &self.version] {
            out.bytes(text.as_bytes());
        }
        out.push(u8::from(self.verified));
    }

    fn decode(reader: &mut RecordReader<'_>) -> Result<Package> {
        Ok(Package {
            manager: text(reader)?,
            name: text(reader)?,
            version: text(reader)?,
            verified: reader.byte()? != 0,
        })
    }
}

fn text(reader: &mut RecordReader<'_>) -> Result<String> {
    let bytes = reader.bytes()?;
    String::from_utf8(bytes.to_vec()).map_err(|_| reader.damaged())
}
