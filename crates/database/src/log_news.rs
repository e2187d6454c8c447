//! Waits until a server has written to its log.
//!
//! In: the directory of the log, and whether the last look found anything. Out: the moment of the
//! next look.
//!
//! A line of a quiet server is read at once: a client must be looked for while it lives. A busy
//! server writes thousands of lines a second, and each wake-up takes time from it. So the looks are
//! bounded: `BURST` of them may follow each other. Then one comes each `PACE`, until a look finds
//! nothing. Meanwhile the kernel watches no directory, so a line costs the server nothing more.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use rustix::io::Errno;

/// Interval between two looks at the log of a busy server.
const PACE: Duration = Duration::from_millis(5);
/// Looks that may follow each other at once.
const BURST: u32 = 20;
/// Interval between two looks if nothing tells of news.
const LOOK: Duration = Duration::from_millis(50);

/// The end of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextWait {
    /// A time alone: the server is busy.
    Pace,
    /// Nothing, once the kernel watches the directory again.
    Arm,
    /// A change in the directory.
    News,
}

/// Tells when a server has written to its log.
#[derive(Debug)]
pub struct LogNews {
    directory: PathBuf,
    inotify: OwnedFd,
    /// The kernel tells of the next change.
    is_armed: bool,
    /// The looks come one each `PACE`.
    is_paced: bool,
    allowance: LookAllowance,
}

impl LogNews {
    /// News of the files of a directory.
    ///
    /// # Errors
    ///
    /// The kernel refuses to watch the directory.
    pub fn of(directory: &Path) -> io::Result<LogNews> {
        let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
        let mut news = LogNews {
            directory: directory.to_owned(),
            inotify: inotify::init(flags)?,
            is_armed: false,
            is_paced: false,
            allowance: LookAllowance::full(Instant::now()),
        };
        news.arm()?;
        Ok(news)
    }

    /// Waits for the next look. `found`: the last look found something. `always` ends the wait.
    /// `others` end it, too, unless the server is busy.
    ///
    /// # Errors
    ///
    /// The kernel refuses to wait, or to watch the directory.
    pub fn wait(
        &mut self,
        found: bool,
        always: BorrowedFd<'_>,
        others: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        match self.next(found, Instant::now()) {
            NextWait::Pace => return wait_for(&[always], PACE),
            NextWait::Arm => return self.arm(),
            NextWait::News => (),
        }
        let news = self.inotify.as_fd();
        let waited = [&[always, news], others].concat();
        wait_for(&waited, LOOK)?;
        self.forget();
        Ok(())
    }

    /// The end of the wait that begins at this moment.
    fn next(&mut self, found: bool, now: Instant) -> NextWait {
        let may_follow = self.allowance.take(now);
        self.is_paced = !may_follow || self.is_paced && found;
        match (self.is_paced, self.is_armed) {
            (true, _) => NextWait::Pace,
            // Something may have been written before: the look that follows finds it.
            (false, false) => NextWait::Arm,
            (false, true) => NextWait::News,
        }
    }

    /// Lets the kernel tell of the next change, once.
    fn arm(&mut self) -> io::Result<()> {
        let wanted = inotify::WatchFlags::MODIFY
            | inotify::WatchFlags::CREATE
            | inotify::WatchFlags::ONESHOT;
        inotify::add_watch(&self.inotify, &self.directory, wanted)?;
        self.is_armed = true;
        Ok(())
    }

    /// Takes all news: the log itself says what they are.
    fn forget(&mut self) {
        let mut buffer = [0; 4096];
        while rustix::io::read(&self.inotify, &mut buffer).is_ok_and(|count| count > 0) {
            self.is_armed = false;
        }
    }
}

/// Waits until one of these is readable, at most so long.
///
/// # Errors
///
/// The kernel refuses to wait.
pub fn wait_for(waited: &[BorrowedFd<'_>], most: Duration) -> io::Result<()> {
    let mut waited: Vec<PollFd<'_>> = waited
        .iter()
        .map(|one| PollFd::new(one, PollFlags::IN))
        .collect();
    let most = Timespec {
        tv_sec: most.as_secs() as i64,
        tv_nsec: i64::from(most.subsec_nanos()),
    };
    match poll(&mut waited, Some(&most)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// How many looks may follow each other at once.
#[derive(Debug)]
struct LookAllowance {
    left: u32,
    /// When the last look was added.
    filled: Instant,
}

impl LookAllowance {
    fn full(now: Instant) -> LookAllowance {
        LookAllowance {
            left: BURST,
            filled: now,
        }
    }

    /// Takes a look. False if none is left.
    fn take(&mut self, now: Instant) -> bool {
        let since = now.saturating_duration_since(self.filled);
        let more = (since.as_nanos() / PACE.as_nanos()).min(u128::from(BURST)) as u32;
        if more > 0 {
            self.left = (self.left + more).min(BURST);
            self.filled = now;
        }
        let has = self.left > 0;
        self.left = self.left.saturating_sub(1);
        has
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_line_of_a_quiet_server_is_told_and_those_of_a_busy_one_are_paced() {
        let directory = tempfile::tempdir().unwrap();
        let mut news = LogNews::of(directory.path()).unwrap();
        let begin = Instant::now();
        news.allowance = LookAllowance::full(begin);
        let mut next = |found: bool, after: u32| news.next(found, begin + PACE * after);
        for _ in 0..BURST {
            assert_eq!(next(true, 0), NextWait::News);
        }
        // A server that goes on is busy, although there is a look for each time.
        for after in 0..5 {
            assert_eq!(next(true, after), NextWait::Pace);
        }
        assert_eq!(next(false, 6), NextWait::News);
    }

    #[test]
    fn what_is_written_before_the_kernel_watches_again_is_looked_for() {
        let directory = tempfile::tempdir().unwrap();
        let mut news = LogNews::of(directory.path()).unwrap();
        let (stop, _other) = UnixStream::pair().unwrap();
        std::fs::write(directory.path().join("log"), "line").unwrap();
        news.wait(false, stop.as_fd(), &[]).unwrap();
        assert!(!news.is_armed);
        // This wait only asks the kernel, and the look after it finds what came in between.
        news.wait(true, stop.as_fd(), &[]).unwrap();
        assert!(news.is_armed);
    }

    #[test]
    fn the_looks_that_are_left_come_back_with_time_up_to_a_burst() {
        let begin = Instant::now();
        let mut allowance = LookAllowance::full(begin);
        let taken = |allowance: &mut LookAllowance, now: Instant| {
            (0..2 * BURST).filter(|_| allowance.take(now)).count() as u32
        };
        assert_eq!(taken(&mut allowance, begin), BURST);
        assert_eq!(taken(&mut allowance, begin + PACE * 3), 3);
        assert_eq!(taken(&mut allowance, begin + PACE * 1000), BURST);
    }
}
