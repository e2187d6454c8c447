//! Moving the rows of `made` that a program of schema 4 or before wrote to their new keys.
//!
//! Invariant: until all are moved they are where they were; the table that held them goes in the same transaction.

use rusqlite::{Transaction, TransactionBehavior};

use super::{SqliteStore, version_key};
use crate::codec::members::BLOCK;
use crate::{EntityKey, Error, Result};

impl SqliteStore {
    /// Moves what there is to move.
    pub(super) fn rekey(&self) -> Result<()> {
        if !self.has_old_keys()? {
            return Ok(());
        }
        let fail = |e| self.failed("upgrade the index of versions", e);
        let tx =
            Transaction::new_unchecked(&self.conn, TransactionBehavior::Immediate).map_err(fail)?;
        // Another process may have done it meanwhile.
        if self.has_old_keys()? {
            let mut keys = self.new_keys()?;
            keys.sort_unstable();
            let mut insert = tx
                .prepare("INSERT INTO made (version, entity) VALUES (?, ?)")
                .map_err(fail)?;
            for (version, entity) in keys {
                insert.execute([version, entity]).map_err(fail)?;
            }
            drop(insert);
            tx.execute_batch("DROP TABLE made_before").map_err(fail)?;
        }
        tx.commit().map_err(fail)?;
        // All rows of the table are in SQLite's log now, which whoever opens the database would read from its beginning. If this is a
        // question, nobody brings it in at the end (`leave_log`): once, it is waited for. Where others read, they do it.
        let _ = self.bring_in_log();
        Ok(())
    }

    fn has_old_keys(&self) -> Result<bool> {
        let select = "SELECT 1 FROM sqlite_master WHERE name = 'made_before'";
        Ok(self.one(select, [], |_| Ok(()))?.is_some())
    }

    fn new_keys(&self) -> Result<Vec<(i64, i64)>> {
        let entities = self.all(
            "SELECT entity FROM made_before ORDER BY entity",
            [],
            |row| row.get::<_, i64>(0),
        )?;
        let mut keys = Vec::with_capacity(entities.len());
        for entity in entities {
            match self.version_key_of(EntityKey(entity as u64)) {
                Ok(key) => keys.extend(key.map(|key| (key, entity))),
                // What is damaged could not have been found before, either.
                Err(Error::Damaged(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(keys)
    }

    fn version_key_of(&self, key: EntityKey) -> Result<Option<i64>> {
        let block = self.block(key)?;
        let place = (key.local().0 % BLOCK) as usize;
        let member = block.members.get(place).ok_or(Error::Damaged("entity"))?;
        self.version(member.version, |version| {
            version.ident.as_ref().map(version_key)
        })
    }
}
