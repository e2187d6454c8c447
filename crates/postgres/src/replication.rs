//! The stream of row changes: two publications and a temporary slot of the run's own.
//!
//! A table in a publication of updates must have a replica identity. Without one, the server would
//! refuse the application's updates. So one publication has the insertions of all tables, and the
//! other has the updates and deletions of the tables with an identity.
//!
//! The slot is temporary. The server drops it when the connection ends, however it ends. The
//! publications are dropped at the end, or by the next watch.

use std::collections::{BTreeMap, BTreeSet};

use backstory_database::catalog::{Catalog, TableName};
use backstory_database::channel::parts_before_error;
use backstory_database::connection_target::ConnectionTarget;
use backstory_database::error::Error;

use crate::catalog_reader::identified;
use crate::connection::Connection;
use crate::row_decoder::{CommittedTransaction, RowDecoder};

/// The names of all publications of watches begin so.
const PREFIX: &str = "backstory_watch_";
/// Microseconds from 1970 to 2000, PostgreSQL's epoch.
const EPOCH: i64 = 946_684_800_000_000;

/// A stream of row changes.
#[derive(Debug)]
pub(crate) struct ReplicationStream {
    stream: Connection,
    name: String,
    published: BTreeSet<TableName>,
    /// When a table joined the publication of updates, if that was later than the stream's begin.
    joined: BTreeMap<TableName, i64>,
    pub(crate) decoder: RowDecoder,
    /// Everything before this position has been received.
    position: u64,
    /// All that was committed before has arrived: ns since 1970, by the server's clock.
    pub(crate) heard: i64,
    /// Why the stream cannot be read on.
    broken: Option<Error>,
}

/// A name in a statement.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn list(tables: &BTreeSet<TableName>) -> String {
    let quoted = tables
        .iter()
        .map(|(schema, name)| format!("{}.{}", quoted(schema), quoted(name)));
    quoted.collect::<Vec<_>>().join(", ")
}

impl ReplicationStream {
    /// Begins a stream. `session` stays the connection for statements.
    pub(crate) fn begin(
        target: &ConnectionTarget,
        session: &mut Connection,
        catalog: &Catalog,
        run: &str,
    ) -> Result<ReplicationStream, Error> {
        remove_leftovers(session)?;
        let name = format!("{PREFIX}{run}");
        let published = identified(catalog);
        session.query(&format!(
            "CREATE PUBLICATION {name}_all FOR ALL TABLES WITH (publish = 'insert')"
        ))?;
        let tables = match published.is_empty() {
            true => String::new(),
            false => format!("FOR TABLE {}", list(&published)),
        };
        session.query(&format!("CREATE PUBLICATION {name} {tables}"))?;
        let mut stream = Connection::open(target, true)?;
        stream.query(&format!(
            "CREATE_REPLICATION_SLOT {name} TEMPORARY LOGICAL pgoutput NOEXPORT_SNAPSHOT"
        ))?;
        stream.stream(&format!(
            "START_REPLICATION SLOT {name} LOGICAL 0/0 \
             (proto_version '1', publication_names '{name},{name}_all')"
        ))?;
        Ok(ReplicationStream {
            stream,
            name,
            published,
            joined: BTreeMap::new(),
            decoder: RowDecoder::default(),
            position: 0,
            heard: backstory_sys::clock::machine(),
            broken: None,
        })
    }

    /// Also streams the tables that are new in the catalog.
    pub(crate) fn follow(
        &mut self,
        session: &mut Connection,
        catalog: &Catalog,
    ) -> Result<(), Error> {
        let wanted = identified(catalog);
        if wanted == self.published {
            return Ok(());
        }
        let change = match wanted.is_empty() {
            true => format!("DROP TABLE {}", list(&self.published)),
            false => format!("SET TABLE {}", list(&wanted)),
        };
        session.query(&format!("ALTER PUBLICATION {} {change}", self.name))?;
        let now = backstory_sys::clock::machine();
        let new = wanted.difference(&self.published).cloned();
        self.joined.extend(new.map(|table| (table, now)));
        self.published = wanted;
        Ok(())
    }

