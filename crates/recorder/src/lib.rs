//! The recorder: a small freestanding library that is preloaded into recorded programs, built from `c/` and embedded here.
//!
//! In: nothing. Out: the bytes of the library and of its 32-bit twin, and the address of its gate. The library appends what
//! the program does to a shared arena, in the form that `backstory-abi` defines; it holds no policy and knows no graph.
//! Absent: who puts it where a loader finds it, who makes the arena, who reads it (`backstory-session`).

/// The 64-bit shared object. Its file must be named [`backstory_abi::PRELOAD_NAME`].
pub const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/recorder.so"));

/// An empty 32-bit one, for the other value of `$LIB`: without it a 32-bit program's loader would complain.
pub const TWIN32: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/twin32.so"));

/// Where the gate's `syscall` ends, from the library's beginning; the linker script makes sure of it.
const GATE_OFFSET: u64 = 0x20c;

/// Address of the instruction after the gate's `syscall`, when the library is loaded at [`backstory_abi::HOME`].
pub const GATE: u64 = backstory_abi::HOME + GATE_OFFSET;
