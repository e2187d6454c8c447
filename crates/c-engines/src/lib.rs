//! Ordered maps of byte strings in C libraries: engines that the storage engines of backstory are
//! compared with.
//!
//! ```text
//! OrderedMap, MapSnapshot, MapCursor, MapChanges     safe
//!      │   library.rs: the only declarations of C
//!      │   a table of functions (c/ordered_map.h)
//!      ├── c/berkeleydb.c   Berkeley DB 5.3 (feature `berkeleydb`)
//!      └── c/rocksdb.c      RocksDB 7 (feature `rocksdb`)
//! ```
//!
//! In: a directory, keys and values. Out: rows in the order of their keys, and errors that say
//! whether the files are damaged.
//!
//! The C files include the libraries' own headers, so that the compiler checks every call. Rust
//! knows one table of functions only.
//!
//! Invariant: one process at a time has the directory of a map, by a lock on its file `lock`.
//!
//! Absent: the meaning of keys and values, and every other engine: see `backstory-store`.

#[cfg(any(feature = "berkeleydb", feature = "rocksdb"))]
mod changes;
#[cfg(any(feature = "berkeleydb", feature = "rocksdb"))]
mod library;
#[cfg(any(feature = "berkeleydb", feature = "rocksdb"))]
mod open_map;
#[cfg(any(feature = "berkeleydb", feature = "rocksdb"))]
mod ordered_map;
#[cfg(any(feature = "berkeleydb", feature = "rocksdb"))]
mod snapshot;

#[cfg(any(feature = "berkeleydb", feature = "rocksdb"))]
pub use changes::MapChanges;
#[cfg(any(feature = "berkeleydb", feature = "rocksdb"))]
pub use library::{LibraryError, MapLibrary};
#[cfg(any(feature = "berkeleydb", feature = "rocksdb"))]
pub use ordered_map::OrderedMap;
#[cfg(any(feature = "berkeleydb", feature = "rocksdb"))]
pub use snapshot::{MapCursor, MapRow, MapSnapshot};
