//! Writes recorded calls by hand.

use backstory_abi::deep;
use backstory_deep::{Call, Section};
use libc::c_long;

/// A call with this number.
pub fn call(number: c_long, fd: i32, result: i64) -> Call {
    Call {
        number: number as u16,
        fd,
        result,
        ..Call::default()
    }
}

/// Adds a section.
pub fn with(mut call: Call, kind: u16, arg: u16, bytes: &[u8]) -> Call {
    call.sections.push(Section {
        kind,
        arg,
        bytes: bytes.to_vec(),
    });
    call
}

fn words(words: &[&str]) -> Vec<u8> {
    words
        .iter()
        .flat_map(|word| [word.as_bytes(), b"\0"].concat())
        .collect()
}

/// The beginning of a program.
pub fn begin(program: &str, arguments: &[&str], directory: &str) -> Call {
    let mut call = call(c_long::from(deep::BEGIN), 0, 0);
    call.a = deep::BY_EXEC;
    for (arg, list) in [(0, arguments), (1, &["PATH=/usr/bin:/bin", "LC_ALL=C"][..])] {
        call = with(call, deep::WORDS, arg, &words(list));
    }
    call = with(call, deep::LEFT, 3, b"0123456789abcdef");
    call = with(call, deep::PATH, 4, program.as_bytes());
    with(call, deep::PATH, 5, directory.as_bytes())
}

/// Adds the address at which the stack of a program began to its beginning.
pub fn with_stack(begin: Call, address: u64) -> Call {
    with(begin, deep::LEFT, 7, &address.to_le_bytes())
}

/// The first use of a descriptor.
pub fn descriptor(fd: i32, number: u64, kind: u32, link: &str) -> Call {
    let mut call = call(c_long::from(deep::DESCRIPTOR), fd, i64::from(kind));
    (call.a, call.b) = (number, u64::MAX);
    with(call, deep::PATH, 0, link.as_bytes())
}

/// A read that got these bytes.
pub fn read(fd: i32, bytes: &[u8]) -> Call {
    let mut call = call(libc::SYS_read, fd, bytes.len() as i64);
    call.a = 1 << 17;
    match bytes.is_empty() {
        true => call,
        false => with(call, deep::ENTERED, 1, bytes),
    }
}

/// A read that failed.
pub fn failed_read(fd: i32, errno: i32) -> Call {
    let mut call = call(libc::SYS_read, fd, -i64::from(errno));
    call.a = 1 << 17;
    call
}

/// The handler of a signal begins.
pub fn handler(signal: i32) -> Call {
    call(c_long::from(deep::SIGNAL), -1, i64::from(signal))
}

/// A write of these bytes, of which the log has the digest.
pub fn write(fd: i32, bytes: &[u8]) -> Call {
    let mut digest = (bytes.len() as u64).to_le_bytes().to_vec();
    digest.extend(backstory_deep::digest::xxh64(bytes).to_le_bytes());
    with(
        call(libc::SYS_write, fd, bytes.len() as i64),
        deep::LEFT_DIGEST,
        1,
        &digest,
    )
}

/// A write of these bytes, which the log has (`--outputs full`).
pub fn write_full(fd: i32, bytes: &[u8]) -> Call {
    with(
        call(libc::SYS_write, fd, bytes.len() as i64),
        deep::LEFT,
        1,
        bytes,
    )
}

/// Random bytes.
pub fn random(bytes: &[u8], flags: u64) -> Call {
    let mut call = call(libc::SYS_getrandom, -1, bytes.len() as i64);
    (call.a, call.b) = (bytes.len() as u64, flags);
    with(call, deep::ENTERED, 0, bytes)
}

/// Records are missing before the next one.
pub fn gap() -> Call {
    call(c_long::from(deep::GAP), -1, 0)
}

/// The end of a program.
pub fn exit(status: u64) -> Call {
    let mut call = call(libc::SYS_exit_group, -1, 0);
    call.a = status;
    call
}

