//! Finds stored contents by their SHA-256 digest, by which the rest of the world names files.
//!
//! Contents are stored under their BLAKE3 digest. The file `sha256.index` of the store's directory
//! has the SHA-256 digest of each content that was asked for before:
//!
//! ```text
//! entry := BLAKE3 (32 bytes)  SHA-256 (32 bytes)
//! ```
//!
//! Invariant: the file can be removed at any time. A content is read again before it is found, so
//! that a damaged entry finds nothing. Absent: contents that are not stored.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;

use backstory_contents::Contents;
use backstory_files::Digest;
use backstory_store::Home;
use sha2::{Digest as _, Sha256};

use crate::error::Failure;
use crate::text::progress::{Progress, Unit};

/// The name of the file.
const NAME: &str = "sha256.index";

/// The bytes of an entry.
const ENTRY: usize = 64;

/// The stored contents whose SHA-256 digest begins with these hexadecimal digits (lower case).
pub fn contents_beginning(home: &Home, digits: &str) -> Result<Vec<Digest>, Failure> {
    let Ok(contents) = Contents::open(&home.contents_dir()) else {
        return Ok(Vec::new());
    };
    let mut known = read(home);
    let mut new = Vec::new();
    let digests = contents.digests()?;
    let what = "computing the SHA-256 digests of stored contents";
    let progress = Progress::of(what, digests.len() as u64, Unit::Things);
    let mut found = Vec::new();
    for digest in digests {
        progress.done.add(1);
        let sum = match known.remove(&digest) {
            Some(sum) => sum,
            None => {
                // A damaged content has no digest, and is found by `store verify`.
                let Some(sum) = sum(&contents, &digest) else {
                    continue;
                };
                new.extend([digest.0, sum].concat());
                sum
            }
        };
        if Digest(sum).to_string().starts_with(digits) && self::sum(&contents, &digest) == Some(sum)
        {
            found.push(digest);
        }
    }
    progress.end();
    // Without the file, the next question takes longer.
    let _ = append(home, &new);
    found.sort_unstable();
    Ok(found)
}

fn sum(contents: &Contents, digest: &Digest) -> Option<[u8; 32]> {
    let mut sum = Sha256::new();
    io::copy(&mut contents.read(digest).ok()?, &mut sum).ok()?;
    Some(sum.finalize().into())
}

fn read(home: &Home) -> HashMap<Digest, [u8; 32]> {
    let bytes = fs::read(home.dir().join(NAME)).unwrap_or_default();
    let halves = |entry: &[u8]| {
        let (digest, sum) = entry.split_at(ENTRY / 2);
        Some((Digest(digest.try_into().ok()?), sum.try_into().ok()?))
    };
    bytes.chunks_exact(ENTRY).filter_map(halves).collect()
}

/// Adds entries in one write. An entry that was cut off by a crash is removed before.
fn append(home: &Home, entries: &[u8]) -> io::Result<()> {
    if entries.is_empty() {
        return Ok(());
    }
    let mut options = OpenOptions::new();
    let mut file = options
        .create(true)
        .append(true)
        .mode(0o600)
        .open(home.dir().join(NAME))?;
    let length = file.metadata()?.len();
    file.set_len(length - length % ENTRY as u64)?;
    file.write_all(entries)
}
