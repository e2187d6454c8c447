//! The watcher's own records: the start of the command, its program, and the ends of processes.

use backstory_abi::{CallerIds, op};
use backstory_arena::RecordSink;
use backstory_arena::{ChunkSupply, ChunkWriter};
use backstory_eventlog::record::RecordBuilder;
use backstory_sys::Pid;
use std::sync::Arc;

/// Writes the watcher's records.
pub(crate) struct Reporter {
    sink: Option<ChunkWriter>,
    stock: Arc<ChunkSupply>,
    builder: RecordBuilder,
}

fn caller_ids(pid: Pid) -> CallerIds {
    CallerIds {
        pid: pid as u32,
        tid: pid as u32,
        nr: 0,
        arch: 0,
    }
}

impl Reporter {
    /// A reporter without records.
    pub(crate) fn new(stock: Arc<ChunkSupply>) -> Reporter {
        Reporter {
            sink: None,
            stock,
            builder: RecordBuilder::new(),
        }
    }

    /// Records the end of a process with the status from wait(2).
    pub(crate) fn gone(&mut self, pid: Pid, wait_status: i32) {
        let builder = &mut self.builder;
        builder
            .start(op::GONE, backstory_sys::clock::counter())
            .caller(caller_ids(pid))
            .fd(pid)
            .arg(wait_status)
            .aux(1)
            .result(0);
        self.append();
    }

    /// Records the start of the command. Without the guard no other observer saw its `execve`.
    pub(crate) fn command(
        &mut self,
        at: u64,
        pid: Pid,
        path: &[u8],
        arguments: &[Vec<u8>],
        cwd: &[u8],
    ) {
        self.builder
            .start(op::BORN, at)
            .caller(caller_ids(pid))
            .fd(pid)
            .arg(std::process::id() as i32)
            .result(0)
            .string(b"")
            .string(cwd);
        self.append();
        self.arguments(at, pid, arguments);
        self.builder
            .start(op::EXEC, at)
            .caller(caller_ids(pid))
            .fd(libc::AT_FDCWD)
            .arg(arguments.len() as i32)
            .string(path);
        self.append();
    }

    /// Writes the arguments in as many records as needed.
    fn arguments(&mut self, at: u64, pid: Pid, arguments: &[Vec<u8>]) {
        let begin = |builder: &mut RecordBuilder| {
            builder
                .start(op::ARGS, at)
                .caller(caller_ids(pid))
                .result(0);
        };
        begin(&mut self.builder);
        for argument in arguments {
            let mut rest = &argument[..];
            loop {
                let room = self.builder.room().saturating_sub(1);
                if rest.len() <= room {
                    self.builder.string(rest);
                    break;
                }
                let (head, tail) = rest.split_at(room);
                if room > 0 {
                    self.builder.string(head).more();
                }
                self.append();
                begin(&mut self.builder);
                rest = tail;
            }
        }
        self.append();
    }

    fn append(&mut self) {
        let record = self.builder.finish();
        let sink = self
            .sink
            .get_or_insert_with(|| ChunkWriter::new(Arc::clone(&self.stock)));
        sink.append(record);
    }

    /// Ends the reporter: its chunk may be drained.
    pub(crate) fn finish(&mut self) {
        self.sink = None;
    }
}
