//! Directories: their paths in blocks, by their numbers.
//!
//! A row of [`BlockTable::Directories`] has the paths of directories with successive numbers. Its
//! key is the number of the first. The engine finds the number of a path.
//!
//! Invariant: the number of a directory is never given again. A forgotten directory has an empty
//! path, and the last row stays.

use std::collections::BTreeSet;

use backstory_eventlog::event::Bytes;

use super::{BlockTable, BlockTables, GraphReader};
use crate::codec::texts::{Builder, TextBlock};
use crate::{Error, Result};

/// The error for a directory that is in no row.
const MISSING: Error = Error::Damaged("directory (it is missing)");

impl<T: BlockTables> GraphReader<'_, T> {
    /// The path of a directory.
    pub fn dir(&self, id: u32) -> Result<Bytes> {
        if let Some(path) = self.cache().borrow().dirs.get(&id) {
            return Ok(path.clone());
        }
        let row = self
            .tables
            .row_before(BlockTable::Directories, i64::from(id))?;
        let (first, row) = row.ok_or(MISSING)?;
        let block = TextBlock::decode(&row)?;
        let position = u32::try_from(i64::from(id) - first).map_err(|_| MISSING)?;
        let wanted: Bytes = block.text(position).ok_or(MISSING)?.into();
        // A question that reads one directory mostly reads its neighbours next.
        let mut cache = self.cache().borrow_mut();
        cache.trim();
        for (number, position) in (first as u32..).zip(0..block.count()) {
            let path = block.text(position).unwrap_or_default();
            cache.dirs.insert(number, path.into());
        }
        Ok(wanted)
    }
}

/// Gives numbers to directories, and writes their paths.
#[derive(Default)]
pub struct DirectoryWriter {
    block: Builder,
    /// The number of the first directory of `block`. `None` before the first directory.
    first: Option<u32>,
    count: u32,
}

impl DirectoryWriter {
    /// Gives a directory a number that none had before.
    pub fn add<T: BlockTables>(&mut self, tables: &T, path: &[u8]) -> Result<u32> {
        if self.block.is_full(path.len()) {
            self.write(tables)?;
        }
        let first = match self.first {
            Some(first) => first,
            None => next_number(tables)?,
        };
        self.first = Some(first);
        self.block.push(path);
        let number = first.checked_add(self.count);
        let number = number.filter(|number| i32::try_from(*number).is_ok());
        let number = number.ok_or(Error::TooMany("directories"))?;
        self.count += 1;
        tables.add_directory(path, number)?;
        Ok(number)
    }

    /// Writes the paths that are left.
    pub fn write<T: BlockTables>(&mut self, tables: &T) -> Result<()> {
        let Some(first) = self.first.filter(|_| self.count > 0) else {
            return Ok(());
        };
        let block = std::mem::take(&mut self.block).finish();
        tables.add_row(BlockTable::Directories, i64::from(first), &block)?;
        self.first = Some(first + self.count);
        self.count = 0;
        Ok(())
    }

    /// Begins a new row with this number. The numbers before it are not given any more.
    pub fn skip_to<T: BlockTables>(&mut self, tables: &T, number: u32) -> Result<()> {
        if self.first.map(|first| first + self.count) != Some(number) {
            self.write(tables)?;
            self.first = Some(number);
        }
        Ok(())
    }
}

/// The number after that of the last directory.
fn next_number<T: BlockTables>(tables: &T) -> Result<u32> {
    let Some((first, row)) = tables.row_before(BlockTable::Directories, i64::MAX)? else {
        return Ok(1);
    };
    let next = first + i64::from(TextBlock::decode(&row)?.count());
    u32::try_from(next).map_err(|_| Error::Damaged("list of directories"))
}

/// Empties, in the open transaction, the paths of directories that the engine has forgotten.
pub fn forget_paths<T: BlockTables>(tables: &T, forgotten: &BTreeSet<u32>) -> Result<()> {
    let mut rows = Vec::new();
    tables.rows(BlockTable::Directories, (0, i64::MAX), |first, row| {
        rows.push((first, TextBlock::decode(row)?));
        Ok(())
    })?;
    let last = rows.last().map(|(first, _)| *first);
    for (first, block) in rows {
        let numbers = first as u32..first as u32 + block.count();
        if forgotten.range(numbers.clone()).next().is_none() {
            continue;
        }
        let (mut builder, mut any) = (Builder::default(), false);
        for (number, position) in numbers.zip(0..) {
            let path = block.text(position).unwrap_or_default();
            let gone = forgotten.contains(&number) || tables.directory_id(path)? != Some(number);
            builder.push(if gone { b"" } else { path });
            any |= !gone;
        }
        match any || Some(first) == last {
            true => tables.replace_row(BlockTable::Directories, first, &builder.finish())?,
            false => tables.remove_row(BlockTable::Directories, first)?,
        }
    }
    Ok(())
}
