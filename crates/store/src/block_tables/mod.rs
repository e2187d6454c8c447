//! The graphs of runs as blocks of compact records in a few tables: what all durable engines share.
//!
//! In: a run's graph ([`append`]). Out: activities, entities and their relations ([`GraphReader`]).
//! An engine implements [`BlockTables`], which knows tables and keys but no record. So every engine
//! has the same records (`codec`), and needs the same few bytes for an edge.
//!
//! ```text
//!     SqliteStore          KeyValueStore
//!          └──── BlockTables ────┘
//!        append            GraphReader
//!                   codec
//! ```
//!
//! A key is a run's (or directory's) number << 32 | an id in it: the rows of one run, or of one
//! directory, stand together. `docs/formats/store.md` describes each table.
//!
//! Absent: runs' labels, facts and annotations, which have no blocks.

mod activity_rows;
mod append;
mod cache;
pub mod directories;
mod entity_rows;
pub mod environment;
pub mod names;
mod reader;
pub mod rename_lists;
pub mod texts;
mod version_matches;
mod version_rows;

use std::cell::RefCell;

use backstory_eventlog::event::{Bytes, Time};
use backstory_eventlog::run::{RunEnd, RunHeader};
use backstory_files::Ident;

use crate::{Counts, Result, RunKey};

pub use append::{EdgeListWriter, TextWriter, append};
pub use cache::Cache;
pub use reader::GraphReader;

/// The methods of [`GraphStore`](crate::GraphStore) that read blocks, for a store with a method
/// `graph` that returns its [`GraphReader`]. The caller imports the types in their signatures.
macro_rules! graph_methods {
    () => {
        fn run_started(&self, key: RunKey) -> Result<Option<Time>> {
            self.graph().run_started(key)
        }

        fn activities(&self, run: RunKey) -> Result<Vec<Activity>> {
            self.graph().activities(run)
        }

        fn entities(&self, run: RunKey) -> Result<Vec<Entity>> {
            self.graph().entities(run)
        }

        fn extended(&self, run: RunKey) -> Result<Vec<(ActivityId, Time, Bytes, Bytes)>> {
            self.graph().extended(run)
        }

        fn stream(&self, key: ActivityKey) -> Result<Stream> {
            self.graph().stream(key)
        }

        fn activity(&self, key: ActivityKey) -> Result<Activity> {
            self.graph().activity(key)
        }

        fn entity(&self, key: EntityKey) -> Result<Entity> {
            self.graph().entity(key)
        }

        fn generators(&self, key: EntityKey) -> Result<Vec<ActivityId>> {
            self.graph().generators(key)
        }

        fn touching(&self, key: EntityKey) -> Result<Vec<(ActivityId, bool)>> {
            self.graph().touching(key)
        }

        fn at_path(&self, path: &[u8]) -> Result<Vec<EntityKey>> {
            self.graph().at_path(path)
        }

        fn rename_candidates(&self, path: &[u8]) -> Result<Vec<EntityKey>> {
            self.graph().rename_candidates(path)
        }

        fn below(&self, prefix: &[u8], wanted: &dyn Fn(&[u8]) -> bool) -> Result<Vec<EntityKey>> {
            self.graph().below(prefix, wanted)
        }

        fn made_in(&self, directory: &[u8]) -> Result<Vec<(Bytes, EntityKey)>> {
            self.graph().made_in(directory)
        }

        fn directories_below(&self, top: &[u8]) -> Result<Vec<Bytes>> {
            self.graph().directories_below(top)
        }

        fn directories_of(&self, run: RunKey) -> Result<Vec<Bytes>> {
            self.graph().directories_of(run)
        }

        fn same(&self, ident: &Ident, which: VersionMatch) -> Result<Vec<EntityKey>> {
            self.graph().same(ident, which)
        }

        fn made_versions(&self, idents: &[Ident]) -> Result<Vec<Vec<EntityKey>>> {
            self.graph().made_versions(idents)
        }
    };
}

pub(crate) use graph_methods;

/// A table whose rows are byte strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockTable {
    /// Blocks of byte strings that runs share, by numbers of their own.
    Texts,
    /// Blocks of paths of directories, by number of the first.
    Directories,
    /// Blocks of versions of files, by directory and index of the first.
    Versions,
    /// Blocks of entities, by run and id of the first.
    Members,
    /// Blocks of activities, by run and id of the first.
    Activities,
    /// Lists of the activities that touched entities, by run and number.
    Segments,
    /// Rows of lists of edges, by run and number.
    EdgeLists,
    /// Blocks of extended records, by run and number of the first.
    Extended,
}

/// A table whose rows are pairs of numbers. A pair is stored once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairTable {
    /// [`bucket`] of inodes, directory.
    Inodes,
    /// Directory, key of a block of entities. Lists of renames ([`rename_lists`]) have rows here.
    Touched,
    /// [`version_key`], key of the entity that its run made.
    Made,
    /// [`texts::text_key`], id of the text.
    TextKeys,
}

/// The tables of one engine. Reads between [`begin`](BlockTables::begin) and
/// [`commit`](BlockTables::commit) see the rows that were added.
pub trait BlockTables {
    /// Decoded rows of this store.
    fn cache(&self) -> &RefCell<Cache>;

    /// A number that changes when another process has written.
    fn data_version(&self) -> Result<i64>;

