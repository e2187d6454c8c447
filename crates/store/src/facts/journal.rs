//! The journal: records of facts, one after the other.
//!
//! ```text
//! DIR/facts.log:  "bsfacts1", 16 random bytes that name this journal, then frames:
//!  0  2  "bf"     2  4  bytes of the record     6  4  CRC-32 of the record     10  the record
//! ```
//!
//! Invariants:
//!
//! - An appended record is whole or not there: readers step over torn bytes.
//! - A rewritten journal has another name, so that a reader of the old one begins anew.
//! - One process writes at a time: the caller holds the lock.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use backstory_files::regular;

use super::JournalRecord;
use crate::{Error, Result};

const MAGIC: &[u8; 8] = b"bsfacts1";
const HEADER: usize = 24;
const FRAME: usize = 10;
/// Limit of the bytes that are summed up in vain, as a multiple of the journal's length. Without it
/// a file full of false beginnings would take quadratic time.
const SUMS: usize = 32;

/// How far a journal was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JournalPosition {
    /// The journal's name; zeros before anything was read.
    pub journal: [u8; 16],
    /// Bytes.
    pub offset: u64,
}

/// The journal, open for appending.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
}

impl Journal {
    /// Opens the journal at `path`, which it makes, with mode 0600, if it is not there.
    pub fn open(path: &Path) -> Result<Journal> {
        if !path.exists() {
            rewrite(path, &[])?;
        }
        let opened = regular::open_with(OpenOptions::new().append(true), path);
        Ok(Journal {
            file: opened.map_err(|e| Error::io("open", path, e))?,
            path: path.to_owned(),
        })
    }

    /// Appends records and syncs them.
    pub fn append(&mut self, learned: &[JournalRecord]) -> Result<()> {
        let bytes = to_bytes(learned);
        self.file
            .write_all(&bytes)
            .and_then(|()| self.file.sync_data())
            .map_err(|e| Error::io("append to", &self.path, e))
    }
}

/// Appends the frame of a record to `out`.
fn frame(learned: &JournalRecord, out: &mut Vec<u8>) {
    let begin = out.len();
    out.extend([0; FRAME]);
    learned.encode(out);
    let (head, record) = out[begin..].split_at_mut(FRAME);
    head[..2].copy_from_slice(b"bf");
    head[2..6].copy_from_slice(&(record.len() as u32).to_le_bytes());
    head[6..].copy_from_slice(&crc32fast::hash(record).to_le_bytes());
}

/// Records as frames, for another store.
pub fn to_bytes(learned: &[JournalRecord]) -> Vec<u8> {
    let mut bytes = Vec::new();
    learned.iter().for_each(|one| frame(one, &mut bytes));
    bytes
}

/// The records of frames that [`to_bytes`] wrote. From other bytes: the whole records in them.
pub fn from_bytes(bytes: &[u8]) -> Vec<JournalRecord> {
    frames(bytes).0
}

/// Replaces the journal at `path` by one that has these records and another name.
pub fn rewrite(path: &Path, learned: &[JournalRecord]) -> Result<()> {
    let beside = path.with_extension(format!("new.{}", std::process::id()));
    let fail = |e| Error::io("write", path, e);
    let mut name = [0; 16];
    rustix::rand::getrandom(&mut name, rustix::rand::GetRandomFlags::empty())
        .map_err(|e| fail(e.into()))?;
    let mut bytes = [&MAGIC[..], &name].concat();
    learned.iter().for_each(|one| frame(one, &mut bytes));
    let mut options = OpenOptions::new();
    let opened = options
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(&beside);
    opened
        .and_then(|mut file| file.write_all(&bytes).and_then(|()| file.sync_data()))
        .and_then(|()| fs::rename(&beside, path))
        .and_then(|()| match path.parent() {
            Some(dir) => File::open(dir).and_then(|dir| dir.sync_all()),
            None => Ok(()),
        })
        .map_err(fail)
}

