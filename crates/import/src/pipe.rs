//! A pipe into which a tool writes its log, as into the pipe of SPADE's reporter `DSL`.
//!
//! In: a named pipe (fifo(7)). Out: a file for each log. A log ends when the last program that has
//! the pipe open for writing closes it.
//!
//! Invariants:
//!
//! - A byte is in the pipe or in the file: the kernel moves it (splice(2)). So a reader that is
//!   killed loses nothing.
//! - The pipe is read to its end even if the file cannot be written, so that no program waits or
//!   receives SIGPIPE.

use crate::Error;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, splice};
use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Bytes that are read at once: what a pipe holds by default.
const PIECE: usize = 1 << 16;
/// Pieces that are still read when the log is to end: what the largest pipe of an ordinary user
/// holds (pipe(7)).
const LAST_PIECES: u32 = 16;

/// A named pipe that is open for reading.
#[derive(Debug)]
pub struct LogPipe {
    path: PathBuf,
    pipe: OwnedFd,
    /// The pipe was not there before.
    made: bool,
}

/// Why the log was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PipeEnd {
    /// All writers have closed the pipe.
    Closed,
    /// The other descriptor became readable.
    Asked,
    /// The moment has come. The log goes on.
    Due,
    /// It has enough bytes, and ends with a line.
    Full,
}

/// When a log is left although it goes on.
#[derive(Debug, Clone, Copy)]
pub struct PipeLimits {
    /// At this moment.
    pub due: Option<Instant>,
    /// At the first end of a line from this number of bytes on.
    pub bytes: u64,
    /// When all writers have closed the pipe. Otherwise the next writer goes on with the log, in a
    /// line of its own.
    pub closed: bool,
}

/// The outcome of a look into a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    /// All that was there, if anything.
    All,
    /// It is empty, and no program has it open for writing.
    NoWriter,
}

/// A log that comes through a pipe.
#[derive(Debug)]
pub struct PipeLog {
    file: File,
    bytes: u64,
    lines: u64,
    failed: Option<io::Error>,
}

impl PipeLog {
    /// A log in a file that can be read and written. A file with content is continued.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn into_file(file: File) -> io::Result<PipeLog> {
        let mut log = PipeLog {
            bytes: 0,
            lines: 0,
            failed: None,
            file,
        };
        let bytes = log.file.metadata()?.len();
        while log.bytes < bytes {
            log.grow((bytes - log.bytes).min(PIECE as u64))?;
        }
        Ok(log)
    }

    /// The bytes that are in the file.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The bytes of the lines that are complete.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// The error after which no more was written.
    pub fn failed(&self) -> Option<&io::Error> {
        self.failed.as_ref()
    }

    /// Ends the last line, unless it has ended. The next writer begins a line of its own.
    fn end_line(&mut self) {
        if self.failed.is_none() && self.lines < self.bytes {
            let written = self.file.write_all_at(b"\n", self.bytes);
            self.failed = written.and_then(|()| self.grow(1)).err();
        }
    }

    /// Counts bytes that were added.
    fn grow(&mut self, added: u64) -> io::Result<()> {
        let mut piece = vec![0; added as usize];
        self.file.read_exact_at(&mut piece, self.bytes)?;
        if let Some(at) = memchr::memrchr(b'\n', &piece) {
            self.lines = self.bytes + at as u64 + 1;
        }
        self.bytes += added;
        Ok(())
    }

    /// Moves what is in the pipe to the file. Returns the number of bytes, 0 if no program has the
    /// pipe open for writing.
    fn take(&mut self, pipe: &OwnedFd) -> Result<usize, Errno> {
        if self.failed.is_none() {
            let mut at = self.bytes;
            let moved = splice(
                pipe,
                None,
                &self.file,
                Some(&mut at),
                PIECE,
                SpliceFlags::NONBLOCK,
            );
            match moved {
                Ok(moved) => {
                    self.failed = self.grow(moved as u64).err();
                    return Ok(moved);
                }
                Err(error @ (Errno::AGAIN | Errno::INTR)) => return Err(error),
                // The file is full, or of a kind to which nothing can be moved. Then it is copied.
                Err(_) => {}
            }
        }
        let mut piece = vec![0; PIECE];
        let read = rustix::io::read(pipe, &mut piece)?;
        if self.failed.is_none() {
            let written = self.file.write_all_at(&piece[..read], self.bytes);
            self.failed = written.and_then(|()| self.grow(read as u64)).err();
        }
        Ok(read)
    }
}

