//! SQLite's write-ahead log, and the time that a question may take.

use rusqlite::MAIN_DB;
use rusqlite::config::DbConfig;

use super::{SqliteStore, open};
use crate::{EngineControl, Result, StopQuestion};

/// Bytes of the write-ahead log from which on a checkpoint is worth it.
const LONG_LOG: u64 = 1 << 20;

/// Operations of SQLite's virtual machine between two looks at the clock. A look-up takes about 20.
const OPERATIONS: i32 = 500;

impl EngineControl for SqliteStore {
    /// Skips the WAL checkpoint on close. The next process that closes the database without this
    /// call, or calls [`bring_in_log`](EngineControl::bring_in_log), does the checkpoint.
    fn leave_log(&self) -> Result<()> {
        let done = self
            .conn
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        done.map(drop)
            .map_err(|e| self.failed("leave the log to others", e))
    }

    /// The first process that opens the database reads the whole write-ahead log: about a
    /// millisecond for each MB.
    fn has_long_log(&self) -> bool {
        let log = open::beside(&self.path, "-wal");
        std::fs::metadata(log).is_ok_and(|meta| meta.len() > LONG_LOG)
            && self
                .conn
                .is_readonly(MAIN_DB)
                .is_ok_and(|only_read| !only_read)
    }

    /// Waits up to 5 s for readers of the state before. If they take longer the log stays, which
    /// does no harm.
    fn bring_in_log(&self) -> Result<()> {
        let fail = |e| self.failed("bring in the log", e);
        self.conn
            .busy_timeout(open::LITTLE_PATIENCE)
            .map_err(fail)?;
        let done = self
            .conn
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        self.conn.busy_timeout(open::PATIENCE).map_err(fail)?;
        done.map_err(fail)
    }

    fn interrupt_when(&self, stop: Option<StopQuestion>) {
        self.conn.progress_handler(OPERATIONS, stop);
    }

    fn is_reading(&self) -> bool {
        !self.conn.is_autocommit()
    }
}
