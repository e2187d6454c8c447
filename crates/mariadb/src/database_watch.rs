//! A watch of MariaDB: reads the server's log and stream, joins and records them.

use std::collections::VecDeque;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use backstory_database::client_process::socket_names;
use backstory_database::connection_target::ConnectionTarget;
use backstory_database::database_gaps::DatabaseGaps;
use backstory_database::database_names::DatabaseNames;
use backstory_database::database_watch::{COMMIT, LINES, WatchRank, WatchScope, WatchedDatabase};
use backstory_database::error::Error;
use backstory_database::log_news::LogNews;
use backstory_database::statement_cache::StatementCache;
use backstory_database::transaction_records::TransactionRecorder;
use backstory_session::SourceRun;
use backstory_sys as sys;
use backstory_vocabulary::RowsMode;

use crate::audit_file::AuditFile;
use crate::audit_sessions::AuditSessions;
use crate::audit_unit::Unit;
use crate::binlog_stream::BinlogStream;
use crate::catalog_reader::ServerCatalog;
use crate::client_finder::ClientFinder;
use crate::connection::Connection;
use crate::row_groups::CommittedGroup;
use crate::server_settings::ServerSettings;
use crate::statement_text::names_of;

/// A client that is not found at so many looks is of another machine, or not visible. A thread of
/// the server that works for its client does not show its socket.
const LOOKS: u8 = 40;
/// Interval between two looks that count. A busy server's log is looked at more often.
const LOOK: Duration = Duration::from_millis(50);

/// In ns. The second of a line is wrong by more if the server's time zone changed its offset.
const MINUTE: i64 = 60_000_000_000;

/// A commit whose statements are not logged yet.
pub(crate) struct WaitingCommit {
    pub(crate) group: CommittedGroup,
    /// ns since 1970.
    pub(crate) time: i64,
    pub(crate) arrived: Instant,
}

/// The state of a watch.
pub(crate) struct MariadbWatch {
    pub(crate) target: ConnectionTarget,
    /// The number of this replica.
    pub(crate) replica: u32,
    pub(crate) settings: ServerSettings,
    pub(crate) session: Connection,
    pub(crate) catalog: ServerCatalog,
    /// Whether row changes are streamed and recorded.
    pub(crate) rows: RowsMode,
    pub(crate) stream: Option<BinlogStream>,
    pub(crate) log: AuditFile,
    pub(crate) news: LogNews,
    pub(crate) table: AuditSessions,
    pub(crate) finder: ClientFinder,
    /// When a look for clients counted last.
    counted: Instant,
    pub(crate) recorder: TransactionRecorder,
    pub(crate) commits: VecDeque<WaitingCommit>,
    pub(crate) gaps: DatabaseGaps,
    /// Commits whose statements the log does not have.
    pub(crate) without_statements: u64,
    pub(crate) incidents: u64,
    pub(crate) unnamed: u64,
    /// When the log was looked at last, in ns since 1970.
    looked: i64,
    /// When the watch ended, in ns since 1970.
    finished: Option<i64>,
}

/// The server's state before the run begins.
pub(crate) struct ExaminedServer {
    rows: RowsMode,
    session: Connection,
    settings: ServerSettings,
    catalog: ServerCatalog,
    log: AuditFile,
    news: LogNews,
}

/// A number of a replica that no server is likely to have.
fn replica_number(run: &str) -> u32 {
    0x6000_0000 | crc32fast::hash(run.as_bytes()) >> 4
}

impl WatchedDatabase for MariadbWatch {
    const SOURCE: &'static str = "mariadb";
    /// The log and the binlog have whole seconds. The times of reading say more.
    const RANK: WatchRank = WatchRank::Ordinary;
    type Examined = ExaminedServer;

    fn examine(target: &ConnectionTarget, scope: WatchScope) -> Result<ExaminedServer, Error> {
        let rows = scope.rows;
        let mut session = Connection::open(target)?;
        let settings = ServerSettings::read(&mut session, rows)?;
        let offset = ServerSettings::zone_offset(&mut session)?;
        let directory = settings.audit_log.parent().unwrap_or(Path::new("/"));
        let news = LogNews::of(directory);
        Ok(ExaminedServer {
            rows,
            log: AuditFile::begin(&settings.audit_log, offset)?,
            catalog: ServerCatalog::read(&mut session, &settings, None)?,
            news: news.map_err(Error::system("watch the server's log"))?,
            session,
            settings,
        })
    }