impl LogPipe {
    /// Opens the pipe, and makes it if nothing has this path. Other users may not use a pipe that
    /// is made here.
    ///
    /// # Errors
    ///
    /// There is another kind of file, or the pipe cannot be made or opened.
    pub fn open(path: &Path) -> Result<LogPipe, Error> {
        let made = match mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(error) => return Err(Error::write("make the pipe", path)(error.into())),
        };
        let kind = std::fs::symlink_metadata(path).map_err(Error::read(path))?;
        if !kind.file_type().is_fifo() {
            return Err(Error::NotOfOneRun {
                path: path.to_owned(),
                why: "this is no pipe; import a file without --pipe",
            });
        }
        let pipe = reader(path)?;
        let path = path.to_owned();
        Ok(LogPipe { path, pipe, made })
    }

    /// Waits for a log and moves it to its file, until a limit is reached, `asked` is readable, or
    /// the log has ended. Called again, it goes on. A log that an earlier reader began has ended if
    /// no program has the pipe open.
    ///
    /// # Errors
    ///
    /// The pipe cannot be read, or is gone.
    pub fn fill(
        &mut self,
        log: &mut PipeLog,
        asked: BorrowedFd<'_>,
        limits: PipeLimits,
    ) -> Result<PipeEnd, Error> {
        // poll(2) does not tell a reader that the writers of an earlier reader are gone.
        if log.bytes > 0 && self.take(log)? == Taken::NoWriter && ends(log, limits) {
            return Ok(PipeEnd::Closed);
        }
        let mut last_pieces = 0;
        loop {
            if log.bytes >= limits.bytes && log.lines == log.bytes {
                return Ok(PipeEnd::Full);
            }
            let left = limits
                .due
                .map(|due| due.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(PipeEnd::Due);
            }
            let left = left.map(|left| Timespec {
                tv_sec: left.as_secs().cast_signed(),
                tv_nsec: left.subsec_nanos().into(),
            });
            let mut waiting = [
                PollFd::new(&self.pipe, PollFlags::IN),
                PollFd::from_borrowed_fd(asked, PollFlags::IN),
            ];
            match poll(&mut waiting, left.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(Error::read(&self.path)(error.into())),
            }
            let is_asked = waiting[1].revents().contains(PollFlags::IN);
            let is_ready = !waiting[0].revents().is_empty();
            if is_asked && (!is_ready || last_pieces == LAST_PIECES) {
                return Ok(PipeEnd::Asked);
            }
            if !is_ready {
                continue;
            }
            last_pieces += u32::from(is_asked);
            let is_empty = log.bytes == 0 && log.failed.is_none();
            if self.take(log)? == Taken::NoWriter && !is_empty && ends(log, limits) {
                return Ok(PipeEnd::Closed);
            }
        }
    }

    /// Moves what is in the pipe to the file of a log.
    fn take(&mut self, log: &mut PipeLog) -> Result<Taken, Error> {
        match log.take(&self.pipe) {
            Ok(0) => {
                // A pipe whose writers are gone is ready forever. This descriptor is closed after
                // the next one is open, so that a writer in between finds a reader.
                self.pipe = reader(&self.path)?;
                Ok(Taken::NoWriter)
            }
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(Taken::All),
            Err(error) => Err(Error::read(&self.path)(error.into())),
        }
    }
}

