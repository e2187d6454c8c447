//! Reads a server's log in a thread of its own, which also looks for the server's clients.
//!
//! In: a [`LogSource`], which follows the log of one server. Out: its portions, in order.
//!
//! ```text
//! log ──> thread with an ordinary priority: lines, clients ──> portions ──> all other work
//! ```
//!
//! A client must be looked for while it lives, so this thread must not wait for a processor. All
//! other work can wait.
//!
//! Invariants:
//!
//! - Nothing is lost between the two: what the log had at [`LogReader::stop`] is in the portions.
//! - Portions that wait take bounded memory. Beyond it, the log is not read on, and the server's
//!   files hold what is left.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use backstory_sys::clock::machine;
use rustix::event::{EventfdFlags, eventfd};

use crate::error::Error;
use crate::log_news::LogNews;

/// Most bytes in portions that wait.
const MOST: usize = if cfg!(test) { 8 << 20 } else { 64 << 20 };
/// Interval between two looks whether fewer portions wait.
const FULL: Duration = Duration::from_millis(10);

/// The log of a server, and the clients that its lines name.
pub trait LogSource: Send + 'static {
    /// The news of one look.
    type Portion: Send + 'static;

    /// Reads on, and looks for clients. `None`: nothing was written, and no client was looked for.
    ///
    /// # Errors
    ///
    /// The log cannot be read.
    fn look(&mut self) -> Result<Option<Self::Portion>, Error>;

    /// The memory that a portion takes, in bytes.
    fn size(portion: &Self::Portion) -> usize;

    /// True if the last look left a part of the log unread.
    fn is_behind(&self) -> bool;
}

/// A portion, and when it was read.
struct ReadPortion<P> {
    portion: P,
    size: usize,
    read: Instant,
    /// A part of the log was left unread behind it.
    is_behind: bool,
}

/// The facts that both threads share.
#[derive(Debug)]
struct SharedState {
    /// Bytes in portions that wait.
    waiting: AtomicUsize,
    /// A part of the log is known to be unread. While it is false, all that was read is in the
    /// portions that were sent.
    is_behind: AtomicBool,
    /// When the last look began, in ns since 1970, if it left nothing unread.
    looked: AtomicI64,
    is_over: AtomicBool,
    /// Readable when the reading is over.
    over: OwnedFd,
}

/// Reads a log.
pub struct LogReader<S: LogSource> {
    shared: Arc<SharedState>,
    thread: Option<JoinHandle<S>>,
    /// The source, after the thread has ended.
    source: Option<S>,
    arriving: Receiver<Result<ReadPortion<S::Portion>, Error>>,
    waiting: VecDeque<ReadPortion<S::Portion>>,
    /// A part of the log is known to be unread behind the portions that have arrived.
    is_behind: bool,
    /// All that the log had at this time has arrived, in ns since 1970.
    looked: i64,
    failed: Option<Error>,
}

