//! Encodes directory snapshots.

use super::text;
use crate::Result;
use crate::codec::{RecordReader, RecordWriter};
use crate::facts::{DirectorySnapshot, Listed, Looked, SnapshotEntry};

impl DirectorySnapshot {
    /// Appends it to `out`.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.bytes(self.run.as_bytes());
        self.entries.iter().for_each(|entry| entry.encode(out));
    }

    /// Reads what [`DirectorySnapshot::encode`] wrote, to the end.
    pub(crate) fn decode(reader: &mut RecordReader<'_>) -> Result<DirectorySnapshot> {
        let run = text(reader)?;
        let mut entries = Vec::new();
        while !reader.is_empty() {
            entries.push(SnapshotEntry::decode(reader)?);
        }
        Ok(DirectorySnapshot { run, entries })
    }
}

impl SnapshotEntry {
    fn encode(&self, out: &mut Vec<u8>) {
        out.bytes(&self.path);
        out.number(u64::from(self.mode));
        if !self.looked.is_empty() {
            out.push(5);
            put_looked(out, &self.looked);
        }
        if self.target.is_none() && self.mtime != 0 {
            out.push(6);
            out.signed(self.mtime);
        }
        match (&self.target, &self.listing) {
            (Some(target), _) => {
                out.push(if self.mtime == 0 { 1 } else { 3 });
                out.bytes(target);
                if self.mtime != 0 {
                    out.signed(self.mtime);
                }
            }
            (None, Some(listing)) => put_listing(out, listing),
            (None, None) => out.push(0),
        }
    }

    fn decode(reader: &mut RecordReader<'_>) -> Result<SnapshotEntry> {
        let mut entry = SnapshotEntry {
            path: reader.bytes()?.into(),
            mode: reader.small()?,
            target: None,
            mtime: 0,
            listing: None,
            looked: Vec::new(),
        };
        let mut what = reader.byte()?;
        if what == 5 {
            entry.looked = take_looked(reader)?;
            what = reader.byte()?;
        }
        if what == 6 {
            entry.mtime = reader.signed()?;
            what = reader.byte()?;
        }
        match what {
            0 => {}
            1 => entry.target = Some(reader.bytes()?.into()),
            2 => entry.listing = Some(take_listing(reader, false)?),
            3 => {
                entry.target = Some(reader.bytes()?.into());
                entry.mtime = reader.signed()?;
            }
            4 => entry.listing = Some(take_listing(reader, true)?),
            _ => return Err(reader.damaged()),
        }
        Ok(entry)
    }
}

fn put_listing(out: &mut Vec<u8>, listing: &[Listed]) {
    let shares = listing.iter().any(|listed| listed.shared != 0);
    out.push(if shares { 4 } else { 2 });
    out.number(listing.len() as u64);
    for listed in listing {
        out.bytes(&listed.name);
        out.number(u64::from(listed.kind));
        if shares {
            out.number(listed.shared);
        }
    }
}

fn take_listing(reader: &mut RecordReader<'_>, shares: bool) -> Result<Vec<Listed>> {
    let mut listing = Vec::new();
    for _ in 0..reader.number()? {
        listing.push(Listed {
            name: reader.bytes()?.into(),
            kind: reader.small()?,
            shared: if shares { reader.number()? } else { 0 },
        });
    }
    Ok(listing)
}

/// There may be thousands: each is written as its difference to the one before.
fn put_looked(out: &mut Vec<u8>, all: &[Looked]) {
    out.number(all.len() as u64);
    let (mut name, mut mode, mut mtime): (&[u8], u32, i64) = (b"", 0, 0);
    for looked in all {
        let same = name.iter().zip(&*looked.name).take_while(|(a, b)| a == b);
        let shared = same.count();
        out.number(shared as u64);
        out.bytes(&looked.name[shared..]);
        out.number(u64::from(looked.mode ^ mode));
        out.number(looked.size);
        out.signed(looked.mtime.wrapping_sub(mtime));
        (name, mode, mtime) = (&looked.name, looked.mode, looked.mtime);
    }
}

fn take_looked(reader: &mut RecordReader<'_>) -> Result<Vec<Looked>> {
    let mut all: Vec<Looked> = Vec::new();
    for _ in 0..reader.number()? {
        let before = all.last();
        let shared = reader.size()?;
        let start = before.map_or(&[][..], |before| &before.name).get(..shared);
        let mut name = start.ok_or_else(|| reader.damaged())?.to_vec();
        name.extend_from_slice(reader.bytes()?);
        let (mode, mtime) = before.map_or((0, 0), |before| (before.mode, before.mtime));
        all.push(Looked {
            name: name.into(),
            mode: reader.small()? ^ mode,
            size: reader.number()?,
            mtime: mtime.wrapping_add(reader.signed()?),
        });
    }
    Ok(all)
}
