//! The recorder: a small freestanding library that is preloaded into recorded programs. It is built
//! from `c/` and embedded here, as are the files of `interpreters/`.
//!
//! In: nothing. Out: the bytes of the library and of its 32-bit twin, and the address of its gate.
//! The library appends the program's operations to a shared arena, in the form that `backstory-abi`
//! defines. It holds no policy and does not know the graph.
//!
//! Absent: installing the library where a loader finds it, making the arena, and reading it. All
//! three are in `backstory-session`.

/// The 64-bit shared object. Its file must be named [`backstory_abi::PRELOAD_NAME`].
pub const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/recorder.so"));

/// The 64-bit shared object that records deeply, too, as gzip. Its gate is at the same address.
pub const DEEP_LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/deep.so.gz"));

/// The 64-bit shared object that records calls of functions, too, as gzip. Its gate is at the same
/// address.
pub const FUNCTIONS_LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/functions.so.gz"));

/// The 64-bit shared object for processes that may run without the guard's filter, as gzip. Its
/// gate is at the same address.
pub const AUTO_LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/auto.so.gz"));

/// An empty 32-bit shared object, for the other value of `$LIB`. Without it a 32-bit program's
/// loader would print an error.
pub const TWIN32: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/twin32.so"));

/// The client of the broker: a static program. Its file must be named
/// [`backstory_abi::CLIENT_NAME`].
pub const CLIENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/client"));

/// What Node loads in a recording of functions. Its file must be named
/// [`backstory_abi::NODE_HOOKS`].
pub const NODE_HOOKS: &[u8] = include_bytes!("../interpreters/backstory-functions.cjs");

/// What [`NODE_HOOKS`] loads from beside it: its name, and its content.
pub const NODE_INSERTER: (&str, &[u8]) = (
    "backstory-functions-hooks.cjs",
    include_bytes!("../interpreters/backstory-functions-hooks.cjs"),
);

/// What R loads in a recording of functions. Its file must be named [`backstory_abi::R_HOOKS`].
pub const R_HOOKS: &[u8] = include_bytes!("../interpreters/backstory-functions.R");

/// Offset of the end of the gate's `syscall` from the library's beginning. The linker script
/// asserts it.
const GATE_OFFSET: u64 = 0x20c;

/// Address of the instruction after the gate's `syscall`, when the library is loaded at
/// [`backstory_abi::HOME`].
pub const GATE: u64 = backstory_abi::HOME + GATE_OFFSET;
