//! The header's structures, field by field, but for those of the table of functions.

use crate::constants::BITMAP_WORDS;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// First page of the arena (`bs_arena`). Fields that are written while recorders run are atomic.
#[repr(C)]
#[derive(Debug)]
pub struct Arena {
    /// [`crate::ARENA_MAGIC`]. The supervisor writes it once.
    pub magic: u64,
    /// [`crate::ABI_VERSION`]. The supervisor writes it once.
    pub version: u32,
    /// `ARENA_*`. The supervisor writes them; recorders set `ARENA_PIDNS`.
    pub flags: AtomicU32,
    /// Number of chunks that exist. The supervisor writes it, and it only grows.
    pub chunks: AtomicU32,
    /// Recorders set it to 1 when few chunks are free. The supervisor clears it and adds chunks.
    pub wanted: AtomicU32,
    /// Number of operations that could not be logged. Recorders add to it.
    pub lost: AtomicU64,
    /// Value of the time-stamp counter when the arena was made.
    pub started: u64,
    /// Counter from which recorders take [`Chunk::epoch`].
    pub epochs: AtomicU32,
    /// Not 0 while no chunk is free and none can become free. The supervisor writes it, and a
    /// recorder then does not wait.
    pub dry: AtomicU32,
    /// Hashes of environments already logged in full.
    pub env_seen: [AtomicU64; 64],
    /// Bit set: the chunk is free and zeroed.
    pub free: [AtomicU64; BITMAP_WORDS as usize],
    /// Bit set: the owner will append no more.
    pub full: [AtomicU64; BITMAP_WORDS as usize],
    /// Number of deep records that were lost, because no chunk was free. Recorders add to it.
    pub deep_lost: AtomicU64,
    /// The number of the next preserved content. Recorders and the supervisor add to it.
    pub kept: AtomicU32,
    /// Where the path of the directory of preserved contents lies in the first page. It ends with a
    /// NUL. 0 until the directory exists, or if the path does not fit. The supervisor writes it.
    pub kept_path: AtomicU32,
    /// Counts, from 1, the logged operations that may be a read or may change what names mean.
    /// Recorders and the supervisor add to it.
    pub reported: AtomicU64,
    /// The filter has every file that the first `filtered` of these operations read. The supervisor
    /// writes it.
    pub filtered: AtomicU64,
    /// Padding.
    pub pad2: [u64; 6],
}

/// First bytes of a chunk (`bs_chunk`).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Chunk {
    /// [`crate::CHUNK_MAGIC`].
    pub magic: u32,
    /// Index of the chunk in the arena.
    pub index: u32,
    /// Thread group id as the owner sees it.
    pub pid: u32,
    /// Thread id as the owner sees it; 0 in a chunk of the guard.
    pub tid: u32,
    /// Number of the recorder's start in this run; 0 for the guard.
    pub epoch: u64,
    /// Value of the time-stamp counter when the owner took the chunk.
    pub taken: u64,
    /// The process that made this one, if its recorder knows it; else the parent when the recorder
    /// started.
    pub ppid: u32,
    /// 0, 1, 2 … among the chunks of this epoch and thread.
    pub seq: u32,
    /// Offset from the chunk's start at which the next record begins. It may exceed
    /// [`crate::CHUNK_SIZE`].
    pub next: u64,
    /// The owner's pid as the supervisor sees it, once announced; else 0.
    pub host_pid: u32,
    /// `CHUNK_*`.
    pub flags: u32,
    /// Padding.
    pub pad: u64,
}

/// The fixed part of an operation (`bs_record`).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Record {
    /// 0 (memory that no record reached), [`crate::RESERVED`] or [`crate::DONE`].
    pub state: u16,
    /// The operation: a constant of [`crate::op`].
    pub op: u16,
    /// Size of the whole record in bytes, a multiple of 8.
    pub size: u16,
    /// `F_*`.
    pub flags: u16,
    /// Value of the time-stamp counter when the call began.
    pub time: u64,
    /// Meaning by operation, see [`crate::op`].
    pub fd: i32,
    /// Meaning by operation, see [`crate::op`].
    pub arg: i32,
    /// The call's result, at least 0, or `-errno`.
    pub result: i32,
    /// Meaning by operation, see [`crate::op`].
    pub aux: u32,
}

/// One call with all that entered or left by it, without its sections (`bs_deep_record`).
/// `docs/formats/deep.md` has the meaning of the fields.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeepRecord {
    /// [`crate::DONE`] once the record is whole.
    pub state: u8,
    /// [`crate::deep`]`::MORE` and its like.
    pub flags: u8,
    /// The number of the system call on x86-64, or of a fact in [`crate::deep`].
    pub call: u16,
    /// Size of the record with its sections in bytes, a multiple of 8.
    pub size: u32,
    /// Value of the time-stamp counter when the call began.
    pub time: u64,
    /// Duration of the call in units of 64 counts.
    pub took: u32,
    /// The descriptor.
    pub fd: i32,
    /// The call's result, at least 0, or `-errno`.
    pub result: i64,
    /// Meaning by call.
    pub a: u64,
    /// Meaning by call.
    pub b: u64,
}

/// The head of a section of a deep record (`bs_deep_section`).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeepSection {
    /// A constant of [`crate::deep`]. 0 ends the record.
    pub kind: u16,
    /// The argument of the call that points to the bytes.
    pub arg: u16,
    /// Number of bytes, without the padding to a multiple of 8.
    pub length: u32,
}

