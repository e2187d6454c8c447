//! A connection that broke, and another one: the stream goes on where it ended.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use backstory_database::database_watch::{LINES, WatchedDatabase, lost_without};
use backstory_sys as sys;
use backstory_vocabulary::{RowsMode, error_chain};

use crate::binlog_stream::BinlogStream;
use crate::catalog_reader::ServerCatalog;
use crate::connection::Connection;
use crate::database_watch::{MariadbWatch, WaitingCommit};
use crate::event_reader::BinlogPosition;
use crate::server_settings::ServerSettings;
use backstory_database::error::Error;

/// A server that is started again is there within this time.
const RESTART: Duration = Duration::from_secs(10);
/// The server has removed the file of the binlog.
const NO_BINLOG: u16 = 1236;
/// The servers started at the same second, with the rounding of both clocks.
const SAME_START: i64 = 3;

impl MariadbWatch {
    /// Begins another stream after one broke, where the former one ended. `Ok(Err)` if the server
    /// is gone.
    pub(crate) fn reconnect(
        &mut self,
        broken: &Error,
        signals: &OwnedFd,
    ) -> Result<Result<(), Error>, Error> {
        let from = self.forget_stream();
        let position = from.as_ref().map(|(_, position)| position.clone());
        let from = from.map_or_else(sys::clock::machine, |(heard, _)| heard);
        self.settle_ended()?;
        let began = Instant::now();
        let why = error_chain(broken);
        let lost = lost_without(self.rows);
        loop {
            match self.connect_again(position.as_ref()) {
                Ok(loses) => {
                    let to = sys::clock::machine();
                    let what = match loses {
                        true => "row changes",
                        false => "the clients of connections",
                    };
                    self.gaps.between(what, from, Some(to), &why);
                    return Ok(Ok(()));
                }
                Err(last) if began.elapsed() >= RESTART => {
                    self.gaps.between(lost, from, None, &why);
                    return Ok(Err(last));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(100)),
            }
            if sys::read_end_signal(signals.as_fd()) {
                self.gaps.between(lost, from, None, &why);
                return Ok(Err(Error::Broken(std::io::ErrorKind::Interrupted.into())));
            }
        }
    }

    /// Forgets the stream: until when its rows are known, and where it ended.
    pub(crate) fn forget_stream(&mut self) -> Option<(i64, BinlogPosition)> {
        let stream = self.stream.take()?;
        self.incidents += stream.events.incidents;
        self.unnamed += stream.unnamed();
        Some((stream.heard, stream.events.position))
    }

    /// Records what ended before the connection broke. The numbers of connections and statements
    /// begin again when the server does.
    fn settle_ended(&mut self) -> Result<(), Error> {
        let began = Instant::now();
        let mut quiet = began;
        // Other clients of a busy server go on.
        while quiet.elapsed() < LINES && began.elapsed() < 2 * LINES {
            std::thread::sleep(Duration::from_millis(10));
            if self.read_log()? {
                quiet = Instant::now();
            }
        }
        self.settle(false, &|| false);
        Ok(())
    }

    /// A new session, and a new stream if there was one. True if row changes are lost.
    fn connect_again(&mut self, position: Option<&BinlogPosition>) -> Result<bool, Error> {
        let mut session = Connection::open(&self.target)?;
        let settings = ServerSettings::read(&mut session, self.rows)?;
        if (settings.started - self.settings.started).abs() > SAME_START {
            let time = sys::clock::machine();
            for id in self.table.connections() {
                self.table.end_session(id, time);
            }
            self.settle(true, &|| false);
            self.table.own.clear();
        }
        self.table.own.insert(session.id);
        let end = match self.rows {
            RowsMode::On => Some(BinlogStream::end_of_log(&mut session)?),
            RowsMode::Off => None,
        };
        let former = Some(&mut self.catalog);
        self.catalog = ServerCatalog::read(&mut session, &settings, former)?;
        let loses = match end {
            Some(end) => self.stream_on(&settings, position, end)?,
            None => false,
        };
        self.finder.server_pid = settings.server_pid;
        (self.session, self.settings) = (session, settings);
        self.know_connections();
        Ok(loses)
    }

    /// A new stream at a position, or at the end of the binlog if the server has removed what was
    /// there. True if row changes are lost.
    fn stream_on(
        &mut self,
        settings: &ServerSettings,
        position: Option<&BinlogPosition>,
        end: BinlogPosition,
    ) -> Result<bool, Error> {
        let wanted = position.unwrap_or(&end).clone();
        let mut stream = BinlogStream::begin(&self.target, settings, wanted, self.replica)?;
        self.table.own.insert(stream.connection());
        // The server refuses a file that it has removed with its first message.
        std::thread::sleep(Duration::from_millis(50));
        self.stream = None;
        let loses = match stream.received(&mut self.catalog, &mut |_| ()) {
            Err(Error::Refused {
                code: NO_BINLOG, ..
            }) => {
                stream = BinlogStream::begin(&self.target, settings, end, self.replica)?;
                self.table.own.insert(stream.connection());
                true
            }
            Err(error) => return Err(error),
            Ok(received) => {
                let time = sys::clock::machine();
                self.commits
                    .extend(received.into_iter().map(|group| WaitingCommit {
                        group,
                        time,
                        arrived: Instant::now(),
                    }));
                false
            }
        };
        self.stream = Some(stream);
        Ok(loses)
    }
}
