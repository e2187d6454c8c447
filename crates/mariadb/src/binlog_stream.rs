//! The stream of the server's binlog, as a replica receives it.
//!
//! The server sends events as they are committed, and waits for no answer. It ends a stream that is
//! not read (`net_write_timeout`). A new stream goes on where the former one ended, if the server
//! still has the file.

use crate::catalog_reader::ServerCatalog;
use crate::connection::Connection;
use crate::event_reader::{BinlogPosition, EventReader};
use crate::row_groups::CommittedGroup;
use crate::server_settings::ServerSettings;
use backstory_database::channel::parts_before_error;
use backstory_database::connection_target::ConnectionTarget;
use backstory_database::error::Error;

/// Interval of the server's signs of life, in ns.
const HEARTBEAT: u64 = 1_000_000_000;

/// A stream of row changes.
#[derive(Debug)]
pub(crate) struct BinlogStream {
    stream: Connection,
    pub(crate) events: EventReader,
    /// Until when all changes have been received: ns since 1970.
    pub(crate) heard: i64,
    /// Why the stream cannot be read on.
    broken: Option<Error>,
}

impl BinlogStream {
    /// The end of the binlog.
    pub(crate) fn end_of_log(session: &mut Connection) -> Result<BinlogPosition, Error> {
        let rows = session.query("SHOW MASTER STATUS")?;
        let row = rows.into_iter().next().unwrap_or_default();
        let mut texts = row.into_iter().map(Option::unwrap_or_default);
        let (file, offset) = (texts.next().unwrap_or_default(), texts.next());
        let offset = offset.and_then(|offset| offset.parse().ok()).unwrap_or(4);
        Ok(BinlogPosition { file, offset })
    }

    /// Begins a stream at a position. `server` is the number of this replica, which no other has.
    pub(crate) fn begin(
        target: &ConnectionTarget,
        settings: &ServerSettings,
        position: BinlogPosition,
        server: u32,
    ) -> Result<BinlogStream, Error> {
        let mut stream = Connection::open(target)?;
        stream.query("SET @master_binlog_checksum = @@global.binlog_checksum")?;
        // It knows the numbers of transactions, and all events.
        stream.query("SET @mariadb_slave_capability = 4")?;
        stream.query(&format!("SET @master_heartbeat_period = {HEARTBEAT}"))?;
        let offset = u32::try_from(position.offset).unwrap_or(4);
        stream.stream(&position.file, offset, server)?;
        Ok(BinlogStream {
            stream,
            events: EventReader::begin(position, settings.checksums),
            heard: backstory_sys::clock::machine(),
            broken: None,
        })
    }

    /// The transactions whose commits have arrived. `look` reads the catalog again.
    pub(crate) fn received(
        &mut self,
        catalog: &mut ServerCatalog,
        look: &mut dyn FnMut(&mut ServerCatalog),
    ) -> Result<Vec<CommittedGroup>, Error> {
        if let Some(error) = self.broken.take() {
            return Err(error);
        }
        let now = backstory_sys::clock::machine();
        let mut committed = Vec::new();
        for bytes in self.stream.received()? {
            match self.events.take(&bytes, catalog, look) {
                Ok(group) => committed.extend(group),
                Err(error) => {
                    self.broken = Some(error);
                    return parts_before_error(committed, &mut self.broken);
                }
            }
        }
        self.heard = now;
        Ok(committed)
    }

    /// Rows whose columns are not known by name.
    pub(crate) fn unnamed(&self) -> u64 {
        self.events.unnamed()
    }

    /// True if the last look left nothing that had arrived.
    pub(crate) fn is_drained(&self) -> bool {
        self.broken.is_none() && self.stream.is_drained()
    }

    /// Readable when something has arrived.
    pub(crate) fn descriptor(&self) -> std::os::fd::BorrowedFd<'_> {
        self.stream.descriptor()
    }

    /// The number of the stream's connection.
    pub(crate) fn connection(&self) -> u64 {
        self.stream.id
    }
}