    fn begin(
        mut examined: ExaminedServer,
        target: &ConnectionTarget,
        run: &SourceRun,
    ) -> Result<MariadbWatch, Error> {
        let settings = examined.settings;
        let replica = replica_number(run.id());
        let mut begin = || {
            let end = BinlogStream::end_of_log(&mut examined.session)?;
            BinlogStream::begin(target, &settings, end, replica)
        };
        let stream = match examined.rows {
            RowsMode::On => Some(begin()?),
            RowsMode::Off => None,
        };
        let of_stream = stream.iter().map(BinlogStream::connection);
        let names = DatabaseNames {
            base: target.server_name(),
            separator: '/',
            kind: "mariadb",
            sockets: socket_names(&settings.socket),
            port: target.port,
            rounding: 0,
        };
        let table = AuditSessions {
            own: of_stream.chain([examined.session.id]).collect(),
            database: target.database.clone(),
            parsed: StatementCache::new(settings.dialect, names_of),
            autocommit: settings.autocommit,
            ..AuditSessions::default()
        };
        let mut watch = MariadbWatch {
            recorder: TransactionRecorder::begin(run, names, examined.rows),
            finder: ClientFinder {
                server_pid: settings.server_pid,
                server_port: target.port,
                ..ClientFinder::default()
            },
            counted: Instant::now(),
            target: target.clone(),
            replica,
            settings,
            session: examined.session,
            catalog: examined.catalog,
            rows: examined.rows,
            stream,
            log: examined.log,
            news: examined.news,
            table,
            commits: VecDeque::new(),
            gaps: DatabaseGaps::default(),
            without_statements: 0,
            incidents: 0,
            unnamed: 0,
            looked: i64::MIN,
            finished: None,
        };
        watch.know_connections();
        Ok(watch)
    }

    fn wait(&mut self, signals: BorrowedFd<'_>, found: bool) -> std::io::Result<()> {
        let stream = match &self.stream {
            Some(stream) => Some(stream.descriptor()),
            // The end of the session tells that the server is gone.
            None => (self.rows == RowsMode::Off).then(|| self.session.descriptor()),
        };
        self.news.wait(found, signals, stream.as_slice())
    }

    fn is_behind(&self) -> bool {
        // A busy server goes on after the end of the watch.
        let is_later = |end: i64| (1..MINUTE).contains(&(self.log.second - end));
        let is_over = self.finished.is_some_and(is_later);
        self.log.is_behind() && !is_over
    }

    fn finish_reading(&mut self) {
        self.finished = Some(sys::clock::machine());
    }

    fn read_log(&mut self) -> Result<bool, Error> {
        self.looked = sys::clock::machine();
        let lines = self.log.lines()?;
        for line in &lines {
            self.table.take(line);
        }
        self.find_clients();
        self.table.look_for_sharers();
        let definitions = &mut self.catalog.catalog.definitions;
        self.table
            .defined
            .drain(..)
            .for_each(|one| definitions.add(one));
        let is_newer = definitions.is_outdated();
        if std::mem::take(&mut self.table.is_outdated) || is_newer {
            self.look_at_catalog();
        }
        Ok(!lines.is_empty())
    }

    fn read_stream(&mut self) -> Result<bool, Error> {
        let Some(stream) = &mut self.stream else {
            let is_gone = self.rows == RowsMode::Off && self.session.is_over();
            return if is_gone {
                Err(Error::closed())
            } else {
                Ok(false)
            };
        };
        let (session, settings) = (&mut self.session, &self.settings);
        let mut look = |catalog: &mut ServerCatalog| {
            if let Ok(new) = ServerCatalog::read(session, settings, Some(catalog)) {
                *catalog = new;
            }
        };
        let received = stream.received(&mut self.catalog, &mut look)?;
        let any = !received.is_empty();
        let waiting = received.into_iter().map(|group| WaitingCommit {
            group,
            time: stream.heard,
            arrived: Instant::now(),
        });
        self.commits.extend(waiting);
        Ok(any)
    }

    fn is_drained(&self) -> bool {
        self.stream.as_ref().is_none_or(BinlogStream::is_drained)
    }

    fn end_of_stream(&mut self) -> Option<i64> {
        self.forget_stream().map(|(heard, _)| heard)
    }

    fn begin_again(
        &mut self,
        broken: &Error,
        signals: &OwnedFd,
    ) -> Result<Result<(), Error>, Error> {
        self.reconnect(broken, signals)
    }

