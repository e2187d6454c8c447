//! A watch of a database from its beginning to its end.

use std::collections::{BTreeSet, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use backstory_database::client_process::socket_names;
use backstory_database::commit::{Commit, CommitCertainty, TransactionNumber};
use backstory_database::connection_uri::without_password;
use backstory_database::database_names::DatabaseNames;
use backstory_database::database_records::DatabaseRecords;
use backstory_database::log_lines::{forget_news, log_news};
use backstory_database::transaction_records::TransactionRecorder;
use backstory_eventlog::Reason;
use backstory_session::{Options, RecordingResult, SourceRun};
use backstory_sys as sys;
use backstory_vocabulary::error_chain;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::audit_file::AuditFile;
use crate::audit_sessions::{AuditSessions, Unit};
use crate::binlog_stream::BinlogStream;
use crate::catalog_reader::ServerCatalog;
use crate::client_finder::ClientFinder;
use crate::commit_matching::give;
use crate::connection::Connection;
use crate::row_groups::CommittedGroup;
use crate::server_settings::ServerSettings;
use crate::{ConnectionTarget, Error};

/// Interval between two looks at what has arrived, if nothing tells of news.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};
/// The server writes the lines and events of a transaction within this time.
pub(crate) const LINES: Duration = Duration::from_millis(300);
/// A transaction that may have changed rows has its commit within this time, and a statement of a
/// procedure the line of its call.
const COMMIT: Duration = Duration::from_secs(10);
/// A client that is not found at so many looks is of another machine, or not visible.
const LOOKS: u8 = 20;

/// Reports of a watch to its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchNews {
    /// The database is recorded from now on.
    Watching,
    /// The server ended the connection, and the watch with it.
    ServerGone(String),
}

/// A commit whose statements are not logged yet.
pub(crate) struct WaitingCommit {
    pub(crate) group: CommittedGroup,
    /// ns since 1970.
    pub(crate) time: i64,
    pub(crate) arrived: Instant,
}

/// The state of a watch.
pub(crate) struct DatabaseWatch {
    pub(crate) target: ConnectionTarget,
    /// The number of this replica.
    pub(crate) replica: u32,
    pub(crate) settings: ServerSettings,
    pub(crate) session: Connection,
    pub(crate) catalog: ServerCatalog,
    pub(crate) stream: Option<BinlogStream>,
    pub(crate) log: AuditFile,
    /// Readable when the server has written to its log. A client must be looked for while it lives.
    pub(crate) log_news: OwnedFd,
    pub(crate) table: AuditSessions,
    pub(crate) finder: ClientFinder,
    pub(crate) recorder: TransactionRecorder,
    pub(crate) commits: VecDeque<WaitingCommit>,
    pub(crate) gaps: BTreeSet<String>,
    /// Commits whose statements the log does not have.
    pub(crate) without_statements: u64,
    pub(crate) incidents: u64,
    pub(crate) unnamed: u64,
}

/// Records a database until SIGINT, SIGTERM or SIGHUP, or until the server is gone. The caller must
/// have one thread.
///
/// # Errors
///
/// The database cannot be watched, or the run's log cannot be made or finalized.
pub fn watch(
    target: &ConnectionTarget,
    run: Options,
    news: &mut dyn FnMut(WatchNews),
) -> Result<RecordingResult, Error> {
    let mut session = Connection::open(target)?;
    let settings = ServerSettings::read(&mut session)?;
    let offset = ServerSettings::zone_offset(&mut session)?;
    let log = AuditFile::begin(&settings.audit_log, offset)?;
    let directory = settings.audit_log.parent().unwrap_or(Path::new("/"));
    let log_news = log_news(directory).map_err(Error::system("watch the server's log"))?;
    let catalog = ServerCatalog::read(&mut session, settings.dialect)?;
    let signals = sys::signal_fd().map_err(Error::system("make a signal descriptor"))?;
    let old = sys::set_mask(&sys::all_signals());
    let run = SourceRun::begin(run, "mariadb")?;
    let replica = replica_number(run.id());
    let stream = BinlogStream::end_of_log(&mut session)
        .and_then(|end| BinlogStream::begin(target, &settings, end, replica));
    let stream = match stream {
        Ok(stream) => stream,
        Err(error) => {
            run.abandon();
            sys::set_mask(&old);
            return Err(error);
        }
    };
    let names = DatabaseNames {
        base: target.server_name(),
        separator: '/',
        kind: "mariadb",
        sockets: socket_names(&settings.socket),
        port: target.port,
        rounding: 0,
    };
    let table = AuditSessions {
        own: BTreeSet::from([session.id, stream.connection()]),
        database: target.database.clone(),
        dialect: settings.dialect,
        autocommit: settings.autocommit,
        ..AuditSessions::default()
    };
    let mut watch = DatabaseWatch {
        recorder: TransactionRecorder::new(DatabaseRecords::new(run.supply()), names),
        finder: ClientFinder {
            server_pid: settings.server_pid,
            server_port: target.port,
            ..ClientFinder::default()
        },
        target: target.clone(),
        replica,
        settings,
        session,
        catalog,
        stream: Some(stream),
        log,
        log_news,
        table,
        commits: VecDeque::new(),
        gaps: BTreeSet::new(),
        without_statements: 0,
        incidents: 0,
        unnamed: 0,
    };
    watch.recorder.begin_run(without_password);
    watch.know_connections();
    news(WatchNews::Watching);
    let served = watch.serve(&signals, news);
    sys::set_mask(&old);
    let mut reasons = watch.end();
    if let Err(error) = served {
        // The run is ended all the same, with what was recorded.
        let what = format!("the watch ended, because {}", error_chain(&error));
        news(WatchNews::ServerGone(what.clone()));
        reasons.push(Reason::DatabaseGap { what });
    }
    Ok(run.end(&reasons)?)
}

