//! The numbers and names of the header `backstory_abi.h`.

/// Version of the layout that this crate reads and writes.
pub const ABI_VERSION: u32 = 1;
/// First word of an arena: `BBSarena`.
pub const ARENA_MAGIC: u64 = 0x616e_6572_6153_4242;
/// First word of a chunk that has an owner: `CHNK`.
pub const CHUNK_MAGIC: u32 = 0x4b4e_4843;

/// Environment variable with the path of the arena file.
pub const ENV_ARENA: &str = "BACKSTORY_ARENA";
/// Environment variable that preloads the recorder into a program. The recorder's entry is the
/// last.
pub const ENV_PRELOAD: &str = "LD_PRELOAD";
/// File name of the recorder's entry in [`ENV_PRELOAD`].
pub const PRELOAD_NAME: &str = "linux-backstory.so";
/// Directory of that file in an entry for any program. Each loader replaces it by the name of its
/// own library directory.
pub const PRELOAD_ANY: &str = "$LIB";
/// Directory of that file in an entry for programs that are certainly 64-bit.
pub const PRELOAD_WIDE: &str = "64";

/// Address at which the recorder is linked.
pub const HOME: u64 = 0x5500_0001_0000;

/// Size of a chunk in bytes, its header included.
pub const CHUNK_SIZE: u32 = 65536;
/// Largest number of chunks in an arena.
pub const MAX_CHUNKS: u32 = 4096;
/// Number of 64-bit words of a bitmap with one bit per chunk.
pub const BITMAP_WORDS: u32 = MAX_CHUNKS / 64;
/// Offset in an arena's first page of the path of the run's log, NUL-terminated. The string is
/// empty if the path does not fit.
pub const ARENA_LOG: u32 = 2048;
/// Number of bytes before the first chunk of an arena.
pub const ARENA_HEADER: u32 = ARENA_READS + READS_BITS / 8;
/// Offset in an arena of the Bloom filter of the files that were read. It is used if the run stores
/// contents.
pub const ARENA_READS: u32 = 4096;
/// Number of bits of that filter.
pub const READS_BITS: u32 = 1 << 19;
/// The filter also contains each file that another process than its maker changed. Such an entry
/// has the file's inode number xored with this constant.
pub const READS_CHANGED: u64 = 0x5bd1_e995_2545_f491;
/// The same for a file that only its maker has read, once other processes may have its descriptor.
pub const READS_SHARED: u64 = 0x3c6e_f372_fe94_f82b;

