//! An ordered map of byte strings in a directory.
//!
//! Assumption of the unsafe code here: the functions of the table follow the rules of
//! `c/ordered_map.h`.
#![allow(unsafe_code)]

use std::path::Path;
use std::ptr;
use std::sync::{Arc, PoisonError};

use crate::changes::MapChanges;
use crate::library::{MapLibrary, Result, done, made};
use crate::open_map::OpenMap;
use crate::snapshot::MapSnapshot;

/// An ordered map in a directory. Its clones share it; the last one closes it.
#[derive(Clone)]
pub struct OrderedMap {
    open: Arc<OpenMap>,
}

impl OrderedMap {
    /// Opens the map in a directory, which exists, making it where needed. `memory`: bytes for
    /// caches. `synced`: each commit waits for the disk.
    ///
    /// Errors: [`LibraryError::Locked`] if another process has it.
    pub fn open(
        library: MapLibrary,
        directory: &Path,
        memory: usize,
        synced: bool,
    ) -> Result<OrderedMap> {
        let open = OpenMap::open(library, directory, memory, synced)?;
        Ok(OrderedMap {
            open: Arc::new(open),
        })
    }

    /// The state now.
    pub fn snapshot(&self) -> Result<MapSnapshot> {
        let mut snapshot = ptr::null_mut();
        let open = &self.open;
        // SAFETY: the map is open, and the pointers outlive the call.
        done(|failure| unsafe {
            (open.functions.take_snapshot)(open.map.as_ptr(), &mut snapshot, failure)
        })?;
        Ok(MapSnapshot {
            snapshot: made(snapshot)?,
            open: open.clone(),
        })
    }

    /// Begins changes that are committed together. Waits for other changes of this process.
    pub fn begin(&self) -> Result<MapChanges<'_>> {
        let open = &*self.open;
        let alone = open.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changes = ptr::null_mut();
        // SAFETY: the map is open, no other changes exist, and the pointers outlive the call.
        done(|failure| unsafe {
            (open.functions.begin)(open.map.as_ptr(), &mut changes, failure)
        })?;
        Ok(MapChanges {
            changes: Some(made(changes)?),
            open,
            _alone: alone,
        })
    }

    /// Gives the room of removed rows back to the file system.
    pub fn compact(&self) -> Result<()> {
        let open = &*self.open;
        let _alone = open.changing.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the map is open.
        done(|failure| unsafe { (open.functions.compact)(open.map.as_ptr(), failure) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::LibraryError;

    const LIBRARIES: &[MapLibrary] = &[
        #[cfg(feature = "berkeleydb")]
        MapLibrary::BerkeleyDb,
        #[cfg(feature = "rocksdb")]
        MapLibrary::RocksDb,
    ];

    fn keys(snapshot: &MapSnapshot, from: &[u8], backwards: bool) -> Vec<Vec<u8>> {
        let mut cursor = snapshot.cursor().unwrap();
        let mut found = Vec::new();
        let mut row = cursor.seek(from, backwards).unwrap();
        while let Some((key, value)) = row {
            assert_eq!(value, [key, b"!"].concat());
            found.push(key.to_vec());
            row = cursor.step(backwards).unwrap();
        }
        found
    }

    fn put(map: &OrderedMap, all: &[&[u8]]) {
        let mut changes = map.begin().unwrap();
        for key in all {
            changes.put(key, &[key, &b"!"[..]].concat()).unwrap();
        }
        changes.commit().unwrap();
    }

    #[test]
    fn a_snapshot_shows_its_state_in_order_in_both_directions() {
        for &library in LIBRARIES {
            let tmp = tempfile::tempdir().unwrap();
            let map = OrderedMap::open(library, tmp.path(), 8 << 20, false).unwrap();
            put(&map, &[b"b", b"d", b"a", b"c\0"]);
            let before = map.snapshot().unwrap();
            put(&map, &[b"c", b"e"]);
            let mut changes = map.begin().unwrap();
            changes.erase(b"a").unwrap();
            changes.erase(b"not there").unwrap();
            changes.commit().unwrap();
            assert_eq!(keys(&before, b"", false), [&b"a"[..], b"b", b"c\0", b"d"]);
            assert_eq!(keys(&before, b"c", false), [&b"c\0"[..], b"d"]);
            assert_eq!(keys(&before, b"d", true), [&b"c\0"[..], b"b", b"a"]);
            assert_eq!(keys(&before, b"zz", true), [&b"d"[..], b"c\0", b"b", b"a"]);
            assert_eq!(before.get(b"e").unwrap(), None);
            let now = map.snapshot().unwrap();
            assert_eq!(keys(&now, b"c", false), [&b"c"[..], b"c\0", b"d", b"e"]);
            assert_eq!(now.get(b"e").unwrap().unwrap(), b"e!");
            assert_eq!(keys(&now, b"b", true), [b""; 0]);
        }
    }

    #[test]
    fn changes_that_were_dropped_changed_nothing_and_committed_ones_are_there_again() {
        for &library in LIBRARIES {
            let tmp = tempfile::tempdir().unwrap();
            let map = OrderedMap::open(library, tmp.path(), 8 << 20, true).unwrap();
            put(&map, &[b"kept"]);
            map.begin().unwrap().put(b"dropped", b"").unwrap();
            let other = OrderedMap::open(library, tmp.path(), 8 << 20, true);
            assert!(matches!(other.map(drop), Err(LibraryError::Locked)));
            let snapshot = map.snapshot().unwrap();
            drop(map);
            assert_eq!(keys(&snapshot, b"", false), [b"kept"]);
            drop(snapshot);
            let again = OrderedMap::open(library, tmp.path(), 8 << 20, false).unwrap();
            assert_eq!(keys(&again.snapshot().unwrap(), b"", false), [b"kept"]);
            again.compact().unwrap();
        }
    }

    #[test]
    fn a_value_of_megabytes_comes_back() {
        for &library in LIBRARIES {
            let tmp = tempfile::tempdir().unwrap();
            let map = OrderedMap::open(library, tmp.path(), 8 << 20, false).unwrap();
            let value: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
            let mut changes = map.begin().unwrap();
            changes.put(b"long", &value).unwrap();
            changes.put(b"empty", b"").unwrap();
            changes.commit().unwrap();
            let snapshot = map.snapshot().unwrap();
            assert_eq!(snapshot.get(b"long").unwrap().unwrap(), value);
            assert_eq!(snapshot.get(b"empty").unwrap().unwrap(), b"");
        }
    }
}