impl<S: LogSource> LogReader<S> {
    /// Begins to read. The thread has the priority of the calling one, and its signal mask.
    ///
    /// # Errors
    ///
    /// The thread cannot be started.
    pub fn begin(source: S, news: LogNews) -> Result<LogReader<S>, Error> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let over = eventfd(0, flags).map_err(Error::system("make an event descriptor"))?;
        let shared = Arc::new(SharedState {
            waiting: AtomicUsize::new(0),
            is_behind: AtomicBool::new(false),
            looked: AtomicI64::new(i64::MIN),
            is_over: AtomicBool::new(false),
            over,
        });
        let (sender, arriving) = channel();
        let thread = {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new()
                .name("server log".to_owned())
                .spawn(move || read(source, news, &shared, &sender))
        };
        Ok(LogReader {
            shared,
            thread: Some(thread.map_err(Error::system("start a thread"))?),
            source: None,
            arriving,
            waiting: VecDeque::new(),
            is_behind: false,
            looked: i64::MIN,
            failed: None,
        })
    }

    /// When the oldest portion that waits was read.
    pub fn waits_since(&mut self) -> Option<Instant> {
        self.receive();
        self.waiting.front().map(|first| first.read)
    }

    /// Takes the oldest portion that waits, with the time at which it was read. After
    /// [`LogReader::stop`], the log is read if none waits.
    ///
    /// # Errors
    ///
    /// The log cannot be read.
    pub fn take(&mut self) -> Result<Option<(S::Portion, Instant)>, Error> {
        self.receive();
        if let Some(first) = self.waiting.pop_front() {
            self.shared.waiting.fetch_sub(first.size, Ordering::Relaxed);
            return Ok(Some((first.portion, first.read)));
        }
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let now = Instant::now();
        match &mut self.source {
            Some(source) => Ok(source.look()?.map(|portion| (portion, now))),
            None => Ok(None),
        }
    }

    /// True if portions wait, or if a part of the log is known to be unread. The answer is that of
    /// the last call of [`LogReader::waits_since`] or [`LogReader::take`].
    pub fn is_behind(&self) -> bool {
        let is_unread = match &self.source {
            Some(source) => source.is_behind(),
            None => self.is_behind,
        };
        is_unread || !self.waiting.is_empty()
    }

    /// All that the log had at this time has been taken, in ns since 1970, if the reader is not
    /// behind. A busy machine delays the thread that looks.
    pub fn looked(&self) -> i64 {
        match self.source {
            Some(_) => machine(),
            None => self.looked,
        }
    }

    /// Ends the thread. From now on, [`LogReader::take`] reads the log itself.
    pub fn stop(&mut self) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        self.shared.is_over.store(true, Ordering::Release);
        // The counter is far from full, so this never waits.
        let _ = rustix::io::write(&self.shared.over, &1_u64.to_ne_bytes());
        // A panic in the thread is one of this program.
        self.source = Some(
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        );
    }

    fn receive(&mut self) {
        // Before the portions: those that come later are of a part that is not known here.
        self.looked = self.shared.looked.load(Ordering::Acquire);
        self.is_behind = self.shared.is_behind.load(Ordering::Acquire);
        for arrived in self.arriving.try_iter() {
            match arrived {
                Ok(portion) => {
                    self.is_behind = portion.is_behind;
                    self.waiting.push_back(portion);
                }
                Err(error) => self.failed = self.failed.take().or(Some(error)),
            }
        }
    }
}

impl<S: LogSource> Drop for LogReader<S> {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Reads until the end, or until the log cannot be read.
fn read<S: LogSource>(
    mut source: S,
    mut news: LogNews,
    shared: &SharedState,
    sender: &Sender<Result<ReadPortion<S::Portion>, Error>>,
) -> S {
    // A look follows each news of the server. The server and its clients come first.
    backstory_sys::interrupt_nobody();
    while !shared.is_over.load(Ordering::Acquire) {
        let is_full = shared.waiting.load(Ordering::Relaxed) >= MOST;
        let began = machine();
        let found = match look(&mut source, shared, is_full) {
            Ok(None) => false,
            Ok(Some(portion)) => sender.send(Ok(portion)).is_ok(),
            Err(error) => {
                let _ = sender.send(Err(error));
                break;
            }
        };
        // The portion was sent before.
        let is_behind = is_full || source.is_behind();
        shared.is_behind.store(is_behind, Ordering::Release);
        if !is_behind {
            shared.looked.store(began, Ordering::Release);
        }
        let waited = match is_behind {
            true => Ok(()),
            false => news.wait(found, shared.over.as_fd(), &[]),
        };
        if let Err(error) = waited {
            let error = Error::system("wait for the server's log")(error);
            let _ = sender.send(Err(error));
            break;
        }
    }
    source
}

/// One look, unless as much waits as may wait: it `is_full`.
fn look<S: LogSource>(
    source: &mut S,
    shared: &SharedState,
    is_full: bool,
) -> Result<Option<ReadPortion<S::Portion>>, Error> {
    if is_full {
        std::thread::sleep(FULL);
        return Ok(None);
    }
    let read = Instant::now();
    let portion = source.look()?.map(|portion| ReadPortion {
        size: S::size(&portion),
        is_behind: source.is_behind(),
        portion,
        read,
    });
    let size = portion.as_ref().map_or(0, |portion| portion.size);
    shared.waiting.fetch_add(size, Ordering::Relaxed);
    Ok(portion)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_lines::LineFile;
    use std::fs::File;
    use std::io::Write;
    use std::path::Path;

    /// A log of one file.
    struct OneFile(LineFile);

    impl LogSource for OneFile {
        type Portion = Vec<u8>;

        fn look(&mut self) -> Result<Option<Vec<u8>>, Error> {
            let new = self.0.read().map_err(Error::system("read a file"))?;
            Ok((!new.text.is_empty()).then_some(new.text))
        }

        fn size(portion: &Vec<u8>) -> usize {
            portion.len()
        }

        fn is_behind(&self) -> bool {
            self.0.is_behind()
        }
    }

    fn reader(directory: &Path) -> (File, LogReader<OneFile>) {
        let path = directory.join("log");
        let writer = File::create(&path).unwrap();
        let file = LineFile::whole(File::open(&path).unwrap());
        let news = LogNews::of(directory).unwrap();
        (writer, LogReader::begin(OneFile(file), news).unwrap())
    }

    fn texts(reader: &mut LogReader<OneFile>) -> Vec<u8> {
        let portions = std::iter::from_fn(|| reader.take().unwrap());
        portions.flat_map(|(text, _)| text).collect()
    }

    #[test]
    fn what_the_log_has_when_the_thread_is_stopped_is_taken_and_what_comes_later_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let (mut writer, mut reader) = reader(directory.path());
        let mut wanted = Vec::new();
        for number in 0..1000 {
            let line = format!("{number}\n");
            writer.write_all(line.as_bytes()).unwrap();
            wanted.extend(line.into_bytes());
        }
        reader.stop();
        assert_eq!(texts(&mut reader), wanted);
        writer.write_all(b"later\n").unwrap();
        assert_eq!(texts(&mut reader), b"later\n");
        assert!(!reader.is_behind());
    }

