//! The engine `postgresql`: a table of a server, which the stores of a group share.
//!
//! ```text
//! graph.postgresql ──> ServerLink ──> backstory_rows (directory, key, value, owner)
//! ```
//!
//! All users read all rows. The server lets a user change the rows of its own runs only. One
//! process at a time writes; the others wait for it. A transaction fetches rows before they are
//! asked for, many with one statement ([`fetched_rows`](super::fetched_rows)). The changes of a
//! commit go to the server by `COPY`, and from there into the table.
//!
//! Invariant: a commit whose answer was lost is done, or is not, as the result of
//! [`commit`](KeyValueEngine::commit) says.
//!
//! Absent: TLS.

mod answers;
mod layout;
mod passwords;
mod server_link;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use postgres::binary_copy::BinaryCopyInWriter;
use postgres::types::Type;
use postgres::{Client, Config};

use super::changes::Changes;
use super::engine::{KeyValueEngine, KeyValueSnapshot, Look, ScanOrder};
use super::fetched_rows::{FetchedRange, KeyRange};
use super::row_keys::{RowTable, after};
use crate::{ConnectionFile, EngineOptions, Error, Result};
use answers::Failing;
use server_link::ServerLink;

/// Rows that a scan gets first, and at most, in one answer.
const FEW: i64 = 32;
const MANY: i64 = 4096;

/// A table of a server.
pub struct PostgresqlEngine {
    link: SharedLink,
    /// The database, without a password.
    server: PathBuf,
}

#[derive(Clone)]
struct SharedLink {
    link: Arc<Mutex<ServerLink>>,
    /// The number of the store's directory.
    directory: String,
}

/// One state of the table.
pub struct PostgresqlSnapshot {
    link: SharedLink,
    generation: u64,
}

/// The right to write, in an open transaction.
pub struct PostgresqlWriter {
    link: SharedLink,
    generation: u64,
}

impl SharedLink {
    fn lock(&self) -> MutexGuard<'_, ServerLink> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The directory of the row with this key. Empty for the rows that all directories share.
    fn directory_of(&self, key: &[u8]) -> &str {
        let own = RowTable::Facts as u8..=RowTable::Annotated as u8;
        match key.first().is_some_and(|table| own.contains(table)) {
            true => &self.directory,
            false => "",
        }
    }
}

impl Drop for PostgresqlSnapshot {
    fn drop(&mut self) {
        self.link.lock().leave_readers(self.generation);
    }
}

impl Drop for PostgresqlWriter {
    fn drop(&mut self) {
        self.link.lock().drop_writes(self.generation);
    }
}

