//! The numbers and names of the header.

/// Version of the layout that this crate reads and writes.
pub const ABI_VERSION: u32 = 1;
/// First word of an arena: `BBSarena`.
pub const ARENA_MAGIC: u64 = 0x616e_6572_6153_4242;
/// First word of a chunk that has an owner: `CHNK`.
pub const CHUNK_MAGIC: u32 = 0x4b4e_4843;

/// Environment variable with the path of the arena file.
pub const ENV_ARENA: &str = "BACKSTORY_ARENA";
/// Environment variable that puts the recorder into a program; our entry stands last in it.
pub const ENV_PRELOAD: &str = "LD_PRELOAD";
/// File name of our entry in [`ENV_PRELOAD`].
pub const PRELOAD_NAME: &str = "linux-backstory.so";
/// Directory of that file in an entry for any program: a loader puts its own name for it there.
pub const PRELOAD_ANY: &str = "$LIB";
/// Directory of that file in an entry for programs that are known to be 64-bit ones.
pub const PRELOAD_WIDE: &str = "64";

/// Address the recorder is linked at.
pub const HOME: u64 = 0x5500_0001_0000;

/// Bytes of a chunk, its header included.
pub const CHUNK_SIZE: u32 = 65536;
/// Chunks that an arena can have.
pub const MAX_CHUNKS: u32 = 4096;
/// Words of a bitmap with one bit per chunk.
pub const BITMAP_WORDS: u32 = MAX_CHUNKS / 64;
/// Where in an arena's first page the path of the run's log stands, NUL-terminated; empty if it does not fit.
pub const ARENA_LOG: u32 = 2048;
/// Bytes before the first chunk of an arena.
pub const ARENA_HEADER: u32 = ARENA_READS + READS_BITS / 8;
/// Where in an arena the Bloom filter of the files that were read begins, if contents are kept.
pub const ARENA_READS: u32 = 4096;
/// Bits of that filter.
pub const READS_BITS: u32 = 1 << 19;
/// A file that somebody else than its maker changed is there, too, by its inode number xored with this.
pub const READS_CHANGED: u64 = 0x5bd1_e995_2545_f491;
/// The same for a file that only its maker had read, when others may have got its descriptor.
pub const READS_LENT: u64 = 0x3c6e_f372_fe94_f82b;

/// The two bits that a file has in the filter; of its device, the low half counts.
pub const fn reads_bits(device: u32, inode: u64) -> [u32; 2] {
    let hash = ((device as u64) << 32 ^ inode).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    [(hash >> 45) as u32, (hash >> 26) as u32 & (READS_BITS - 1)]
}

/// The impossible `which` of a deliberate, ungated `getpriority` call to the supervisor.
pub const MAGIC_WHICH: i32 = 0x6273_6d67;
/// Request: tells the supervisor who owns the chunk in the argument.
pub const MAGIC_ANNOUNCE: i32 = 1;
/// Request: answered with a new descriptor of the arena.
pub const MAGIC_ARENA: i32 = 2;
/// Request: answered once at least one chunk is free again.
pub const MAGIC_DRAIN: i32 = 3;
/// Request: answered once the content of a file that is about to change has been kept, or need not be.
pub const MAGIC_PRESERVE: i32 = 4;

/// `MAGIC_PRESERVE`: the file is written to, in place, by someone who does not read it.
pub const CHANGE_WRITE: u32 = 1;
/// `MAGIC_PRESERVE`: the same, but it may be read first.
pub const CHANGE_UPDATE: u32 = 2;
/// The same as [`CHANGE_WRITE`], by the first who does so in the run, and some of what it holds may stay.
pub const CHANGE_PART: u32 = 5;
/// `MAGIC_PRESERVE`: the file loses this name.
pub const CHANGE_REMOVE: u32 = 3;
/// `MAGIC_PRESERVE`: only a name changes, or where it leads.
pub const CHANGE_NAME: u32 = 4;
/// `MAGIC_PRESERVE`: mask of the above.
pub const CHANGE_KIND: u32 = 0xff;
/// `MAGIC_PRESERVE`: a symbolic link at the path's end is not followed.
pub const CHANGE_ITSELF: u32 = 256;

/// Arena flag: the guard is on, magic calls are answered.
pub const ARENA_GUARDED: u32 = 1;
/// Arena flag: some recorded process is in another pid namespace; announce every chunk.
pub const ARENA_PIDNS: u32 = 2;
/// Arena flag: the guard logs every watched call; recorders log only what it doesn't watch.
pub const ARENA_STRICT: u32 = 4;
/// Arena flag: log every read and write, not only the first per descriptor.
pub const ARENA_ALL_OPS: u32 = 8;
/// Arena flag: the run has ended; take no chunk, log nothing.
pub const ARENA_CLOSED: u32 = 16;
/// Arena flag: contents are kept; ask before a file changes.
pub const ARENA_KEEP: u32 = 32;