    #[test]
    fn a_log_is_not_read_on_while_as_much_waits_as_may_wait() {
        let directory = tempfile::tempdir().unwrap();
        let (mut writer, mut reader) = reader(directory.path());
        let line = [b"x".repeat((1 << 20) - 1), b"\n".to_vec()].concat();
        let all = 2 * MOST;
        for _ in 0..all / line.len() {
            writer.write_all(&line).unwrap();
        }
        while !reader.shared.is_behind.load(Ordering::Relaxed)
            || reader.shared.waiting.load(Ordering::Relaxed) < MOST
        {
            std::thread::yield_now();
        }
        let waiting = reader.shared.waiting.load(Ordering::Relaxed);
        assert!(waiting < MOST + (8 << 20), "{waiting}");
        let mut read = 0;
        while read < all {
            read += texts(&mut reader).len();
        }
        assert_eq!(read, all);
    }

    #[test]
    fn a_log_is_behind_until_its_last_portion_was_taken() {
        let directory = tempfile::tempdir().unwrap();
        let (mut writer, mut reader) = reader(directory.path());
        let line = [b"x".repeat((1 << 20) - 1), b"\n".to_vec()].concat();
        for _ in 0..9 {
            writer.write_all(&line).unwrap();
        }
        let mut left = 9 * line.len();
        while left > 0 {
            if reader.waits_since().is_some() {
                assert!(reader.is_behind());
                left -= reader.take().unwrap().unwrap().0.len();
            }
        }
        while reader.waits_since().is_some() || reader.is_behind() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_look_proves_that_what_was_written_before_it_has_arrived() {
        let directory = tempfile::tempdir().unwrap();
        let (mut writer, mut reader) = reader(directory.path());
        for line in [b"1\n", b"2\n"] {
            writer.write_all(line).unwrap();
            let written = machine();
            let mut found = Vec::new();
            while reader.looked() < written {
                found.extend(texts(&mut reader));
            }
            found.extend(texts(&mut reader));
            assert_eq!(found, line);
        }
    }

    #[test]
    fn a_log_that_cannot_be_read_is_an_error_after_what_was_read() {
        /// Has one line.
        struct Failing(u32);

        impl LogSource for Failing {
            type Portion = u32;

            fn look(&mut self) -> Result<Option<u32>, Error> {
                self.0 += 1;
                match self.0 {
                    1 => Ok(Some(1)),
                    _ => Err(Error::closed()),
                }
            }

            fn size(_: &u32) -> usize {
                1
            }

            fn is_behind(&self) -> bool {
                true
            }
        }

        let directory = tempfile::tempdir().unwrap();
        let news = LogNews::of(directory.path()).unwrap();
        let mut reader = LogReader::begin(Failing(0), news).unwrap();
        reader.thread.take().unwrap().join().unwrap();
        assert_eq!(reader.take().unwrap().map(|(one, _)| one), Some(1));
        assert!(matches!(reader.take(), Err(Error::Broken(_))));
    }
}
