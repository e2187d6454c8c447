//! The copies of logs that come through a pipe, until their runs are in the store.
//!
//! | name in `pipes` | content |
//! | --- | --- |
//! | `ID.KEY.open` | a log that goes on |
//! | `ID.KEY.log` | a log that has ended |
//! | `ID.KEY.kept` | a log that could not be imported |
//! | `ID.KEY.runs` | the runs of a part of the log, one a line |
//!
//! KEY stands for the format and the pipe. A copy is locked (flock(2)) by the reader of the pipe. A
//! copy without a lock is of a reader that was killed, and the next reader takes it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use backstory_store::Home;

use crate::error::Failure;

/// The directory with the copies of a pipe's logs.
pub(super) struct PipeCopies<'a> {
    home: &'a Home,
    directory: PathBuf,
    key: String,
}

/// The copy of a log.
pub(super) struct LogCopy {
    path: PathBuf,
    /// The lock of the reader.
    _lock: File,
}

/// The copies that killed readers left.
#[derive(Default)]
pub(super) struct LeftCopies {
    /// Of logs that have ended.
    pub ended: Vec<LogCopy>,
    /// Of a log that may go on, with its file.
    pub open: Option<(LogCopy, File)>,
}

impl<'a> PipeCopies<'a> {
    /// The copies of a pipe's logs of a format.
    pub(super) fn of(home: &'a Home, format: &str, pipe: &Path) -> io::Result<PipeCopies<'a>> {
        let directory = home.pipes_dir();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory)?;
        let path = std::path::absolute(pipe)?;
        let hash = blake3::hash(path.as_os_str().as_encoded_bytes()).to_hex();
        Ok(PipeCopies {
            home,
            directory,
            key: format!("{format}-{}", &hash[..16]),
        })
    }

    /// A copy for the next log, and its file.
    pub(super) fn begin(&self) -> Result<(LogCopy, File), Failure> {
        let name = format!("{}.{}.open", self.home.new_run_id(), self.key);
        let path = self.directory.join(name);
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create_new(true).mode(0o600);
        let made = options
            .open(&path)
            .and_then(|file| Ok((LogCopy::locked(&path, &file)?, file)));
        made.map_err(|error| Failure::not_found(format!("cannot make {}: {error}", path.display())))
    }

    /// The copies of killed readers.
    pub(super) fn left(&self) -> io::Result<LeftCopies> {
        let mut left = LeftCopies::default();
        for entry in fs::read_dir(&self.directory)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let Some(state) = name
                .split_once('.')
                .and_then(|(_, rest)| rest.strip_prefix(&self.key))
            else {
                continue;
            };
            if !matches!(state, ".open" | ".log") {
                continue;
            }
            let is_open = state == ".open";
            let file = OpenOptions::new().read(true).write(true).open(&path)?;
            let Ok(mut copy) = LogCopy::locked(&path, &file) else {
                continue;
            };
            match left.open {
                None if is_open => left.open = Some((copy, file)),
                _ => {
                    copy.end()?;
                    left.ended.push(copy);
                }
            }
        }
        Ok(left)
    }
}

impl LogCopy {
    /// Locks a copy. An error if another reader has it.
    fn locked(path: &Path, file: &File) -> io::Result<LogCopy> {
        let lock = file.try_clone()?;
        lock.try_lock()?;
        Ok(LogCopy {
            path: path.to_owned(),
            _lock: lock,
        })
    }

    /// Where the copy is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The log has ended.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.become_one("log")
    }

    /// The log cannot be imported. It stays, and no reader takes it.
    pub(super) fn keep(&mut self) -> &Path {
        let _ = self.become_one("kept");
        let _ = fs::remove_file(self.path.with_extension("runs"));
        &self.path
    }

    fn become_one(&mut self, state: &str) -> io::Result<()> {
        let path = self.path.with_extension(state);
        fs::rename(&self.path, &path)?;
        self.path = path;
        Ok(())
    }

    /// Removes the copy.
    pub(super) fn remove(self) {
        let _ = fs::remove_file(self.path.with_extension("runs"));
        let _ = fs::remove_file(&self.path);
    }
}

/// The runs of a part of the log in a copy.
pub(super) fn runs_of_parts(copy: &Path) -> Vec<String> {
    let text = fs::read_to_string(copy.with_extension("runs")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Notes them, before their logs are written.
pub(super) fn note_runs_of_parts(copy: &Path, runs: &[String]) -> io::Result<()> {
    fs::write(copy.with_extension("runs"), runs.join("\n"))
}