/// The name of a database in messages. It has no password.
fn name(config: &Config) -> PathBuf {
    use postgres::config::Host;
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => String::new(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let database = config.get_dbname().or_else(|| config.get_user());
    let database = database.unwrap_or_default();
    PathBuf::from(format!("postgresql://{host}:{port}/{database}"))
}

impl KeyValueEngine for PostgresqlEngine {
    type Snapshot = PostgresqlSnapshot;
    type Writer = PostgresqlWriter;

    const EXCLUSIVE: bool = false;
    const SHARED: bool = true;
    const FAR: bool = true;

    fn open(path: &Path, options: &EngineOptions) -> Result<Self> {
        let file = ConnectionFile::read(path)?;
        // The message of the parser could show a part of the text.
        let mut config: Config = file.connection.parse().map_err(|_| Error::NoConnection {
            path: path.to_owned(),
            reason: "the connection cannot be understood".to_owned(),
        })?;
        passwords::complete(&mut config);
        let server = name(&config);
        let failing = Failing {
            server: server.clone(),
            file: path.to_owned(),
        };
        let mut link = ServerLink::new(config, options.synced, failing);
        let all = "SELECT count(md5(value)) FROM backstory_rows";
        let check = if options.examined { all } else { "SELECT 1" };
        link.query(check, &[])?;
        let link = SharedLink {
            link: Arc::new(Mutex::new(link)),
            directory: file.directory,
        };
        Ok(PostgresqlEngine { link, server })
    }

    fn path(&self) -> &Path {
        &self.server
    }

    fn snapshot(&self) -> Result<PostgresqlSnapshot> {
        let generation = self.link.lock().join_readers()?;
        Ok(PostgresqlSnapshot {
            link: self.link.clone(),
            generation,
        })
    }

    fn get_now(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.link.lock().get(self.link.directory_of(key), key)
    }

    /// A few rows need no transaction: one statement sees one state.
    fn scan_now(
        &self,
        from: &[u8],
        end: &[u8],
        order: ScanOrder,
        look: &mut Look<'_>,
    ) -> Result<()> {
        if from >= end {
            return Ok(());
        }
        let directory = self.link.directory_of(from);
        let rows = self.link.lock().rows(directory, (from, end), order, FEW)?;
        if rows.len() as i64 == FEW {
            return self.snapshot()?.scan(from, end, order, look);
        }
        for row in &rows {
            if look(row.get(0), row.get(1))?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn own_keys(&self, from: &[u8], end: &[u8]) -> Result<Option<Vec<Vec<u8>>>> {
        let directory = self.link.directory_of(from);
        let keys = self.link.lock().own_keys(directory, (from, end))?;
        Ok(Some(keys))
    }

    fn begin(&self) -> Result<PostgresqlWriter> {
        let generation = self.link.lock().begin_to_write()?;
        Ok(PostgresqlWriter {
            link: self.link.clone(),
            generation,
        })
    }

    fn commit(&self, writer: PostgresqlWriter, changes: Changes) -> Result<()> {
        let rows: Vec<_> = changes.into_values().collect();
        let mut link = self.link.lock();
        let kept = link.within(writer.generation, "write", |client, _| {
            copy_in(client, &self.link, &rows)?;
            apply(client, rows.iter().any(|(_, value)| value.is_none()))
        })?;
        if let Some(owner) = kept {
            return Err(Error::NotPermitted {
                server: self.server.clone(),
                reason: format!("the rows belong to the role {owner}"),
            });
        }
        link.commit(writer.generation)
        // The writer is dropped after the lock, and has nothing left to do.
    }

    fn bytes(&self) -> Result<u64> {
        let row = self
            .link
            .lock()
            .query("SELECT pg_total_relation_size('backstory_rows')", &[])?;
        Ok(row.get::<_, i64>(0).unsigned_abs())
    }

    fn compact(&mut self) -> Result<()> {
        self.link
            .lock()
            .execute("compact", "VACUUM (ANALYZE) backstory_rows")
    }
}

type Done<R> = std::result::Result<R, postgres::Error>;

/// Sends the changes to the server, where this transaction alone sees them.
fn copy_in(
    client: &mut Client,
    link: &SharedLink,
    rows: &[(Vec<u8>, Option<Vec<u8>>)],
) -> Done<()> {
    let copy = "COPY pg_temp.backstory_changes FROM STDIN (FORMAT binary)";
    let mut writer = BinaryCopyInWriter::new(
        client.copy_in(copy)?,
        &[Type::TEXT, Type::BYTEA, Type::BYTEA],
    );
    for (key, value) in rows {
        writer.write(&[&link.directory_of(key), key, value])?;
    }
    writer.finish().map(drop)
}

/// Applies the changes. Out: the owner of a row that the server did not let this user remove.
fn apply(client: &mut Client, removes: bool) -> Done<Option<String>> {
    let put = "INSERT INTO backstory_rows (directory, key, value) \
        SELECT directory, key, value FROM pg_temp.backstory_changes WHERE value IS NOT NULL \
        ON CONFLICT (directory, key) DO UPDATE SET value = excluded.value";
    client.batch_execute(put)?;
    if !removes {
        return Ok(None);
    }
    let removed = "c.value IS NULL AND c.directory = r.directory AND c.key = r.key";
    let remove =
        format!("DELETE FROM backstory_rows r USING pg_temp.backstory_changes c WHERE {removed}");
    client.batch_execute(&remove)?;
    let kept = format!(
        "SELECT r.owner FROM backstory_rows r, pg_temp.backstory_changes c WHERE {removed} LIMIT 1"
    );
    Ok(client.query_opt(&kept, &[])?.map(|row| row.get(0)))
}

impl KeyValueSnapshot for PostgresqlSnapshot {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let directory = self.link.directory_of(key);
        self.link.lock().get_within(self.generation, directory, key)
    }

    fn scan(&self, from: &[u8], end: &[u8], order: ScanOrder, look: &mut Look<'_>) -> Result<()> {
        let directory = self.link.directory_of(from);
        let (mut from, mut end) = (from.to_vec(), end.to_vec());
        let mut count = FEW;
        while from < end {
            // The callback may read, too, so that the lock is not held meanwhile.
            let keys = (&*from, &*end);
            let mut link = self.link.lock();
            let rows = link.rows_within(self.generation, directory, keys, order, count)?;
            drop(link);
            for row in &rows {
                if look(row.get(0), row.get(1))?.is_break() {
                    return Ok(());
                }
            }
            let Some(last) = rows.last().filter(|_| rows.len() as i64 == count) else {
                return Ok(());
            };
            match order {
                ScanOrder::Ascending => from = after(last.get(0)),
                ScanOrder::Descending => end = last.get(0),
            }
            count = (count * 4).min(MANY);
        }
        Ok(())
    }

    fn fetch(&self, ranges: &[KeyRange], most: usize) -> Result<Vec<FetchedRange>> {
        let Some((first, _)) = ranges.first() else {
            return Ok(Vec::new());
        };
        let directory = self.link.directory_of(first);
        // One row too many tells that a range has more.
        let count = most as i64 + 1;
        let mut link = self.link.lock();
        let rows = link.fetch_within(self.generation, directory, ranges, count)?;
        drop(link);
        let without_rows = |keys: &KeyRange| FetchedRange {
            keys: keys.clone(),
            rows: Vec::new(),
        };
        let mut found: Vec<FetchedRange> = ranges.iter().map(without_rows).collect();
        for row in &rows {
            let number: i64 = row.get(0);
            let range = usize::try_from(number - 1).ok();
            let range = range.and_then(|index| found.get_mut(index));
            let range = range.ok_or(Error::Damaged("answer of the server"))?;
            range.rows.push((row.get(1), row.get(2)));
        }
        found.retain(|range| range.rows.len() <= most);
        for range in &mut found {
            // The server promises no order between the rows of an answer.
            range.rows.sort_unstable();
        }
        Ok(found)
    }
}