    /// True if an update of the table at this time, in ns since 1970, is not in the stream.
    pub(crate) fn lacks_updates(&self, table: &TableName, time: i64) -> bool {
        self.joined.get(table).is_some_and(|joined| time < *joined)
    }

    /// The transactions whose commits have arrived, and the server's request for an answer.
    pub(crate) fn received(&mut self) -> Result<Vec<CommittedTransaction>, Error> {
        if let Some(error) = self.broken.take() {
            return Err(error);
        }
        let mut commits = Vec::new();
        let mut asked = false;
        for message in self.stream.received()? {
            let number = |at: usize| message.get(at..).and_then(|rest| rest.first_chunk::<8>());
            let number = |at: usize| number(at).map_or(0, |eight| u64::from_be_bytes(*eight));
            match message.first() {
                Some(b'w') => {
                    self.position = self.position.max(number(1)).max(number(9));
                    let content = message.get(25..).unwrap_or_default();
                    let commit = match self.decoder.message(content) {
                        Ok(commit) => commit,
                        Err(kind) => {
                            let kind = char::from(kind);
                            let why = format!("a row change of kind {kind:?}");
                            self.broken = Some(Error::Protocol(why));
                            break;
                        }
                    };
                    if let Some(commit) = &commit {
                        self.heard = self.heard.max(commit.time);
                    }
                    commits.extend(commit);
                }
                Some(b'k') => {
                    self.position = self.position.max(number(1));
                    if !self.decoder.is_in_transaction() {
                        let sent = (number(9) as i64).saturating_add(EPOCH);
                        self.heard = self.heard.max(sent.saturating_mul(1000));
                    }
                    asked |= message.get(17) == Some(&1);
                }
                _ => (),
            }
        }
        // The server may be gone after its last commits.
        if self.broken.is_none() && (asked || !commits.is_empty()) {
            self.broken = self.confirm().err();
        }
        parts_before_error(commits, &mut self.broken)
    }

    /// Tells the server what has been received, so that it keeps no more of it.
    pub(crate) fn confirm(&mut self) -> Result<(), Error> {
        let now = backstory_sys::clock::machine() / 1000 - EPOCH;
        let mut message = vec![b'r'];
        for _ in 0..3 {
            message.extend_from_slice(&self.position.to_be_bytes());
        }
        message.extend_from_slice(&now.to_be_bytes());
        message.push(0);
        self.stream.reply(&message)
    }

    /// The bytes of its write-ahead log that the server keeps for the stream.
    pub(crate) fn kept(&self, session: &mut Connection) -> Option<u64> {
        let statement = format!(
            "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint \
             FROM pg_replication_slots WHERE slot_name = '{}'",
            self.name
        );
        let rows = session.query(&statement).ok()?;
        rows.first()?.first()?.as_ref()?.parse().ok()
    }

    /// True if the last look left nothing that had arrived.
    pub(crate) fn is_drained(&self) -> bool {
        self.broken.is_none() && self.stream.is_drained()
    }

    /// The server's process of the stream.
    pub(crate) fn server_pid(&self) -> u32 {
        self.stream.server_pid
    }

    /// Ends the stream, and removes the publications. A server that is gone keeps them until the
    /// next watch.
    pub(crate) fn end(self, session: &mut Connection) {
        let name = self.name.clone();
        drop(self);
        let _ = session.query(&format!("DROP PUBLICATION IF EXISTS {name}, {name}_all"));
    }
}

/// Removes publications that a killed watch left: no slot has the name of their run.
fn remove_leftovers(session: &mut Connection) -> Result<(), Error> {
    let statement = format!(
        "SELECT pubname FROM pg_publication p WHERE starts_with(pubname, '{PREFIX}') AND NOT EXISTS \
         (SELECT FROM pg_replication_slots s WHERE s.slot_name = replace(p.pubname, '_all', ''))"
    );
    for row in session.query(&statement)? {
        if let Some(Some(name)) = row.first() {
            session.query(&format!("DROP PUBLICATION IF EXISTS {}", quoted(name)))?;
        }
    }
    Ok(())
}
