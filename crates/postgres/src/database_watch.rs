//! A watch of PostgreSQL: reads the server's log and stream, joins and records them.

mod upkeep;

use std::collections::VecDeque;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use backstory_database::built_in_functions::BuiltInFunctions;
use backstory_database::catalog::Catalog;
use backstory_database::client_process::socket_names;
use backstory_database::commit::CommitCertainty;
use backstory_database::connection_target::ConnectionTarget;
use backstory_database::database_gaps::DatabaseGaps;
use backstory_database::database_names::DatabaseNames;
use backstory_database::database_watch::{
    COMMIT, LINES, ROUND, WatchRank, WatchScope, WatchedDatabase, lost_without,
};
use backstory_database::error::Error;
use backstory_database::log_news::{LogNews, wait_for};
use backstory_database::log_reader::LogReader;
use backstory_database::logged_transaction::LoggedTransaction;
use backstory_database::transaction_records::TransactionRecorder;
use backstory_session::SourceRun;
use backstory_sys as sys;
use backstory_vocabulary::{RowsMode, error_chain};

use crate::backends::Backends;
use crate::catalog_reader::{built_in_functions, read_catalog};
use crate::client_lookout::{ClientLookout, SoughtClients};
use crate::column_reader::ColumnReader;
use crate::connection::Connection;
use crate::end_mark;
use crate::line_counter::LineCounter;
use crate::log_file::LogFollower;
use crate::log_line::ROUNDING;
use crate::replication::ReplicationStream;
use crate::row_decoder::CommittedTransaction;
use crate::search_path::SearchPaths;
use crate::server_settings::{ServerSettings, keep_out_of_log};
use crate::sessions::SessionTable;

/// Interval between two looks at the catalog.
const CATALOG: Duration = Duration::from_secs(1);
/// Interval between two looks for sessions whose processes are gone. A look reads a file of `/proc`
/// for each session.
const BACKENDS: Duration = Duration::from_secs(10);
/// Interval between two answers to the server.
const CONFIRM: Duration = Duration::from_secs(5);
/// Lines that were written at one moment may have times that are so far apart, in ns.
const APART: i64 = LINES.as_nanos() as i64;
/// Attempts to begin another stream after one broke.
const ATTEMPTS: u32 = 10;
/// A commit, and when it arrived.
pub(crate) struct ArrivedCommit {
    pub(crate) transaction: CommittedTransaction,
    pub(crate) arrived: Instant,
}

/// The state of a watch.
pub(crate) struct PostgresWatch {
    pub(crate) target: ConnectionTarget,
    pub(crate) run: String,
    pub(crate) settings: ServerSettings,
    pub(crate) session: Connection,
    /// The functions of the server itself.
    pub(crate) built_in: Arc<BuiltInFunctions>,
    columns: ColumnReader,
    pub(crate) catalog: Catalog,
    /// Whether row changes are streamed and recorded. They are not after the server kept too much.
    pub(crate) rows: RowsMode,
    pub(crate) stream: Option<ReplicationStream>,
    /// The most bytes that the server may keep for the stream.
    most_kept: u64,
    /// The error of a session that broke, where no stream shows that the server is gone.
    pub(crate) broken: Option<Error>,
    pub(crate) log: LogReader<ClientLookout>,
    pub(crate) lines: LineCounter,
    /// Offset of the log's local times in seconds east of UTC.
    pub(crate) offset: Arc<AtomicI64>,
    pub(crate) table: SessionTable,
    pub(crate) recorder: TransactionRecorder,
    pub(crate) commits: VecDeque<ArrivedCommit>,
    pub(crate) gaps: DatabaseGaps,
    /// How often the server has refused to stream new tables, in a row.
    pub(crate) refusals: u32,
    pub(crate) looked: Instant,
    pub(crate) backends: Backends,
    pub(crate) looked_for_backends: Instant,
    pub(crate) confirmed: Instant,
    /// The log will have a mark behind the last lines of the watch.
    marked_end: bool,
    /// When the watch ended, in ns since 1970.
    pub(crate) finished: Option<i64>,
}

