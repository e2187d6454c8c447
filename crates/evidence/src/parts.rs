//! The parts of a run as they are now.
//!
//! In: a run of an open store. Out: the digest of each part, or why it cannot be read.

use backstory_ordering::SmallSort;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use backstory_contents::digest_of;
use backstory_files::{Digest, regular};
use backstory_store::{Home, RunRecord, Store};

use crate::items::{self, Item, Journals};
use crate::statement::Parts;
use crate::{Error, Result, canonical};

/// The digest of a file. `None` if it is not there.
pub fn of_file(path: &Path) -> Result<Option<Digest>> {
    match regular::open(path).and_then(|mut file| digest_of(&mut file)) {
        Ok((digest, _)) => Ok(Some(digest)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("read", path)(error)),
    }
}

/// The digest of a directory's files: of lines with digest and path, in the order of the paths.
/// Newlines and backslashes of a path are escaped, so that no name looks like two lines. `None` if
/// the directory is not there.
pub fn of_directory(top: &Path) -> Result<Option<Digest>> {
    if !top.is_dir() {
        return Ok(None);
    }
    let mut hash = blake3::Hasher::new();
    for path in files_below(top)? {
        let name = path.strip_prefix(top).unwrap_or(&path);
        let digest = of_file(&path)?.unwrap_or(Digest([0; 32]));
        hash.update(format!("{digest} ").as_bytes());
        for byte in name.as_os_str().as_bytes() {
            match byte {
                b'\n' => hash.update(b"\\n"),
                b'\\' => hash.update(b"\\\\"),
                byte => hash.update(std::slice::from_ref(byte)),
            };
        }
        hash.update(b"\n");
    }
    Ok(Some(Digest(*hash.finalize().as_bytes())))
}

/// The files below a directory, in the order of their paths.
pub fn files_below(top: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    below(top, &mut files).map_err(Error::io("list", top))?;
    files.sort_small();
    Ok(files)
}

fn below(directory: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => below(&entry.path(), found)?,
            false => found.push(entry.path()),
        }
    }
    Ok(())
}

/// The parts that are files: log, deep log, records of the byte engine.
pub fn of_files(home: &Home, run: &str) -> [Result<Option<Digest>>; 3] {
    [
        of_file(&home.log_path(run)),
        of_file(&home.deep_log_path(run)),
        of_directory(&home.bytes_dir(run)),
    ]
}

/// The parts that are rows: record, processes, files, edges, notes.
pub fn of_rows(store: &dyn Store, run: &RunRecord) -> [Result<Option<Digest>>; 5] {
    let activities = store.activities(run.key);
    let edges = match &activities {
        Ok(activities) => canonical::edges(store, run, activities),
        Err(_) => Err(backstory_store::Error::Damaged("list of processes")),
    };
    let some =
        |digest: backstory_store::Result<Digest>| -> Result<Option<Digest>> { Ok(Some(digest?)) };
    [
        some(canonical::record(run)),
        some(activities.map(|list| canonical::processes(&list))),
        some(store.entities(run.key).map(|list| canonical::files(&list))),
        some(edges),
        some(store.extended(run.key).map(|list| canonical::notes(&list))),
    ]
}

/// All parts of a run, and its items.
///
/// Errors: if one of them cannot be read.
pub fn of_run(
    home: &Home,
    store: &dyn Store,
    run: &RunRecord,
    journals: &Journals,
) -> Result<(Parts, Vec<Item>)> {
    let items = items::of_run(home, store, run, journals)?;
    let list = items::digest_of_list(items.iter().map(|item| item.line.as_str()));
    let all = of_files(home, &run.header.id)
        .into_iter()
        .chain(of_rows(store, run))
        .chain([Ok(Some(list))]);
    let mut parts: Parts = Default::default();
    for (part, found) in parts.iter_mut().zip(all) {
        *part = found?;
    }
    Ok((parts, items))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_newline_does_not_stand_for_two_files() {
        let tmp = tempfile::tempdir().unwrap();
        let (two, one) = (tmp.path().join("two"), tmp.path().join("one"));
        for directory in [&two, &one] {
            fs::create_dir(directory).unwrap();
        }
        fs::write(two.join("a"), "1").unwrap();
        fs::write(two.join("b"), "2").unwrap();
        let second = of_file(&two.join("b")).unwrap().unwrap();
        fs::write(one.join(format!("a\n{second} b")), "1").unwrap();
        assert_ne!(of_directory(&two).unwrap(), of_directory(&one).unwrap());
    }
}
