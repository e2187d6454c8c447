//! Builds logs record by record.
#![allow(dead_code)]

use backstory_abi::{CallerIds, Chunk};
use backstory_eventlog::event::Event;
use backstory_eventlog::record::RecordBuilder;
use backstory_eventlog::run::{ClockPoint, RunHeader};
use backstory_eventlog::{Log, Writer, chunk};
use std::path::PathBuf;

/// A log in a temporary directory.
pub struct Scratch {
    pub dir: tempfile::TempDir,
    pub writer: Writer,
}

impl Scratch {
    pub fn new() -> Scratch {
        let dir = tempfile::tempdir().expect("temporary directory");
        let writer = Writer::create(dir.path().join("log"), &header()).expect("create");
        Scratch { dir, writer }
    }

    /// With a changed header.
    pub fn with(change: impl FnOnce(&mut RunHeader)) -> Scratch {
        let dir = tempfile::tempdir().expect("temporary directory");
        let mut header = header();
        change(&mut header);
        let writer = Writer::create(dir.path().join("log"), &header).expect("create");
        Scratch { dir, writer }
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().join("log")
    }

    pub fn add(&mut self, stream: &ThreadStream) -> &mut Self {
        self.writer.chunk(stream.chunk.bytes()).expect("append");
        self
    }

    /// Adds a reading in which counters are ns.
    pub fn clock(&mut self, counter: u64) -> &mut Self {
        self.writer
            .clock(ClockPoint {
                counter,
                real: counter as i64,
            })
            .expect("append");
        self
    }

    pub fn open(&self) -> Log {
        Log::open(self.path()).expect("open")
    }

    pub fn events(&self) -> Vec<Event> {
        self.open().events().collect()
    }
}

pub fn header() -> RunHeader {
    RunHeader {
        id: "abcd1234".to_owned(),
        command: vec![b"true".to_vec()],
        ..RunHeader::default()
    }
}

/// One chunk under construction.
pub struct ThreadStream {
    pub chunk: chunk::ChunkBuilder,
    builder: RecordBuilder,
    pub caller: Option<CallerIds>,
}

impl ThreadStream {
    pub fn of(head: Chunk) -> ThreadStream {
        ThreadStream {
            chunk: chunk::ChunkBuilder::new(head),
            builder: RecordBuilder::new(),
            caller: None,
        }
    }

    /// A thread's chunk.
    pub fn new(epoch: u64, pid: u32, tid: u32) -> ThreadStream {
        ThreadStream::of(Chunk {
            epoch,
            pid,
            tid,
            ..Chunk::default()
        })
    }

    /// The guard's chunk.
    pub fn guard(seq: u32) -> ThreadStream {
        ThreadStream::of(Chunk {
            seq,
            ..Chunk::default()
        })
    }

    /// Sets the process of the following records.
    pub fn by(&mut self, pid: u32, tid: u32) -> &mut Self {
        self.caller = Some(CallerIds {
            pid,
            tid,
            nr: 0,
            arch: 0,
        });
        self
    }

    pub fn record(
        &mut self,
        op: u16,
        time: u64,
        build: impl FnOnce(&mut RecordBuilder),
    ) -> &mut Self {
        self.builder.start(op, time);
        if let Some(caller) = self.caller {
            self.builder.caller(caller);
        }
        build(&mut self.builder);
        assert!(self.chunk.push(self.builder.finish()), "it fits");
        self
    }
}
