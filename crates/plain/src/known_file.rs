//! The file with the verdicts of earlier runs. It belongs to a store, and can be removed.
//!
//! All numbers are little-endian:
//!
//! ```text
//! file  := magic (8 bytes)  rules (8)  checksum of the entries (4)  entries
//! entry := device (8)  inode (8)  size (8)  time of change (8)  of status change (8)
//!          verdict (8, as in the table of verdicts)  length of the names (4)  names
//! names := the libraries that a plain file needs, each with a 0 behind it
//! ```
//!
//! Invariants:
//!
//! - A file of another user, with other rules or with damage is ignored as a whole.
//! - The file has a bounded length. The verdicts that were used last stay.
//! - It is written beside and renamed, so no process reads half of one.

use crate::known::{KnownFile, KnownFiles, MOST_KEPT, can_be};
use crate::part::{NotPlain, Part};
use crate::rules::RULES;
use crate::verdicts::{VerdictKind, decoded, encoded};
use backstory_files::regular;
use std::collections::hash_map::Entry;
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The first bytes. The last one is the number of the format.
const MAGIC: [u8; 8] = *b"bsplain\x01";
const HEAD: usize = 20;
/// Bytes of an entry before its names.
const ENTRY: usize = 52;
/// Most bytes of a file that is read.
const MOST_BYTES: u64 = 2 << 20;
/// No entry is added behind so many bytes.
const MOST_WRITTEN: usize = 1 << 20;

/// Why a file of verdicts is ignored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Ignored {
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// Its owner is another user, or other users can write to it.
    #[error("another user can write to it")]
    Foreign,
    /// It is longer than any that backstory writes.
    #[error("it is too long")]
    TooLong,
    /// Its format or its rules are of another version of backstory.
    #[error("another version of backstory has made it")]
    OtherVersion,
    /// It contradicts itself.
    #[error("it is damaged")]
    Damaged,
}

impl KnownFiles {
    /// Takes the verdicts of a file. Those of this run stay.
    pub(crate) fn recall(&mut self, path: &Path) -> Result<(), Ignored> {
        let bytes = match read(path) {
            Err(Ignored::Unreadable(error)) if error.kind() == ErrorKind::NotFound => return Ok(()),
            bytes => bytes?,
        };
        let entries = entries(&bytes)?;
        for (rank, (kind, numbers, part)) in entries.into_iter().enumerate() {
            if !can_be(kind, &part) {
                continue;
            }
            let [device, inode, state @ ..] = numbers;
            let known = KnownFile {
                state: state.map(u64::cast_signed),
                part,
                rank: rank + 1,
                own: false,
                lasts: true,
            };
            match self.files.entry((kind, device, inode)) {
                Entry::Occupied(there) if there.get().own || there.get().state == known.state => {}
                there => drop(there.insert_entry(known)),
            }
        }
        Ok(())
    }

    /// Writes the file, if this run has news. Verdicts that another run has written meanwhile stay.
    pub(crate) fn keep(&mut self, path: &Path) -> io::Result<()> {
        if !self.has_news {
            return Ok(());
        }
        let _ = self.recall(path);
        remove_left(path);
        let bytes = self.encoded();
        let written = regular::replace(path, |file| file.write_all(&bytes));
        self.has_news = written.is_err();
        written
    }

    fn encoded(&self) -> Vec<u8> {
        let lasting = self.files.iter().filter(|(_, known)| known.lasts);
        let mut lasting: Vec<_> = lasting.collect();
        lasting.sort_by_key(|(role, known)| (known.rank, role.1, role.2));
        let mut entries = Vec::new();
        for ((kind, device, inode), known) in lasting.into_iter().take(MOST_KEPT) {
            if entries.len() > MOST_WRITTEN {
                break;
            }
            let state = known.state.map(i64::cast_unsigned);
            let part = known.part.as_ref().ok();
            let verdict = encoded(*kind, part.map(|part| part.acts));
            for number in [*device, *inode].into_iter().chain(state).chain([verdict]) {
                entries.extend(number.to_le_bytes());
            }
            let needed = part.map(|part| &part.needed[..]).unwrap_or_default();
            let names: Vec<u8> = needed
                .iter()
                .flat_map(|name| name.iter().copied().chain([0]))
                .collect();
            entries.extend((names.len() as u32).to_le_bytes());
            entries.extend(names);
        }
        let checksum = crc32fast::hash(&entries).to_le_bytes();
        [&MAGIC[..], &RULES.to_le_bytes(), &checksum, &entries].concat()
    }
}

