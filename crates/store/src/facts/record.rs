//! One learned thing as bytes, in the journal and in the database's rows.
//!
//! ```text
//! 1 fact:          dev ino size mtime birth, has digest, digest, held: 0 | 1 manager name version verified | 2 reason |
//!                  3 as 1
//! 2 directory_snapshots:  run, places: (path, mode, 0 | 1 target | 2 how many entries: (name, kind)… | 3 target mtime |
//!                  4 how many entries: (name, kind, shared)… | 5 how many looked at: (name's bytes shared with the one before, the
//!                  rest, mode ^ before, size, mtime - before)…, then 0, 2 or 4)…
//! 3 forgotten:     run
//! ```

use backstory_files::Digest;
use backstory_files::Ident;

use super::{DirectorySnapshot, Fact, Held, Learned, Listed, Looked, Package, Place};
use crate::Result;
use crate::codec::{RecordReader, RecordWriter};

impl Learned {
    /// As bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Learned::Fact(fact) => {
                out.push(1);
                fact.encode(&mut out);
            }
            Learned::Run(run) => {
                out.push(2);
                run.encode(&mut out);
            }
            Learned::Forgotten(run) => {
                out.push(3);
                out.bytes(run.as_bytes());
            }
        }
        out
    }

    /// From bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Learned> {
        let mut take = RecordReader::new(bytes, "fact about contents");
        let learned = match take.byte()? {
            1 => Learned::Fact(Fact::decode(&mut take)?),
            2 => Learned::Run(DirectorySnapshot::decode(&mut take)?),
            3 => Learned::Forgotten(text(&mut take)?),
            _ => return Err(take.damaged()),
        };
        match take.is_empty() {
            true => Ok(learned),
            false => Err(take.damaged()),
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
        match &self.held {
            Held::Kept => out.push(0),
            Held::Package(package) | Held::Owned(package) => {
                out.push(if self.held.is_kept() { 3 } else { 1 });
                for text in [&package.manager, &package.name, &package.version] {
                    out.bytes(text.as_bytes());
                }
                out.push(u8::from(package.verified));
            }
            Held::Missing(reason) => {
                out.push(2);
                out.bytes(reason.as_bytes());
            }
        }
    }

    /// Reads what [`Fact::encode`] wrote.
    pub(crate) fn decode(take: &mut RecordReader<'_>) -> Result<Fact> {
        let ident = Ident {
            dev: take.number()?,
            ino: take.number()?,
            size: take.signed()?,
            mtime: take.signed()?,
            birth: take.signed()?,
            ctime: 0,
            mode: 0,
            nlink: 0,
        };
        let digest = match take.byte()? {
            0 => None,
            1 => Some(Digest(
                take.exactly(32)?.try_into().map_err(|_| take.damaged())?,
            )),
            _ => return Err(take.damaged()),
        };
        let held = match take.byte()? {
            0 => Held::Kept,
            1 => Held::Package(package(take)?),
            2 => Held::Missing(text(take)?),
            3 => Held::Owned(package(take)?),
            _ => return Err(take.damaged()),
        };
        Ok(Fact {
            ident,
            digest,
            held,
        })
    }
}

impl DirectorySnapshot {
    /// Appends it to `out`.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.bytes(self.run.as_bytes());
        for place in &self.places {
            out.bytes(&place.path);
            out.number(u64::from(place.mode));
            if !place.looked.is_empty() {
                out.push(5);
                put_looked(out, &place.looked);
            }
            match (&place.target, &place.entries) {
                (Some(target), _) => {
                    out.push(if place.mtime == 0 { 1 } else { 3 });
                    out.bytes(target);
                    if place.mtime != 0 {
                        out.signed(place.mtime);
                    }
                }
                (None, Some(entries)) => {
                    let shares = entries.iter().any(|entry| entry.shared != 0);
                    out.push(if shares { 4 } else { 2 });
                    out.number(entries.len() as u64);
                    for entry in entries {
                        out.bytes(&entry.name);
                        out.number(u64::from(entry.kind));
                        if shares {
                            out.number(entry.shared);
                        }
                    }
                }
                (None, None) => out.push(0),
            }
        }
    }

    /// Reads what [`DirectorySnapshot::encode`] wrote, to the end.
    pub(crate) fn decode(take: &mut RecordReader<'_>) -> Result<DirectorySnapshot> {
        let run = text(take)?;
        let mut places = Vec::new();
        while !take.is_empty() {
            let mut place = Place {
                path: take.bytes()?.into(),
                mode: take.small()?,
                target: None,
                mtime: 0,
                entries: None,
                looked: Vec::new(),
            };
            let mut what = take.byte()?;
            if what == 5 {
                place.looked = looked(take)?;
                what = take.byte()?;
            }
            match what {
                0 => {}
                1 => place.target = Some(take.bytes()?.into()),
                2 => place.entries = Some(entries(take, false)?),
                3 => (place.target, place.mtime) = (Some(take.bytes()?.into()), take.signed()?),
                4 => place.entries = Some(entries(take, true)?),
                _ => return Err(take.damaged()),
            }
            places.push(place);
        }
        Ok(DirectorySnapshot { run, places })
    }
}

