//! Stores texts: byte strings that all runs share.

use rusqlite::{OptionalExtension, params};

use super::{AppendingRun, column};
use crate::Result;
use crate::codec::activity;

impl AppendingRun<'_> {
    /// Stores a text once, and returns its id. A text whose id is taken by another one gets the
    /// next free id.
    pub(super) fn text(&self, bytes: &[u8]) -> Result<u64> {
        let mut id = activity::text_id(bytes);
        loop {
            match self.is_text(id, bytes)? {
                Some(true) => return Ok(id),
                Some(false) => id += 1,
                None => break,
            }
        }
        let insert = "INSERT INTO texts (id, bytes) VALUES (?, ?)";
        let done = self
            .conn
            .prepare_cached(insert)
            .and_then(|mut s| s.execute(params![column(id), bytes]));
        done.map_err(|e| self.failed("add a text", e))?;
        Ok(id)
    }

    /// Whether `id` is the id of this text. `None` if it is free.
    fn is_text(&self, id: u64, bytes: &[u8]) -> Result<Option<bool>> {
        let fail = |e| self.failed("look for a text", e);
        let mut select = self
            .conn
            .prepare_cached("SELECT bytes FROM texts WHERE id = ?1")
            .map_err(fail)?;
        let found = select.query_row([column(id)], |row| Ok(row.get_ref(0)?.as_blob()? == bytes));
        found.optional().map_err(fail)
    }
}
