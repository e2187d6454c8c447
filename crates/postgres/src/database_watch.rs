//! A watch of a database from its beginning to its end.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use backstory_database::catalog::Catalog;
use backstory_database::client_process::socket_names;
use backstory_database::commit::{Commit, CommitCertainty, TransactionNumber};
use backstory_database::connection_uri::without_password;
use backstory_database::database_names::DatabaseNames;
use backstory_database::database_records::DatabaseRecords;
use backstory_database::log_lines::{forget_news, log_news};
use backstory_database::logged_transaction::LoggedTransaction;
use backstory_database::row_change::StreamTable;
use backstory_database::transaction_records::TransactionRecorder;
use backstory_eventlog::Reason;
use backstory_session::{Options, RecordingResult, SourceRun};
use backstory_sys as sys;
use backstory_vocabulary::error_chain;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::catalog_reader::read_catalog;
use crate::connection::Connection;
use crate::log_file::LogFollower;
use crate::matching::{TransactionMatch, matching};
use crate::replication::ReplicationStream;
use crate::row_decoder::CommittedTransaction;
use crate::server_settings::{ServerSettings, keep_out_of_log};
use crate::sessions::{ROUNDING, SessionTable};
use crate::{ConnectionTarget, Error};

/// Interval between two looks at what has arrived, if nothing tells of news.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};
/// The server writes the lines of a transaction within this time.
const LINES: Duration = Duration::from_millis(300);
/// A transaction that may have changed rows has its commit within this time.
const COMMIT: Duration = Duration::from_secs(10);
/// Interval between two looks at the catalog.
const CATALOG: Duration = Duration::from_secs(1);
/// Interval between two answers to the server.
const CONFIRM: Duration = Duration::from_secs(5);
/// Attempts to begin another stream after one broke.
const ATTEMPTS: u32 = 10;

/// Refusals in a row that are a gap.
const REFUSALS: u32 = 3;

/// Reports of a watch to its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchNews {
    /// The database is recorded from now on.
    Watching,
    /// The server ended the connection, and the watch with it.
    ServerGone(String),
}

/// A commit, and when it arrived.
struct ArrivedCommit {
    transaction: CommittedTransaction,
    tables: BTreeMap<u64, StreamTable>,
    arrived: Instant,
}

