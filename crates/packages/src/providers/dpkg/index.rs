//! A file with the lists of all packages, so that a question need not read each of them.
//!
//! dpkg has one list for each package. Reading a thousand of them takes longer than the rest of
//! most questions. All numbers are little-endian:
//!
//! ```text
//! file    := magic (8 bytes)  stamp (32)  number of packages (4)  length of the names (4)
//!            bounds of the buckets (4 each)  names  entries (`path_table`)
//! names   := for each package: name, 0, version, 0
//! ```
//!
//! An index of another format is made anew, as one of other records is.
//!
//! The stamp is a digest of the identities of the files that the index was made of. Each change of
//! a package gives other identities to the directory of the lists and to the file of versions.
//!
//! Invariant: an index with another stamp than that of the present records is not used. The file
//! can be removed at any time.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use backstory_files::{CLOCK_GRANULARITY, now, regular};

use super::path_table::{BUCKETS, ENTRY, PathTable};
use super::{ListedPackage, Lists};

/// The first bytes of an index. The last one is the number of the format. Format 1 had another hash
/// of paths.
const MAGIC: [u8; 8] = *b"bsdpkg\0\x02";

const STAMP: usize = 32;

/// The state of dpkg's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    digest: [u8; STAMP],
    /// True if a change from now on will give other identities to the files.
    is_old: bool,
}

impl Stamp {
    /// The state of the records below `root`, dpkg's directory. `None` if dpkg is not installed.
    pub fn of(root: &Path) -> Option<Stamp> {
        let mut hasher = blake3::Hasher::new();
        let started = now();
        let mut is_old = true;
        for name in ["info", "status"] {
            let path = root.join(name);
            let found = fs::metadata(&path).ok()?;
            hasher.update(path.as_os_str().as_encoded_bytes());
            let changed = found.ctime() * 1_000_000_000 + found.ctime_nsec();
            is_old &= changed.saturating_add(CLOCK_GRANULARITY) < started;
            for number in [
                found.dev().cast_signed(),
                found.ino().cast_signed(),
                found.size().cast_signed(),
                found.mtime(),
                found.mtime_nsec(),
                changed,
            ] {
                hasher.update(&number.to_le_bytes());
            }
        }
        Some(Stamp {
            digest: *hasher.finalize().as_bytes(),
            is_old,
        })
    }
}

/// The lists in the index at `path`, if it was made in this state of the records.
pub fn read(path: &Path, stamp: &Stamp) -> Option<Lists> {
    let mut file = regular::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let mut head = [0; MAGIC.len() + STAMP + 8];
    file.read_exact(&mut head).ok()?;
    let (magic, rest) = head.split_first_chunk::<8>()?;
    let (known, rest) = rest.split_first_chunk::<STAMP>()?;
    let (count, rest) = rest.split_first_chunk::<4>()?;
    let (count, names) = (number(*count), number(*rest.first_chunk::<4>()?));
    if *magic != MAGIC || *known != stamp.digest || u64::from(names) > length {
        return None;
    }
    let mut bounds = vec![0; (BUCKETS + 1) * 4];
    file.read_exact(&mut bounds).ok()?;
    let mut texts = vec![0; names as usize];
    file.read_exact(&mut texts).ok()?;
    let (bounds, _) = bounds.as_chunks::<4>();
    let bounds: Vec<u32> = bounds.iter().map(|bound| number(*bound)).collect();
    let place = (head.len() + (BUCKETS + 1) * 4 + texts.len()) as u64;
    let entries = u64::from(*bounds.last()?) * ENTRY as u64;
    let paths = PathTable::in_file(bounds, file, place).filter(|_| place + entries == length)?;
    let packages = packages(&texts)?;
    (packages.len() == count as usize).then_some(Lists { packages, paths })
}

fn number(bytes: [u8; 4]) -> u32 {
    u32::from_le_bytes(bytes)
}

fn packages(texts: &[u8]) -> Option<Vec<ListedPackage>> {
    let mut texts = texts.strip_suffix(b"\0")?.split(|byte| *byte == 0);
    let mut packages = Vec::new();
    while let Some(name) = texts.next() {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
        packages.push(ListedPackage {
            name: text(name)?,
            version: text(texts.next()?).filter(|version| !version.is_empty()),
        });
    }
    Some(packages)
}

/// Writes the index of lists that were read in a state of the records. It is left out if dpkg may
/// be changing them now. An index is written beside and renamed, so that no process reads half of
/// one.
pub fn write(path: &Path, root: &Path, stamp: &Stamp, lists: &Lists) -> io::Result<()> {
    if !stamp.is_old || Stamp::of(root).is_none_or(|now| now.digest != stamp.digest) {
        return Ok(());
    }
    let mut names = Vec::new();
    for package in &lists.packages {
        let version = package.version.as_deref().unwrap_or_default();
        for text in [&package.name, version] {
            names.extend(text.bytes().filter(|byte| *byte != 0));
            names.push(0);
        }
    }
    let mut bytes = [&MAGIC[..], &stamp.digest].concat();
    bytes.extend((lists.packages.len() as u32).to_le_bytes());
    bytes.extend((names.len() as u32).to_le_bytes());
    let bounds = lists.paths.bounds().iter();
    bytes.extend(bounds.flat_map(|bound| bound.to_le_bytes()));
    bytes.extend(names);
    bytes.extend(lists.paths.encoded_entries());
    regular::replace(path, |file| {
        file.write_all(&bytes)?;
        // Otherwise a power failure could leave a file of this length with zeros in it.
        file.sync_data()
    })
}
