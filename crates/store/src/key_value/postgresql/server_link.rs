//! The connection of a store to its server.
//!
//! Invariants:
//!
//! - At most one transaction is open: of the readers, or of the writer.
//! - After the connection was lost, the next transaction gets a new one. No transaction continues
//!   on another connection than its own.

use std::time::Duration;

use postgres::types::{ToSql, Type};
use postgres::{Client, Config, NoTls, Row, Statement};

use super::answers::{Failing, is_lost};
use super::layout;
use crate::key_value::engine::ScanOrder;
use crate::key_value::fetched_rows::KeyRange;
use crate::{Error, Result};

/// How long to wait for the server.
const PATIENCE: Duration = Duration::from_secs(10);

/// Settings of each connection. A writer waits a minute for the others.
const SETTINGS: &str = "SET lock_timeout = '60s'; SET client_min_messages = warning; \
    SET standard_conforming_strings = on";

/// The rows of many ranges, of each at most as many. A run needs it a few times, so that it is not
/// prepared for each connection.
const OF_RANGES: &str = "SELECT wanted.number, found.key, found.value \
    FROM unnest($2, $3) WITH ORDINALITY AS wanted (low, high, number), \
    LATERAL (SELECT key, value FROM backstory_rows WHERE directory = $1 AND key >= wanted.low \
    AND key < wanted.high ORDER BY key LIMIT $4) AS found";

/// The statements of readers.
pub struct ReadStatements {
    /// The value of a key.
    pub get: Statement,
    /// The next rows from a key on.
    pub ascending: Statement,
    /// The next rows before a key.
    pub descending: Statement,
}

/// A connection, and what it is used for.
struct OpenLink {
    client: Client,
    statements: ReadStatements,
    /// Snapshots that share the open transaction.
    readers: usize,
    writing: bool,
}

/// The connection to a server, made when it is needed.
pub struct ServerLink {
    config: Config,
    synced: bool,
    /// The names in messages.
    pub failing: Failing,
    open: Option<OpenLink>,
    /// Grows with each connection.
    generation: u64,
}

