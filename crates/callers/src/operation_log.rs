//! Writes the records of operations, in the format of `backstory_abi.h`.
//!
//! In: a caller, an operation and its result. Out: a record in the arena. Each thread writes into
//! chunks of its own, so that threads do not wait for each other.

use backstory_abi::{CallerIds, RESOURCE_CHANGE, RESOURCE_READ, op};
use backstory_arena::{ChunkSupply, ChunkWriter, RecordSink};
use backstory_eventlog::record::RecordBuilder;
use backstory_files::Ident;
use rustix::io::Errno;
use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    static STREAM: RefCell<Option<RecordStream>> = const { RefCell::new(None) };
}

/// The chunk that a thread writes into.
struct RecordStream {
    supply: Arc<ChunkSupply>,
    writer: ChunkWriter,
    builder: RecordBuilder,
}

/// An operation of a process, without its caller and time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Operation<'a> {
    /// `op::*`
    pub op: u16,
    /// See `BS_OPS`; by default `AT_FDCWD` where the operation has paths.
    pub fd: i32,
    /// See `BS_OPS`.
    pub arg: i32,
    /// See `BS_OPS`.
    pub aux: u32,
    /// At least 0, or `-errno`.
    pub result: i32,
    /// See `BS_OPS`.
    pub ident: Option<Ident>,
    /// Absolute paths, or a text.
    pub strings: [Option<&'a [u8]>; 2],
}

impl<'a> Operation<'a> {
    /// An operation on an absolute path.
    pub fn on(op: u16, path: &'a [u8]) -> Operation<'a> {
        Operation {
            op,
            fd: libc::AT_FDCWD,
            strings: [Some(path), None],
            ..Operation::default()
        }
    }

    /// An operation on two absolute paths.
    pub fn between(op: u16, old: &'a [u8], new: &'a [u8]) -> Operation<'a> {
        Operation {
            op,
            fd: libc::AT_FDCWD,
            arg: libc::AT_FDCWD,
            strings: [Some(old), Some(new)],
            ..Operation::default()
        }
    }

    /// An operation on a descriptor.
    pub fn through(op: u16, fd: i32) -> Operation<'a> {
        Operation {
            op,
            fd,
            ..Operation::default()
        }
    }

    /// The same with this result.
    pub fn with<T>(self, result: &Result<T, Errno>) -> Operation<'a> {
        self.returning(result, 0)
    }

    /// The same with this value as its result, or the error.
    pub fn returning<T>(self, result: &Result<T, Errno>, value: i32) -> Operation<'a> {
        let result = match result {
            Ok(_) => value,
            Err(error) => -error.raw_os_error(),
        };
        Operation { result, ..self }
    }
}

/// Writes records.
#[derive(Clone)]
pub struct OperationLog {
    supply: Arc<ChunkSupply>,
}

impl OperationLog {
    /// A log into the arena of a run.
    pub fn new(supply: Arc<ChunkSupply>) -> OperationLog {
        OperationLog { supply }
    }

    /// Appends a record that `fill` completes.
    fn append(&self, op: u16, time: u64, fill: impl FnOnce(&mut RecordBuilder)) {
        STREAM.with_borrow_mut(|stream| {
            let same = |stream: &RecordStream| Arc::ptr_eq(&stream.supply, &self.supply);
            if !stream.as_ref().is_some_and(same) {
                *stream = Some(RecordStream {
                    supply: Arc::clone(&self.supply),
                    writer: ChunkWriter::new(Arc::clone(&self.supply)),
                    builder: RecordBuilder::new(),
                });
            }
            if let Some(stream) = stream {
                fill(stream.builder.start(op, time));
                stream.writer.append(stream.builder.finish());
            }
        });
    }

    /// Ends the records of the calling thread: its chunk may leave the arena.
    pub fn end_thread() {
        STREAM.with_borrow_mut(|stream| *stream = None);
    }

    /// An operation of a caller, whose call began at `time`.
    pub fn operation(&self, caller: CallerIds, time: u64, operation: &Operation<'_>) {
        self.append(operation.op, time, |record| {
            record
                .caller(caller)
                .fd(operation.fd)
                .arg(operation.arg)
                .aux(operation.aux)
                .result(operation.result);
            if let Some(ident) = &operation.ident {
                record.ident(ident);
            }
            if operation.strings[0].is_some() {
                record.resolved();
            }
            for string in operation.strings.into_iter().flatten() {
                record.string(string);
            }
        });
    }

    /// Counts an operation that cannot be recorded: the run is not complete.
    pub fn lose(&self) {
        self.supply.arena.add_lost(1);
    }

    /// A process that is met for the first time.
    pub fn born(&self, pid: u32, parent: u32, directory: &[u8], time: u64) {
        self.append(op::BORN, time, |record| {
            record.process(pid, parent, directory);
        });
    }

    /// The program that a process runs.
    pub fn program(&self, pid: u32, path: &[u8], arguments: &[Vec<u8>], time: u64) {
        self.append(op::ARGS, time, |record| {
            record.program_arguments(pid, arguments);
        });
        self.append(op::EXEC, time, |record| {
            record.program(pid, path, arguments.len());
        });
    }

    /// An activity begins inside a process. Its number is that of no process.
    pub fn work(&self, activity: u32, inside: u32, what: &str, text: &str, time: u64) {
        self.append(op::WORK, time, |record| {
            record
                .caller(CallerIds::of_process(activity))
                .fd(activity as i32)
                .arg(inside as i32)
                .result(0)
                .string(what.as_bytes())
                .string(text.as_bytes());
        });
    }

    /// An activity adds something to a thing without a file.
    pub fn adds(&self, activity: u32, (name, number): (&str, i32), time: u64) {
        self.append(op::RESOURCE, time, |record| {
            record
                .caller(CallerIds::of_process(activity))
                .fd(number)
                .aux(RESOURCE_CHANGE)
                .result(0)
                .string(name.as_bytes());
        });
    }

    /// An activity can have used such a thing.
    pub fn may_use(&self, activity: u32, (name, number): (&str, i32), time: u64) {
        self.append(op::RESOURCE, time, |record| {
            record
                .caller(CallerIds::of_process(activity))
                .fd(number)
                .aux(RESOURCE_READ)
                .string(name.as_bytes());
        });
    }

    /// A process that has ended, with an unknown status.
    pub fn gone(&self, pid: u32, time: u64) {
        self.append(op::GONE, time, |record| {
            record
                .caller(CallerIds::of_process(pid))
                .fd(pid as i32)
                .result(0);
        });
    }
}
