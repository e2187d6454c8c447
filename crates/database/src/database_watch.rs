//! A watch of a database from its beginning to its end: the frame of all servers.
//!
//! In: a [`WatchedDatabase`], which reads one server. Out: a run. The frame waits for news, and
//! ends the run whatever the server does.
//!
//! Absent: what is read of a server, and how it is joined.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use backstory_eventlog::Reason;
use backstory_session::{Options, RecordingResult, SourceRun};
use backstory_sys as sys;
use backstory_vocabulary::{RowsMode, error_chain};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::connection_target::ConnectionTarget;
use crate::database_gaps::DatabaseGaps;
use crate::error::Error;
use crate::log_lines::forget_news;

/// Interval between two looks at what has arrived, if nothing tells of news.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};
/// The server writes the lines and row changes of a transaction within this time.
pub const LINES: Duration = Duration::from_millis(300);
/// A transaction that may have changed rows has its commit within this time.
pub const COMMIT: Duration = Duration::from_secs(10);

/// The events that are unknown after the server was gone.
pub fn lost_without(rows: RowsMode) -> &'static str {
    match rows {
        RowsMode::On => "row changes",
        RowsMode::Off => "statements",
    }
}

/// Reports of a watch to its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchNews {
    /// The database is recorded from now on.
    Watching,
    /// The server ended the connection, and the watch with it.
    ServerGone(String),
}

/// A watched database: what is read of its server, and recorded.
pub trait WatchedDatabase: Sized {
    /// The source's word in the run.
    const SOURCE: &'static str;
    /// The server's state before the run begins.
    type Examined;

    /// Connects, and checks the server's settings. Nothing is made in the server.
    ///
    /// # Errors
    ///
    /// The database cannot be watched.
    fn examine(target: &ConnectionTarget, rows: RowsMode) -> Result<Self::Examined, Error>;

    /// Begins the records, and the stream of row changes if they are recorded.
    ///
    /// # Errors
    ///
    /// The server refuses the stream.
    fn begin(
        examined: Self::Examined,
        target: &ConnectionTarget,
        run: &SourceRun,
    ) -> Result<Self, Error>;

    /// Readable when the server has written to its log. A client must be looked for while it lives.
    fn log_news(&self) -> &OwnedFd;

    /// Readable when row changes have arrived, or the server is gone. `None`: nothing tells.
    fn stream(&self) -> Option<BorrowedFd<'_>>;

    /// Reads the server's log. True if there was anything.
    ///
    /// # Errors
    ///
    /// The log cannot be read.
    fn read_log(&mut self) -> Result<bool, Error>;

    /// Reads the stream. True if there was anything.
    ///
    /// # Errors
    ///
    /// The stream is over, or the server is gone.
    fn read_stream(&mut self) -> Result<bool, Error>;

    /// True if the last look at the stream left nothing that had arrived.
    fn is_drained(&self) -> bool;

    /// Forgets the stream. Until then all row changes have been received: ns since 1970. `None`:
    /// there was no stream.
    fn end_of_stream(&mut self) -> Option<i64>;

    /// Connects again after the server was gone, and begins another stream if there was one.
    /// `Ok(Err)` if the server stays away.
    ///
    /// # Errors
    ///
    /// The server's log cannot be read.
    fn begin_again(
        &mut self,
        broken: &Error,
        signals: &OwnedFd,
    ) -> Result<Result<(), Error>, Error>;

    /// Does what is due from time to time.
    fn keep_up(&mut self) {}

    /// Records what has ended and waits for nothing more. `all`: nothing is waited for.
    fn settle(&mut self, all: bool);

    /// The gaps so far.
    fn gaps(&mut self) -> &mut DatabaseGaps;

    /// Ends the stream, and notes the gaps that are known only now.
    fn end(self) -> DatabaseGaps;
}