impl ServerLink {
    /// A link that connects at its first use.
    pub fn new(mut config: Config, synced: bool, failing: Failing) -> ServerLink {
        config.application_name("backstory");
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(PATIENCE);
        }
        ServerLink {
            config,
            synced,
            failing,
            open: None,
            generation: 0,
        }
    }

    fn connect(&mut self) -> Result<()> {
        self.open = None;
        let mut client = self
            .config
            .connect(NoTls)
            .map_err(|error| self.failing.unreachable(&error))?;
        let fail = |error| self.failing.error("prepare the connection", &error);
        let commits = match self.synced {
            true => "SET synchronous_commit = on",
            false => "SET synchronous_commit = off",
        };
        client
            .batch_execute(&format!("{SETTINGS}; {commits}"))
            .map_err(fail)?;
        layout::bring_up_to_date(&mut client, &self.failing)?;
        let mut prepare = |text: &str| client.prepare(text).map_err(fail);
        let statements = ReadStatements {
            get: prepare("SELECT value FROM backstory_rows WHERE directory = $1 AND key = $2")?,
            ascending: prepare(
                "SELECT key, value FROM backstory_rows WHERE directory = $1 AND key >= $2 AND key < $3 ORDER BY key LIMIT $4",
            )?,
            descending: prepare(
                "SELECT key, value FROM backstory_rows WHERE directory = $1 AND key >= $2 AND key < $3 ORDER BY key DESC LIMIT $4",
            )?,
        };
        self.generation += 1;
        self.open = Some(OpenLink {
            client,
            statements,
            readers: 0,
            writing: false,
        });
        Ok(())
    }

    /// Begins a transaction. A connection that was lost since the last one is made again.
    fn begin(&mut self, statements: &str) -> Result<&mut OpenLink> {
        let mut again = self.open.is_some();
        loop {
            if self.open.is_none() {
                self.connect()?;
            }
            let Some(open) = &mut self.open else { continue };
            match open.client.batch_execute(statements) {
                Ok(()) => break,
                Err(error) if again && is_lost(&error) => {
                    again = false;
                    self.open = None;
                }
                Err(error) => {
                    let failed = self.failing.error("begin a transaction", &error);
                    self.end("ROLLBACK");
                    return Err(failed);
                }
            }
        }
        self.open
            .as_mut()
            .ok_or(Error::Damaged("connection (it is closed)"))
    }

    /// Ends a transaction in which nothing is to be kept.
    fn end(&mut self, statement: &str) {
        if let Some(open) = &mut self.open
            && open.client.batch_execute(statement).is_err()
        {
            self.open = None;
        }
    }

    /// Begins to read one state, or joins those that read. Out: the generation.
    pub fn join_readers(&mut self) -> Result<u64> {
        let begins = self
            .open
            .as_ref()
            .is_none_or(|open| open.readers == 0 && !open.writing);
        let open = match (begins, &mut self.open) {
            (false, Some(open)) => open,
            _ => self.begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?,
        };
        open.readers += 1;
        Ok(self.generation)
    }

    /// Ends what [`join_readers`](Self::join_readers) began.
    pub fn leave_readers(&mut self, generation: u64) {
        let Some(open) = self.open.as_mut().filter(|_| generation == self.generation) else {
            return;
        };
        open.readers -= 1;
        if open.readers == 0 && !open.writing {
            self.end("COMMIT");
        }
    }

    /// Begins to write. No other process writes until the end. Out: the generation.
    pub fn begin_to_write(&mut self) -> Result<u64> {
        // Each statement sees the newest state, and only this process changes it.
        let begin = "BEGIN ISOLATION LEVEL READ COMMITTED; \
            SELECT pg_advisory_xact_lock('backstory_rows'::regclass::oid::bigint); \
            CREATE TEMPORARY TABLE IF NOT EXISTS backstory_changes \
                (directory text COLLATE \"C\", key bytea, value bytea) ON COMMIT DELETE ROWS";
        if self.open.as_ref().is_some_and(|open| open.readers > 0) {
            return Err(Error::Busy(self.failing.server.clone()));
        }
        self.begin(begin)?.writing = true;
        Ok(self.generation)
    }

    /// Drops what was written since [`begin_to_write`](Self::begin_to_write).
    pub fn drop_writes(&mut self, generation: u64) {
        let Some(open) = self.open.as_mut().filter(|_| generation == self.generation) else {
            return;
        };
        if std::mem::take(&mut open.writing) {
            self.end("ROLLBACK");
        }
    }

    /// Works in the open transaction of this generation.
    pub fn within<R>(
        &mut self,
        generation: u64,
        doing: &'static str,
        work: impl FnOnce(&mut Client, &ReadStatements) -> std::result::Result<R, postgres::Error>,
    ) -> Result<R> {
        let Some(open) = self.open.as_mut().filter(|_| generation == self.generation) else {
            return Err(Error::ConnectionLost {
                server: self.failing.server.clone(),
                reason: "the transaction has ended".to_owned(),
            });
        };
        let done = work(&mut open.client, &open.statements);
        done.map_err(|error| {
            let failed = self.failing.error(doing, &error);
            if is_lost(&error) {
                self.open = None;
            }
            failed
        })
    }

    /// Commits what was written.
    pub fn commit(&mut self, generation: u64) -> Result<()> {
        let number = self.within(generation, "commit", |client, _| {
            client.query_one("SELECT pg_current_xact_id()::text", &[])
        })?;
        let number: String = number.get(0);
        match self.within(generation, "commit", |client, _| {
            client.batch_execute("COMMIT")
        }) {
            Err(lost @ Error::ConnectionLost { .. }) => self.committed(&number, lost),
            done => {
                if let Some(open) = &mut self.open {
                    open.writing = done.is_err();
                }
                done
            }
        }
    }

    /// Asks the server for the outcome of a commit whose answer was lost.
    fn committed(&mut self, number: &str, lost: Error) -> Result<()> {
        loop {
            let outcome = self.query("SELECT pg_xact_status($1::text::xid8)", &[&number]);
            let Ok(outcome) = outcome else {
                return Err(lost);
            };
            match outcome.get::<_, Option<String>>(0).as_deref() {
                Some("committed") => return Ok(()),
                // The server has not noticed yet that the connection is gone.
                Some("in progress") => std::thread::sleep(Duration::from_millis(5)),
                _ => return Err(lost),
            }
        }
    }

    /// The value of a key in the open transaction.
    pub fn get_within(
        &mut self,
        generation: u64,
        directory: &str,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        let found = self.within(generation, "read", |client, statements| {
            client.query_opt(&statements.get, &[&directory, &key])
        })?;
        Ok(found.map(|row| row.get(0)))
    }

    /// The next rows of a range in the open transaction, and at most as many.
    pub fn rows_within(
        &mut self,
        generation: u64,
        directory: &str,
        (from, end): (&[u8], &[u8]),
        order: ScanOrder,
        most: i64,
    ) -> Result<Vec<Row>> {
        self.within(generation, "read", |client, statements| {
            let statement = match order {
                ScanOrder::Ascending => &statements.ascending,
                ScanOrder::Descending => &statements.descending,
            };
            client.query(statement, &[&directory, &from, &end, &most])
        })
    }

    /// The rows of many ranges in the open transaction, of each at most as many. Each row has the
    /// number of its range, from 1, and then key and value.
    pub fn fetch_within(
        &mut self,
        generation: u64,
        directory: &str,
        ranges: &[KeyRange],
        most: i64,
    ) -> Result<Vec<Row>> {
        let lows: Vec<&[u8]> = ranges.iter().map(|(from, _)| from.as_slice()).collect();
        let highs: Vec<&[u8]> = ranges.iter().map(|(_, end)| end.as_slice()).collect();
        self.within(generation, "read", |client, _| {
            client.query_typed(
                OF_RANGES,
                &[
                    (&directory, Type::TEXT),
                    (&lows, Type::BYTEA_ARRAY),
                    (&highs, Type::BYTEA_ARRAY),
                    (&most, Type::INT8),
                ],
            )
        })
    }

    /// The value that a key has now.
    pub fn get(&mut self, directory: &str, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let generation = self.connected()?;
        self.get_within(generation, directory, key)
    }

    /// The first rows that a range has now, and at most as many.
    pub fn rows(
        &mut self,
        directory: &str,
        keys: (&[u8], &[u8]),
        order: ScanOrder,
        most: i64,
    ) -> Result<Vec<Row>> {
        let generation = self.connected()?;
        self.rows_within(generation, directory, keys, order, most)
    }

    /// The keys of a range whose rows belong to this user, in order.
    pub fn own_keys(
        &mut self,
        directory: &str,
        (from, end): (&[u8], &[u8]),
    ) -> Result<Vec<Vec<u8>>> {
        let text = "SELECT key FROM backstory_rows WHERE directory = $1 AND key >= $2 \
            AND key < $3 AND owner = current_user ORDER BY key";
        let generation = self.connected()?;
        let rows = self.within(generation, "read", |client, _| {
            client.query(text, &[&directory, &from, &end])
        })?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// Makes a connection if it does not exist yet, or if it was lost since its last use. Out: its
    /// generation.
    fn connected(&mut self) -> Result<u64> {
        if self
            .open
            .as_ref()
            .is_none_or(|open| open.client.is_closed())
        {
            self.connect()?;
        }
        Ok(self.generation)
    }

    /// Asks for one row outside of a transaction.
    pub fn query(&mut self, text: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Row> {
        let generation = self.connected()?;
        self.within(generation, "read", |client, _| {
            client.query_one(text, values)
        })
    }

    /// Executes a statement outside of a transaction.
    pub fn execute(&mut self, doing: &'static str, text: &str) -> Result<()> {
        let generation = self.connected()?;
        self.within(generation, doing, |client, _| client.batch_execute(text))
    }
}
