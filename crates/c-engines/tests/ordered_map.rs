//! The promises of the ordered maps, for each library that is compiled in.
#![cfg(any(feature = "berkeleydb", feature = "rocksdb"))]
#![allow(clippy::unwrap_used)]

use backstory_c_engines::{LibraryError, MapLibrary, MapSnapshot, OrderedMap};

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
