//! Reads and writes rows: in a snapshot, and in a transaction above a snapshot.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::KeyValueStore;
use super::changes::Changes;
use super::engine::{KeyValueEngine, KeyValueSnapshot, Look, ScanOrder};
use super::fetched_rows::{FetchedRows, KeyRange, Row};
use super::row_keys::{Counter, RowTable};
use crate::{Error, Result};

/// Longest key that every engine takes.
const LONGEST_KEY: usize = u16::MAX as usize;

/// Rows that one statement fetches ahead at most.
const FETCHED_AT_ONCE: usize = 4096;

/// The changes so far, and the right to commit them.
pub struct OpenTransaction<E: KeyValueEngine> {
    writer: E::Writer,
    changes: Changes,
    /// Rows of the state below, which does not change while the transaction is open.
    fetched: FetchedRows,
}

/// Looks at rows, which are in ascending order, in this order.
fn look_at(mut rows: Vec<Row>, order: ScanOrder, look: &mut Look<'_>) -> Result<()> {
    if order == ScanOrder::Descending {
        rows.reverse();
    }
    for (key, value) in rows {
        if look(&key, &value)?.is_break() {
            break;
        }
    }
    Ok(())
}

impl<E: KeyValueEngine> KeyValueStore<E> {
    /// Scans the snapshot that is held, or else the state now.
    fn scan_state(
        &self,
        (from, end): (&[u8], &[u8]),
        order: ScanOrder,
        look: &mut Look<'_>,
    ) -> Result<()> {
        if let Some(rows) = self.fetched(from, end) {
            return look_at(rows, order, look);
        }
        match &*self.held.borrow() {
            Some(snapshot) => snapshot.scan(from, end, order, look),
            None => self.engine.scan_now(from, end, order, look),
        }
    }

    /// Holds the state now until [`release`](Self::release). False if a state is held already.
    pub(super) fn hold(&self) -> Result<bool> {
        if self.held.borrow().is_some() {
            return Ok(false);
        }
        *self.held.borrow_mut() = Some(self.engine.snapshot()?);
        Ok(true)
    }

    /// Ends [`hold`](Self::hold).
    pub(super) fn release(&self) {
        *self.held.borrow_mut() = None;
    }