/// The server's state before the run begins.
pub(crate) struct ExaminedServer {
    rows: RowsMode,
    most_kept: u64,
    session: Connection,
    settings: ServerSettings,
    built_in: Arc<BuiltInFunctions>,
    columns: ColumnReader,
    catalog: Catalog,
    paths: SearchPaths,
    log: LogFollower,
    news: LogNews,
    offset: i64,
}

impl WatchedDatabase for PostgresWatch {
    const SOURCE: &'static str = "postgres";
    const RANK: WatchRank = WatchRank::Background;
    type Examined = ExaminedServer;

    fn examine(target: &ConnectionTarget, scope: WatchScope) -> Result<ExaminedServer, Error> {
        let rows = scope.rows;
        let mut session = Connection::open(target, false)?;
        let settings = ServerSettings::read(&mut session, rows)?;
        keep_out_of_log(&mut session);
        let built_in = Arc::new(built_in_functions(&mut session)?);
        let mut columns = ColumnReader::default();
        let news = LogNews::of(&settings.log_directory);
        Ok(ExaminedServer {
            rows,
            most_kept: scope.most_kept,
            log: LogFollower::begin(&settings.log_directory, settings.log_format)?,
            catalog: read_catalog(&mut session, &built_in, &mut columns, None)?,
            columns,
            paths: SearchPaths::read(&mut session)?,
            offset: settings.zone_offset(&mut session)?,
            news: news.map_err(Error::system("watch the server's log"))?,
            built_in,
            session,
            settings,
        })
    }

    fn begin(
        mut examined: ExaminedServer,
        target: &ConnectionTarget,
        run: &SourceRun,
    ) -> Result<PostgresWatch, Error> {
        let (session, catalog) = (&mut examined.session, &examined.catalog);
        let mut begin = || ReplicationStream::begin(target, session, catalog, run.id());
        let stream = match examined.rows {
            RowsMode::On => Some(begin()?),
            RowsMode::Off => None,
        };
        let directory = &examined.settings.socket_directory;
        let names = DatabaseNames {
            base: target.name(),
            separator: '.',
            kind: "postgres",
            sockets: socket_names(&format!("{directory}/.s.PGSQL.{}", target.port)),
            port: target.port,
            rounding: ROUNDING,
        };
        let backends = Backends::with_session(examined.session.server_pid);
        let own = stream.iter().map(ReplicationStream::server_pid);
        let table = SessionTable {
            own: own.chain([examined.session.server_pid]).collect(),
            database: target.database.clone(),
            paths: examined.paths,
            ..SessionTable::default()
        };
        let offset = Arc::new(AtomicI64::new(examined.offset));
        let lines = LineCounter::of(examined.settings.log_format);
        let lookout = ClientLookout {
            log: examined.log,
            database: target.database.clone(),
            server_port: target.port,
            offset: Arc::clone(&offset),
            backends,
            sought: SoughtClients::default(),
        };
        Ok(PostgresWatch {
            recorder: TransactionRecorder::begin(run, names, examined.rows),
            target: target.clone(),
            run: run.id().to_owned(),
            settings: examined.settings,
            session: examined.session,
            built_in: examined.built_in,
            columns: examined.columns,
            catalog: examined.catalog,
            rows: examined.rows,
            stream,
            most_kept: examined.most_kept,
            broken: None,
            log: LogReader::begin(lookout, examined.news)?,
            lines,
            offset,
            table,
            commits: VecDeque::new(),
            gaps: DatabaseGaps::default(),
            refusals: 0,
            looked: Instant::now(),
            backends,
            looked_for_backends: Instant::now(),
            confirmed: Instant::now(),
            marked_end: false,
            finished: None,
        })
    }

