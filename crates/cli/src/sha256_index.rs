//! Finds contents by their SHA-256 digest, by which the rest of the world names files.
//!
//! Contents are stored under their BLAKE3 digest. Files of packages are not stored: they are read
//! where they are, and found if they are still as recorded. The file `sha256.index` of the store's
//! directory has the SHA-256 digest of each content that was asked for before:
//!
//! ```text
//! entry := BLAKE3 (32 bytes)  SHA-256 (32 bytes)
//! ```
//!
//! Invariant: the file can be removed at any time. A content is read again before it is found, so
//! that a damaged entry finds nothing. Absent: other contents that are not stored.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use backstory_contents::Contents;
use backstory_files::{Digest, Ident, regular};
use backstory_store::facts::Availability;
use backstory_store::{Home, Store, VersionMatch};
use sha2::{Digest as _, Sha256};

use crate::current_store::CurrentStore;
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

/// The contents of packages' files whose SHA-256 digest begins with these hexadecimal digits (lower
/// case), by their BLAKE3 digests. A file counts if it is still as it was recorded.
pub fn packaged_beginning(current: &CurrentStore, digits: &str) -> Result<Vec<Digest>, Failure> {
    let mut known = read(&current.home);
    let mut new = Vec::new();
    let progress = Progress::start("computing the SHA-256 digests of packages' files");
    let mut found = Vec::new();
    for fact in current.store.facts()? {
        let (Some(digest), Availability::Package(_)) = (fact.digest, &fact.availability) else {
            continue;
        };
        let begins = |sum: &[u8; 32]| Digest(*sum).to_string().starts_with(digits);
        if found.contains(&digest) || known.get(&digest).is_some_and(|sum| !begins(sum)) {
            continue;
        }
        let Some(sum) = sum_of_version(&current.store, &fact.ident, &digest)? else {
            continue;
        };
        if known.insert(digest, sum).is_none() {
            new.extend([digest.0, sum].concat());
        }
        if begins(&sum) {
            found.push(digest);
        }
    }
    progress.end();
    let _ = append(&current.home, &new);
    found.sort_unstable();
    Ok(found)
}

/// The SHA-256 digest of a version's file, if it still has this content.
fn sum_of_version(
    store: &dyn Store,
    ident: &Ident,
    digest: &Digest,
) -> Result<Option<[u8; 32]>, Failure> {
    for key in store.same(ident, VersionMatch::Any)? {
        let path = store.entity(key)?.path;
        if backstory_currency::held(&path) == Some(*digest)
            && let Ok(bytes) = regular::read(Path::new(OsStr::from_bytes(&path)))
        {
            return Ok(Some(Sha256::digest(&bytes).into()));
        }
    }
    Ok(None)
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