/// Removes what other processes left beside the file, that were killed while they wrote it. A
/// writer in another pid namespace counts as killed. Its verdicts are then not kept, and the next
/// run there finds them anew.
fn remove_left(path: &Path) {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return;
    };
    let head = [name.as_bytes(), b"."].concat();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let writer = name.as_bytes().strip_prefix(&head[..]);
        let writer = writer.and_then(|writer| std::str::from_utf8(writer).ok()?.parse().ok());
        if writer.is_some_and(|writer: u32| !Path::new(&format!("/proc/{writer}")).exists()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Ignored> {
    let file = regular::open(path)?;
    let found = file.metadata()?;
    if found.uid() != rustix::process::geteuid().as_raw() || found.mode() & 0o022 != 0 {
        return Err(Ignored::Foreign);
    }
    let mut bytes = Vec::with_capacity(usize::try_from(found.len().min(MOST_BYTES)).unwrap_or(0));
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MOST_BYTES {
        true => Err(Ignored::TooLong),
        false => Ok(bytes),
    }
}

/// A file in one of its roles, the five numbers of its state, and what is known about it.
type KeptEntry = (VerdictKind, [u64; 5], Result<Part, NotPlain>);

fn entries(bytes: &[u8]) -> Result<Vec<KeptEntry>, Ignored> {
    let (head, mut rest) = bytes.split_at_checked(HEAD).ok_or(Ignored::Damaged)?;
    let (magic, numbers) = head.split_at(MAGIC.len());
    let (rules, checksum) = numbers.split_at(8);
    if magic != MAGIC || rules != RULES.to_le_bytes() {
        return Err(Ignored::OtherVersion);
    }
    if checksum != crc32fast::hash(rest).to_le_bytes() {
        return Err(Ignored::Damaged);
    }
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (entry, after) = entry(rest).ok_or(Ignored::Damaged)?;
        found.push(entry);
        rest = after;
    }
    Ok(found)
}

/// The first entry of some bytes, and the bytes behind it.
fn entry(bytes: &[u8]) -> Option<(KeptEntry, &[u8])> {
    let (fixed, rest) = bytes.split_at_checked(ENTRY)?;
    let (numbers, length) = fixed.as_chunks::<8>();
    let [device, inode, size, changed, status, verdict] = *numbers.first_chunk::<6>()?;
    let length = u32::from_le_bytes(length.try_into().ok()?);
    let (names, rest) = rest.split_at_checked(length as usize)?;
    let (kind, plain) = decoded(u64::from_le_bytes(verdict))?;
    let state = [device, inode, size, changed, status].map(u64::from_le_bytes);
    let part = match plain {
        Some(acts) => Ok(Part {
            needed: needed(names)?,
            acts,
        }),
        None => Err(NotPlain::KnownFromEarlier),
    };
    Some(((kind, state, part), rest))
}

fn needed(names: &[u8]) -> Option<Vec<Vec<u8>>> {
    if names.is_empty() {
        return Some(Vec::new());
    }
    let names = names.strip_suffix(b"\0")?.split(|byte| *byte == 0);
    Some(names.map(<[u8]>::to_vec).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::InnerActs;

    fn file(part: Result<Part, NotPlain>, rank: usize, lasts: bool) -> KnownFile {
        KnownFile {
            state: [7, 8, 9],
            part,
            rank,
            own: true,
            lasts,
        }
    }

    fn plain() -> Result<Part, NotPlain> {
        Ok(Part {
            needed: vec![b"libc.so.6".to_vec(), b"libm.so.6".to_vec()],
            acts: InnerActs {
                connects: true,
                loads: false,
            },
        })
    }

    #[test]
    fn a_file_has_a_bounded_length_and_the_latest_verdicts() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("verdicts.index");
        let mut known = KnownFiles {
            has_news: true,
            ..KnownFiles::default()
        };
        for inode in 0..2 * MOST_KEPT {
            let one = file(plain(), inode, true);
            known
                .files
                .insert((VerdictKind::Library, 1, inode as u64), one);
        }
        let other = file(Err(NotPlain::KnownFromEarlier), 0, true);
        known.files.insert((VerdictKind::Program, 2, 3), other);
        let private = file(plain(), 0, false);
        known.files.insert((VerdictKind::Program, 2, 4), private);
        known.keep(&path).unwrap();
        assert!(!known.has_news);
        let mut found = KnownFiles::default();
        found.recall(&path).unwrap();
        assert_eq!(found.files.len(), MOST_KEPT);
        let last = (VerdictKind::Library, 1, MOST_KEPT as u64 - 2);
        assert_eq!(found.files[&last].part, plain());
        assert_eq!(found.files[&last].state, [7, 8, 9]);
        assert!(found.files[&(VerdictKind::Program, 2, 3)].part.is_err());
        assert!(!found.files.contains_key(&(VerdictKind::Program, 2, 4)));

        let long = Part {
            needed: vec![vec![b'a'; 4096]; 200],
            ..Part::default()
        };
        for known in known.files.values_mut() {
            known.part = Ok(long.clone());
        }
        known.has_news = true;
        known.keep(&path).unwrap();
        let length = fs::metadata(&path).unwrap().len();
        assert!(length <= MOST_BYTES, "{length}");
        assert!(KnownFiles::default().recall(&path).is_ok());
    }

    #[test]
    fn two_runs_at_once_keep_the_verdicts_of_both() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("verdicts.index");
        for inode in [1, 2] {
            let mut known = KnownFiles {
                has_news: true,
                ..KnownFiles::default()
            };
            known
                .files
                .insert((VerdictKind::Program, 1, inode), file(plain(), 0, true));
            known.keep(&path).unwrap();
        }
        let mut found = KnownFiles::default();
        found.recall(&path).unwrap();
        assert_eq!(found.files.len(), 2);
    }
}