/// Record state: arguments are valid, the outcome is not known (yet).
pub const RESERVED: u16 = 1;
/// Record state: the result is valid.
pub const DONE: u16 = 2;

/// Record flag: a [`crate::Who`] follows the header.
pub const F_WHO: u16 = 1;
/// Record flag: a `bs_ident` (`backstory_files::Ident`) follows (after the [`crate::Who`]).
pub const F_IDENT: u16 = 2;
/// Record flag: a string did not fit and was cut.
pub const F_CUT: u16 = 4;
/// Record flag: the last string continues in the next record of this operation.
pub const F_MORE: u16 = 8;
/// Record flag: the result was concluded by the supervisor from the file system.
pub const F_PREDICTED: u16 = 16;
/// Record flag: the path is absolute, as the supervisor resolved it for the caller.
pub const F_RESOLVED: u16 = 32;
/// Record flag: written by a `CLONE_VM` child into its parent's chunk.
pub const F_CHILD: u16 = 64;
/// OPEN: to read a file that this process has made, and nobody else changed.
pub const F_OWN: u16 = 128;
/// Every record flag that is defined; a record with another one is of a later version.
pub const F_ALL: u16 =
    F_WHO | F_IDENT | F_CUT | F_MORE | F_PREDICTED | F_RESOLVED | F_CHILD | F_OWN;
/// In [`Chunk::tid`](crate::Chunk::tid): a number of its own, of a thread that could not ask for its number.
pub const TID_UNTOLD: u32 = 0x2000_0000;

/// `META`: permission bits.
pub const META_MODE: i32 = 1;
/// `META`: owner or group.
pub const META_OWNER: i32 = 2;
/// `META`: time stamps.
pub const META_TIMES: i32 = 3;
/// `META`: extended attributes.
pub const META_ATTR: i32 = 4;

/// `VFORK`: by `vfork`.
pub const SPAWN_VFORK: i32 = 1;
/// `VFORK`: by `posix_spawn`.
pub const SPAWN_POSIX: i32 = 2;
/// `VFORK`: by `system`.
pub const SPAWN_SYSTEM: i32 = 3;
/// `VFORK`: by `popen`.
pub const SPAWN_POPEN: i32 = 4;
/// `VFORK`: by `clone` with shared memory.
pub const SPAWN_CLONE: i32 = 5;

/// `THREAD`: made a thread.
pub const THREAD_CREATE: u32 = 1;
/// `THREAD`: is that thread, and starts.
pub const THREAD_START: u32 = 2;
/// `THREAD`: waited for its end.
pub const THREAD_JOIN: u32 = 3;

/// `LOST`: no chunk was free.
pub const LOST_NO_CHUNK: i32 = 1;
/// `LOST`: the program's sandbox forbade what logging needed.
pub const LOST_SANDBOX: i32 = 2;
/// `LOST`: the operation was longer than a record can be.
pub const LOST_TOO_LONG: i32 = 3;

/// `HOLD`: how the descriptor is open could not be found out.
pub const HOLD_UNKNOWN: u32 = 0x8000_0000;

/// `KEPT`: the file itself, by another name.
pub const KEPT_LINK: u32 = 1;
/// `KEPT`: a copy that shares the file's blocks.
pub const KEPT_CLONE: u32 = 2;
/// `KEPT`: a copy.
pub const KEPT_COPY: u32 = 3;

/// Name of an interface that can't be decoded: a tracer changes the memory of its tracee.
pub const OPAQUE_TRACER_MEMORY: &str = "PTRACE_POKEDATA";
/// The same: a tracer changes the registers of its tracee.
pub const OPAQUE_TRACER_REGISTERS: &str = "PTRACE_SETREGS";
/// The same: a tracer makes the kernel skip system calls of its tracee.
pub const OPAQUE_TRACER_EMULATION: &str = "PTRACE_SYSEMU";
/// The same: accounting.
pub const OPAQUE_ACCT: &str = "acct";
/// The same: swapping.
pub const OPAQUE_SWAPON: &str = "swapon";
/// The same: message queues.
pub const OPAQUE_QUEUE: &str = "POSIX message queue";
/// The same: files by handle.
pub const OPAQUE_HANDLE: &str = "open_by_handle_at";
/// The same: another's memory.
pub const OPAQUE_MEMORY: &str = "process_vm_writev";
/// The same: another's descriptors.
pub const OPAQUE_DESCRIPTOR: &str = "pidfd_getfd";
/// The same: descriptors of files that others opened.
pub const OPAQUE_FANOTIFY: &str = "fanotify with descriptors";
/// The same: a ring that nobody reads.
pub const OPAQUE_RING: &str = "io_uring without the guard";