/// A thread with this number begins.
pub fn begin_thread(number: u32) -> Call {
    let mut call = call(c_long::from(deep::BEGIN), 0, 0);
    (call.a, call.b) = (deep::BY_THREAD, u64::from(number));
    of_thread(number, call)
}

/// Makes a call one of this thread.
pub fn of_thread(number: u32, call: Call) -> Call {
    Call {
        tid: number,
        ..call
    }
}

/// A poll of this descriptor. Its time was up, or a signal interrupted it.
pub fn polled(fd: i32, result: i64) -> Call {
    let mut call = call(libc::SYS_poll, -1, result);
    call.a = 1;
    if result < 0 {
        return call;
    }
    let events = [libc::POLLIN, 0].map(i16::to_le_bytes).concat();
    let entry = [&fd.to_le_bytes()[..], &events].concat();
    with(call, deep::ENTERED, 0, &entry)
}

/// Gives calls the times 1, 2 and so on, in their order.
pub fn timed(calls: Vec<Call>) -> Vec<Call> {
    let times = 1..;
    let mut calls = calls;
    for (call, time) in calls.iter_mut().zip(times) {
        call.time = time;
    }
    calls
}

/// Sets the time of a call.
pub fn timed_at(time: u64, call: Call) -> Call {
    Call { time, ..call }
}

/// The beginning of a process that `fork` made.
pub fn begin_forked() -> Call {
    let mut call = call(c_long::from(deep::BEGIN), 0, 0);
    call.a = deep::BY_FORK;
    call
}

/// The program learns of the end of a child, with the kernel's status.
pub fn waited(child: u32, status: i32) -> Call {
    let call = call(libc::SYS_wait4, -1, i64::from(child));
    with(call, deep::ENTERED, 1, &status.to_le_bytes())
}

/// The question whether a file may be used in this way.
pub fn access(path: &str, mode: i32, result: i64) -> Call {
    let mut call = call(libc::SYS_access, libc::AT_FDCWD, result);
    call.a = mode as u64;
    with(call, deep::PATH, 0, path.as_bytes())
}

/// A message that passes a descriptor.
pub fn receive_descriptor(fd: i32, bytes: &[u8], passed: i32) -> Call {
    let mut call = call(libc::SYS_recvmsg, fd, bytes.len() as i64);
    call.a = 9;
    call = with(call, deep::ENTERED, 1, bytes);
    let header = [20u64.to_le_bytes(), [1, 0, 0, 0, 1, 0, 0, 0]].concat();
    let control = [header, passed.to_le_bytes().to_vec(), vec![0; 4]].concat();
    with(call, deep::CONTROL, 1, &control)
}

/// A new socket of `AF_UNIX`.
pub fn unix_socket(fd: i32) -> Call {
    let mut call = call(libc::SYS_socket, -1, i64::from(fd));
    (call.a, call.b) = (libc::AF_UNIX as u64, libc::SOCK_STREAM as u64);
    call
}

/// The socket gets a path.
pub fn bind(fd: i32, path: &str) -> Call {
    let family = libc::AF_UNIX as u16;
    let address = [&family.to_ne_bytes()[..], path.as_bytes(), b"\0"].concat();
    with(call(libc::SYS_bind, fd, 0), deep::ADDRESS, 1, &address)
}

/// An open for reading.
pub fn open(path: &str, fd: i32) -> Call {
    let call = call(libc::SYS_openat, libc::AT_FDCWD, i64::from(fd));
    with(call, deep::PATH, 1, path.as_bytes())
}

/// A read of a stored file, to whose content the log refers: the fact about the descriptor, and the
/// position.
pub fn read_of_file(fd: i32, number: u64, position: u64, bytes: &[u8]) -> Call {
    let digest = backstory_deep::digest::xxh64(bytes);
    let words = [number, position, bytes.len() as u64, digest];
    let words: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut call = call(libc::SYS_read, fd, bytes.len() as i64);
    call.a = 1 << 17;
    with(call, deep::FILE, 1, &words)
}