/// Records a database until SIGINT, SIGTERM or SIGHUP, or until the server is gone. The caller must
/// have one thread. `rows`: whether the rows that transactions changed are recorded, too.
///
/// # Errors
///
/// The database cannot be watched, or the run's log cannot be made or finalized.
pub fn watch<D: WatchedDatabase>(
    target: &ConnectionTarget,
    rows: RowsMode,
    run: Options,
    news: &mut dyn FnMut(WatchNews),
) -> Result<RecordingResult, Error> {
    let examined = D::examine(target, rows)?;
    let run = Options {
        rows: Some(rows),
        ..run
    };
    let signals = sys::signal_fd().map_err(Error::system("make a signal descriptor"))?;
    let old = sys::set_mask(&sys::all_signals());
    let begun = begin::<D>(examined, target, run);
    let (run, mut database) = begun.inspect_err(|_| {
        sys::set_mask(&old);
    })?;
    news(WatchNews::Watching);
    // Each statement wakes this thread. The server and its clients come first.
    sys::interrupt_nobody();
    let served = serve(&mut database, &signals, news);
    sys::set_mask(&old);
    let mut reasons = database.end().reasons();
    if let Err(error) = served {
        // The run is ended all the same, with what was recorded.
        let what = format!("the watch ended, because {}", error_chain(&error));
        news(WatchNews::ServerGone(what.clone()));
        reasons.push(Reason::DatabaseGap { what });
    }
    Ok(run.end(&reasons)?)
}

fn begin<D: WatchedDatabase>(
    examined: D::Examined,
    target: &ConnectionTarget,
    run: Options,
) -> Result<(SourceRun, D), Error> {
    let run = SourceRun::begin(run, D::SOURCE)?;
    match D::begin(examined, target, &run) {
        Ok(database) => Ok((run, database)),
        Err(error) => {
            run.abandon();
            Err(error)
        }
    }
}

fn serve<D: WatchedDatabase>(
    database: &mut D,
    signals: &OwnedFd,
    news: &mut dyn FnMut(WatchNews),
) -> Result<(), Error> {
    loop {
        if wait(database, signals)? {
            return settle_all(database);
        }
        database.read_log()?;
        if let Err(error) = database.read_stream()
            && let Err(last) = database.begin_again(&error, signals)?
        {
            settle_all(database)?;
            news(WatchNews::ServerGone(error_chain(&last)));
            return Ok(());
        }
        database.keep_up();
        database.settle(false);
    }
}

/// Waits for news. True if a signal ends the watch.
fn wait<D: WatchedDatabase>(database: &D, signals: &OwnedFd) -> Result<bool, Error> {
    let mut waited = vec![
        PollFd::new(signals, PollFlags::IN),
        PollFd::new(database.log_news(), PollFlags::IN),
    ];
    let stream = database.stream();
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
    forget_news(database.log_news());
    Ok(signalled && sys::read_end_signal(signals.as_fd()))
}

/// Records all that is left. A busy server goes on: what it does from now on is left out.
fn settle_all<D: WatchedDatabase>(database: &mut D) -> Result<(), Error> {
    let began = Instant::now();
    let mut quiet = began;
    let is_over = |database: &D, quiet: Instant| {
        let is_logged = began.elapsed() >= 2 * LINES && database.is_drained();
        quiet.elapsed() >= LINES || is_logged
    };
    while !is_over(database, quiet) {
        std::thread::sleep(Duration::from_millis(10));
        let lines = database.read_log()?;
        let rows = database.read_stream().unwrap_or_else(|broken| {
            lose_rows(database, &error_chain(&broken));
            false
        });
        if lines || rows {
            quiet = Instant::now();
        }
        if began.elapsed() >= COMMIT {
            lose_rows(database, "the server sent them faster than they were read");
            break;
        }
    }
    database.settle(true);
    Ok(())
}

fn lose_rows<D: WatchedDatabase>(database: &mut D, why: &str) {
    if let Some(from) = database.end_of_stream() {
        database.gaps().between("row changes", from, None, why);
    }
}
