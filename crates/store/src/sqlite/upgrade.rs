//! Moves the rows of the tables that a migration replaced.
//!
//! Schema 3 has texts, directories, activities, extended records and lists of edges in blocks. The
//! former tables had a row for each of them. The migration has renamed these. This module moves
//! their rows and drops them. Lists of edges move from `segments` to `edge_lists`; other lists stay
//! there.
//!
//! Invariant: all happens in the transaction of the migration. Texts that no run names are left
//! behind.

use backstory_eventlog::event::{Bytes, Time};
use backstory_graph::model::ActivityId;
use rusqlite::params;

use super::SqliteStore;
use crate::block_tables::directories::DirectoryWriter;
use crate::block_tables::{BlockTable, BlockTables, EdgeListWriter, TextWriter, range};
use crate::codec::{RecordWriter, activities, extended, schema2};
use crate::{Error, Result};

/// The schema from which on these tables have blocks.
pub const BLOCKS: usize = 3;

/// Moves the rows of all runs, in the open transaction.
pub fn move_rows(store: &SqliteStore) -> Result<()> {
    let texts = TextWriter::default();
    let select = "SELECT number, started, environment FROM runs ORDER BY number";
    let runs: Vec<(u32, Time, i64)> = store.all(select, [], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    })?;
    for (run, started, environment) in runs {
        let environment = former_text(store, environment)?.unwrap_or_default();
        let environment = texts.text(store, &environment)?;
        let update = "UPDATE runs SET environment = ?2 WHERE number = ?1";
        let changed = store.conn.execute(update, params![run, environment as i64]);
        changed.map_err(|e| store.failed("upgrade a run", e))?;
        move_activities(store, &texts, run, started)?;
        move_extended(store, run, started)?;
    }
    texts.finish(store)?;
    move_directories(store)?;
    let drop = "DROP TABLE former_dirs; DROP TABLE former_texts; DROP TABLE former_activities; DROP TABLE former_extended";
    let dropped = store.conn.execute_batch(drop);
    dropped.map_err(|e| store.failed("upgrade the tables", e))
}

/// Moves the directories, which keep their numbers.
fn move_directories(store: &SqliteStore) -> Result<()> {
    let mut directories = DirectoryWriter::default();
    let select = "SELECT id, path FROM former_dirs ORDER BY id";
    let found: Vec<(u32, Bytes)> = store.all(select, [], |row| {
        Ok((row.get(0)?, row.get_ref(1)?.as_blob()?.into()))
    })?;
    for (number, path) in found {
        directories.skip_to(store, number)?;
        directories.add(store, &path)?;
    }
    directories.write(store)
}

fn former_text(store: &SqliteStore, id: i64) -> Result<Option<Bytes>> {
    let select = "SELECT bytes FROM former_texts WHERE id = ?1";
    store.one(select, [id], |row| Ok(row.get_ref(0)?.as_blob()?.into()))
}

fn move_activities(store: &SqliteStore, texts: &TextWriter, run: u32, base: Time) -> Result<()> {
    let select = "SELECT id, record FROM former_activities WHERE id BETWEEN ?1 AND ?2 ORDER BY id";
    let records: Vec<(i64, Vec<u8>)> =
        store.all(select, range(run), |row| Ok((row.get(0)?, row.get(1)?)))?;
    let text = |id: u64| {
        let found = former_text(store, id as i64)?;
        found.ok_or(Error::Damaged("text (it is missing)"))
    };
    let mut lists = EdgeListWriter::default();
    for block in records.chunks(activities::BLOCK as usize) {
        let mut builder = activities::Builder::new(base);
        for (key, record) in block {
            let coded = schema2::decode(record, *key as u32)?;
            let segment = move_edges(store, &mut lists, run, coded.segment)?;
            let activity = coded.resolve(base, text)?;
            builder.push(&activity, segment, |bytes| texts.text(store, bytes))?;
        }
        let first = block.first().map(|(key, _)| *key);
        let first = first.filter(|key| (*key as u32).is_multiple_of(activities::BLOCK));
        let key = first.ok_or(Error::Damaged("process (it is missing)"))?;
        store.add_row(BlockTable::Activities, key, &builder.finish())?;
    }
    lists.write(store, run)
}

/// Moves the chain of segments of one activity, of which `newest` is the last. Returns the number
/// of its newest list.
fn move_edges(
    store: &SqliteStore,
    lists: &mut EdgeListWriter,
    run: u32,
    newest: Option<u32>,
) -> Result<Option<u32>> {
    let mut chain = Vec::new();
    let mut tail = newest;
    while let Some(number) = tail {
        let key = i64::from(run) << 32 | i64::from(number);
        let row = store.row(BlockTable::Segments, key, schema2::segment)?;
        let damaged = Error::Damaged("list of edges");
        // A segment is always older than the one that names it.
        match row.transpose()? {
            Some((earlier, columns)) if earlier < Some(number) => {
                store.remove_row(BlockTable::Segments, key)?;
                chain.push(columns);
                tail = earlier;
            }
            _ => return Err(damaged),
        }
    }
    let mut last = None;
    for columns in chain.iter().rev() {
        let mut list = Vec::with_capacity(columns.len() + 5);
        list.number(last.map_or(0, |number| u64::from(number) + 1));
        list.extend_from_slice(columns);
        last = Some(lists.push(store, run, &list)?);
    }
    Ok(last)
}

fn move_extended(store: &SqliteStore, run: u32, base: Time) -> Result<()> {
    let select = "SELECT activity, time, kind, payload FROM former_extended WHERE id BETWEEN ?1 AND ?2 ORDER BY id";
    let records: Vec<(u32, Time, Vec<u8>, Vec<u8>)> = store.all(select, range(run), |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
    })?;
    let mut key = range(run).0;
    let mut builder = extended::Builder::new(base);
    let mut write = |builder: extended::Builder| {
        let count = builder.count();
        if count == 0 {
            return Ok(());
        }
        store.add_row(BlockTable::Extended, key, &builder.finish())?;
        key += i64::from(count);
        Ok(())
    };
    for (activity, time, kind, payload) in &records {
        builder.push(ActivityId(*activity), *time, kind, payload);
        if builder.is_full() {
            write(std::mem::replace(
                &mut builder,
                extended::Builder::new(base),
            ))?;
        }
    }
    write(builder)
}