    fn wait(&mut self, signals: BorrowedFd<'_>, _found: bool) -> std::io::Result<()> {
        match self.is_drained() {
            true => wait_for(&[signals], ROUND),
            false => Ok(()),
        }
    }

    fn waits_since(&mut self) -> Option<Instant> {
        self.log.waits_since()
    }

    fn is_behind(&self) -> bool {
        // A busy server goes on after the end of the watch.
        let is_over = self.finished.is_some_and(|end| self.has_read_until(end));
        self.log.is_behind() && !is_over
    }

    fn lacks_lines(&self) -> bool {
        // Lines are written in order, up to a moment.
        let last = || self.commits.back();
        match self.marked_end {
            true => !self.table.has_end,
            false => last().is_some_and(|last| self.lacks_line(last)),
        }
    }

    fn finish_reading(&mut self) {
        self.marked_end = end_mark::raise(&mut self.session);
        self.log.stop();
        self.finished = Some(sys::clock::machine());
    }

    fn read_log(&mut self) -> Result<bool, Error> {
        let offset = self.offset.load(Ordering::Relaxed);
        let Some((portion, read)) = self.log.take()? else {
            return Ok(false);
        };
        for record in &portion.records {
            let Some(line) = self.lines.line(record) else {
                continue;
            };
            match line.time(offset) {
                Some(time) => self.table.take(&line, time, read),
                None => self.lines.unreadable += 1,
            }
        }
        self.table.know_clients(portion.clients);
        self.know_definitions();
        Ok(!portion.records.is_empty())
    }

    fn read_stream(&mut self) -> Result<bool, Error> {
        let Some(stream) = &mut self.stream else {
            return self.broken.take().map_or(Ok(false), Err);
        };
        let received = stream.received()?;
        let any = !received.is_empty();
        for transaction in received {
            self.gaps.left_out(transaction.left_out);
            self.commits.push_back(ArrivedCommit {
                transaction,
                arrived: Instant::now(),
            });
        }
        Ok(any)
    }

    fn is_drained(&self) -> bool {
        self.stream
            .as_ref()
            .is_none_or(ReplicationStream::is_drained)
    }

    fn end_of_stream(&mut self) -> Option<i64> {
        self.stream.take().map(|stream| stream.heard)
    }

    /// Row changes in between are missing. Statements are not: the log has them.
    fn begin_again(
        &mut self,
        broken: &Error,
        _signals: &OwnedFd,
    ) -> Result<Result<(), Error>, Error> {
        let ended = self.end_of_stream();
        let from = ended.unwrap_or_else(sys::clock::machine);
        let why = error_chain(broken);
        let mut last = Error::closed();
        for attempt in 0..ATTEMPTS {
            std::thread::sleep(Duration::from_millis(20) * attempt);
            match self.connect_again() {
                Ok(()) => {
                    if self.stream.is_some() {
                        let to = sys::clock::machine();
                        self.gaps.between("row changes", from, Some(to), &why);
                    }
                    return Ok(Ok(()));
                }
                Err(error) => last = error,
            }
            // A server that is shut down refuses, or is not there.
            if matches!(last, Error::Connect { .. }) {
                break;
            }
        }
        self.gaps.between(lost_without(self.rows), from, None, &why);
        Ok(Err(last))
    }

    /// Looks at the catalog, and answers the server.
    fn keep_up(&mut self) {
        if self.looked.elapsed() >= CATALOG {
            self.look_at_catalog();
            if let Ok(offset) = self.settings.zone_offset(&mut self.session) {
                self.offset.store(offset, Ordering::Relaxed);
            }
        }
        if self.looked_for_backends.elapsed() >= BACKENDS {
            self.looked_for_backends = Instant::now();
            self.end_gone_sessions();
            self.table.forget_clients();
        }
        if self.confirmed.elapsed() >= CONFIRM {
            self.confirmed = Instant::now();
            if let Some(stream) = &mut self.stream {
                let _ = stream.confirm();
            }
            self.limit_stream();
        }
    }

