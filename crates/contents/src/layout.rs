//! The files of the directory, and how a file appears without ever being visible half-written.
//!
//! ```text
//! DIR/format              the format number as text
//! DIR/lock                lock of the writers (flock)
//! DIR/packs/N.pack        small objects, one record after the other;  N.idx  their positions
//! DIR/objects/ab/DIGEST   a large object: one record
//! DIR/elsewhere/ab/DIGEST where another store has the content
//! DIR/new.*               a file being written
//! ```

use backstory_ordering::SmallSort;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use backstory_files::regular;

use crate::{Error, Result};
use backstory_files::Digest;

/// The newest format that this program knows.
const FORMAT: u64 = 1;

/// Makes the directories and the format file where they do not exist.
pub fn make(dir: &Path) -> Result<()> {
    for part in [dir.join("packs"), dir.join("objects")] {
        if !part.is_dir() {
            make_dir(&part)?;
        }
    }
    let path = dir.join("format");
    if path.exists() {
        return Ok(());
    }
    let beside = temporary(dir);
    let written = new_file(&beside)
        .and_then(|mut file| write_synced(&mut file, &beside, format!("{FORMAT}\n").as_bytes()));
    written?;
    fs::rename(&beside, &path).map_err(Error::io("write", &path))?;
    sync_dir(dir)
}

/// Makes a directory, and those above it, for their owner only.
pub fn make_dir(dir: &Path) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(Error::io("make", dir))
}

/// Checks that the directory holds contents that this program can read.
pub fn check(dir: &Path) -> Result<()> {
    let path = dir.join("format");
    let text = match regular::read(&path) {
        Ok(text) => text,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Err(Error::None(dir.to_owned()));
        }
        Err(error) => return Err(Error::io("read", &path)(error)),
    };
    // Exactly the bytes that were written: a flipped bit must not turn one number into another with
    // a blank after it.
    let number = std::str::from_utf8(&text)
        .ok()
        .and_then(|text| text.strip_suffix('\n'))
        .filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
        .and_then(|digits| digits.parse::<u64>().ok())
        .filter(|number| *number > 0);
    match number {
        None => Err(Error::BadFormat(path)),
        Some(found) if found > FORMAT => Err(Error::NewerFormat {
            dir: dir.to_owned(),
            found,
            known: FORMAT,
        }),
        Some(_) => Ok(()),
    }
}

/// Waits for the writers' lock. It is released when the file is dropped.
pub fn lock(dir: &Path) -> Result<File> {
    let path = dir.join("lock");
    let fail = Error::io("lock", &path);
    let opened = regular::open_private(&path);
    opened
        .and_then(|file| file.lock().map(|()| file))
        .map_err(fail)
}

/// The file of a pack.
pub fn pack(dir: &Path, number: u32) -> PathBuf {
    dir.join("packs").join(format!("{number:06}.pack"))
}

/// The index of a pack.
pub fn pack_index(dir: &Path, number: u32) -> PathBuf {
    dir.join("packs").join(format!("{number:06}.idx"))
}

/// The file of a large object.
pub fn object(dir: &Path, digest: &Digest) -> PathBuf {
    fanned(dir, "objects", digest)
}

/// The note of a content that another store has.
pub fn elsewhere(dir: &Path, digest: &Digest) -> PathBuf {
    fanned(dir, "elsewhere", digest)
}

fn fanned(dir: &Path, kind: &str, digest: &Digest) -> PathBuf {
    let name = digest.to_string();
    dir.join(kind).join(&name[..2]).join(name)
}

/// The numbers of all packs, ascending.
pub fn packs(dir: &Path) -> Result<Vec<u32>> {
    let mut numbers: Vec<u32> = entries(&dir.join("packs"))?
        .into_iter()
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?.strip_suffix(".pack")?;
            name.parse().ok()
        })
        .collect();
    numbers.sort_small();
    Ok(numbers)
}

/// All large objects and their files.
pub fn files(dir: &Path) -> Result<Vec<(Digest, PathBuf)>> {
    named(&dir.join("objects"))
}

/// All contents that other stores have, and the files of their notes.
pub fn notes(dir: &Path) -> Result<Vec<(Digest, PathBuf)>> {
    named(&dir.join("elsewhere"))
}

fn named(dir: &Path) -> Result<Vec<(Digest, PathBuf)>> {
    let mut found = Vec::new();
    for fan in entries(dir)? {
        for path in entries(&fan)? {
            let digest = path
                .file_name()
                .and_then(|name| name.to_str()?.parse().ok());
            found.extend(digest.map(|digest| (digest, path)));
        }
    }
    found.sort_small();
    Ok(found)
}

/// The entries of a directory. Empty if it does not exist.
pub fn entries(dir: &Path) -> Result<Vec<PathBuf>> {
    let read = match fs::read_dir(dir) {
        Ok(read) => read,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io("list", dir)(error)),
    };
    read.map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<_>>()
        .map_err(Error::io("list", dir))
}

/// Bytes of a file. 0 if it does not exist.
pub fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |meta| meta.len())
}

/// A name that no other writer uses.
pub fn temporary(dir: &Path) -> PathBuf {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let nanoseconds = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos());
    dir.join(format!("new.{}.{number}.{nanoseconds}", std::process::id()))
}

/// A new file for its owner only.
pub fn new_file(path: &Path) -> Result<File> {
    let opened = OpenOptions::new()
        .create_new(true)
        .write(true)
        .read(true)
        .mode(0o600)
        .open(path);
    opened.map_err(Error::io("create", path))
}

/// Writes bytes and makes them durable.
pub fn write_synced(file: &mut File, path: &Path, bytes: &[u8]) -> Result<()> {
    file.write_all(bytes)
        .and_then(|()| file.sync_data())
        .map_err(Error::io("write", path))
}

/// Makes the names in a directory durable.
pub fn sync_dir(dir: &Path) -> Result<()> {
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(Error::io("sync", dir))
}

/// Removes the temporary files of killed writers. Requires the lock.
pub fn sweep(dir: &Path) -> Result<()> {
    for path in entries(dir)? {
        let left = path
            .file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.starts_with("new."));
        if left {
            remove(&path)?;
        }
    }
    Ok(())
}

/// Removes a file if it exists.
pub fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io("remove", path)(error)),
        _ => Ok(()),
    }
}