/// The records after `mark`, how far the journal was read, and whether the reader must forget what
/// it knew. It must if this is another journal than the one it had read. A missing journal is an
/// empty one.
pub fn read_since(
    path: &Path,
    mark: JournalPosition,
) -> Result<(Vec<JournalRecord>, JournalPosition, bool)> {
    let fail = |e| Error::io("read", path, e);
    let mut file = match regular::open(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => {
            return Ok((
                Vec::new(),
                JournalPosition::default(),
                mark != JournalPosition::default(),
            ));
        }
        opened => opened.map_err(fail)?,
    };
    let mut head = [0; HEADER];
    let known = file.read_exact(&mut head).is_ok() && head.starts_with(MAGIC);
    let mut now = JournalPosition::default();
    now.journal.copy_from_slice(&head[8..]);
    let same = known && now.journal == mark.journal && mark.offset >= HEADER as u64;
    let from = if same { mark.offset } else { HEADER as u64 };
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(from))
        .and_then(|_| file.read_to_end(&mut bytes))
        .map_err(fail)?;
    let (learned, read) = frames(&bytes);
    now.offset = from + read as u64;
    Ok((learned, now, !same))
}

/// The records of all whole frames, and where the last one ends.
fn frames(bytes: &[u8]) -> (Vec<JournalRecord>, usize) {
    let (mut at, mut end, mut found) = (0, 0, Vec::new());
    let mut left = bytes.len().saturating_mul(SUMS);
    while at + FRAME <= bytes.len() && left > 0 {
        match record_at(&bytes[at..], &mut left) {
            Some(record) => {
                at += FRAME + record.len();
                end = at;
                // This program skips records of a kind that only a newer program writes.
                found.extend(JournalRecord::decode(record));
            }
            None => at += 1,
        }
    }
    (found, end)
}

/// The record that begins there. Subtracts the bytes that it sums up from `left`.
fn record_at<'b>(bytes: &'b [u8], left: &mut usize) -> Option<&'b [u8]> {
    let rest = bytes.strip_prefix(b"bf")?;
    let length = u32::from_le_bytes(rest.get(..4)?.try_into().ok()?) as usize;
    let check = u32::from_le_bytes(rest.get(4..8)?.try_into().ok()?);
    let record = rest.get(8..)?.get(..length)?;
    *left = left.saturating_sub(record.len());
    (crc32fast::hash(record) == check).then_some(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forgotten(n: usize) -> JournalRecord {
        JournalRecord::Forgotten(format!("run{n}"))
    }

    #[test]
    fn a_reader_learns_each_thing_once_however_the_journal_is_cut() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("facts.log");
        assert_eq!(read_since(&path, JournalPosition::default()).unwrap().0, []);
        let mut journal = Journal::open(&path).unwrap();
        journal.append(&[forgotten(1), forgotten(2)]).unwrap();
        let (learned, mark, _) = read_since(&path, JournalPosition::default()).unwrap();
        assert_eq!(learned, [forgotten(1), forgotten(2)]);
        let before = fs::read(&path).unwrap();
        journal.append(&[forgotten(3)]).unwrap();
        let after = fs::read(&path).unwrap();
        for cut in before.len()..=after.len() {
            fs::write(&path, &after[..cut]).unwrap();
            Journal::open(&path)
                .unwrap()
                .append(&[forgotten(4)])
                .unwrap();
            let (learned, end, anew) = read_since(&path, mark).unwrap();
            let whole = cut == after.len();
            let expected: Vec<_> = whole
                .then(|| forgotten(3))
                .into_iter()
                .chain([forgotten(4)])
                .collect();
            assert_eq!((learned, anew), (expected, false), "cut at {cut}");
            assert_eq!(read_since(&path, end).unwrap().0, []);
        }
    }

    #[test]
    fn a_reader_of_another_journal_begins_anew() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("facts.log");
        Journal::open(&path)
            .unwrap()
            .append(&[forgotten(1)])
            .unwrap();
        let (_, mark, _) = read_since(&path, JournalPosition::default()).unwrap();
        rewrite(&path, &[forgotten(2)]).unwrap();
        let (learned, _, anew) = read_since(&path, mark).unwrap();
        assert_eq!((learned, anew), (vec![forgotten(2)], true));
        fs::remove_file(&path).unwrap();
        assert!(read_since(&path, mark).unwrap().2);
    }
}