/// The state of a watch.
struct DatabaseWatch {
    target: ConnectionTarget,
    run: String,
    settings: ServerSettings,
    session: Connection,
    catalog: Catalog,
    stream: Option<ReplicationStream>,
    log: LogFollower,
    /// Readable when the server has written to its log. A client must be looked for while it lives.
    log_news: OwnedFd,
    offset: i64,
    table: SessionTable,
    recorder: TransactionRecorder,
    commits: VecDeque<ArrivedCommit>,
    gaps: BTreeSet<String>,
    /// How often the server has refused to stream new tables, in a row.
    refusals: u32,
    looked: Instant,
    confirmed: Instant,
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
    let mut session = Connection::open(target, false)?;
    let settings = ServerSettings::read(&mut session)?;
    keep_out_of_log(&mut session);
    let log = LogFollower::begin(&settings.log_directory)?;
    let catalog = read_catalog(&mut session)?;
    let offset = settings.zone_offset(&mut session)?;
    let log_news =
        log_news(&settings.log_directory).map_err(Error::system("watch the server's log"))?;
    let signals = sys::signal_fd().map_err(Error::system("make a signal descriptor"))?;
    let old = sys::set_mask(&sys::all_signals());
    let run = SourceRun::begin(run, "postgres")?;
    let socket = format!("{}/.s.PGSQL.{}", settings.socket_directory, target.port);
    let names = DatabaseNames {
        base: target.name(),
        separator: '.',
        kind: "postgres",
        sockets: socket_names(&socket),
        port: target.port,
        rounding: ROUNDING,
    };
    let stream = ReplicationStream::begin(target, &mut session, &catalog, run.id());
    let stream = match stream {
        Ok(stream) => stream,
        Err(error) => {
            run.abandon();
            sys::set_mask(&old);
            return Err(error);
        }
    };
    let table = SessionTable {
        own: vec![session.server_pid, stream.server_pid()],
        database: target.database.clone(),
        server_port: target.port,
        ..SessionTable::default()
    };
    let writer = DatabaseRecords::new(run.supply());
    let mut watch = DatabaseWatch {
        recorder: TransactionRecorder::new(writer, names),
        target: target.clone(),
        run: run.id().to_owned(),
        log_news,
        settings,
        session,
        catalog,
        stream: Some(stream),
        log,
        offset,
        table,
        commits: VecDeque::new(),
        gaps: BTreeSet::new(),
        refusals: 0,
        looked: Instant::now(),
        confirmed: Instant::now(),
    };
    watch.recorder.begin_run(without_password);
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

impl DatabaseWatch {
    fn serve(&mut self, signals: &OwnedFd, news: &mut dyn FnMut(WatchNews)) -> Result<(), Error> {
        loop {
            let mut waited = vec![
                PollFd::new(signals, PollFlags::IN),
                PollFd::new(&self.log_news, PollFlags::IN),
            ];
            let stream = self.stream.as_ref().map(ReplicationStream::descriptor);
            waited.extend(
                stream
                    .as_ref()
                    .map(|stream| PollFd::new(stream, PollFlags::IN)),
            );
            match poll(&mut waited, Some(&LOOK)) {
                Ok(_) | Err(Errno::INTR) => (),
                Err(error) => return Err(Error::system("wait for the server")(error)),
            }
            let signalled = waited
                .first()
                .is_some_and(|first| !first.revents().is_empty());
            drop(waited);
            forget_news(&self.log_news);
            if signalled && sys::read_end_signal(signals.as_fd()) {
                return self.settle_all();
            }
            self.read_log()?;
            if let Err(error) = self.read_stream()
                && let Err(last) = self.begin_again(&error)
            {
                self.settle_all()?;
                news(WatchNews::ServerGone(last.to_string()));
                return Ok(());
            }
            self.keep_up();
            self.settle(false);
        }
    }

    fn read_log(&mut self) -> Result<bool, Error> {
        let lines = self.log.lines()?;
        for line in &lines {
            if let Some(time) = line.time(self.offset) {
                self.table.take(line, time);
            }
        }
        Ok(!lines.is_empty())
    }

    fn read_stream(&mut self) -> Result<bool, Error> {
        let Some(stream) = &mut self.stream else {
            return Ok(false);
        };
        let received = stream.received()?;
        let any = !received.is_empty();
        for transaction in received {
            let numbers: BTreeSet<u64> = transaction.changes.iter().map(|one| one.table).collect();
            let tables = numbers.into_iter();
            let tables = tables.filter_map(|one| Some((one, stream.decoder.table(one)?.clone())));
            self.commits.push_back(ArrivedCommit {
                tables: tables.collect(),
                transaction,
                arrived: Instant::now(),
            });
        }
        Ok(any)
    }

    /// Begins another stream after one broke. Row changes in between are missing.
    fn begin_again(&mut self, broken: &Error) -> Result<(), Error> {
        let from = self.end_of_rows();
        let mut last = None;
        for attempt in 0..ATTEMPTS {
            std::thread::sleep(Duration::from_millis(20) * attempt);
            match self.another_stream() {
                Ok(stream) => {
                    self.table.own.push(stream.server_pid());
                    self.stream = Some(stream);
                    let to = sys::clock::machine();
                    self.gap_of_rows(broken, from, Some(to));
                    return Ok(());
                }
                // A server that is shut down refuses, or is not there.
                Err(error @ Error::Connect { .. }) => {
                    last = Some(error);
                    break;
                }
                Err(error) => last = Some(error),
            }
        }
        self.gap_of_rows(broken, from, None);
        Err(last.unwrap_or_else(|| Error::Protocol("nothing".to_owned())))
    }

