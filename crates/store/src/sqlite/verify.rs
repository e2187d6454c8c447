//! SQLite's own check of the database.

use super::SqliteStore;

/// So many messages of SQLite's check are passed on. The rest is consequences of the first.
const MESSAGES: usize = 3;

impl SqliteStore {
    /// SQLite's check of every page and index. Empty if the database is intact.
    pub fn integrity(&self) -> Vec<String> {
        let select = format!("PRAGMA integrity_check({MESSAGES})");
        let messages = || -> rusqlite::Result<Vec<String>> {
            let mut check = self.conn.prepare(&select)?;
            let rows = check.query_map([], |row| row.get::<_, String>(0))?;
            rows.collect()
        };
        match messages() {
            Ok(messages) if messages == ["ok"] => Vec::new(),
            Ok(messages) => messages,
            Err(error) => vec![error.to_string()],
        }
    }
}
