//! Writes the records of the run, in the format of `backstory_abi.h`.
//!
//! In: activities and uses with the server's times. Out: records in the arena, with the counter
//! that the processor had at these times.

use backstory_abi::{self as abi, CallerIds, op};
use backstory_arena::{ChunkSupply, ChunkWriter, RecordSink};
use backstory_eventlog::record::RecordBuilder;
use backstory_files::Ident;
use std::sync::Arc;

use crate::counter_times::{CounterTimes, reading};

/// Most bytes of a text in a record.
const TEXT: usize = 8 << 10;

/// How an activity used a thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceUse {
    /// Its content.
    Read,
    /// All of its content is new.
    Write,
    /// A part of its content is new.
    Change,
    /// It is removed.
    Delete,
}

/// Writes records.
pub struct DatabaseRecords {
    writer: ChunkWriter,
    builder: RecordBuilder,
    /// Events keep the order of their times.
    times: CounterTimes,
}

impl DatabaseRecords {
    /// A writer into the arena of a run.
    pub fn new(supply: Arc<ChunkSupply>) -> DatabaseRecords {
        DatabaseRecords {
            writer: ChunkWriter::new(supply),
            builder: RecordBuilder::new(),
            times: CounterTimes::new(reading()),
        }
    }

    fn append(&mut self, op: u16, time: i64, fill: impl FnOnce(&mut RecordBuilder)) {
        let time = self.times.at(time, reading);
        fill(self.builder.start(op, time));
        self.writer.append(self.builder.finish());
    }

    /// A process of this machine.
    pub fn process(
        &mut self,
        pid: u32,
        program: Option<&[u8]>,
        arguments: &[Vec<u8>],
        directory: &[u8],
        time: i64,
    ) {
        self.append(op::BORN, time, |record| record.process(pid, 0, directory));
        let Some(program) = program else { return };
        self.append(op::ARGS, time, |record| {
            record.program_arguments(pid, arguments);
        });
        self.append(op::EXEC, time, |record| {
            record.program(pid, program, arguments.len());
        });
    }

    /// An activity of the database begins, inside another one (0: none).
    pub fn work(&mut self, activity: u32, inside: u32, what: &str, text: &str, time: i64) {
        let text = cut(text, TEXT);
        self.append(op::WORK, time, |record| {
            let record = record
                .caller(CallerIds::of_process(activity))
                .fd(activity as i32);
            record
                .arg(inside as i32)
                .result(0)
                .string(what.as_bytes())
                .string(text.as_bytes());
        });
    }

    /// An activity used a thing. `number` tells things of one name apart. If it is not `sure`, it
    /// can have used it.
    pub fn used(
        &mut self,
        activity: u32,
        (name, number): (&str, i32),
        how: ResourceUse,
        sure: bool,
        time: i64,
    ) {
        let how = match how {
            ResourceUse::Read => abi::RESOURCE_READ,
            ResourceUse::Write => abi::RESOURCE_WRITE,
            ResourceUse::Change => abi::RESOURCE_CHANGE,
            ResourceUse::Delete => abi::RESOURCE_DELETE,
        };
        self.append(op::RESOURCE, time, |record| {
            record
                .caller(CallerIds::of_process(activity))
                .fd(number)
                .aux(how);
            if sure {
                record.result(0);
            }
            record.string(name.as_bytes());
        });
    }

    /// A file that the server read or wrote for an activity.
    pub fn file(
        &mut self,
        activity: u32,
        path: &str,
        written: bool,
        ident: Option<&Ident>,
        time: i64,
    ) {
        const DESCRIPTOR: i32 = 3;
        let flags = match written {
            true => libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC,
            false => libc::O_RDONLY,
        };
        self.append(op::OPEN, time, |record| {
            let record = record
                .caller(CallerIds::of_process(activity))
                .fd(libc::AT_FDCWD)
                .arg(flags);
            record.result(DESCRIPTOR).resolved().string(path.as_bytes());
        });
        let used = if written { op::WRITE } else { op::READ };
        self.append(used, time, |record| {
            record
                .caller(CallerIds::of_process(activity))
                .fd(DESCRIPTOR)
                .result(0);
        });
        self.append(op::CLOSE, time, |record| {
            record
                .caller(CallerIds::of_process(activity))
                .fd(DESCRIPTOR)
                .result(0);
            if let Some(ident) = ident {
                record.ident(ident);
            }
        });
    }

    /// A fact about an activity, as JSON.
    pub fn fact(&mut self, activity: u32, kind: &str, fact: &serde_json::Value, time: i64) {
        let text = fact.to_string();
        self.append(op::FACT, time, |record| {
            let record = record.caller(CallerIds::of_process(activity)).result(0);
            record.string(kind.as_bytes()).string(text.as_bytes());
        });
    }

    /// An activity or process has ended.
    pub fn gone(&mut self, pid: u32, time: i64) {
        self.append(op::GONE, time, |record| {
            record
                .caller(CallerIds::of_process(pid))
                .fd(pid as i32)
                .result(0);
        });
    }
}

/// The beginning of a text, at most this many bytes long.
pub fn cut(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}