    /// The value of a key.
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        if let Some(open) = &*self.open.borrow()
            && let Some(known) = open.changes.get(key).or_else(|| open.fetched.value(key))
        {
            return Ok(known.map(<[u8]>::to_vec));
        }
        self.stop.check(self.engine.path())?;
        match &*self.held.borrow() {
            Some(snapshot) => snapshot.get(key),
            None => self.engine.get_now(key),
        }
    }

    /// Looks at the rows from one key to before another. Stops when `look` says so.
    pub(super) fn scan(
        &self,
        (from, end): (&[u8], &[u8]),
        order: ScanOrder,
        look: &mut Look<'_>,
    ) -> Result<()> {
        let changed: Vec<_> = match &*self.open.borrow() {
            Some(open) => open
                .changes
                .range(from, end)
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            None => Vec::new(),
        };
        if changed.is_empty() {
            return self.scan_state((from, end), order, &mut |key, value| {
                self.stop.check(self.engine.path())?;
                look(key, value)
            });
        }
        let mut rows = BTreeMap::new();
        self.scan_state((from, end), ScanOrder::Ascending, &mut |key, value| {
            rows.insert(key.to_vec(), value.to_vec());
            Ok(ControlFlow::Continue(()))
        })?;
        for (key, value) in changed {
            match value {
                Some(value) => drop(rows.insert(key, value)),
                None => drop(rows.remove(&key)),
            }
        }
        look_at(rows.into_iter().collect(), order, look)
    }

    /// Begins to fetch ahead in the open transaction: makes room for the rows.
    pub(super) fn begin_to_fetch(&self) {
        if let Some(open) = &mut *self.open.borrow_mut() {
            open.fetched.make_room();
        }
    }

    /// Fetches, in the open transaction, the rows of those of the ranges that have at most `most`
    /// rows. All keys are of one table.
    pub(super) fn fetch(&self, mut ranges: Vec<KeyRange>, most: usize) -> Result<()> {
        let (held, mut open) = (self.held.borrow(), self.open.borrow_mut());
        let (Some(snapshot), Some(open)) = (&*held, &mut *open) else {
            return Ok(());
        };
        ranges.retain(|(from, end)| open.fetched.rows(from, end).is_none());
        for some in ranges.chunks(FETCHED_AT_ONCE / most) {
            if open.fetched.is_full() {
                break;
            }
            self.stop.check(self.engine.path())?;
            for range in snapshot.fetch(some, most)? {
                open.fetched.keep(range);
            }
        }
        Ok(())
    }

    /// The rows from one key to before another, if they were fetched ahead.
    pub(super) fn fetched(&self, from: &[u8], end: &[u8]) -> Option<Vec<Row>> {
        let open = self.open.borrow();
        let rows = open.as_ref()?.fetched.rows(from, end)?;
        Some(rows.to_vec())
    }

    /// Looks at all rows from one key to before another.
    pub(super) fn each(
        &self,
        keys: (&[u8], &[u8]),
        mut look: impl FnMut(&[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        self.scan(keys, ScanOrder::Ascending, &mut |key, value| {
            look(key, value).map(ControlFlow::Continue)
        })
    }

    /// Looks at all rows of a table.
    pub(super) fn each_of(
        &self,
        table: RowTable,
        look: impl FnMut(&[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        self.each((&table.bytes(&[]), &table.end()), look)
    }

    /// Whether there is a row from one key to before another.
    pub(super) fn any(&self, keys: (&[u8], &[u8])) -> Result<bool> {
        let mut found = false;
        self.scan(keys, ScanOrder::Ascending, &mut |_, _| {
            found = true;
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    /// The keys from one to before another.
    pub(super) fn keys(&self, keys: (&[u8], &[u8])) -> Result<Vec<Vec<u8>>> {
        let mut found = Vec::new();
        self.each(keys, |key, _| {
            found.push(key.to_vec());
            Ok(())
        })?;
        Ok(found)
    }

    /// Sets a value in the open transaction.
    pub(super) fn put(&self, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Result<()> {
        let key = key.into();
        if key.len() > LONGEST_KEY {
            return Err(Error::TooMany("bytes in a name"));
        }
        self.change(|changes| changes.put(key, value.into()))
    }

    /// Removes a key in the open transaction.
    pub(super) fn delete(&self, key: impl Into<Vec<u8>>) -> Result<()> {
        self.change(|changes| changes.delete(key.into()))
    }

    /// Removes the keys from one to before another in the open transaction.
    pub(super) fn delete_range(&self, keys: (&[u8], &[u8])) -> Result<()> {
        let found = self.keys(keys)?;
        found.into_iter().try_for_each(|key| self.delete(key))
    }

    /// Removes all rows of a table in the open transaction.
    pub(super) fn clear(&self, table: RowTable) -> Result<()> {
        self.delete_range((&table.bytes(&[]), &table.end()))
    }

    fn change(&self, change: impl FnOnce(&mut Changes)) -> Result<()> {
        match &mut *self.open.borrow_mut() {
            Some(open) => change(&mut open.changes),
            None => return Err(Error::Damaged("transaction (it was not begun)")),
        }
        Ok(())
    }

    /// A counter's value. It begins with 0.
    pub(super) fn counter(&self, counter: Counter) -> Result<u64> {
        let found = self.get(&RowTable::Counters.number(counter as u64))?;
        let decode = |value: Vec<u8>| value.try_into().map(u64::from_be_bytes);
        let value = found.map(decode).transpose();
        Ok(value
            .map_err(|_| Error::Damaged("counter"))?
            .unwrap_or_default())
    }

    /// The next value of a counter, which it has from now on.
    pub(super) fn count(&self, counter: Counter) -> Result<u64> {
        let next = self.counter(counter)?.checked_add(1);
        let next = next.ok_or(Error::Damaged("counter"))?;
        let key = RowTable::Counters.number(counter as u64);
        self.put(key, next.to_be_bytes())?;
        Ok(next)
    }

    /// Begins a transaction: reads see the newest state, and what the transaction changes.
    pub(super) fn begin_changes(&self) -> Result<()> {
        // An engine with one connection has one state at a time.
        self.release();
        let writer = self.engine.begin()?;
        self.hold()?;
        *self.open.borrow_mut() = Some(OpenTransaction {
            writer,
            changes: Changes::default(),
            fetched: FetchedRows::default(),
        });
        Ok(())
    }

    /// Commits the open transaction.
    pub(super) fn commit_changes(&self) -> Result<()> {
        self.count(Counter::Commits)?;
        self.release();
        match self.open.take() {
            Some(open) => self.engine.commit(open.writer, open.changes),
            None => Ok(()),
        }
    }

    /// Drops the open transaction.
    pub(super) fn drop_changes(&self) {
        self.release();
        *self.open.borrow_mut() = None;
    }

    /// Does `work` in a transaction. If it fails, nothing is changed.
    pub(super) fn transaction<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<R> {
        self.begin_changes()?;
        let done = work().and_then(|found| self.commit_changes().map(|()| found));
        if done.is_err() {
            self.drop_changes();
        }
        done
    }
}