    /// Looks at the row with this key. `None` if the table has no such row.
    fn row<R>(
        &self,
        table: BlockTable,
        key: i64,
        look: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>>;

    /// The row with this key, or else the last one before it.
    fn row_before(&self, table: BlockTable, key: i64) -> Result<Option<(i64, Vec<u8>)>>;

    /// Looks at the rows from the first key to the last, in the order of their keys.
    fn rows(
        &self,
        table: BlockTable,
        keys: (i64, i64),
        look: impl FnMut(i64, &[u8]) -> Result<()>,
    ) -> Result<()>;

    /// Adds a row with a key that is free.
    fn add_row(&self, table: BlockTable, key: i64, row: &[u8]) -> Result<()>;

    /// Gives a row that is there another content.
    fn replace_row(&self, table: BlockTable, key: i64, row: &[u8]) -> Result<()>;

    /// Removes the row with this key.
    fn remove_row(&self, table: BlockTable, key: i64) -> Result<()>;

    /// The second numbers of the pairs that begin with `first`, ascending.
    fn partners(&self, table: PairTable, first: i64) -> Result<Vec<i64>>;

    /// The pairs that begin with one of these numbers, ascending. The numbers are ascending, too.
    fn partners_of(&self, table: PairTable, firsts: &[i64]) -> Result<Vec<(i64, i64)>> {
        let mut pairs = Vec::new();
        for first in firsts {
            let partners = self.partners(table, *first)?.into_iter();
            pairs.extend(partners.map(|partner| (*first, partner)));
        }
        Ok(pairs)
    }

    /// Says which texts will be looked for next, by their [`texts::text_key`]. An engine whose
    /// reads wait for a server fetches what it has of them at once. Others do not look at the keys.
    fn expect_texts(&self, keys: impl Iterator<Item = i64>) -> Result<()> {
        let _ = keys;
        Ok(())
    }

    /// The same for the directories whose numbers and versions will be looked for next.
    fn expect_directories<'p>(&self, paths: impl Iterator<Item = &'p [u8]>) -> Result<()> {
        let _ = paths;
        Ok(())
    }

    /// Adds pairs, which come in ascending order.
    fn add_pairs(&self, table: PairTable, pairs: &[(i64, i64)]) -> Result<()>;

    /// Removes a pair.
    fn remove_pair(&self, table: PairTable, pair: (i64, i64)) -> Result<()>;

    /// Looks at all blocks of entities that touch a directory, those of the latest run first.
    fn members_in(&self, dir: u32, look: impl FnMut(i64, &[u8]) -> Result<()>) -> Result<()>;

    /// The number of a directory.
    fn directory_id(&self, path: &[u8]) -> Result<Option<u32>>;

    /// Notes the number of a directory, so that it is found by its path.
    fn add_directory(&self, path: &[u8], number: u32) -> Result<()>;

    /// The directory `own`, and all that begin with `prefix`.
    fn directories(&self, own: &[u8], prefix: &[u8]) -> Result<Vec<(u32, Bytes)>>;

    /// The directories from the path `from` to before `end` that a block of entities touches,
    /// sorted.
    fn touched_directories(&self, from: &[u8], end: &[u8]) -> Result<Vec<Bytes>>;

    /// When a run started.
    fn run_start(&self, run: RunKey) -> Result<Option<Time>>;

    /// The numbers of all runs, in no order.
    fn run_numbers(&self) -> Result<Vec<u32>>;

    /// Whether there is a run with this id.
    fn has_run(&self, id: &str) -> Result<bool>;

    /// Adds a run, without its environment, and gives it a number that none had before.
    fn add_run(
        &self,
        header: &RunHeader,
        environment: u64,
        end: &RunEnd,
        log_bytes: u64,
    ) -> Result<u32>;

    /// Completes the row of a run.
    fn complete_run(&self, number: u32, unknown: &[String], counts: &Counts) -> Result<()>;

    /// Begins a transaction. Waits for other writers.
    fn begin(&self) -> Result<()>;

    /// Makes all that was added since [`begin`](BlockTables::begin) visible, at once.
    fn commit(&self) -> Result<()>;

    /// Drops all that was added since [`begin`](BlockTables::begin).
    fn roll_back(&self);
}

/// The first and the last key of a run's (or directory's) range.
pub fn range(number: u32) -> (i64, i64) {
    let first = i64::from(number) << 32;
    (first, first | 0xffff_ffff)
}

/// A key as a signed integer. Run and directory numbers stay below 2³¹, so it is never negative.
pub fn column(key: u64) -> i64 {
    key as i64
}

/// Key of [`PairTable::Made`], to find candidates: the inode, and a byte of all else that
/// [`same_version`](crate::same_version) compares, except the birth, which is not always known. A
/// file system uses inodes again: of a few hundred versions that had one inode, few share the byte.
pub fn version_key(ident: &Ident) -> i64 {
    let odd = |number: u64, factor: u64| (number ^ number >> 32).wrapping_mul(factor);
    let mixed = odd(ident.dev, 0x9e37_79b9_7f4a_7c15)
        ^ odd(ident.size as u64, 0xc2b2_ae3d_27d4_eb4f)
        ^ odd(ident.mtime as u64, 0xff51_afd7_ed55_8ccd);
    (ident.ino.wrapping_shl(8) | mixed >> 56) as i64
}

/// Key of facts: inode, low byte of the device. Only to find candidates.
pub fn inode_key(ident: &Ident) -> i64 {
    (ident.ino.wrapping_shl(8) | (ident.dev & 0xff)) as i64
}

/// Key of [`PairTable::Inodes`]: sixteen neighbouring inodes, low byte of the device. Only to find
/// candidates.
pub fn bucket(ident: &Ident) -> i64 {
    ((ident.ino >> 4).wrapping_shl(8) | (ident.dev & 0xff)) as i64
}
