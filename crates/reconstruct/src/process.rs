//! The part of the log about one program in one process, arranged by resource.
//!
//! In: nothing; `recorded` fills it. Out: streams and queues that the matcher consumes.

use crate::input::InputStream;
use crate::output::ExpectedOutput;
use crate::resource::ResourceId;
use std::collections::{HashMap, VecDeque};

/// The object of a recorded result.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CallObject {
    /// The process.
    Process,
    /// A path, as the program passed it.
    Path(Vec<u8>),
    /// An open resource.
    Resource(ResourceId),
}

/// Which results answer a call: those with the same key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ResultKey {
    /// The number of the system call.
    pub call: u16,
    /// Its object.
    pub object: CallObject,
    /// A further argument: the request of `ioctl`, the level and option of `getsockopt`, the clock.
    pub detail: u64,
}

/// A result and the bytes that the kernel wrote.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordedResult {
    /// The value, or a negative error number.
    pub value: i64,
    /// The bytes that the kernel wrote, by argument.
    pub entered: Vec<Vec<u8>>,
}

/// A recorded open, or a call like it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Made {
    /// It made this resource.
    Resource(ResourceId),
    /// It failed with this error number.
    Failed(i32),
}

/// The result of a wait for several descriptors.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReadyTurn {
    /// The events that were ready, in the bits of `poll`. A resource is unknown if no recorded call
    /// made it.
    pub ready: Vec<(Option<ResourceId>, u32)>,
    /// The recorded result.
    pub value: i64,
}

/// The bytes that one process read from and wrote to one resource.
#[derive(Debug, Clone, Default)]
pub struct ResourceStreams {
    /// The bytes that entered.
    pub input: InputStream,
    /// The bytes that left.
    pub output: ExpectedOutput,
    /// The connections that a listener handed out.
    pub accepted: VecDeque<(Made, Vec<u8>)>,
    /// The results of `connect`.
    pub connected: VecDeque<i64>,
}

/// How a process began.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessStart {
    /// True after `execve`; otherwise it was forked.
    pub by_exec: bool,
    /// The arguments.
    pub arguments: Vec<Vec<u8>>,
    /// The environment.
    pub environment: Vec<Vec<u8>>,
    /// The 16 bytes at `AT_RANDOM`, or nothing.
    pub random: Vec<u8>,
    /// The path of the program.
    pub program: Vec<u8>,
    /// The current directory.
    pub directory: Vec<u8>,
}

/// One program in one process.
#[derive(Debug, Clone, Default)]
pub struct RecordedProcess {
    /// Its epoch in the log.
    pub epoch: u64,
    /// The process id, as the program saw it.
    pub pid: u32,
    /// The process id of its parent, as the program saw it.
    pub parent: u32,
    /// Its beginning.
    pub start: ProcessStart,
    /// Descriptors that it had at its start and that no recorded call made, with the position at
    /// the first use.
    pub inherited: Vec<(i32, ResourceId, Option<u64>)>,
    /// Descriptors that it had from another recorded process.
    pub held: Vec<(i32, ResourceId)>,
    /// By resource: what entered and left.
    pub streams: HashMap<ResourceId, ResourceStreams>,
    /// Opens by the path that was passed.
    pub opens: HashMap<Vec<u8>, VecDeque<Made>>,
    /// Sockets by domain and type.
    pub sockets: HashMap<(i32, i32), VecDeque<Made>>,
    /// Pipes and pairs of sockets, by the number of the call.
    pub pairs: HashMap<u16, VecDeque<(ResourceId, ResourceId)>>,
    /// All other results.
    pub results: HashMap<ResultKey, VecDeque<RecordedResult>>,
    /// Waits for several descriptors, by the number of the call.
    pub turns: VecDeque<ReadyTurn>,
    /// Random bytes from the kernel.
    pub random: InputStream,
    /// The lengths and flags of the recorded requests for them, in order.
    pub random_requests: VecDeque<(u64, u64)>,
    /// Process ids of the children, in order.
    pub children: VecDeque<i64>,
    /// Signals whose handlers ran.
    pub signals: VecDeque<i32>,
    /// The status passed to `exit_group`. `None`: it was killed, executed another program, or the
    /// log ends before.
    pub exit: Option<i32>,
    /// Ranges of files that were read by reference: the file, position, length, XXH64.
    pub references: Vec<(ResourceId, u64, u64, u64)>,
    /// Only this connection is compared: the process got a part of its input.
    pub only: Option<ResourceId>,
    /// Number of recorded calls.
    pub calls: u64,
    /// Why the log of the process is not whole.
    pub gap: Option<String>,
}
