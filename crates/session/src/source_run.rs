//! A run without a command of its own: another source than the recorder and the guard writes its
//! records, as a mounted file system does.
//!
//! In: records, through the supply of chunks. Out: a finalized log.
//!
//! Invariants:
//!
//! - Records are in the arena when [`RecordSink::append`](backstory_arena::RecordSink::append)
//!   returns. If this process is killed, the next command takes them from there.
//! - Memory is bounded by the arena. A record that finds no room is counted as lost, and the run is
//!   then incomplete.

use crate::drain::{self, ChunkSelection, Drainer};
use crate::part_lock::claimed_log;
use crate::redact::Secrets;
use crate::{Error, Options, RecordingResult, clock, header, launch};
use backstory_abi as abi;
use backstory_arena::{Arena, ChunkSupply};
use backstory_eventlog::Reason;
use backstory_eventlog::run::{Modes, RunEnd};
use backstory_preserve::SourcePreserver;
use backstory_vocabulary::ContentsMode;
use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// A run that is being recorded by a source.
pub struct SourceRun {
    options: Options,
    supply: Arc<ChunkSupply>,
    drainer: Arc<Mutex<Drainer>>,
    thread: Option<JoinHandle<()>>,
    /// The file systems' clock at the start.
    began: i64,
    _claim: File,
}

impl SourceRun {
    /// Begins a run of a source: its log exists from now on, and a thread moves records into it.
    ///
    /// # Errors
    ///
    /// The shared memory, the log or the thread cannot be made.
    pub fn begin(options: Options, source: &str) -> Result<SourceRun, Error> {
        // Without this flag the drain would report programs that the recorder did not enter.
        let arena = Arena::create(&options.id, abi::ARENA_GUARDED)?;
        let mut head = header::header(&options, &launch::environment(), &[], arena.path());
        head.source = Some(source.to_owned());
        head.modes = Modes {
            contents: Some(options.contents),
            rows: options.rows,
            ..Modes::default()
        };
        let part = &options.part;
        arena.feeds(&std::path::absolute(part).unwrap_or_else(|_| part.clone()));
        let (log, claim) = claimed_log(part, &head).inspect_err(|_| arena.remove())?;
        let supply = ChunkSupply::new(arena);
        supply.arena.survive_truncation();
        let secrets = Secrets::new(&options.redact);
        let drainer = Drainer::new(Arc::clone(&supply), log, secrets);
        let drainer = Arc::new(Mutex::new(drainer));
        let thread = {
            let (supply, drainer) = (Arc::clone(&supply), Arc::clone(&drainer));
            std::thread::Builder::new()
                .name("drain".to_owned())
                .spawn(move || drain::run(&supply, &drainer, drain::Asking::Possible))
        };
        let thread = Some(thread.map_err(Error::system("start a thread"))?);
        Ok(SourceRun {
            options,
            supply,
            drainer,
            thread,
            began: backstory_sys::clock::files(),
            _claim: claim,
        })
    }

    /// The supply of chunks for the source's records.
    pub fn supply(&self) -> Arc<ChunkSupply> {
        Arc::clone(&self.supply)
    }

    /// The preserver of contents, for a source that asks it before each change. Contents take at
    /// most `limit` bytes until they are stored, after the run. `None` if the run stores none.
    pub fn preserver(&self, limit: Option<u64>) -> Option<SourcePreserver> {
        let contents = self.options.contents;
        let preserver =
            || SourcePreserver::new(contents, self.options.kept_dir(), limit, &self.supply);
        (contents != ContentsMode::Off).then(preserver)
    }

    /// The id of the run.
    pub fn id(&self) -> &str {
        &self.options.id
    }

    /// Forgets the run, which recorded nothing: no log is left.
    pub fn abandon(mut self) {
        self.stop();
        self.supply.arena.remove();
        // They may be gone already.
        let _ = std::fs::remove_file(&self.options.part);
        let _ = std::fs::remove_dir(self.options.kept_dir());
    }

    fn stop(&mut self) {
        self.supply.stop();
        if let Some(thread) = self.thread.take() {
            // A panic in the thread left the chunks in the arena, for the last pass.
            let _ = thread.join();
        }
    }

    /// Ends the run, after the last writer of records has been dropped.
    ///
    /// # Errors
    ///
    /// The log cannot be finalized. The next command that may write the store does it.
    pub fn end(self, reasons: &[Reason]) -> Result<RecordingResult, Error> {
        self.end_with(0, reasons)
    }

    /// The same with the exit status of the command that recorded.
    ///
    /// # Errors
    ///
    /// As [`SourceRun::end`].
    pub fn end_with(mut self, exit: i32, reasons: &[Reason]) -> Result<RecordingResult, Error> {
        self.stop();
        let mut drainer = self.drainer.lock().unwrap_or_else(PoisonError::into_inner);
        drainer.pass(ChunkSelection::All);
        let mut end = drainer.finish(|drainer| self.last_frame(drainer, exit, reasons));
        drainer.sync();
        let (part, log) = (&self.options.part, &self.options.log);
        if let Some(reason) = drainer.replaced(part) {
            end.incomplete_because.insert(0, reason.to_string());
        }
        std::fs::rename(part, log).map_err(Error::file("finalize", part))?;
        self.supply.arena.remove();
        let missing = end.lost > 0 || !end.incomplete_because.is_empty();
        Ok(RecordingResult {
            run: self.options.id.clone(),
            exit: end.exit,
            complete: Some(!missing),
            lost: end.lost,
            reasons: end.incomplete_because,
            warnings: end.warnings,
            ..RecordingResult::default()
        })
    }

    fn last_frame(&self, drainer: &Drainer, exit: i32, reasons: &[Reason]) -> RunEnd {
        let now = clock::now();
        let given = reasons.iter().cloned();
        let because = given.chain(drainer.broken()).chain(drainer.loss());
        RunEnd {
            exit: Some(exit),
            command_ended: now,
            ended: now,
            lost: drainer.lost(),
            incomplete_because: because.map(|reason| reason.to_string()).collect(),
            warnings: clock::was_set().iter().map(Reason::to_string).collect(),
            quiet: clock::valid_reading(self.began),
            ..RunEnd::default()
        }
    }
}