    /// Forgets the stream, and says until when its rows are known.
    fn end_of_rows(&mut self) -> i64 {
        let stream = self.stream.take();
        stream.map_or_else(sys::clock::machine, |stream| stream.heard)
    }

    fn another_stream(&mut self) -> Result<ReplicationStream, Error> {
        self.session = Connection::open(&self.target, false)?;
        self.table.own.push(self.session.server_pid);
        keep_out_of_log(&mut self.session);
        self.catalog = read_catalog(&mut self.session)?;
        ReplicationStream::begin(&self.target, &mut self.session, &self.catalog, &self.run)
    }

    fn gap_of_rows(&mut self, broken: &Error, from: i64, to: Option<i64>) {
        let seconds = |time: i64| time / 1_000_000_000;
        let until = match to {
            Some(to) => format!("until {}", seconds(to)),
            None => "on".to_owned(),
        };
        self.gaps.insert(format!(
            "row changes from second {} of the calendar {until} are unknown, because {}",
            seconds(from),
            error_chain(broken)
        ));
    }

    /// Looks at the catalog, and answers the server, from time to time.
    fn keep_up(&mut self) {
        if self.looked.elapsed() >= CATALOG {
            self.look_at_catalog();
            if let Ok(offset) = self.settings.zone_offset(&mut self.session) {
                self.offset = offset;
            }
        }
        if self.confirmed.elapsed() >= CONFIRM {
            self.confirmed = Instant::now();
            if let Some(stream) = &mut self.stream {
                let _ = stream.confirm();
            }
        }
    }

    fn look_at_catalog(&mut self) {
        self.looked = Instant::now();
        // A server that is gone shows that in the stream, too.
        let Ok(catalog) = read_catalog(&mut self.session) else {
            return;
        };
        self.catalog = catalog;
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
                .insert(format!("updates of new tables are unknown, because {why}"));
        }
    }