impl Drop for LogPipe {
    fn drop(&mut self) {
        if self.made {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// True if a log ends because all writers have closed the pipe.
fn ends(log: &mut PipeLog, limits: PipeLimits) -> bool {
    if !limits.closed {
        log.end_line();
    }
    limits.closed
}

/// Opens a pipe for reading. This does not wait for a writer.
fn reader(path: &Path) -> Result<OwnedFd, Error> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::open(path, flags, Mode::empty()).map_err(|error| Error::read(path)(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;

    fn written(path: &Path, text: &str) {
        let mut writer = File::options().write(true).open(path).unwrap();
        writer.write_all(text.as_bytes()).unwrap();
    }

    const NONE: PipeLimits = PipeLimits {
        due: None,
        bytes: u64::MAX,
        closed: true,
    };

    fn new_log() -> PipeLog {
        PipeLog::into_file(tempfile::tempfile().unwrap()).unwrap()
    }

    fn text(log: &PipeLog) -> String {
        let mut bytes = vec![0; log.bytes() as usize];
        log.file.read_exact_at(&mut bytes, 0).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn each_time_that_the_pipe_is_closed_a_log_has_ended() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        let mut pipe = LogPipe::open(&path).unwrap();
        let (asked, ask) = rustix::pipe::pipe().unwrap();
        for words in ["one\ntwo\n", "three\n"] {
            let mut log = new_log();
            written(&path, words);
            let end = pipe.fill(&mut log, asked.as_fd(), NONE).unwrap();
            assert_eq!((end, text(&log).as_str()), (PipeEnd::Closed, words));
        }
        // A writer that still has the pipe open.
        let mut writer = File::options().write(true).open(&path).unwrap();
        writer.write_all(b"four\nfi").unwrap();
        rustix::io::write(&ask, b"x").unwrap();
        let mut log = new_log();
        let end = pipe.fill(&mut log, asked.as_fd(), NONE).unwrap();
        assert_eq!((log.bytes(), log.lines(), end), (7, 5, PipeEnd::Asked));
        drop(pipe);
        assert!(!path.exists());
    }

    #[test]
    fn a_log_goes_on_after_a_moment_and_after_its_reader() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        let mut pipe = LogPipe::open(&path).unwrap();
        let (asked, _ask) = rustix::pipe::pipe().unwrap();
        let mut writer = File::options().write(true).open(&path).unwrap();
        let mut log = new_log();
        for words in ["one\n", "two\n"] {
            writer.write_all(words.as_bytes()).unwrap();
            while !text(&log).ends_with(words) {
                let soon = Instant::now() + std::time::Duration::from_millis(10);
                let soon = PipeLimits {
                    due: Some(soon),
                    ..NONE
                };
                let end = pipe.fill(&mut log, asked.as_fd(), soon).unwrap();
                assert_eq!(end, PipeEnd::Due);
            }
        }
        // Another reader has the file, and what was written meanwhile.
        pipe.made = false;
        let next = LogPipe::open(&path).unwrap();
        drop(std::mem::replace(&mut pipe, next));
        writer.write_all(b"three\n").unwrap();
        let mut log = PipeLog::into_file(log.file).unwrap();
        assert_eq!(log.lines(), 8);
        drop(writer);
        let end = pipe.fill(&mut log, asked.as_fd(), NONE).unwrap();
        assert_eq!(
            (end, text(&log).as_str()),
            (PipeEnd::Closed, "one\ntwo\nthree\n")
        );
        // One that wants no more bytes leaves them in the pipe.
        let full = PipeLimits { bytes: 14, ..NONE };
        assert_eq!(
            pipe.fill(&mut log, asked.as_fd(), full).unwrap(),
            PipeEnd::Closed
        );
        // A third one finds the writers gone.
        let mut pipe = LogPipe::open(&path).unwrap();
        let end = pipe.fill(&mut log, asked.as_fd(), NONE).unwrap();
        assert_eq!(end, PipeEnd::Closed);
    }

    #[test]
    fn the_next_writer_of_a_log_begins_a_line_of_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        let mut pipe = LogPipe::open(&path).unwrap();
        let (asked, ask) = rustix::pipe::pipe().unwrap();
        let mut log = new_log();
        written(&path, "one");
        // The log is full when its last line has ended.
        let full = PipeLimits {
            due: Some(Instant::now() + std::time::Duration::from_secs(60)),
            bytes: 4,
            closed: false,
        };
        let end = pipe.fill(&mut log, asked.as_fd(), full).unwrap();
        assert_eq!((end, text(&log).as_str()), (PipeEnd::Full, "one\n"));
        // A reader that is asked to end takes what is there.
        written(&path, "two\n");
        rustix::io::write(&ask, b"x").unwrap();
        let rest = PipeLimits {
            bytes: u64::MAX,
            ..full
        };
        let end = pipe.fill(&mut log, asked.as_fd(), rest).unwrap();
        assert_eq!((end, text(&log).as_str()), (PipeEnd::Asked, "one\ntwo\n"));
    }

    #[test]
    fn writers_go_on_when_the_file_is_full() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        let mut pipe = LogPipe::open(&path).unwrap();
        let (asked, _ask) = rustix::pipe::pipe().unwrap();
        let writer = path.clone();
        // More than a pipe holds.
        let writer = std::thread::spawn(move || written(&writer, &"x".repeat(3 * PIECE)));
        let full = File::options().read(true).write(true).open("/dev/full");
        let mut log = PipeLog::into_file(full.unwrap()).unwrap();
        let end = pipe.fill(&mut log, asked.as_fd(), NONE).unwrap();
        writer.join().unwrap();
        assert_eq!(end, PipeEnd::Closed);
        let why = log.failed().unwrap();
        assert_eq!(why.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn another_file_is_no_pipe_and_stays() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = LogPipe::open(file.path()).unwrap_err().to_string();
        assert!(
            error.ends_with("this is no pipe; import a file without --pipe"),
            "{error}"
        );
        assert!(file.path().exists());
    }
}
