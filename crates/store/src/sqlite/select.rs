//! The rows of a statement. A failure names the database.

use rusqlite::{OptionalExtension, Params, Row};

use super::SqliteStore;
use crate::Result;

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