fn entries(take: &mut RecordReader<'_>, shares: bool) -> Result<Vec<Listed>> {
    let count = take.number()?;
    let mut entries = Vec::new();
    for _ in 0..count {
        entries.push(Listed {
            name: take.bytes()?.into(),
            kind: take.small()?,
            shared: if shares { take.number()? } else { 0 },
        });
    }
    Ok(entries)
}

/// Each by what differs from the one before: there may be thousands.
fn put_looked(out: &mut Vec<u8>, all: &[Looked]) {
    out.number(all.len() as u64);
    let (mut name, mut mode, mut mtime): (&[u8], u32, i64) = (b"", 0, 0);
    for looked in all {
        let shared = name
            .iter()
            .zip(&*looked.name)
            .take_while(|(a, b)| a == b)
            .count();
        out.number(shared as u64);
        out.bytes(&looked.name[shared..]);
        out.number(u64::from(looked.mode ^ mode));
        out.number(looked.size);
        out.signed(looked.mtime.wrapping_sub(mtime));
        (name, mode, mtime) = (&looked.name, looked.mode, looked.mtime);
    }
}

fn looked(take: &mut RecordReader<'_>) -> Result<Vec<Looked>> {
    let count = take.number()?;
    let mut all: Vec<Looked> = Vec::new();
    for _ in 0..count {
        let before = all.last();
        let shared = take.number()? as usize;
        let start = before.map_or(&[][..], |before| &before.name).get(..shared);
        let mut name = start.ok_or_else(|| take.damaged())?.to_vec();
        name.extend_from_slice(take.bytes()?);
        let looked = Looked {
            name: name.into(),
            mode: take.small()? ^ before.map_or(0, |before| before.mode),
            size: take.number()?,
            mtime: before
                .map_or(0, |before| before.mtime)
                .wrapping_add(take.signed()?),
        };
        all.push(looked);
    }
    Ok(all)
}

fn package(take: &mut RecordReader<'_>) -> Result<Package> {
    Ok(Package {
        manager: text(take)?,
        name: text(take)?,
        version: text(take)?,
        verified: take.byte()? != 0,
    })
}

fn text(take: &mut RecordReader<'_>) -> Result<String> {
    let bytes = take.bytes()?;
    String::from_utf8(bytes.to_vec()).map_err(|_| take.damaged())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fact(numbers: (u64, u64, i64, i64, i64), digest: Option<[u8; 32]>, held: Held) -> Learned {
        let (dev, ino, size, mtime, birth) = numbers;
        let ident = Ident {
            dev,
            ino,
            size,
            mtime,
            birth,
            ctime: 0,
            mode: 0,
            nlink: 0,
        };
        Learned::Fact(Fact {
            ident,
            digest: digest.map(Digest),
            held,
        })
    }

    proptest! {
        #[test]
        fn what_was_learned_comes_back(numbers: (u64, u64, i64, i64, i64), digest: Option<[u8; 32]>, words: [String; 3], verified: bool,
            path: Vec<u8>, mode: u32, target: Option<Vec<u8>>, names: Vec<(Vec<u8>, u32, u64)>, mtime: i64, size: u64) {
            let [a, b, c] = words;
            let package = Package { manager: a.clone(), name: b.clone(), version: c, verified };
            let entries = names.into_iter().map(|(name, kind, shared)| Listed { name: name.into(), kind, shared }).collect();
            let file = |name: &[u8], mtime| Looked { name: name.into(), mode, size, mtime };
            let looked = vec![file(&path, mtime), file(&path[path.len() / 2..], i64::MIN), file(&path, i64::MAX)];
            let listed = Place { path: path.clone().into(), mode, target: None, mtime: 0, entries: Some(entries), looked };
            let mtime = if target.is_some() { mtime } else { 0 };
            let place = Place { path: path.into(), mode, target: target.map(Into::into), mtime, entries: None, looked: Vec::new() };
            for learned in [
                fact(numbers, digest, Held::Kept),
                fact(numbers, digest, Held::Package(package.clone())),
                fact(numbers, digest, Held::Owned(package)),
                fact(numbers, None, Held::Missing(a.clone())),
                Learned::Run(DirectorySnapshot { run: b.clone(), places: vec![place.clone(), listed, place] }),
                Learned::Forgotten(b),
            ] {
                prop_assert_eq!(Learned::decode(&learned.encode()).unwrap(), learned);
            }
        }

        #[test]
        fn any_bytes_are_something_learned_or_an_error(noise: Vec<u8>) {
            let _ = Learned::decode(&noise);
        }
    }
}
