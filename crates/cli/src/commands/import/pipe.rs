//! `import --pipe`: makes a run of each log that a tool writes into a pipe.
//!
//! A log is copied into the store and imported when it has ended. If it cannot be imported, the
//! copy stays, and the message names it.

use std::fs::{DirBuilder, File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use backstory_import::{LogFiles, LogPipe, PipeEnd, PipeLog};
use backstory_store::Home;
use backstory_sys as sys;

use super::Import;
use crate::commands::Outcome;
use crate::error::{self, Failure, complain};

/// Imports logs until a signal ends the command. The log of that moment is imported, too.
pub(super) fn import_all(import: &Import<'_>, path: &Path) -> Outcome {
    let fail = |error| Failure::not_found(format!("cannot wait for signals: {error}"));
    let signals = sys::signal_fd().map_err(fail)?;
    // From now on an import is completed before the command ends.
    sys::set_mask(&sys::all_signals());
    let mut pipe = LogPipe::open(path).map_err(Failure::not_found)?;
    complain(&format!(
        "waiting for logs of the format {} at {}, until Ctrl-C",
        import.format.name(),
        path.display()
    ));
    let mut status = 0;
    loop {
        let (copy, file) = new_copy(&import.home)?;
        let log = pipe.next_log(&file, signals.as_fd(), &|_| ());
        drop(file);
        let log = log
            .inspect_err(|_| remove(&copy))
            .map_err(Failure::not_found)?;
        status = status.max(import_one(import, path, &copy, &log));
        if log.end == PipeEnd::Asked && sys::read_end_signal(signals.as_fd()) {
            return Ok(status);
        }
    }
}

/// Imports a log, and returns the exit status.
fn import_one(import: &Import<'_>, pipe: &Path, copy: &Path, log: &PipeLog) -> u8 {
    if log.bytes == 0 && log.failed.is_none() {
        remove(copy);
        return 0;
    }
    if let Some(error) = &log.failed {
        complain(&format!(
            "the end of a log of {} is lost after {} bytes: {error}; they are in {}",
            pipe.display(),
            log.bytes,
            copy.display()
        ));
        return 1;
    }
    let read = LogFiles::of_pipe(pipe, copy).map_err(Failure::not_found);
    match read.and_then(|files| import.import(&files)) {
        Ok(status) => {
            remove(copy);
            status
        }
        Err(failure) => {
            let _ = error::report(&failure);
            complain(&format!("the log is kept in {}", copy.display()));
            1
        }
    }
}

/// A file of the store for the next log.
fn new_copy(home: &Home) -> Result<(PathBuf, File), Failure> {
    let directory = home.pipes_dir();
    let path = directory.join(format!("{}.log", home.new_run_id()));
    let make = || {
        let made = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory);
        made.and_then(|()| {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(0o600).open(&path)
        })
    };
    let file = make()
        .map_err(|error| Failure::not_found(format!("cannot make {}: {error}", path.display())))?;
    Ok((path, file))
}

fn remove(copy: &Path) {
    let _ = std::fs::remove_file(copy);
}
