//! `import --pipe`: makes a run of each log that a tool writes into a pipe.
//!
//! A log is moved into a copy in the store. The copy is imported when the log has ended, and at
//! intervals before, if the format has lines. A log that is long becomes several runs, so that an
//! import needs bounded memory. A log that cannot be imported is kept, and the message names it.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use backstory_import::{LogPipe, PipeEnd, PipeLimits, PipeLog};
use backstory_sys as sys;

use super::Import;
use super::copies::{LogCopy, PipeCopies};
use super::pipe_importer::{PipeImporter, beside_importer};
use crate::commands::Outcome;
use crate::error::{Failure, complain};

/// The bytes at which a log of lines becomes a run, although it goes on.
const LONG: u64 = 128 << 20;

/// Imports logs until a signal ends the command. The log of that moment is imported, too.
pub(super) fn import_all(import: &Import<'_>, path: &Path) -> Outcome {
    let fail = |error| Failure::not_found(format!("cannot wait for signals: {error}"));
    let signals = sys::signal_fd().map_err(fail)?;
    // From now on an import is completed before the command ends.
    sys::set_mask(&sys::all_signals());
    let pipe = LogPipe::open(path).map_err(Failure::not_found)?;
    let fail = |error| format!("cannot use {}: {error}", import.home.pipes_dir().display());
    let fail = |error| Failure::not_found(fail(error));
    let copies = PipeCopies::of(&import.home, import.format.name(), path).map_err(fail)?;
    let left = copies.left().map_err(fail)?;
    let hint = match import.format.is_of_lines() && !import.args.one_run {
        true => "; each time the pipe is closed, a run is made (--one-run makes one of all)",
        false => "",
    };
    complain(&format!(
        "waiting for logs of the format {} at {}, until Ctrl-C{hint}",
        import.format.name(),
        path.display()
    ));
    beside_importer(import, path, |importer| {
        for copy in left.ended {
            importer.whole(copy);
        }
        let reader = PipeReader {
            path,
            pipe,
            copies,
            importer,
            every: (import.args.every > 0 && import.format.is_of_lines())
                .then(|| Duration::from_secs(import.args.every)),
            one_run: import.args.one_run,
        };
        reader.read(left.open, signals.as_fd())
    })
}

/// Reads a pipe.
struct PipeReader<'a> {
    path: &'a Path,
    pipe: LogPipe,
    copies: PipeCopies<'a>,
    importer: PipeImporter<'a>,
    /// How often a log that goes on is imported.
    every: Option<Duration>,
    /// The log goes on when its writers have closed the pipe.
    one_run: bool,
}

impl PipeReader<'_> {
    /// Reads logs until a signal asks for the end. `open` is the copy of a log that an earlier
    /// reader began.
    fn read(
        mut self,
        open: Option<(LogCopy, File)>,
        signals: BorrowedFd<'_>,
    ) -> Result<(), Failure> {
        let mut next = match open {
            Some(open) => open,
            None => self.copies.begin()?,
        };
        loop {
            let (copy, file) = next;
            let fail = |error| format!("cannot read {}: {error}", copy.path().display());
            let mut log =
                PipeLog::into_file(file).map_err(|error| Failure::not_found(fail(error)))?;
            let end = self.read_one(&copy, &mut log, signals);
            let is_last = !matches!(end, Ok(PipeEnd::Closed | PipeEnd::Full));
            if matches!(end, Ok(PipeEnd::Full)) {
                complain(&format!(
                    "a log of {} has {} bytes: they become a run, and the next one begins",
                    self.path.display(),
                    log.bytes()
                ));
            }
            self.end(copy, &log);
            if is_last {
                return end.map(drop);
            }
            next = self.copies.begin()?;
        }
    }

    /// Reads a log until it ends, and shows what has come so far.
    fn read_one(
        &mut self,
        copy: &LogCopy,
        log: &mut PipeLog,
        signals: BorrowedFd<'_>,
    ) -> Result<PipeEnd, Failure> {
        let mut shown = 0;
        // The lines that an earlier reader left are shown at once.
        let mut due = self.every.map(|every| match log.bytes() {
            0 => self.importer.next(every),
            _ => Instant::now(),
        });
        loop {
            let limits = PipeLimits {
                due,
                bytes: if self.every.is_some() { LONG } else { u64::MAX },
                closed: !self.one_run,
            };
            let end = self.pipe.fill(log, signals, limits);
            match end.map_err(Failure::not_found)? {
                PipeEnd::Due => {
                    let has_more = log.lines() > shown && log.failed().is_none();
                    if has_more && self.importer.part(copy, log.lines()) {
                        shown = log.lines();
                    }
                    due = self.every.map(|every| self.importer.next(every));
                }
                // Another signal.
                PipeEnd::Asked if !sys::read_end_signal(signals) => {}
                end => return Ok(end),
            }
        }
    }

    /// Passes a log that has ended on.
    fn end(&self, mut copy: LogCopy, log: &PipeLog) {
        if let Some(error) = log.failed() {
            complain(&format!(
                "the end of a log of {} is lost after {} bytes: {error}; they are in {}",
                self.path.display(),
                log.bytes(),
                copy.keep().display()
            ));
            return self.importer.failed();
        }
        if log.bytes() == 0 {
            return copy.remove();
        }
        // The next reader would take it for one that goes on, and find that it has ended.
        let _ = copy.end();
        self.importer.whole(copy);
    }
}
