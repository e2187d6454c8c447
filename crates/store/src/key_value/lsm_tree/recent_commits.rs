//! The log of the commits whose rows are in no table yet. It is short: a commit that would make it
//! longer than [`LONGEST`] becomes a table, and the log is emptied.
//!
//! ```text
//! log    := frame*
//! frame  := length of the body (4 bytes)  checksum of the body (CRC-32, 4 bytes)  body
//! body   := [sequence number]  change*
//! change := key  0  |  key  1  value
//! ```
//!
//! Keys and values are byte strings: a number and so many bytes. Other numbers are little-endian.
//!
//! Invariants:
//!
//! - A frame is read as a whole or not at all. The first incomplete frame ends the log: the process
//!   that wrote it was killed.
//! - A frame whose sequence number is not greater than that of a table is in that table.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use crate::Result;
use crate::codec::{RecordReader, RecordWriter};

/// Longest log. It is read each time the database is opened.
pub const LONGEST: u64 = 64 << 10;

/// Bytes before a body.
const HEAD: usize = 8;

/// A key and its new value. `None` removes the key.
pub type Change = (Vec<u8>, Option<Vec<u8>>);

/// The changes of one commit.
#[derive(Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its sequence number.
    pub number: u64,
    /// In the order of their keys.
    pub changes: Vec<Change>,
}

/// The open log.
pub struct RecentCommits {
    file: File,
    /// Bytes of whole frames.
    pub bytes: u64,
}

fn encode(commit: &Commit) -> Vec<u8> {
    let mut frame = vec![0; HEAD];
    frame.number(commit.number);
    for (key, value) in &commit.changes {
        frame.bytes(key);
        frame.push(u8::from(value.is_some()));
        value.iter().for_each(|value| frame.bytes(value));
    }
    let body = &frame[HEAD..];
    let (length, sum) = (body.len() as u32, crc32fast::hash(body));
    frame[..4].copy_from_slice(&length.to_le_bytes());
    frame[4..HEAD].copy_from_slice(&sum.to_le_bytes());
    frame
}

fn decode(body: &[u8]) -> Result<Commit> {
    let mut reader = RecordReader::new(body, "commit");
    let number = reader.number()?;
    let mut changes = Vec::new();
    while !reader.is_empty() {
        let key = reader.bytes()?.to_vec();
        let value = match reader.byte()? {
            0 => None,
            _ => Some(reader.bytes()?.to_vec()),
        };
        changes.push((key, value));
    }
    Ok(Commit { number, changes })
}

/// The first whole frame: its body, and the bytes after it.
fn first_frame(log: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, rest) = log.split_first_chunk::<HEAD>()?;
    let number = |at: usize| head[at..].first_chunk().copied().map(u32::from_le_bytes);
    let (length, sum) = (number(0)?, number(4)?);
    let (body, rest) = rest.split_at_checked(length as usize)?;
    (crc32fast::hash(body) == sum).then_some((body, rest))
}

impl RecentCommits {
    /// Opens the log at a path, making it where needed. Passes each commit to `each`, the oldest
    /// first.
    pub fn open(
        path: &Path,
        mut each: impl FnMut(Commit) -> Result<()>,
    ) -> io::Result<Result<RecentCommits>> {
        let mut file = File::options();
        let file = file.read(true).write(true).create(true).truncate(false);
        let file = file.mode(0o600).open(path)?;
        // A commit that made a table emptied the log, so that it is never much longer.
        let length = file.metadata()?.len().min(2 * LONGEST);
        let mut log = vec![0; length as usize];
        file.read_exact_at(&mut log, 0)?;
        let mut rest = &*log;
        while let Some((body, after)) = first_frame(rest) {
            if let Err(error) = decode(body).and_then(&mut each) {
                return Ok(Err(error));
            }
            rest = after;
        }
        let bytes = length - rest.len() as u64;
        Ok(Ok(RecentCommits { file, bytes }))
    }

    /// Appends a commit. False, without a change, if the log would be too long. With `synced`, the
    /// disk has the commit then.
    pub fn append(&mut self, commit: &Commit, synced: bool) -> io::Result<bool> {
        let frame = encode(commit);
        if self.bytes + frame.len() as u64 > LONGEST {
            return Ok(false);
        }
        let written = self.file.write_all_at(&frame, self.bytes);
        let written = written.and_then(|()| match synced {
            true => self.file.sync_data(),
            false => Ok(()),
        });
        if let Err(error) = written {
            // The next frame overwrites a part of this one that stays.
            let _ = self.file.set_len(self.bytes);
            return Err(error);
        }
        self.bytes += frame.len() as u64;
        Ok(true)
    }

    /// Empties the log, after its rows became a table.
    pub fn clear(&mut self) -> io::Result<()> {
        self.bytes = 0;
        self.file.set_len(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(number: u64) -> Commit {
        let value = vec![number as u8; 100];
        Commit {
            number,
            changes: vec![(vec![1], Some(value)), (vec![2], None)],
        }
    }

    fn read(path: &Path) -> (Vec<u64>, RecentCommits) {
        let mut found = Vec::new();
        let log = RecentCommits::open(path, |read| {
            assert_eq!(read, commit(read.number));
            found.push(read.number);
            Ok(())
        });
        let log = log.unwrap().unwrap();
        (found, log)
    }

    #[test]
    fn a_log_that_is_cut_at_any_byte_has_all_commits_before_the_cut() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("log");
        let (_, mut log) = read(&path);
        let mut ends = vec![0];
        for number in 1..=3 {
            assert!(log.append(&commit(number), false).unwrap());
            ends.push(log.bytes);
        }
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let (found, mut log) = read(&path);
            let whole = ends.iter().filter(|end| **end <= cut as u64).count() - 1;
            assert_eq!(found.len(), whole, "cut at {cut}");
            // The log goes on after the last whole commit.
            assert!(log.append(&commit(9), true).unwrap());
            assert_eq!(read(&path).0.last(), Some(&9));
        }
        for byte in 0..whole.len() {
            let mut changed = whole.clone();
            changed[byte] ^= 0x10;
            std::fs::write(&path, changed).unwrap();
            let before = ends.iter().filter(|end| **end <= byte as u64).count() - 1;
            assert_eq!(read(&path).0.len(), before, "byte {byte}");
        }
    }

    #[test]
    fn a_long_log_takes_no_commit_until_it_is_emptied() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("log");
        let (_, mut log) = read(&path);
        while log.append(&commit(1), false).unwrap() {}
        let taken = read(&path).0.len();
        assert!((500..1000).contains(&taken), "{taken}");
        log.clear().unwrap();
        assert!(log.append(&commit(2), false).unwrap());
        assert_eq!(read(&path).0, [2]);
    }
}
