//! Writes the records of an imported run.
//!
//! In: records in the order of the imported log, with their times. Out: chunks like the guard's, in
//! which each record names its process.
//!
//! Invariant: the counters of the records rise, so that readers keep the order of the imported log.
//! A counter is a time in ns since 1970.
//!
//! An error is kept until [`RecordLog::end`], so that a format need not pass it on from each call.

use backstory_abi::{CallerIds, Chunk, op};
use backstory_eventlog::chunk::ChunkBuilder;
use backstory_eventlog::event::{Pid, Time};
use backstory_eventlog::record::RecordBuilder;
use backstory_eventlog::run::{ClockPoint, RunEnd, RunHeader};
use backstory_eventlog::{Error as LogError, Writer};
use backstory_session::Secrets;
use std::path::Path;

/// The thread that made a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallingThread {
    /// Its process.
    pub pid: Pid,
    /// The thread. The first thread of a process has the process's id.
    pub tid: Pid,
}

impl From<CallingThread> for CallerIds {
    fn from(thread: CallingThread) -> CallerIds {
        CallerIds {
            tid: thread.tid,
            ..CallerIds::of_process(thread.pid)
        }
    }
}

/// Takes the records of an imported run.
#[derive(Debug)]
pub struct RecordLog {
    /// `None` while a log is only examined.
    writer: Option<Writer>,
    builder: RecordBuilder,
    chunk: ChunkBuilder,
    /// The last counter.
    last: u64,
    failed: Option<LogError>,
    secrets: Secrets,
}

impl RecordLog {
    /// Forgets every record, for the first reading of a log.
    pub fn rehearsal() -> RecordLog {
        RecordLog::with(None, Secrets::default())
    }

    /// A new log at `path` with this header. The values of secrets do not get into it.
    ///
    /// # Errors
    ///
    /// The file cannot be made.
    pub fn create(
        path: &Path,
        header: &RunHeader,
        secrets: Secrets,
    ) -> Result<RecordLog, LogError> {
        Ok(RecordLog::with(
            Some(Writer::create(path, header)?),
            secrets,
        ))
    }

    fn with(writer: Option<Writer>, secrets: Secrets) -> RecordLog {
        RecordLog {
            writer,
            builder: RecordBuilder::new(),
            chunk: empty_chunk(0, 0),
            last: 0,
            failed: None,
            secrets,
        }
    }

    /// True if a record could not be written: further ones are pointless.
    pub fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Appends a record that `fill` completes.
    pub fn add(
        &mut self,
        op: u16,
        thread: CallingThread,
        time: Time,
        fill: impl FnOnce(&mut RecordBuilder),
    ) {
        if self.writer.is_none() || self.failed.is_some() {
            return;
        }
        let counter = self.next_counter(time);
        fill(self.builder.start(op, counter).caller(thread.into()));
        self.append();
    }

    /// The arguments of the thread's next `EXEC`.
    pub fn arguments(&mut self, thread: CallingThread, time: Time, arguments: &[Vec<u8>]) {
        let arguments = self.secrets.command(arguments);
        self.add_list(op::ARGS, thread, time, &arguments);
    }

    /// Arguments without the values of secrets.
    pub fn redacted(&self, arguments: &[Vec<u8>]) -> Vec<Vec<u8>> {
        self.secrets.command(arguments)
    }

    /// The environment of the thread's next `EXEC`.
    pub fn environment(&mut self, thread: CallingThread, time: Time, variables: &[Vec<u8>]) {
        let variables = self.secrets.environment(variables);
        self.add_list(op::ENV, thread, time, &variables);
    }

    /// Appends strings in as many records as they need (`ARGS`, `ENV`).
    fn add_list(&mut self, op: u16, thread: CallingThread, time: Time, strings: &[Vec<u8>]) {
        if self.writer.is_none() || self.failed.is_some() {
            return;
        }
        let counter = self.next_counter(time);
        self.builder
            .start(op, counter)
            .caller(thread.into())
            .result(0);
        for string in strings {
            let mut rest = &string[..];
            // A string and its NUL.
            while rest.len() >= self.builder.room() {
                let fits = self.builder.room().saturating_sub(1).min(rest.len());
                self.builder.string(&rest[..fits]).more();
                rest = &rest[fits..];
                self.append();
                let counter = self.next_counter(time);
                self.builder
                    .start(op, counter)
                    .caller(thread.into())
                    .result(0);
            }
            self.builder.string(rest);
        }
        self.append();
    }

    /// The end of a process. `status` is as wait(2) reports it, if it is known.
    pub fn gone(&mut self, pid: Pid, time: Time, status: Option<i32>) {
        let thread = CallingThread { pid, tid: pid };
        self.add(op::GONE, thread, time, |record| {
            record
                .fd(pid.cast_signed())
                .arg(status.unwrap_or(0))
                .aux(u32::from(status.is_some()))
                .result(0);
        });
    }

    fn next_counter(&mut self, time: Time) -> u64 {
        let counter = u64::try_from(time)
            .unwrap_or(0)
            .max(self.last.saturating_add(1));
        self.last = counter;
        counter
    }

    fn append(&mut self) {
        let record = self.builder.finish();
        if !self.chunk.push(record) {
            let done = self.flush();
            self.failed = self.failed.take().or(done.err());
            self.chunk.push(self.builder.finish());
        }
    }

    /// Writes the chunk, and a reading of the clock that bounds its counters.
    fn flush(&mut self) -> Result<(), LogError> {
        let Some(writer) = &mut self.writer else {
            return Ok(());
        };
        if !self.chunk.is_empty() {
            writer.chunk(self.chunk.bytes())?;
        }
        self.chunk.restart();
        let real = i64::try_from(self.last).unwrap_or(i64::MAX);
        writer.clock(ClockPoint {
            counter: self.last,
            real,
        })
    }

    /// Appends the end of the run. With `resolved`, no file of this machine is ever looked up for
    /// the run.
    ///
    /// # Errors
    ///
    /// A record, or the end, could not be written.
    pub fn end(mut self, end: &RunEnd, resolved: bool) -> Result<(), LogError> {
        let done = self.flush();
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        done?;
        if let Some(writer) = &mut self.writer {
            writer.end(end)?;
            if resolved {
                writer.resolved(&[])?;
            }
            writer.sync()?;
        }
        Ok(())
    }
}

/// A chunk of no thread. `ChunkBuilder::restart` gives each later one the next number.
fn empty_chunk(seq: u32, taken: u64) -> ChunkBuilder {
    ChunkBuilder::new(Chunk {
        seq,
        // Chunks with the time 0 are distinguished by their first record, which is slower.
        taken: taken.max(1),
        ..Chunk::default()
    })
}