    /// Records all that is left. The server has logged and sent all that happened until now.
    fn settle_all(&mut self) -> Result<(), Error> {
        let mut quiet = Instant::now();
        while quiet.elapsed() < LINES {
            std::thread::sleep(Duration::from_millis(10));
            let lines = self.read_log()?;
            let rows = self.read_stream().unwrap_or_else(|broken| {
                let from = self.end_of_rows();
                self.gap_of_rows(&broken, from, None);
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
    fn settle(&mut self, all: bool) {
        while let Some(first) = self.commits.front() {
            if !all && first.arrived.elapsed() < LINES {
                break;
            }
            if let Some(commit) = self.commits.pop_front() {
                self.record_commit(&commit);
            }
        }
        let waits = |may_write: bool| if may_write { COMMIT } else { LINES };
        let ready = self.table.transactions.iter().filter(|(_, one)| {
            let since = one.ended.map(|(_, known)| known.elapsed());
            all || since.is_some_and(|since| since >= waits(one.may_write()))
        });
        let mut ready: Vec<(i64, u64)> = ready.map(|(key, one)| (one.began, *key)).collect();
        ready.sort_unstable();
        for (_, key) in ready {
            self.record_logged(key, &[], CommitCertainty::Alone);
        }
        for id in self.table.ended() {
            if let Some(session) = self.table.sessions.remove(&id) {
                self.log.forget(&id);
                let time = session.ended.unwrap_or(session.began);
                self.recorder.end_session(&session, time);
            }
        }
    }

    fn record_commit(&mut self, arrived: &ArrivedCommit) {
        let transaction = &arrived.transaction;
        let position = transaction.position;
        let commit = Commit {
            number: TransactionNumber::Plain(u64::from(transaction.id)),
            time: transaction.time,
            position: format!("{:X}/{:X}", position >> 32, position & 0xffff_ffff),
            changes: &transaction.changes,
            left_out: transaction.left_out,
            tables: arrived.tables.clone(),
        };
        let changed = commit.changed();
        if changed.is_empty() {
            return;
        }
        if changed
            .iter()
            .any(|name| self.catalog.table(name).is_none())
        {
            self.look_at_catalog();
        }
        let found = matching(&self.table, &self.catalog, &commit);
        match found {
            TransactionMatch::Number(key) => {
                self.record_logged(key, &[commit], CommitCertainty::Number);
            }
            TransactionMatch::Time(key) => {
                self.record_logged(key, &[commit], CommitCertainty::Time);
            }
            TransactionMatch::Several(keys) => self.record_doubtful(&commit, &keys),
            TransactionMatch::Unknown => self.record_doubtful(&commit, &[]),
        }
    }

    fn record_logged(&mut self, key: u64, commits: &[Commit<'_>], certainty: CommitCertainty) {
        let Some(logged) = self.table.remove(key) else {
            return;
        };
        self.know_tables(&logged);
        self.look_for_lost_updates(&logged);
        if let Some(session) = self.table.sessions.get_mut(&logged.session) {
            self.recorder
                .record(&logged, session, commits, certainty, &self.catalog);
        }
    }

    /// Looks at the catalog if the transaction names a table that is not in it yet.
    fn know_tables(&mut self, logged: &LoggedTransaction) {
        let is_older = logged.ended.is_none_or(|(_, known)| self.looked < known);
        let lacks = logged.statements.iter().any(|one| {
            let tables = one.tables.iter();
            let mut names = tables.flat_map(|tables| tables.reads.iter().chain(&tables.writes));
            names.any(|name| self.catalog.resolve(name, &one.path).is_none())
        });
        if is_older && lacks {
            self.look_at_catalog();
        }
    }

    /// A table that was made a moment ago is not in the stream of updates yet.
    fn look_for_lost_updates(&mut self, logged: &LoggedTransaction) {
        let Some(stream) = self.stream.as_ref().filter(|_| !logged.is_rolled_back()) else {
            return;
        };
        let mut lost = Vec::new();
        for statement in &logged.statements {
            let replaced = statement.tables.iter().flat_map(|tables| &tables.replaced);
            let replaced = replaced.filter_map(|name| self.catalog.resolve(name, &statement.path));
            lost.extend(replaced.filter(|table| stream.lacks_updates(table, statement.time)));
        }
        let gap = |(schema, name)| {
            format!("updates of rows of {schema}.{name} soon after it was created are unknown")
        };
        self.gaps.extend(lost.into_iter().map(gap));
    }

    /// Records a commit that may belong to any of these.
    fn record_doubtful(&mut self, commit: &Commit<'_>, keys: &[u64]) {
        let table = &mut self.table;
        let (transactions, sessions) = (&table.transactions, &mut table.sessions);
        let mut candidates = Vec::new();
        for key in keys {
            if let Some(logged) = transactions.get(key)
                && let Some(session) = sessions.get_mut(&logged.session)
            {
                candidates.push((logged, session.clone()));
            }
        }
        self.recorder
            .record_alone(commit, &mut candidates, &self.catalog);
        for (logged, session) in candidates {
            sessions.insert(logged.session.clone(), session);
        }
    }

    /// Ends the stream, and says what is missing.
    fn end(mut self) -> Vec<Reason> {
        if let Some(stream) = self.stream.take() {
            stream.end(&mut self.session);
        }
        let mut gaps = self.gaps;
        let mut counted = |count: u64, what: &str| {
            if count > 0 {
                gaps.insert(format!("{count} {what}"));
            }
        };
        let (begin, end) = self.log.gap.unwrap_or_default();
        counted(
            self.log.missing,
            &format!(
                "lines of the server's log, written between {begin} and {end}, were removed before \
                 they were read"
            ),
        );
        counted(self.log.unreadable, "lines of the server's log are no JSON");
        let unparsed = "statements cannot be parsed, so the tables that they name are unknown";
        counted(self.table.unparsed, unparsed);
        gaps.into_iter()
            .map(|what| Reason::DatabaseGap { what })
            .collect()
    }
}
