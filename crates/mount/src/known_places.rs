//! Where the files of an exported mount were found, so that an NFS client's handle leads to its
//! file after the kernel has forgotten it.
//!
//! A handle has the node id and the generation of a file. The node id is the file's inode number,
//! which another file may get later. The generation tells them apart.
//!
//! Invariants:
//!
//! - A file has the same generation in every run. So a handle of an earlier run is either stale or
//!   means the same file.
//! - A place is a hint. The file there counts only if it has the inode number and the generation.
//! - A search goes down from a directory that the kernel knows, name by name. So no handle leads
//!   out of the mounted directory, whatever its bytes are.
//!
//! Absent: files of other file systems below the directory.

use backstory_sys::FileHandle;
use rustix::fs::{AtFlags, StatxFlags};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most names of one file that are remembered.
const NAMES: usize = 16;

/// A name, and the node id of the directory that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) directory: u64,
    pub(crate) name: OsString,
}

#[derive(Debug)]
struct PlacedFile {
    generation: u32,
    /// The latest first.
    places: Vec<Place>,
}

/// The places, by node id.
#[derive(Debug, Default)]
pub(crate) struct KnownPlaces {
    files: Mutex<HashMap<u64, PlacedFile>>,
}

impl KnownPlaces {
    fn files(&self) -> MutexGuard<'_, HashMap<u64, PlacedFile>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes where a file was found. `several` says that it can have other names.
    pub(crate) fn found(
        &self,
        (node, generation): (u64, u32),
        (directory, name): (u64, &OsStr),
        several: bool,
    ) {
        let mut files = self.files();
        let file = files.entry(node).or_insert_with(|| PlacedFile {
            generation,
            places: Vec::new(),
        });
        let first = file.places.first();
        let is_first = |first: &Place| first.directory == directory && first.name == name;
        if file.generation == generation && first.is_some_and(is_first) {
            return;
        }
        if file.generation != generation || !several {
            file.generation = generation;
            file.places.clear();
        }
        let place = Place {
            directory,
            name: name.to_owned(),
        };
        file.places.retain(|other| *other != place);
        file.places.insert(0, place);
        file.places.truncate(NAMES);
    }

    /// Forgets a file that has no name any more.
    pub(crate) fn removed(&self, node: u64) {
        self.files().remove(&node);
    }

    /// The generation of a file, and where it was found.
    pub(crate) fn of(&self, node: u64) -> Option<(u32, Vec<Place>)> {
        let files = self.files();
        let file = files.get(&node)?;
        Some((file.generation, file.places.clone()))
    }
}

/// The generation of the file behind a descriptor: it tells the file from others that had or will
/// have its inode number.
///
/// File systems have a generation of 32 bits in their handles. CRC-32 never gives the same value to
/// two byte strings that differ in 32 neighbouring bits only. A file system without handles has the
/// time at which the file was made.
pub(crate) fn generation(file: impl AsFd) -> u32 {
    let handle = FileHandle::of_open(file.as_fd());
    if let Ok(handle) = handle.or_else(|_| FileHandle::identifying(file.as_fd())) {
        return crc32fast::hash(handle.bytes());
    }
    let stat = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::BTIME);
    let made = stat.map(|stat| (stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec));
    let (seconds, nanoseconds) = made.unwrap_or_default();
    let mut hash = crc32fast::Hasher::new();
    hash.update(&seconds.to_ne_bytes());
    hash.update(&nanoseconds.to_ne_bytes());
    hash.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(places: &KnownPlaces, node: u64) -> Vec<String> {
        let found = places.of(node).map(|(_, found)| found).unwrap_or_default();
        let names = found.into_iter().map(|place| place.name.into_string());
        names.map(Result::unwrap).collect()
    }

    #[test]
    fn a_file_with_several_names_keeps_them_and_another_has_its_last() {
        let places = KnownPlaces::default();
        for name in ["a", "b", "a"] {
            places.found((7, 1), (1, name.as_ref()), true);
            places.found((8, 1), (1, name.as_ref()), false);
        }
        assert_eq!(names(&places, 7), ["a", "b"]);
        assert_eq!(names(&places, 8), ["a"]);
    }

    #[test]
    fn another_file_of_the_number_has_no_name_of_the_first() {
        let places = KnownPlaces::default();
        places.found((7, 1), (1, "a".as_ref()), true);
        places.found((7, 2), (1, "b".as_ref()), true);
        assert_eq!(places.of(7).unwrap().0, 2);
        assert_eq!(names(&places, 7), ["b"]);
        places.removed(7);
        assert!(places.of(7).is_none());
    }
}
