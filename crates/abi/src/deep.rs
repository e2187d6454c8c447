//! The numbers in deep records. `docs/formats/deep.md` describes them.

/// Record flag: the call goes on in the thread's next record with this time and call.
pub const MORE: u8 = 1;
/// Record flag: bytes are missing.
pub const CUT: u8 = 4;
/// Record flag: a signal handler made the call.
pub const HANDLER: u8 = 8;

/// Section: bytes that the kernel wrote at this argument.
pub const ENTERED: u16 = 1;
/// Section: bytes that the program passed at this argument.
pub const LEFT: u16 = 2;
/// Section: the length and the XXH64 of these bytes.
pub const LEFT_DIGEST: u16 = 3;
/// Section: a reference to a file, in the place of [`ENTERED`].
pub const FILE: u16 = 4;
/// Section: a path.
pub const PATH: u16 = 5;
/// Section: a socket address.
pub const ADDRESS: u16 = 6;
/// Section: control messages.
pub const CONTROL: u16 = 7;
/// Section: the flags of a received message.
pub const MESSAGE: u16 = 8;
/// Section: a `bs_ident`.
pub const IDENT: u16 = 9;
/// Section: strings, each with a NUL.
pub const WORDS: u16 = 10;

/// The path of a [`DESCRIPTOR`] for which the kernel gave no name.
pub const NO_NAME: u8 = b'?';

/// Fact: a stream begins.
pub const BEGIN: u16 = 1000;
/// Fact: a descriptor is used for the first time.
pub const DESCRIPTOR: u16 = 1001;
/// Fact: a signal handler begins.
pub const SIGNAL: u16 = 1002;
/// Fact: a signal handler returned.
pub const SIGNAL_END: u16 = 1003;
/// Fact: records are missing.
pub const GAP: u16 = 1004;
/// Fact: the process is not recorded deeply any more.
pub const SHALLOW: u16 = 1005;
/// Fact: the program took the time of a clock.
pub const CLOCK: u16 = 1006;
/// Fact: the program asked for the processor on which it runs.
pub const PROCESSOR: u16 = 1007;
/// Fact: the times that the process takes are not recorded any more.
pub const UNTIMED: u16 = 1008;
/// Fact: the program read the time-stamp counter.
pub const COUNTER: u16 = 1009;
/// Fact: the program identified the processor.
pub const CPUID: u16 = 1010;
/// Fact: some instructions of the program that do so are not recorded.
pub const UNCOUNTED: u16 = 1011;

/// A redirected instruction: `rdtsc`.
pub const RDTSC: u64 = 0;
/// `rdtscp`.
pub const RDTSCP: u64 = 1;
/// `cpuid`.
pub const CPUID_INSTRUCTION: u64 = 2;

/// The result of a [`CLOCK`] counts from the thread's last one of this clock.
pub const SINCE: u64 = 0;
/// It is whole, and later ones count from it.
pub const WHOLE: u64 = 1;
/// It is whole, in a signal handler, and none counts from it.
pub const ASIDE: u64 = 2;

/// A stream begins after `execve`.
pub const BY_EXEC: u64 = 0;
/// A stream begins after `fork`.
pub const BY_FORK: u64 = 1;
/// A stream begins in a new thread.
pub const BY_THREAD: u64 = 2;
