//! A watch of a database from its beginning to its end: the frame of all servers.
//!
//! In: a [`WatchedDatabase`], which reads one server. Out: a run. The frame works in rounds, and
//! ends the run whatever the server does.
//!
//! The server and its clients come first. Where a thread of its own reads the log, the rest of the
//! work is done in the background ([`WatchRank`]). Work that has waited for `LATE` is done with an
//! ordinary priority.
//!
//! Absent: what is read of a server, and how it is joined.

mod terms;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use backstory_eventlog::Reason;
use backstory_session::{Options, RecordingResult, SourceRun};
use backstory_sys as sys;
use backstory_vocabulary::{RowsMode, error_chain};

use crate::connection_target::ConnectionTarget;
use crate::database_gaps::DatabaseGaps;
use crate::error::Error;

pub use terms::{WatchNews, WatchRank, WatchScope};

/// Interval between two rounds in the background.
pub const ROUND: Duration = Duration::from_millis(200);
/// Lines that have waited for so long are worked on with an ordinary priority.
const LATE: Duration = Duration::from_secs(2);
/// A round in the background that takes so long gets no processor.
const SLOW: Duration = Duration::from_millis(300);
/// Interval between two looks at what has ended.
const SETTLE: Duration = Duration::from_millis(50);
/// The server writes the lines and row changes of a transaction within this time.
pub const LINES: Duration = Duration::from_millis(300);
/// A transaction that may have changed rows has its commit within this time.
pub const COMMIT: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 10 });

/// The exit status of a watch that ended before its user ended it.
const LOST: i32 = 1;

/// The events that are unknown after the server was gone.
pub fn lost_without(rows: RowsMode) -> &'static str {
    match rows {
        RowsMode::On => "row changes",
        RowsMode::Off => "statements",
    }
}

/// A watched database: what is read of its server, and recorded.
pub trait WatchedDatabase: Sized + Send {
    /// The source's word in the run.
    const SOURCE: &'static str;
    /// The priority of its work.
    const RANK: WatchRank;
    /// The server's state before the run begins.
    type Examined;

    /// Connects, and checks the server's settings. Nothing is made in the server.
    ///
    /// # Errors
    ///
    /// The database cannot be watched.
    fn examine(target: &ConnectionTarget, scope: WatchScope) -> Result<Self::Examined, Error>;

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

