//! The connections to the server: those of a watch follow the catalog, break, and are bounded, and
//! those of clients end.

use std::time::Instant;

use backstory_database::error::Error;
use backstory_sys as sys;
use backstory_vocabulary::{RowsMode, error_chain};

use super::PostgresWatch;
use crate::catalog_reader::read_catalog;
use crate::connection::Connection;
use crate::replication::ReplicationStream;
use crate::server_settings::keep_out_of_log;

/// Refusals in a row that are a gap.
const REFUSALS: u32 = 3;

impl PostgresWatch {
    /// Ends the stream if the server keeps too much of its log for it, as for a transaction that
    /// stays open. Another stream would wait for the end of that transaction. From then on, the
    /// changed tables are those of the statements.
    pub(super) fn limit_stream(&mut self) {
        let Some(stream) = &self.stream else { return };
        let kept = stream.kept(&mut self.session);
        if kept.is_none_or(|kept| kept <= self.most_kept) {
            return;
        }
        let Some(stream) = self.stream.take() else {
            return;
        };
        let from = stream.heard;
        stream.end(&mut self.session);
        self.rows = RowsMode::Off;
        self.recorder.end_rows();
        let most = self.most_kept;
        let why = format!(
            "the server kept more than {most} bytes of its write-ahead log for them (--wal-limit)"
        );
        self.gaps.between("row changes", from, None, &why);
    }

    pub(super) fn connect_again(&mut self) -> Result<(), Error> {
        self.session = Connection::open(&self.target, false)?;
        self.table.own.push(self.session.server_pid);
        keep_out_of_log(&mut self.session);
        self.read_catalog()?;
        if self.rows == RowsMode::On {
            let (session, catalog) = (&mut self.session, &self.catalog);
            let stream = ReplicationStream::begin(&self.target, session, catalog, &self.run)?;
            self.table.own.push(stream.server_pid());
            self.stream = Some(stream);
        }
        Ok(())
    }

    fn read_catalog(&mut self) -> Result<(), Error> {
        let former = Some(&mut self.catalog);
        let (session, columns) = (&mut self.session, &mut self.columns);
        let mut catalog = read_catalog(session, &self.built_in, columns, former)?;
        catalog.remember_dropped(&mut self.catalog);
        self.catalog = catalog;
        Ok(())
    }

    pub(crate) fn look_at_catalog(&mut self) {
        self.looked = Instant::now();
        match self.read_catalog() {
            Ok(()) => (),
            // A server that is gone shows that in the stream, too, if there is one.
            Err(error) => {
                let is_gone = !matches!(error, Error::Refused { .. });
                self.broken = (is_gone && self.stream.is_none()).then_some(error);
                return;
            }
        }
        if let Some(stream) = &mut self.stream {
            match stream.follow(&mut self.session, &self.catalog) {
                Ok(()) => self.refusals = 0,
                Err(error) => self.refused(&error),
            }
        }
    }

    /// A table that is dropped at this moment is refused, too, but not at the next attempts.
    fn refused(&mut self, error: &Error) {
        self.refusals += 1;
        if self.refusals == REFUSALS {
            let why = error_chain(error);
            self.gaps
                .note(format!("updates of new tables are unknown, because {why}"));
        }
    }

    /// Ends the sessions whose processes in the server are gone.
    pub(super) fn end_gone_sessions(&mut self) {
        let (table, backends) = (&mut self.table, self.backends);
        table.end_gone(backends, sys::clock::machine());
        let sessions = &table.sessions;
        self.lines
            .keep(|id| sessions.contains_key(id) || !backends.has_ended(id));
    }
}
