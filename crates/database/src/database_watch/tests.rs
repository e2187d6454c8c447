//! Tests of the frame of a watch.

use super::*;
use std::io::Write;
use std::os::unix::net::UnixStream;

/// A database whose lines come in the background, and whose server goes away after them.
#[derive(Default)]
struct FakeDatabase {
    /// When the lines were read that wait.
    waiting: Vec<Instant>,
    /// For each line, whether the thread that took it came last.
    taken: Vec<bool>,
    /// Another line comes as soon as one is taken.
    is_busy: bool,
    /// How long the log is behind at the end.
    behind: Duration,
    stopped: Option<Instant>,
    gaps: DatabaseGaps,
}

impl WatchedDatabase for FakeDatabase {
    const SOURCE: &'static str = "fake";
    const RANK: WatchRank = WatchRank::Background;
    type Examined = ();

    fn examine(_: &ConnectionTarget, _: WatchScope) -> Result<(), Error> {
        Ok(())
    }

    fn begin((): (), _: &ConnectionTarget, _: &SourceRun) -> Result<FakeDatabase, Error> {
        Ok(FakeDatabase::default())
    }

    fn wait(&mut self, _: BorrowedFd<'_>, _: bool) -> std::io::Result<()> {
        Ok(())
    }

    fn waits_since(&mut self) -> Option<Instant> {
        self.waiting.last().copied()
    }

    fn is_behind(&self) -> bool {
        self.stopped
            .is_some_and(|since| since.elapsed() < self.behind)
    }

    fn finish_reading(&mut self) {
        self.stopped = Some(Instant::now());
        self.is_busy = false;
    }

    fn read_log(&mut self) -> Result<bool, Error> {
        let Some(line) = self.waiting.pop() else {
            return Ok(self.is_behind());
        };
        match self.is_busy {
            true => self.waiting.push(line),
            false => self.taken.push(sys::is_last()),
        }
        Ok(true)
    }

    fn read_stream(&mut self) -> Result<bool, Error> {
        match self.waiting.is_empty() && self.stopped.is_none() {
            true => Err(Error::closed()),
            false => Ok(false),
        }
    }

    fn is_drained(&self) -> bool {
        true
    }

    fn end_of_stream(&mut self) -> Option<i64> {
        Some(0)
    }

    fn begin_again(&mut self, _: &Error, _: &OwnedFd) -> Result<Result<(), Error>, Error> {
        // A line that is read after the connection broke.
        self.waiting.push(Instant::now());
        Ok(Err(Error::closed()))
    }

    fn settle(&mut self, _: bool, _: &dyn Fn() -> bool) {}

    fn gaps(&mut self) -> &mut DatabaseGaps {
        &mut self.gaps
    }

    fn end(self) -> DatabaseGaps {
        self.gaps
    }
}

/// Watches a database. A signal arrives after so long, unless the database ends before.
fn served(mut database: FakeDatabase, signal_after: Duration) -> (FakeDatabase, WatchEnd) {
    let (signals, mut other) = UnixStream::pair().unwrap();
    signals.set_nonblocking(true).unwrap();
    std::thread::spawn(move || {
        std::thread::sleep(signal_after);
        // The first member of a `signalfd_siginfo` is the signal's number.
        let mut signal = [0; 128];
        signal[..4].copy_from_slice(&2_u32.to_ne_bytes());
        let _ = other.write_all(&signal);
    });
    let end = serve(&mut database, &signals.into(), &mut |_| ()).unwrap();
    (database, end)
}

/// Watches a database with a line that was read at this moment.
fn watched(read: Instant) -> (FakeDatabase, WatchEnd) {
    let database = FakeDatabase {
        waiting: vec![read],
        ..FakeDatabase::default()
    };
    served(database, Duration::from_secs(3600))
}

/// A line that is never late, however busy the machine is.
fn in_time() -> Instant {
    Instant::now() + Duration::from_secs(3600)
}

#[test]
fn lines_are_taken_in_the_background_and_late_ones_with_an_ordinary_priority() {
    assert_eq!(watched(in_time()).0.taken, [true, false]);
    let late = Instant::now().checked_sub(LATE).unwrap();
    assert_eq!(watched(late).0.taken, [false, false]);
}

#[test]
fn at_the_end_the_log_is_read_without_the_thread() {
    assert!(watched(in_time()).0.stopped.is_some());
}

#[test]
fn a_watch_whose_server_goes_away_ends_otherwise_than_by_a_signal() {
    assert_eq!(watched(in_time()).1, WatchEnd::ServerGone);
}

#[test]
fn a_signal_ends_the_watch_although_lines_come_faster_than_they_are_taken() {
    let database = FakeDatabase {
        waiting: vec![Instant::now().checked_sub(LATE).unwrap()],
        is_busy: true,
        ..FakeDatabase::default()
    };
    let (database, end) = served(database, Duration::from_millis(50));
    assert!(database.stopped.is_some());
    assert_eq!(end, WatchEnd::Signal);
}

#[test]
fn a_log_that_is_read_late_loses_no_row_changes() {
    let database = FakeDatabase {
        waiting: vec![Instant::now()],
        is_busy: true,
        behind: COMMIT * 3 / 2,
        ..FakeDatabase::default()
    };
    let gaps = served(database, Duration::ZERO).0.gaps;
    assert!(gaps.reasons().is_empty());
}