/// The caller of an operation, in records that the supervisor wrote (`bs_caller`).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallerIds {
    /// Process id, as the supervisor sees it.
    pub pid: u32,
    /// Thread id, as the supervisor sees it.
    pub tid: u32,
    /// Number of the system call.
    pub nr: u32,
    /// Architecture of the system call: `AUDIT_ARCH_*`.
    pub arch: u32,
}

/// An entry of the table of verdicts (`bs_verdict`).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Verdict {
    /// Device number.
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
    /// Size in bytes.
    pub size: i64,
    /// When the content changed, in ns since 1970.
    pub mtime: i64,
    /// When the inode changed, in ns since 1970.
    pub ctime: i64,
    /// `VERDICT_*`; 0 for a free entry.
    pub verdict: u64,
}

/// The table of verdicts (`bs_verdicts`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Verdicts {
    /// `VERDICTS_MAGIC`.
    pub magic: u64,
    /// Unused.
    pub pad: u64,
    /// The loader's cache for which the verdicts about programs hold.
    pub cache: Verdict,
    /// The entries.
    pub entry: [Verdict; crate::VERDICTS as usize],
}

/// Libraries that programs begin with (`bs_library_set`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct LibrarySet {
    /// Bytes of `names`; 0 for a free set.
    pub used: u64,
    /// Paths, each with its NUL.
    pub names: [u8; crate::LIBRARY_NAMES as usize],
}

/// The start of a program (`bs_start`).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Start {
    /// 0, or the process id in the high half and `START_*` in the low half.
    pub state: u64,
    /// The recorder's number.
    pub epoch: u64,
    /// Time-stamp counter.
    pub time: u64,
    /// The parent.
    pub ppid: u32,
    /// Index of the set of libraries.
    pub set: u32,
}

/// The instructions of the filter, for processes that install it (`bs_filter_code`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FilterCode {
    /// Bytes of `code`; 0 before the instructions are published.
    pub size: u64,
    /// The instructions, each a `struct sock_filter`.
    pub code: [u8; crate::FILTER_BYTES as usize],
}

/// The knowledge of a run about programs (`bs_programs`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Programs {
    /// The table of verdicts.
    pub verdicts: Verdicts,
    /// The instructions of the filter.
    pub filter: FilterCode,
    /// The sets of libraries.
    pub sets: [LibrarySet; crate::LIBRARY_SETS as usize],
    /// The starts of programs.
    pub starts: [Start; crate::STARTS as usize],
}

/// A message by the supervisor's socket (`bs_guard_request`).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GuardRequest {
    /// `GUARD_*`.
    pub kind: u32,
    /// The result, in a response.
    pub result: i32,
    /// 1 if the program with the recorder goes on.
    pub recorded: u32,
    /// `CHANGE_*`.
    pub change: u32,
    /// The thread that is about to change a file.
    pub tid: u32,
    /// The descriptor of the directory that its path starts from.
    pub dir: i32,
    /// The file's device.
    pub dev: u64,
    /// The file's inode.
    pub ino: u64,
}

impl GuardRequest {
    /// Size in a message.
    pub const SIZE: usize = size_of::<GuardRequest>();

    /// The bytes of the message.
    pub fn to_bytes(&self) -> [u8; GuardRequest::SIZE] {
        let mut bytes = [0; GuardRequest::SIZE];
        let words = [
            self.kind,
            self.result.cast_unsigned(),
            self.recorded,
            self.change,
            self.tid,
            self.dir.cast_unsigned(),
        ];
        let words = words.into_iter().flat_map(u32::to_le_bytes);
        let numbers = [self.dev, self.ino].into_iter().flat_map(u64::to_le_bytes);
        for (to, byte) in bytes.iter_mut().zip(words.chain(numbers)) {
            *to = byte;
        }
        bytes
    }

    /// The message in these bytes. `None` if they are too few.
    pub fn read(bytes: &[u8]) -> Option<GuardRequest> {
        let mut words = bytes.get(..GuardRequest::SIZE)?.chunks_exact(4);
        let mut word = || {
            let word = words.next()?.try_into().ok()?;
            Some(u32::from_le_bytes(word))
        };
        let (kind, result, recorded) = (word()?, word()?.cast_signed(), word()?);
        let (change, tid, dir) = (word()?, word()?, word()?.cast_signed());
        let mut number = || Some(u64::from(word()?) | u64::from(word()?) << 32);
        Some(GuardRequest {
            kind,
            result,
            recorded,
            change,
            tid,
            dir,
            dev: number()?,
            ino: number()?,
        })
    }
}

/// A message between client and broker (`bs_broker_message`).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BrokerMessage {
    /// `BROKER_*`.
    pub kind: u32,
    /// Its meaning depends on the kind.
    pub value: i32,
    /// The same.
    pub word: u64,
}

impl BrokerMessage {
    /// Size on the socket.
    pub const SIZE: usize = size_of::<BrokerMessage>();

    /// The bytes of the message.
    pub fn to_bytes(&self) -> [u8; BrokerMessage::SIZE] {
        let mut bytes = [0; BrokerMessage::SIZE];
        bytes[..4].copy_from_slice(&self.kind.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.value.to_le_bytes());
        bytes[8..].copy_from_slice(&self.word.to_le_bytes());
        bytes
    }

    /// Reads a message. `None` if there are too few bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<BrokerMessage> {
        let (kind, rest) = bytes.split_first_chunk()?;
        let (value, rest) = rest.split_first_chunk()?;
        Some(BrokerMessage {
            kind: u32::from_le_bytes(*kind),
            value: i32::from_le_bytes(*value),
            word: u64::from_le_bytes(*rest.first_chunk()?),
        })
    }
}