    /// Waits for the next round. `found`: the last round found something. `signals` end the wait.
    ///
    /// # Errors
    ///
    /// The kernel refuses to wait.
    fn wait(&mut self, signals: BorrowedFd<'_>, found: bool) -> std::io::Result<()>;

    /// When the oldest line was read that waits. `None`: no line waits.
    fn waits_since(&mut self) -> Option<Instant> {
        None
    }

    /// True if a part of the log is known to be unread. After [`WatchedDatabase::finish_reading`],
    /// a part that was written later does not count.
    fn is_behind(&self) -> bool;

    /// True if lines of statements before the end of the watch are still to come. The server may
    /// write them late, as on a busy machine.
    fn lacks_lines(&self) -> bool {
        false
    }

    /// The watch ends. The thread that reads the log is ended, if there is one: the log is read in
    /// the rounds then.
    fn finish_reading(&mut self);

    /// Reads the server's log, or takes a part of the lines that wait. True if there was anything.
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

    /// Records what has ended and waits for nothing more, such as lines in the unread part of the
    /// log. `all`: nothing is waited for. It may return before the end if it `is_late`.
    fn settle(&mut self, all: bool, is_late: &dyn Fn() -> bool);

    /// The gaps so far.
    fn gaps(&mut self) -> &mut DatabaseGaps;

    /// Ends the stream, and notes the gaps that are known only now.
    fn end(self) -> DatabaseGaps;
}

/// Records a database until SIGINT, SIGTERM or SIGHUP, or until the server is gone. The run's exit
/// status is then 1. The caller must have one thread.
///
/// # Errors
///
/// The database cannot be watched, or the run's log cannot be made or finalized.
pub fn watch<D: WatchedDatabase>(
    target: &ConnectionTarget,
    scope: WatchScope,
    run: Options,
    news: &mut dyn FnMut(WatchNews),
) -> Result<RecordingResult, Error> {
    let examined = D::examine(target, scope)?;
    let run = Options {
        rows: Some(scope.rows),
        database: Some(target.name()),
        ..run
    };
    let signals = sys::signal_fd().map_err(Error::system("make a signal descriptor"))?;
    let old = sys::set_mask(&sys::all_signals());
    let begun = begin::<D>(examined, target, run);
    let (run, mut database) = begun.inspect_err(|_| {
        sys::set_mask(&old);
    })?;
    news(WatchNews::Watching);
    // The server and its clients come first.
    sys::interrupt_nobody();
    let served = serve(&mut database, &signals, news);
    sys::set_mask(&old);
    let mut reasons = database.end().reasons();
    let status = match served {
        Ok(WatchEnd::Signal) => 0,
        Ok(WatchEnd::ServerGone) => LOST,
        Err(error) => {
            // The run is ended all the same, with what was recorded.
            let what = format!("the watch ended, because {}", error_chain(&error));
            news(WatchNews::ServerGone(what.clone()));
            reasons.push(Reason::DatabaseGap { what });
            LOST
        }
    };
    Ok(run.end_with(status, &reasons)?)
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

/// Why the rounds were interrupted.
enum Interruption {
    /// A signal ends the watch.
    Signal,
    /// Lines wait for too long.
    Late,
    /// The connection to the server broke.
    Broken(Error),
}

/// How a watch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WatchEnd {
    /// Its user ended it.
    Signal,
    /// The server was gone before.
    ServerGone,
}

fn serve<D: WatchedDatabase>(
    database: &mut D,
    signals: &OwnedFd,
    news: &mut dyn FnMut(WatchNews),
) -> Result<WatchEnd, Error> {
    loop {
        let mut why = match D::RANK {
            WatchRank::Background => in_background(|| rounds(database, signals))?,
            WatchRank::Ordinary => rounds(database, signals)?,
        };
        if let Interruption::Late = why {
            // Lines may come faster than they are taken. All else has its turn.
            let began = Instant::now();
            match round(database, &|| began.elapsed() >= LATE)? {
                Round::Broken(error) => why = Interruption::Broken(error),
                Round::Done { .. } => database.settle(false, &|| false),
            }
        }
        match why {
            Interruption::Late => (),
            Interruption::Signal => {
                settle_all(database)?;
                return Ok(WatchEnd::Signal);
            }
            Interruption::Broken(error) => {
                if let Err(last) = database.begin_again(&error, signals)? {
                    settle_all(database)?;
                    news(WatchNews::ServerGone(error_chain(&last)));
                    return Ok(WatchEnd::ServerGone);
                }
            }
        }
    }
}

/// Works in a thread that runs while no other process wants to. This thread keeps its priority for
/// what cannot wait: a thread that came last may not come back without privilege.
fn in_background<T: Send>(work: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    std::thread::scope(|scope| {
        let background = || {
            sys::come_last();
            work()
        };
        let thread = std::thread::Builder::new().name("statements".to_owned());
        let thread = thread.spawn_scoped(scope, background);
        let thread = thread.map_err(Error::system("start a thread"))?;
        let done = thread.join();
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Works in rounds until it is interrupted.
fn rounds<D: WatchedDatabase>(database: &mut D, signals: &OwnedFd) -> Result<Interruption, Error> {
    let mut found = false;
    let mut settled = Instant::now();
    loop {
        if !has_late_lines(database) {
            let waited = database.wait(signals.as_fd(), found);
            waited.map_err(Error::system("wait for the server"))?;
        }
        if sys::read_end_signal(signals.as_fd()) {
            return Ok(Interruption::Signal);
        }
        if has_late_lines(database) {
            return Ok(Interruption::Late);
        }
        let began = Instant::now();
        let in_background = D::RANK == WatchRank::Background;
        let is_late = || in_background && began.elapsed() >= SLOW;
        match round(database, &is_late)? {
            Round::Broken(error) => return Ok(Interruption::Broken(error)),
            Round::Done { any } => found = any,
        }
        if !is_late() && settled.elapsed() >= SETTLE {
            settled = began;
            database.settle(false, &is_late);
        }
        if is_late() {
            return Ok(Interruption::Late);
        }
    }
}

fn has_late_lines<D: WatchedDatabase>(database: &mut D) -> bool {
    let waits = database.waits_since();
    waits.is_some_and(|since| since.elapsed() >= LATE)
}

/// The result of a round.
enum Round {
    Done {
        /// There was something to read.
        any: bool,
    },
    Broken(Error),
}

/// Reads what has arrived, unless it `is_late`.
fn round<D: WatchedDatabase>(database: &mut D, is_late: &dyn Fn() -> bool) -> Result<Round, Error> {
    let lines = read_log(database, is_late)?;
    let rows = match database.read_stream() {
        Ok(rows) => rows,
        Err(error) => return Ok(Round::Broken(error)),
    };
    database.keep_up();
    Ok(Round::Done { any: lines || rows })
}

/// Reads the log, and takes all lines that wait. True if there was anything.
fn read_log<D: WatchedDatabase>(
    database: &mut D,
    is_late: &dyn Fn() -> bool,
) -> Result<bool, Error> {
    let mut any = database.read_log()?;
    while !is_late() && database.waits_since().is_some() {
        any |= database.read_log()?;
    }
    Ok(any)
}

/// Records all that is left. A busy server goes on: what it does from now on is left out.
fn settle_all<D: WatchedDatabase>(database: &mut D) -> Result<(), Error> {
    database.finish_reading();
    let began = Instant::now();
    let mut quiet = began;
    let is_over = |database: &D, quiet: Instant| {
        let is_read = database.is_drained() && !database.is_behind();
        let is_logged = began.elapsed() >= 2 * LINES && is_read;
        (quiet.elapsed() >= LINES || is_logged) && !database.lacks_lines()
    };
    while !is_over(database, quiet) {
        std::thread::sleep(Duration::from_millis(10));
        let lines = read_log(database, &|| false)?;
        let rows = database.read_stream().unwrap_or_else(|broken| {
            lose_rows(database, &error_chain(&broken));
            false
        });
        if lines || rows {
            quiet = Instant::now();
        }
        if began.elapsed() >= COMMIT {
            if !database.is_drained() {
                lose_rows(database, "the server sent them faster than they were read");
            }
            // The log is read to its end, however long it is.
            if !database.is_behind() {
                break;
            }
        }
    }
    database.settle(true, &|| false);
    Ok(())
}

fn lose_rows<D: WatchedDatabase>(database: &mut D, why: &str) {
    if let Some(from) = database.end_of_stream() {
        database.gaps().between("row changes", from, None, why);
    }
}

#[cfg(test)]
mod tests;