/// A number of a replica that no server is likely to have.
fn replica_number(run: &str) -> u32 {
    0x6000_0000 | crc32fast::hash(run.as_bytes()) >> 4
}

impl DatabaseWatch {
    fn serve(&mut self, signals: &OwnedFd, news: &mut dyn FnMut(WatchNews)) -> Result<(), Error> {
        loop {
            if self.wait(signals)? {
                return self.settle_all();
            }
            self.read_log()?;
            if let Err(error) = self.read_stream()
                && let Err(last) = self.begin_again(&error, signals)?
            {
                self.settle_all()?;
                news(WatchNews::ServerGone(error_chain(&last)));
                return Ok(());
            }
            self.settle(false);
        }
    }

    /// Waits for news. True if a signal ends the watch.
    fn wait(&self, signals: &OwnedFd) -> Result<bool, Error> {
        let mut waited = vec![
            PollFd::new(signals, PollFlags::IN),
            PollFd::new(&self.log_news, PollFlags::IN),
        ];
        let stream = self.stream.as_ref().map(BinlogStream::descriptor);
        waited.extend(
            stream
                .as_ref()
                .map(|stream| PollFd::new(stream, PollFlags::IN)),
        );
        match poll(&mut waited, Some(&LOOK)) {
            Ok(_) | Err(Errno::INTR) => (),
            Err(error) => return Err(Error::system("wait for the server")(error)),
        }
        let first = waited.first();
        let signalled = first.is_some_and(|first| !first.revents().is_empty());
        forget_news(&self.log_news);
        Ok(signalled && sys::read_end_signal(signals.as_fd()))
    }

    pub(crate) fn read_log(&mut self) -> Result<bool, Error> {
        let lines = self.log.lines()?;
        for line in &lines {
            self.table.take(line);
        }
        self.find_clients();
        if std::mem::take(&mut self.table.is_outdated) {
            self.look_at_catalog();
        }
        Ok(!lines.is_empty())
    }