    fn settle(&mut self, all: bool, _is_late: &dyn Fn() -> bool) {
        // A commit waits for its lines, and a unit that may have commits for these.
        let is_behind = !all && self.is_behind();
        if !is_behind {
            self.give_commits(all);
        }
        let has_procedures = self.catalog.has_procedures;
        let has_commits = self.rows == RowsMode::On;
        let waits = |unit: &Unit| {
            let may_commit = has_commits && unit.logged.may_write(&self.catalog.catalog);
            let is_complete = !may_commit || !is_behind && !unit.commits.is_empty();
            // A statement of a procedure waits for the line of its call.
            if is_complete && !has_procedures {
                Some(LINES)
            } else {
                (!is_behind).then_some(COMMIT)
            }
        };
        let ready = self.table.units.iter().filter(|(_, unit)| {
            let since = unit.logged.ended.map(|(_, known)| known.elapsed());
            let is_over = |since: Duration| waits(unit).is_some_and(|waits| since >= waits);
            all || since.is_some_and(is_over)
        });
        let mut ready: Vec<((i64, i64), u64)> = ready
            .map(|(key, unit)| (unit.logged.times(), *key))
            .collect();
        ready.sort_unstable();
        let definitions = &mut self.catalog.catalog.definitions;
        match all {
            true => definitions.know_log_until(i64::MAX),
            false if is_behind => (),
            // The server writes each line within this time.
            false => {
                definitions.know_log_until(self.looked.saturating_sub(LINES.as_nanos() as i64));
            }
        }
        // A moment later it is known which definition a change of the catalog comes from.
        ready.retain(|(times, _)| all || !definitions.will_be_settled(*times));
        for (_, key) in ready {
            if let Some(unit) = self.table.units.remove(&key) {
                self.record(unit);
            }
        }
        for session in self.table.remove_ended() {
            let time = session.ended.unwrap_or(session.began);
            self.recorder.end_session(&session, time);
        }
        self.recorder.end_clients(all);
    }

    fn gaps(&mut self) -> &mut DatabaseGaps {
        &mut self.gaps
    }

    fn end(mut self) -> DatabaseGaps {
        self.forget_stream();
        let mut gaps = self.gaps;
        gaps.unreadable_lines(self.log.unreadable);
        gaps.unparsed(self.table.unparsed);
        let alone =
            "transactions have no statement in the server's log, so their clients are unknown";
        gaps.count(self.without_statements, alone);
        gaps.count(
            self.incidents,
            "times the server lost changes of its binlog",
        );
        let unnamed = "groups of rows have columns that are not in the catalog any more";
        gaps.count(self.unnamed, unnamed);
        for between in &self.log.gaps {
            gaps.removed_lines(None, between);
        }
        gaps
    }
}

impl MariadbWatch {
    /// Looks for the processes of clients that are not known.
    fn find_clients(&mut self) {
        let sought = self.table.sought_since();
        if sought.is_empty() {
            return;
        }
        // A server that is gone shows that in the stream, too.
        let Ok(found) = self.finder.find(&mut self.session, Some(&sought)) else {
            return;
        };
        for client in found {
            let Some(session) = self.table.session(client.connection) else {
                continue;
            };
            // The server shows this name for the machine's own address.
            session.host = match (&*client.host, client.port) {
                ("localhost", 1..) => "127.0.0.1".to_owned(),
                _ => client.host,
            };
            session.port = Some(client.port);
            session.client = client.client.or_server_of(&session.client);
        }
        let counts = self.counted.elapsed() >= LOOK;
        if counts {
            self.counted = Instant::now();
        }
        for id in sought.into_keys() {
            let session = self.table.session(id);
            let is_over = session.is_none_or(|session| {
                session.looks += u8::from(counts);
                !session.client.is_unknown() || session.looks >= LOOKS
            });
            if is_over {
                self.table.sought.remove(&id);
            }
        }
    }

    /// Begins the sessions of all connections that are open.
    pub(crate) fn know_connections(&mut self) {
        let found = self.finder.find(&mut self.session, None);
        let time = sys::clock::machine();
        for client in found.unwrap_or_default() {
            let (id, user, host) = (client.connection, &client.user, &client.host);
            self.table.begin(id, user, host, (time, time));
        }
        self.find_clients();
    }

    fn look_at_catalog(&mut self) {
        let former = Some(&mut self.catalog);
        if let Ok(catalog) = ServerCatalog::read(&mut self.session, &self.settings, former) {
            self.catalog = catalog;
        }
    }
}
