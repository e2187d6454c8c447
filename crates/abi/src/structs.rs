//! The header's structures, field by field.

use crate::constants::BITMAP_WORDS;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// First page of the arena (`bs_arena`). What is written while recorders run is atomic.
#[repr(C)]
#[derive(Debug)]
pub struct Arena {
    /// [`crate::ARENA_MAGIC`], by the supervisor, once.
    pub magic: u64,
    /// [`crate::ABI_VERSION`], by the supervisor, once.
    pub version: u32,
    /// `ARENA_*`, by the supervisor.
    pub flags: AtomicU32,
    /// Chunks that exist; grows. By the supervisor.
    pub chunks: AtomicU32,
    /// Set to 1 by recorders when few chunks were free; the supervisor clears it and adds chunks.
    pub wanted: AtomicU32,
    /// Operations that could not be logged, added by recorders.
    pub lost: AtomicU64,
    /// Counter when the arena was made.
    pub started: u64,
    /// Source of [`Chunk::epoch`].
    pub epochs: AtomicU32,
    /// Not 0 while no chunk is free and none can be had: who waits for one waits in vain. By the supervisor.
    pub dry: AtomicU32,
    /// Hashes of environments already logged in full.
    pub env_seen: [AtomicU64; 64],
    /// Bit set: the chunk is free and zeroed.
    pub free: [AtomicU64; BITMAP_WORDS as usize],
    /// Bit set: the owner will append no more.
    pub full: [AtomicU64; BITMAP_WORDS as usize],
    /// Nothing.
    pub pad1: [u64; 2],
    /// Counts what was logged that may be a read, or change what names mean, from 1; by recorders and the supervisor.
    pub told: AtomicU64,
    /// Of the first so many of these, every file that was read is in the filter; by the supervisor.
    pub known: AtomicU64,
    /// Nothing.
    pub pad2: [u64; 6],
}

/// First bytes of a chunk (`bs_chunk`).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Chunk {
    /// [`crate::CHUNK_MAGIC`].
    pub magic: u32,
    /// Which chunk of the arena.
    pub index: u32,
    /// Thread group id as the owner sees it.
    pub pid: u32,
    /// Thread id as the owner sees it; 0 in a chunk of the guard.
    pub tid: u32,
    /// One number per recorder start in this run; 0 for the guard.
    pub epoch: u64,
    /// Counter when it was taken.
    pub taken: u64,
    /// Who made this process, as far as its recorder knows; else its parent when that started.
    pub ppid: u32,
    /// 0, 1, 2 … among the chunks of this (epoch, thread).
    pub seq: u32,
    /// Offset from the chunk's start where the next record goes; may exceed [`crate::CHUNK_SIZE`].
    pub next: u64,
    /// The owner's pid as the supervisor sees it, once announced; else 0.
    pub host_pid: u32,
    /// None defined.
    pub flags: u32,
    /// Nothing.
    pub pad: u64,
}

/// The fixed part of an operation (`bs_record`).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Record {
    /// 0 (never reached), [`crate::RESERVED`] or [`crate::DONE`].
    pub state: u16,
    /// One of [`crate::op`].
    pub op: u16,
    /// Whole record in bytes, a multiple of 8.
    pub size: u16,
    /// `F_*`.
    pub flags: u16,
    /// Time-stamp counter when the call began.
    pub time: u64,
    /// See the operation.
    pub fd: i32,
    /// See the operation.
    pub arg: i32,
    /// At least 0, or `-errno`.
    pub result: i32,
    /// See the operation.
    pub aux: u32,
}

/// Who did it, in records that the supervisor wrote (`bs_who`).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Who {
    /// Process, as the supervisor sees it.
    pub pid: u32,
    /// Thread, as the supervisor sees it.
    pub tid: u32,
    /// System call number.
    pub nr: u32,
    /// `AUDIT_ARCH_*`.
    pub arch: u32,
}