    /// Looks for the processes of clients that are not known.
    fn find_clients(&mut self) {
        let sought: Vec<u64> = self.table.sought.iter().copied().collect();
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
            session.port = client.port;
            session.client = client.process;
        }
        for id in sought {
            let session = self.table.session(id);
            let is_over = session.is_none_or(|session| {
                session.looks += 1;
                session.client.is_some() || session.looks >= LOOKS
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
            self.table
                .begin(client.connection, &client.user, &client.host, time);
        }
        self.find_clients();
    }

    fn look_at_catalog(&mut self) {
        let dialect = self.settings.dialect;
        if let Ok(catalog) = ServerCatalog::read(&mut self.session, dialect) {
            self.catalog = catalog;
        }
    }

    fn read_stream(&mut self) -> Result<bool, Error> {
        let Some(stream) = &mut self.stream else {
            return Ok(false);
        };
        let (session, dialect) = (&mut self.session, self.settings.dialect);
        let mut look = |catalog: &mut ServerCatalog| {
            if let Ok(new) = ServerCatalog::read(session, dialect) {
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

    /// Records all that is left. The server has logged and sent all that happened until now.
    fn settle_all(&mut self) -> Result<(), Error> {
        let mut quiet = Instant::now();
        while quiet.elapsed() < LINES {
            std::thread::sleep(Duration::from_millis(10));
            let lines = self.read_log()?;
            let rows = self.read_stream().unwrap_or_else(|broken| {
                let from = self.end_of_stream();
                let from = from.map_or_else(sys::clock::machine, |(heard, _)| heard);
                self.gap("row changes", from, None, &error_chain(&broken));
                false
            });
            if lines || rows {
                quiet = Instant::now();
            }
        }
        self.settle(true);
        Ok(())
    }

    /// Records what has ended and waits for nothing more.
    pub(crate) fn settle(&mut self, all: bool) {
        self.give_commits(all);
        let has_procedures = self.catalog.has_procedures;
        let waits = |unit: &Unit| {
            let is_complete = !unit.logged.may_write() || !unit.commits.is_empty();
            if is_complete && !has_procedures {
                LINES
            } else {
                COMMIT
            }
        };
        let ready = self.table.units.iter().filter(|(_, unit)| {
            let since = unit.logged.ended.map(|(_, known)| known.elapsed());
            all || since.is_some_and(|since| since >= waits(unit))
        });
        let mut ready: Vec<(i64, u64)> =
            ready.map(|(key, unit)| (unit.logged.began, *key)).collect();
        ready.sort_unstable();
        for (_, key) in ready {
            if let Some(unit) = self.table.units.remove(&key) {
                self.record(unit);
            }
        }
        for session in self.table.remove_ended() {
            let time = session.ended.unwrap_or(session.began);
            self.recorder.end_session(&session, time);
        }
    }

    /// Gives commits to the units of their statements.
    fn give_commits(&mut self, all: bool) {
        for waiting in std::mem::take(&mut self.commits) {
            let WaitingCommit {
                group,
                time,
                arrived,
            } = waiting;
            let units = &mut self.table.units;
            let Some(group) = give(units, group, time, self.settings.dialect) else {
                continue;
            };
            let is_ours = |group: &CommittedGroup| {
                let mut tables = group.tables.values();
                tables.any(|table| table.schema == self.target.database)
            };
            if !all && arrived.elapsed() < COMMIT {
                self.commits.push_back(WaitingCommit {
                    group,
                    time,
                    arrived,
                });
            } else if is_ours(&group) {
                self.without_statements += 1;
                let commit = commit(&group, time);
                self.recorder
                    .record_alone(&commit, &mut [], &self.catalog.catalog);
            }
        }
    }

    fn record(&mut self, unit: Unit) {
        let session = self.table.session(unit.connection);
        let Some(session) = session.filter(|_| unit.is_ours) else {
            return;
        };
        // It committed after its last statement began, and before its last line.
        let last = unit.logged.ended.map_or(i64::MAX, |(time, _)| time);
        let times = unit.logged.statements.iter().map(|one| one.time);
        let first = times.fold(unit.logged.began.max(session.last_end), i64::max);
        let commits = unit.commits.iter();
        let commits: Vec<Commit<'_>> = commits
            .map(|(group, time)| commit(group, (*time).min(last).max(first)))
            .collect();
        let certainty = match (commits.is_empty(), unit.by_statement) {
            (true, _) => CommitCertainty::Alone,
            (false, true) => CommitCertainty::Statement,
            (false, false) => CommitCertainty::Number,
        };
        let catalog = &self.catalog.catalog;
        self.recorder
            .record(&unit.logged, session, &commits, certainty, catalog);
    }

    /// Says what is missing.
    fn end(mut self) -> Vec<Reason> {
        self.end_of_stream();
        let mut gaps = self.gaps;
        let mut counted = |count: u64, what: &str| {
            if count > 0 {
                gaps.insert(format!("{count} {what}"));
            }
        };
        counted(
            self.log.unreadable,
            "lines of the server's log have another form",
        );
        let unparsed = "statements cannot be parsed, so the tables that they name are unknown";
        counted(self.table.unparsed, unparsed);
        let alone =
            "transactions have no statement in the server's log, so their clients are unknown";
        counted(self.without_statements, alone);
        counted(
            self.incidents,
            "times the server lost changes of its binlog",
        );
        let unnamed = "groups of rows have columns that are not in the catalog any more";
        counted(self.unnamed, unnamed);
        for (begin, end) in &self.log.gaps {
            gaps.insert(format!(
                "lines of the server's log, written between {begin} and {end}, were removed before \
                 they were read"
            ));
        }
        gaps.into_iter()
            .map(|what| Reason::DatabaseGap { what })
            .collect()
    }
}

fn commit(group: &CommittedGroup, time: i64) -> Commit<'_> {
    Commit {
        number: TransactionNumber::Composed(group.number.clone()),
        time,
        position: group.position.clone(),
        changes: &group.changes,
        left_out: group.left_out,
        tables: group.tables.clone(),
    }
}
