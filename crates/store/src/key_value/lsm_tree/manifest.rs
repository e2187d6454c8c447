//! Checks the lists of an LSM tree before the library reads them.
//!
//! The library takes memory for as many entries as a list promises, and compares no checksum
//! before. A damaged number ends the process. So each list is compared with its checksum here.
//!
//! | file | its checksum |
//! | --- | --- |
//! | `vM`, the tables of the tree | in `current`: M, 8 bytes, then 16 bytes |
//! | the list of sections at the end of `vM` and of each table | in the last 38 bytes of the file |
//!
//! Absent: the sections themselves. Each block of a table has a checksum, which the library checks.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_128;

use crate::key_value::damage::{corrupt, failed_io};
use crate::{Error, Result};

/// The end of a file with sections: magic, version, kind of checksum, checksum, position and length
/// of the list.
const TRAILER: usize = 4 + 1 + 1 + 16 + 8 + 8;

/// A list is shorter. A table has ten sections.
const LONGEST_LIST: u64 = 1 << 20;

/// Checks the lists of the tree in a directory of a database, if it exists.
///
/// Errors: [`Error::Corrupt`] with the database's path.
pub fn check(database: &Path, tree: &Path) -> Result<()> {
    let current = match fs::read(tree.join("current")) {
        // The tree is new.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        read => read.map_err(|error| unread(database, error))?,
    };
    let (path, version) = check_version(database, tree, &current)?;
    let tables = listed_tables(&version).ok_or_else(|| damaged(database, &path))?;
    for table in tables {
        check_sections(database, &tree.join("tables").join(table.to_string()))?;
    }
    Ok(())
}

fn unread(database: &Path, error: io::Error) -> Error {
    failed_io("read", database, error)
}

fn damaged(database: &Path, file: &Path) -> Error {
    let file = file.strip_prefix(database).unwrap_or(file);
    corrupt(
        database,
        format!("the checksum of {} differs", file.display()),
    )
}

/// Compares the list of a tree's tables with its checksum. Out: its file, and what is in it.
fn check_version(database: &Path, tree: &Path, current: &[u8]) -> Result<(PathBuf, Vec<u8>)> {
    let file = tree.join("current");
    let number = current.first_chunk().copied().map(u64::from_le_bytes);
    let checksum = current.get(8..).and_then(<[u8]>::first_chunk);
    let (Some(number), Some(checksum)) = (number, checksum) else {
        return Err(damaged(database, &file));
    };
    let version = tree.join(format!("v{number}"));
    match fs::read(&version) {
        Ok(text) if xxh3_128(&text) == u128::from_le_bytes(*checksum) => Ok((version, text)),
        Err(error) if error.kind() != ErrorKind::NotFound => Err(unread(database, error)),
        _ => Err(damaged(database, &version)),
    }
}

/// The numbers of the tables in a list whose checksum is right. A file with another number is of a
/// process that was killed while it wrote: the library removes it.
///
/// ```text
/// section `tables` := [number of levels, 1 byte]  level*
/// level            := [number of runs, 1 byte]  run*
/// run              := [number of tables, 4 bytes]  table*
/// table            := 33 bytes, the first 8 of them the table's number
/// ```
fn listed_tables(version: &[u8]) -> Option<Vec<u64>> {
    // An entry of the list of sections: position, length (8 bytes each), length of the name (2).
    let name = b"\x06\0tables";
    let at = version.windows(name.len()).rposition(|part| part == name)?;
    let entry = version.get(at.checked_sub(16)?..at)?;
    let position = u64::from_le_bytes(*entry.first_chunk()?);
    let mut rest = version.get(usize::try_from(position).ok()?..)?;
    let mut take = |count: usize| {
        let (taken, left) = rest.split_at_checked(count)?;
        rest = left;
        Some(taken)
    };
    let mut found = Vec::new();
    for _ in 0..take(1)?[0] {
        for _ in 0..take(1)?[0] {
            let tables = u32::from_le_bytes(*take(4)?.first_chunk()?);
            for _ in 0..tables {
                found.push(u64::from_le_bytes(*take(33)?.first_chunk()?));
            }
        }
    }
    Some(found)
}

/// Compares the list of a file's sections with its checksum.
fn check_sections(database: &Path, path: &Path) -> Result<()> {
    let list = sections(path).map_err(|error| unread(database, error))?;
    match list {
        Some((list, checksum)) if xxh3_128(&list) == checksum => Ok(()),
        _ => Err(damaged(database, path)),
    }
}

/// The list of a file's sections, and its checksum. `None` if the file has no such list.
fn sections(path: &Path) -> io::Result<Option<(Vec<u8>, u128)>> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut trailer = [0; TRAILER];
    let Some(end) = length.checked_sub(TRAILER as u64) else {
        return Ok(None);
    };
    file.read_exact_at(&mut trailer, end)?;
    let number = |at: usize| trailer[at..].first_chunk().copied().map(u64::from_le_bytes);
    let checksum = trailer[6..].first_chunk().copied().map(u128::from_le_bytes);
    let (Some(checksum), Some(at), Some(size)) = (checksum, number(22), number(30)) else {
        return Ok(None);
    };
    if size > LONGEST_LIST || at.checked_add(size) != Some(end) {
        return Ok(None);
    }
    let mut list = vec![0; size as usize];
    file.read_exact_at(&mut list, at)?;
    Ok(Some((list, checksum)))
}
