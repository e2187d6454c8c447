//! A pipe into which a tool writes its log, as into the pipe of SPADE's reporter `DSL`.
//!
//! In: a named pipe (fifo(7)). Out: a file for each log. A log ends when the last program that has
//! the pipe open for writing closes it.
//!
//! Invariant: the pipe is read to its end even if the file cannot be written, so that no program
//! waits or receives SIGPIPE.

use crate::Error;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::io::Errno;
use std::fs::File;
use std::io::Write;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

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

/// Why no more of a log comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PipeEnd {
    /// All writers have closed the pipe.
    Closed,
    /// The other descriptor became readable.
    Asked,
}

/// A log that came through a pipe.
#[derive(Debug)]
pub struct PipeLog {
    /// The number of bytes that were written to the file.
    pub bytes: u64,
    /// Why it ended.
    pub end: PipeEnd,
    /// The error after which no more was written.
    pub failed: Option<std::io::Error>,
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

    /// Waits for a log and copies it to `file`, until `asked` is readable or the log has ended.
    ///
    /// # Errors
    ///
    /// The pipe cannot be read, or is gone.
    pub fn next_log(
        &mut self,
        mut file: &File,
        asked: BorrowedFd<'_>,
        done: &dyn Fn(u64),
    ) -> Result<PipeLog, Error> {
        let mut log = PipeLog {
            bytes: 0,
            end: PipeEnd::Asked,
            failed: None,
        };
        let mut piece = vec![0; PIECE];
        let mut last_pieces = 0;
        loop {
            let mut waiting = [
                PollFd::new(&self.pipe, PollFlags::IN),
                PollFd::from_borrowed_fd(asked, PollFlags::IN),
            ];
            match poll(&mut waiting, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(Error::read(&self.path)(error.into())),
            }
            let is_asked = waiting[1].revents().contains(PollFlags::IN);
            let is_ready = !waiting[0].revents().is_empty();
            if is_asked && (!is_ready || last_pieces == LAST_PIECES) {
                return Ok(log);
            }
            if !is_ready {
                continue;
            }
            last_pieces += u32::from(is_asked);
            match rustix::io::read(&self.pipe, &mut piece) {
                Ok(0) => {
                    // A pipe whose writers are gone is ready forever. This descriptor is closed
                    // after the next one is open, so that a writer in between finds a reader.
                    self.pipe = reader(&self.path)?;
                    if log.bytes > 0 || log.failed.is_some() {
                        log.end = PipeEnd::Closed;
                        return Ok(log);
                    }
                }
                Ok(read) => {
                    if log.failed.is_none() {
                        log.failed = file.write_all(&piece[..read]).err();
                        log.bytes += read as u64;
                    }
                    done(read as u64);
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(Error::read(&self.path)(error.into())),
            }
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

/// Opens a pipe for reading. This does not wait for a writer.
fn reader(path: &Path) -> Result<OwnedFd, Error> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::open(path, flags, Mode::empty()).map_err(|error| Error::read(path)(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    fn written(path: &Path, text: &str) {
        let mut writer = File::options().write(true).open(path).unwrap();
        writer.write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn each_time_that_the_pipe_is_closed_a_log_has_ended() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        let mut pipe = LogPipe::open(&path).unwrap();
        let (asked, ask) = rustix::pipe::pipe().unwrap();
        for text in ["one\ntwo\n", "three\n"] {
            let file = tempfile::NamedTempFile::new().unwrap();
            written(&path, text);
            let log = pipe
                .next_log(file.as_file(), asked.as_fd(), &|_| ())
                .unwrap();
            assert_eq!((log.bytes as usize, log.end), (text.len(), PipeEnd::Closed));
            assert_eq!(std::fs::read_to_string(file.path()).unwrap(), text);
        }
        // A writer that still has the pipe open.
        let mut writer = File::options().write(true).open(&path).unwrap();
        writer.write_all(b"four\n").unwrap();
        rustix::io::write(&ask, b"x").unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        let log = pipe
            .next_log(file.as_file(), asked.as_fd(), &|_| ())
            .unwrap();
        assert_eq!((log.bytes, log.end), (5, PipeEnd::Asked));
        drop(pipe);
        assert!(!path.exists());
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
        let full = File::options().write(true).open("/dev/full").unwrap();
        let log = pipe.next_log(&full, asked.as_fd(), &|_| ()).unwrap();
        writer.join().unwrap();
        assert_eq!(log.end, PipeEnd::Closed);
        let why = log.failed.unwrap();
        assert_eq!(why.kind(), std::io::ErrorKind::StorageFull);
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
