//! The rows of a statement. A failure names the database.

use rusqlite::{OptionalExtension, Params, Row, params_from_iter};

use super::SqliteStore;
use crate::Result;

/// The keys of one statement.
const KEYS: usize = 32;

impl SqliteStore {
    /// At most one row.
    pub(super) fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        let fail = |e| self.failed("read", e);
        let mut select = self.conn.prepare_cached(sql).map_err(fail)?;
        select.query_row(params, read).optional().map_err(fail)
    }

    /// The rows of many keys. `select` ends before the list of keys. A search asks for thousands of
    /// keys, and to begin a statement takes longer than to find a row.
    pub(super) fn of_keys<T>(
        &self,
        select: &str,
        keys: &[i64],
        mut read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let fail = |e| self.failed("read", e);
        let mut found = Vec::new();
        for keys in keys.chunks(KEYS) {
            // A full list of the last key, so that all lists are one statement.
            let last = keys.last().copied().unwrap_or_default();
            let all = keys.iter().copied().chain(std::iter::repeat(last));
            let marks = "?, ".repeat(KEYS - 1);
            let select = format!("{select} IN ({marks}?)");
            let mut select = self.conn.prepare_cached(&select).map_err(fail)?;
            let mut rows = select
                .query(params_from_iter(all.take(KEYS)))
                .map_err(fail)?;
            while let Some(row) = rows.next().map_err(fail)? {
                found.push(read(row).map_err(fail)?);
            }
        }
        Ok(found)
    }

    /// All rows.
    pub(super) fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let fail = |e| self.failed("read", e);
        let mut select = self.conn.prepare_cached(sql).map_err(fail)?;
        let rows = select.query_map(params, read).map_err(fail)?;
        rows.collect::<rusqlite::Result<_>>().map_err(fail)
    }
}