    fn settle(&mut self, all: bool, is_late: &dyn Fn() -> bool) {
        let is_behind = self.is_behind();
        self.know_log(all);
        while let Some(first) = self.commits.front() {
            // Its lines were written before it, so they are not in the unread part of the log.
            let is_logged = !is_behind || self.has_read_until(first.transaction.time);
            let is_ready = is_logged && first.arrived.elapsed() >= LINES;
            if !all && !is_ready || is_late() {
                break;
            }
            let time = first.transaction.time;
            self.know_changed_definitions();
            if !all && self.catalog.definitions.will_be_settled((time, time)) {
                break;
            }
            let Some(commit) = self.commits.pop_front() else {
                break;
            };
            if !self.record_commit(&commit, all) {
                self.commits.push_front(commit);
                break;
            }
        }
        let has_commits = self.rows == RowsMode::On || !self.commits.is_empty();
        // The clock decides about most of them, and their statements are not looked at.
        let is_ready = |one: &LoggedTransaction, since: Duration| {
            let waits = || has_commits && one.may_write(&self.catalog);
            since >= LINES && (since >= COMMIT || !waits())
        };
        let ready = self.table.transactions.iter().filter(|(_, one)| {
            let since = one.ended.map(|(_, known)| known.elapsed());
            all || since.is_some_and(|since| is_ready(one, since))
        });
        let mut ready: Vec<(i64, u64)> = ready.map(|(key, one)| (one.began, *key)).collect();
        ready.sort_unstable();
        for (_, key) in ready {
            if is_late() {
                return;
            }
            self.know_tables(key);
            // A moment later it is known which definition a change of the catalog comes from.
            if !all && self.will_be_settled(key) {
                continue;
            }
            self.record_logged(key, &[], CommitCertainty::Alone);
        }
        for id in self.table.ended() {
            if let Some(session) = self.table.sessions.remove(&id) {
                self.lines.forget(&id);
                let time = session.ended.unwrap_or(session.began);
                self.recorder.end_session(&session, time);
            }
        }
        self.recorder.end_clients(all);
    }

    fn gaps(&mut self) -> &mut DatabaseGaps {
        &mut self.gaps
    }

    fn end(mut self) -> DatabaseGaps {
        if let Some(stream) = self.stream.take() {
            stream.end(&mut self.session);
        }
        let mut gaps = self.gaps;
        if self.lines.missing > 0 {
            let between = self.lines.gap.unwrap_or_default();
            gaps.removed_lines(Some(self.lines.missing), &between);
        }
        gaps.unreadable_lines(self.lines.unreadable);
        gaps.unparsed(self.table.unparsed);
        gaps
    }
}

impl PostgresWatch {
    /// True if the lines that were written before a time have been taken.
    pub(crate) fn has_read_until(&self, time: i64) -> bool {
        self.table.newest >= time.saturating_add(APART)
    }

    /// Tells the catalog which statements changed definitions.
    fn know_definitions(&mut self) {
        let definitions = &mut self.catalog.definitions;
        self.table
            .defined
            .drain(..)
            .for_each(|one| definitions.add(one));
        for (key, time) in self.table.ended_definitions.drain(..) {
            definitions.end(key, time);
        }
    }

    /// Tells the catalog how far the log is known. The server writes each line within [`LINES`].
    fn know_log(&mut self, all: bool) {
        let known = match all {
            true => i64::MAX,
            false if self.log.is_behind() => self.table.newest.saturating_sub(APART),
            false => self.log.looked().saturating_sub(LINES.as_nanos() as i64),
        };
        self.catalog.definitions.know_log_until(known);
    }

    /// True if it will be better known soon what a transaction of the log used.
    pub(crate) fn will_be_settled(&self, key: u64) -> bool {
        let logged = self.table.transactions.get(&key);
        logged.is_some_and(|one| self.catalog.definitions.will_be_settled(one.times()))
    }
}