/// The hash of a file. Only the low half of its device number counts.
pub const fn reads_hash(device: u32, inode: u64) -> u64 {
    ((device as u64) << 32 ^ inode).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The two bits that a file has in the filter. Only the low half of its device number counts.
pub const fn reads_bits(device: u32, inode: u64) -> [u32; 2] {
    let hash = reads_hash(device, inode);
    [(hash >> 45) as u32, (hash >> 26) as u32 & (READS_BITS - 1)]
}

/// The value of `which` in a `getpriority` call that is a request to the supervisor. No real
/// `which` has it. The call does not go through the gate.
pub const MAGIC_WHICH: i32 = 0x6273_6d67;
/// Request: announces the owner of the chunk in the argument to the supervisor.
pub const MAGIC_ANNOUNCE: i32 = 1;
/// Request: the supervisor responds with a new descriptor of the arena.
pub const MAGIC_ARENA: i32 = 2;
/// Request: the supervisor responds once at least one chunk is free again.
pub const MAGIC_DRAIN: i32 = 3;
/// Request: a file is about to change. The supervisor responds once its content is preserved, or
/// need not be.
pub const MAGIC_PRESERVE: i32 = 4;
/// Request: a shell made a mark, a path in the argument, which says that one of its command lines
/// begins or ends. The supervisor responds once it has looked at the shell.
pub const MAGIC_LINE: i32 = 6;
/// Prefix of the marks of a shell's command lines. Nothing can be at such a path.
pub const LINE_MARK: &str = "/dev/null/backstory/line/";

/// Request: everything logged so far is to be made durable.
pub const MAGIC_COMMIT: i32 = 5;
/// Request: the supervisor responds with a descriptor of a [`FunctionTable`](crate::FunctionTable).
/// It is that of the file that is mapped at the address in the argument.
pub const MAGIC_FUNCTIONS: i32 = 7;
/// Request: a program whose file gives a privilege is to be executed by the broker. Argument 0: the
/// call returns 0 if the caller may use the broker. Argument 1: it returns the client's end of a
/// socket.
pub const MAGIC_BROKER: i32 = 8;
/// Request: returns 0 in a process that has the filter.
pub const MAGIC_FILTERED: i32 = 9;
/// Request of the byte engine, which executes programs in its own process. The argument is the
/// address of its list of the program's calls that are under way.
pub const MAGIC_SIMULATOR: i32 = 10;
/// Request: a program begins, or has loaded a library. Its instructions that read the time-stamp
/// counter or identify the processor are to lead to the address in the argument. With the lowest
/// bit set, the code may be in use and stays as it is. ENOTSUP: not all of them lead there.
pub const MAGIC_INSTRUCTIONS: i32 = 11;
/// The client request of Valgrind by which a recorder asks whether to record.
pub const RECORDS_IN_SIMULATOR: u32 = 0x4253_0001;
/// The client request by which a recorder asks whether a page is readable.
pub const READABLE_IN_SIMULATOR: u32 = 0x4253_0002;
/// The client request by which a recorder says to which addresses redirected calls return.
pub const RETURNS_IN_SIMULATOR: u32 = 0x4253_0003;
/// Bytes of these addresses.
pub const RETURN_STUBS: u32 = 0x1_0000;
/// From one of them to the address of the caller.
pub const RETURN_DISTANCE: u32 = 0x100_0000;

/// `EXEC`: the recorder in the new program announces itself by a `START`.
pub const EXEC_ANNOUNCED: u32 = 0x4000_0000;
/// `LOAD`: the loader is about to read the library, and perhaps others that it needs.
pub const LOAD_ANNOUNCED: u32 = 1;
/// Arena flag: the first chunk is what the run knows about programs, and the supervisor has a
/// socket.
pub const ARENA_AUTO: u32 = 1024;
/// The path of the supervisor's socket is the arena's path with this suffix.
pub const SOCKET_SUFFIX: &str = ".guard";
/// The path of the keeper's socket is the arena's path with this suffix.
pub const KEEPER_SUFFIX: &str = ".keep";
/// Verdict about a program, with the libraries that it needs.
pub const VERDICT_PROGRAM: u64 = 1;
/// Verdict about a library alone.
pub const VERDICT_LIBRARY: u64 = 2;
/// Verdict about a library that a process loads while it runs, with the libraries that it needs.
/// The high half is the hash of a path (`NO_PATH`: none).
pub const VERDICT_LOADED: u64 = 3;
/// In a verdict: not plain.
pub const VERDICT_NOT: u64 = 4;
/// Mask of the kind of a verdict.
pub const VERDICT_KIND: u64 = 3;
/// In a verdict about a plain program, or a library that is loaded: it may connect or bind inside
/// libc, without an open before.
pub const VERDICT_CONNECTS: u64 = 8;
/// In such a verdict: libraries may be loaded inside libc, without an open before.
pub const VERDICT_LOADS: u64 = 16;
/// In a verdict about a library that is loaded: it needs none but the C library.
pub const VERDICT_ALONE: u64 = 32;
/// In the high half of such a verdict: the loader's cache has no path of this library.
pub const NO_PATH: u32 = 0;

/// The hash of a path in such a verdict: that of names in `DT_GNU_HASH`. It is never `NO_PATH`.
pub const fn path_hash(path: &[u8]) -> u32 {
    let (mut hash, mut index) = (5381u32, 0);
    while index < path.len() {
        hash = hash.wrapping_mul(33).wrapping_add(path[index] as u32);
        index += 1;
    }
    if hash == NO_PATH { 1 } else { hash }
}
/// First word of the table of verdicts.
pub const VERDICTS_MAGIC: u64 = 0x7374_6369_6472_6576;
/// Entries of the table of verdicts.
pub const VERDICTS: u32 = 896;
/// Entries at which one content can be.
pub const VERDICT_TRIES: u32 = 8;
/// The file in which the loader finds libraries.
pub const LOADER_CACHE: &str = "/etc/ld.so.cache";
/// The descriptor of that file in the records of a start.
pub const LOADER_DESCRIPTOR: i32 = 1 << 20;
/// Sets of libraries that a run can know.
pub const LIBRARY_SETS: u32 = 16;
/// Bytes for the paths of a set.
pub const LIBRARY_NAMES: u32 = 504;
/// Starts of programs that the supervisor has not yet seen.
pub const STARTS: u32 = 240;
/// State of a start: its recorder is filling it in.
pub const START_TAKEN: u64 = 1;
/// State of a start: it is filled in.
pub const START_FILLED: u64 = 2;
/// Bytes for the instructions of the filter.
pub const FILTER_BYTES: u32 = 6136;
/// Request by the socket: is the program plain whose descriptor follows?
pub const GUARD_PROGRAM: u32 = 1;
/// The same for a library.
pub const GUARD_LIBRARY: u32 = 2;
/// Request by the socket: the instructions of the filter.
pub const GUARD_FILTER: u32 = 3;
/// Request by the socket: the caller's listener follows.
pub const GUARD_LISTENER: u32 = 4;
/// Request by the socket: a file is about to change, and its descriptor follows.
pub const GUARD_PRESERVE: u32 = 5;
/// Request by the socket: a library is about to be loaded. Its path follows, and a descriptor.
/// Without a descriptor, it is a name of which the loader's cache has the path.
pub const GUARD_LOAD: u32 = 6;

/// The client's file in the directory of the recorder. Recorders execute it in the place of such a
/// program.
pub const CLIENT_NAME: &str = "client";
/// The file beside it that Node loads in a recording of functions.
pub const NODE_HOOKS: &str = "backstory-functions.cjs";
/// The file beside it that R loads in a recording of functions.
pub const R_HOOKS: &str = "backstory-functions.R";
/// The variable with the patterns of these functions, one a line.
pub const ENV_FUNCTIONS: &str = "BACKSTORY_FUNCTIONS";
/// The first variable of the client's environment, which names the program.
pub const ENV_PROGRAM: &str = "BACKSTORY_PROGRAM";

/// Client to broker: the number of the client's socket, and its former signal mask.
pub const BROKER_HELLO: u32 = 1;
/// Client to broker: so many descriptors are in the message.
pub const BROKER_DESCRIPTORS: u32 = 2;
/// Client to broker: all descriptors were sent. The word has the signals that the client got until
/// the broker had joined its process group.
pub const BROKER_READY: u32 = 3;
/// Client to broker: a signal that the client got, and its sender or 0.
pub const BROKER_SIGNAL: u32 = 4;
/// Broker to client: the number of the descriptors that it wants, and the list of them.
pub const BROKER_WANTED: u32 = 5;
/// Broker to client: the program runs, and its parent has the process id in the word.
pub const BROKER_STARTED: u32 = 6;
/// Broker to client: the program does not run. The client executes it itself.
pub const BROKER_FAILED: u32 = 7;
/// Broker to client: a signal stopped the program.
pub const BROKER_STOPPED: u32 = 8;
/// Broker to client: the program has ended with this status, in the form of wait(2).
pub const BROKER_ENDED: u32 = 9;
/// Client to broker: the client has reported all signals that it got before the `BROKER_REPORT`
/// with this number.
pub const BROKER_REPORTED: u32 = 10;
/// Broker to client: the client shall report its signals, and respond with this number.
pub const BROKER_REPORT: u32 = 11;

/// The first field of a [`FunctionTable`](crate::FunctionTable).
pub const FUNCTIONS_MAGIC: u64 = 0x736e_6f69_7463_6e66;
/// `CALLS`: the entry is a call. The next word is the number of the function.
pub const CALLS_CALL: u32 = 0x4000_0000;
/// `CALLS`: the entry is a return. With both bits it is a call and its return.
pub const CALLS_RETURN: u32 = 0x8000_0000;
/// `CALLS`: the bits of an entry's first word that are the time.
pub const CALLS_TIME: u32 = 0x3fff_ffff;
/// In the number of a function: an interpreter runs it.
pub const FUNCTION_INTERPRETED: u32 = 0x8000_0000;
/// Kind of a value: its type is not supported.
pub const VALUE_UNKNOWN: u8 = 0;
/// Kind of a value: an integer with a sign.
pub const VALUE_SIGNED: u8 = 1;
/// Kind of a value: an integer without a sign.
pub const VALUE_UNSIGNED: u8 = 2;
/// Kind of a value: a floating-point number.
pub const VALUE_FLOAT: u8 = 3;
/// Kind of a value: a pointer to characters.
pub const VALUE_TEXT: u8 = 4;
/// Kind of a value: another pointer.
pub const VALUE_POINTER: u8 = 5;
/// Kind of a value: a structure, to which a pointer leads.
pub const VALUE_STRUCTURE: u8 = 6;

/// `MAGIC_PRESERVE`: the caller writes to the file in place, and does not read it.
pub const CHANGE_WRITE: u32 = 1;
/// `MAGIC_PRESERVE`: the same, but the caller may read the file first.
pub const CHANGE_UPDATE: u32 = 2;
/// `MAGIC_PRESERVE`: the same as [`CHANGE_WRITE`], for the first such change in the run. Part of
/// the content may stay.
pub const CHANGE_PART: u32 = 5;
/// `MAGIC_PRESERVE`: the file loses this name.
pub const CHANGE_REMOVE: u32 = 3;
/// `MAGIC_PRESERVE`: only a path changes, or the file to which it leads.
pub const CHANGE_NAME: u32 = 4;
/// `MAGIC_PRESERVE`: mask of the above.
pub const CHANGE_KIND: u32 = 0xff;
/// `MAGIC_PRESERVE`: the call does not follow a symbolic link at the path's end.
pub const CHANGE_ITSELF: u32 = 256;

/// Arena flag: the guard is on, and the supervisor responds to requests by [`MAGIC_WHICH`].
pub const ARENA_GUARDED: u32 = 1;
/// Arena flag: a recorded process is in another pid namespace. Recorders announce every chunk.
pub const ARENA_PIDNS: u32 = 2;
/// Arena flag: the guard logs every call that it watches. Recorders log only other calls.
pub const ARENA_STRICT: u32 = 4;
/// Arena flag: log every read and write, not only the first per descriptor.
pub const ARENA_ALL_OPS: u32 = 8;
/// Arena flag: the run has ended or was detached. Recorders take no chunk and log nothing.
pub const ARENA_CLOSED: u32 = 16;
/// Arena flag: the run stores contents. Recorders send [`MAGIC_PRESERVE`] before a file changes.
pub const ARENA_KEEP: u32 = 32;
/// Arena flag: the log is to be durable before results. Recorders send [`MAGIC_COMMIT`] before a
/// write that the kernel makes durable itself.
pub const ARENA_ORDERED: u32 = 64;
/// Arena flag: deep records have the bytes that left a process, not their digest.
pub const ARENA_FULL: u32 = 128;
/// Arena flag: the deep log has ended. Recorders write no more deep records.
pub const ARENA_SHALLOW: u32 = 256;
/// Arena flag: a broker executes set-user-id programs. Recorders send [`MAGIC_BROKER`] before they
/// execute one.
pub const ARENA_BROKER: u32 = 512;
/// Arena flag: deep recorders record the time that a program takes without a system call.
pub const ARENA_EXACT: u32 = 2048;
/// Chunk flag: the chunk has [`crate::DeepRecord`]s, which belong into the deep log.
pub const CHUNK_DEEP: u32 = 1;

/// Record state: the arguments are valid. The outcome is not known, or not yet.
pub const RESERVED: u16 = 1;
/// Record state: the result is valid.
pub const DONE: u16 = 2;

/// Record flag: a [`crate::CallerIds`] follows the header.
pub const F_CALLER: u16 = 1;
/// Record flag: a `bs_ident` (`backstory_files::Ident`) follows, after any [`crate::CallerIds`].
pub const F_IDENT: u16 = 2;
/// Record flag: a string did not fit and was cut.
pub const F_CUT: u16 = 4;
/// Record flag: the last string continues in the next record of this operation.
pub const F_MORE: u16 = 8;
/// Record flag: the supervisor concluded the result from the file system.
pub const F_PREDICTED: u16 = 16;
/// Record flag: the path is absolute, as the supervisor resolved it for the caller.
pub const F_RESOLVED: u16 = 32;
/// Record flag: a `CLONE_VM` child wrote the record into its parent's chunk.
pub const F_CHILD: u16 = 64;
/// `OPEN` for reading, of a file that only this process made and changed.
pub const F_PRIVATE: u16 = 128;
/// All defined record flags. A record with another flag comes from a later version.
pub const F_ALL: u16 =
    F_CALLER | F_IDENT | F_CUT | F_MORE | F_PREDICTED | F_RESOLVED | F_CHILD | F_PRIVATE;
/// First value of [`Chunk::tid`](crate::Chunk::tid) for a thread that could not query its id. The
/// recorder gives such a thread a number of its own.
pub const TID_SUBSTITUTE: u32 = 0x2000_0000;

/// `META`: permission bits.
pub const META_MODE: i32 = 1;
/// `META`: owner or group.
pub const META_OWNER: i32 = 2;
/// `META`: time stamps.
pub const META_TIMES: i32 = 3;
/// `META`: extended attributes.
pub const META_ATTR: i32 = 4;
/// `RESOURCE`: its content was read.
pub const RESOURCE_READ: u32 = 1;
/// `RESOURCE`: all of its content was written.
pub const RESOURCE_WRITE: u32 = 2;
/// `RESOURCE`: content was added, or changed in part.
pub const RESOURCE_CHANGE: u32 = 3;
/// `RESOURCE`: it was removed.
pub const RESOURCE_DELETE: u32 = 4;

/// `DESCRIBED`: an activity.
pub const DESCRIBED_ACTIVITY: u32 = 1;
/// `DESCRIBED`: a word of an activity's command.
pub const DESCRIBED_WORD: u32 = 2;
/// `DESCRIBED`: an entity.
pub const DESCRIBED_ENTITY: u32 = 3;
/// `DESCRIBED`: a relation of an activity and an entity.
pub const DESCRIBED_EDGE: u32 = 4;
/// `DESCRIBED`: an activity informed another.
pub const DESCRIBED_INFORM: u32 = 5;
/// `DESCRIBED`: an entity was made from another.
pub const DESCRIBED_DERIVED: u32 = 6;
/// `DESCRIBED`: an attribute of an activity.
pub const DESCRIBED_NOTE: u32 = 7;
/// `DESCRIBED`: the place of an activity in a job of a launcher of parallel work.
pub const DESCRIBED_RANK: u32 = 8;
/// `DESCRIBED`: the relation happened. Otherwise it can have happened.
pub const DESCRIBED_CERTAIN: u32 = 0x10000;
/// `DESCRIBED`: the entity is the last version of its name.
pub const DESCRIBED_LAST: u32 = 0x20000;
/// `DESCRIBED`: the activity is a part of a program's work.
pub const DESCRIBED_PART: u32 = 0x40000;
/// `DESCRIBED`: the status of the activity is known.
pub const DESCRIBED_ENDED: u32 = 0x80000;
/// `DESCRIBED`: the activity ended by an exec.
pub const DESCRIBED_EXECED: u32 = 0x10_0000;

/// `VFORK`: the child was made by `vfork`.
pub const SPAWN_VFORK: i32 = 1;
/// `VFORK`: the child was made by `posix_spawn`.
pub const SPAWN_POSIX: i32 = 2;
/// `VFORK`: the child was made by `system`.
pub const SPAWN_SYSTEM: i32 = 3;
/// `VFORK`: the child was made by `popen`.
pub const SPAWN_POPEN: i32 = 4;
/// `VFORK`: the child was made by `clone` with shared memory.
pub const SPAWN_CLONE: i32 = 5;

/// `THREAD`: the caller made a thread.
pub const THREAD_CREATE: u32 = 1;
/// `THREAD`: the caller is the new thread, and starts.
pub const THREAD_START: u32 = 2;
/// `THREAD`: the caller waited for the thread's end.
pub const THREAD_JOIN: u32 = 3;

/// `LOST`: no chunk was free.
pub const LOST_NO_CHUNK: i32 = 1;
/// `LOST`: the program's sandbox forbade a call that logging needed.
pub const LOST_SANDBOX: i32 = 2;
/// `LOST`: the operation was longer than a record can be.
pub const LOST_TOO_LONG: i32 = 3;

/// `HOLD`: the supervisor could not find out how the descriptor is open.
pub const HOLD_UNKNOWN: u32 = 0x8000_0000;

/// `KEPT`: the stored content is the file itself, under another name.
pub const KEPT_LINK: u32 = 1;
/// `KEPT`: the stored content is a copy that shares the file's blocks.
pub const KEPT_CLONE: u32 = 2;
/// `KEPT`: the stored content is a full copy.
pub const KEPT_COPY: u32 = 3;
/// `KEPT`: as [`KEPT_LINK`], but by the process that removes the file, whether or not the run has
/// read it.
pub const KEPT_OWN_LINK: u32 = 4;

/// `OPAQUE`, an interface that cannot be decoded: a tracer changes the memory of its tracee.
pub const OPAQUE_TRACER_MEMORY: &str = "PTRACE_POKEDATA";
/// `OPAQUE`: a tracer changes the registers of its tracee.
pub const OPAQUE_TRACER_REGISTERS: &str = "PTRACE_SETREGS";
/// `OPAQUE`: a tracer makes the kernel skip system calls of its tracee.
pub const OPAQUE_TRACER_EMULATION: &str = "PTRACE_SYSEMU";
/// `OPAQUE`: process accounting.
pub const OPAQUE_ACCT: &str = "acct";
/// `OPAQUE`: swapping to a file.
pub const OPAQUE_SWAPON: &str = "swapon";
/// `OPAQUE`: POSIX message queues.
pub const OPAQUE_QUEUE: &str = "POSIX message queue";
/// `OPAQUE`: a file opened by its handle.
pub const OPAQUE_HANDLE: &str = "open_by_handle_at";
/// `OPAQUE`: a write to the memory of another process.
pub const OPAQUE_MEMORY: &str = "process_vm_writev";
/// `OPAQUE`, before the path of a program that the broker started outside of the recording.
pub const OPAQUE_OUTSIDE: &str = "BACKSTORY_PROGRAM=";
/// `OPAQUE`: a descriptor taken from another process.
pub const OPAQUE_DESCRIPTOR: &str = "pidfd_getfd";
/// `OPAQUE`: descriptors of files that other processes opened.
pub const OPAQUE_FANOTIFY: &str = "fanotify with descriptors";
/// `OPAQUE`: an io_uring ring in a run without the guard, so that its requests are not read.
pub const OPAQUE_RING: &str = "io_uring without the guard";
/// `OPAQUE`: a process without the filter needed it, and could not get it.
pub const OPAQUE_UNGUARDED: &str = "a program outside of the guard's filter";
/// `OPAQUE`: a program executed by a process that limits its own calls, in a run without the guard.
/// Such a program gets no recorder.
pub const OPAQUE_FILTERED: &str = "exec below a seccomp filter without the guard";
