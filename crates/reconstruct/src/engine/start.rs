//! Starts the program: a child installs the filter, hands its listener over, and executes it.

use super::Options;
use super::filter::{self, CHANNEL, FilterNeeds};
use super::kept_environment;
use super::placeholder;
use super::script;
use super::stack::{StackStrings, is_elf};
use crate::error::Error;
use crate::process::{ProcessStart, RecordedProcess};
use backstory_sys as sys;
use std::ffi::{CStr, CString, OsStr, c_char};
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::null;

/// The descriptor on which a tool in the program's own process may write for the user. Descriptor 2
/// is that of the program.
pub const TOOL_LOG: i32 = CHANNEL + 1;

/// Statuses of a child that could not execute the program. Shells have the first two, too.
const NOT_FOUND: i32 = 127;
const NOT_PERMITTED: i32 = 126;
const NO_PROGRAM: i32 = 125;

/// Why the first process executed nothing, by its wait status. `None`: that status does not say so.
/// `has_tool`: the process executes a tool, which has statuses of its own.
pub fn not_executed(status: i32, has_tool: bool) -> Option<io::Error> {
    let exit = (status & 0x7f == 0).then_some(status >> 8);
    match exit? {
        NOT_FOUND => Some(io::ErrorKind::NotFound.into()),
        NOT_PERMITTED if !has_tool => Some(io::Error::from_raw_os_error(libc::EACCES)),
        NO_PROGRAM if !has_tool => Some(io::Error::from_raw_os_error(libc::ENOEXEC)),
        _ => None,
    }
}

/// Tools that execute the program in their own process.
const WRAPPERS: [&[u8]; 11] = [
    b"chrt",
    b"env",
    b"ionice",
    b"nice",
    b"nohup",
    b"numactl",
    b"prlimit",
    b"setarch",
    b"stdbuf",
    b"taskset",
    b"valgrind",
];

/// Everything that the child needs, prepared before the fork.
struct Launch {
    path: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
    directory: CString,
    has_tool: bool,
    /// The tool gets [`TOOL_LOG`].
    has_log: bool,
}

/// A string for the kernel. It ends at its first NUL.
fn c_string(bytes: &[u8]) -> CString {
    let end = bytes.iter().position(|byte| *byte == 0);
    CString::new(&bytes[..end.unwrap_or(bytes.len())]).unwrap_or_default()
}

/// True for the path of a tool that executes the program in its own process.
fn is_wrapper(tool: &CStr) -> bool {
    let name = tool.to_bytes().rsplit(|byte| *byte == b'/').next();
    name.is_some_and(|name| WRAPPERS.contains(&name))
}

/// The path of the program, as it was recorded or chosen.
fn program<'a>(process: &'a RecordedProcess, options: &'a Options) -> &'a [u8] {
    match &options.binary {
        Some(binary) => binary.as_os_str().as_bytes(),
        None => &process.start.program,
    }
}

fn launch(process: &RecordedProcess, options: &Options) -> Launch {
    let start = &process.start;
    let program = program(process, options);
    let mut arguments: Vec<&[u8]> = start.arguments.iter().map(Vec::as_slice).collect();
    leave_out_interpreter(&start.directory, program, &mut arguments);
    let mut path = program;
    let has_tool = !options.tool.is_empty();
    let interpreter = match has_tool {
        true => script::interpreter(&start.directory, program),
        false => Vec::new(),
    };
    let tool_words = match has_tool {
        true => {
            // Of a script, a tool executes the interpreter.
            let executed = interpreter.first().map_or(program, Vec::as_slice);
            kept_environment::keep(&options.tool, executed, &start.environment)
        }
        false => Vec::new(),
    };
    if let Some(tool) = options.tool.first() {
        path = tool;
        let given = arguments.split_off(arguments.len().min(1));
        arguments = tool_words.iter().map(Vec::as_slice).collect();
        arguments.extend(interpreter.iter().map(Vec::as_slice));
        arguments.push(program);
        arguments.extend(given);
    }
    let mut launch = Launch {
        path: c_string(path),
        arguments: arguments.into_iter().map(c_string).collect(),
        environment: start.environment.iter().map(|one| c_string(one)).collect(),
        directory: c_string(match start.directory.is_empty() {
            true => b"/",
            false => &start.directory,
        }),
        has_tool,
        has_log: options.has_log,
    };
    if !has_tool && let Some(longer) = longer_path(&launch, start) {
        launch.path = c_string(&longer);
    }
    launch
}

/// The path with which the stack of the program begins where it began in the record, if that is
/// another one.
fn longer_path(launch: &Launch, start: &ProcessStart) -> Option<Vec<u8>> {
    let begins = start.stack?;
    let path = launch.path.to_bytes();
    let mut strings = StackStrings::default();
    for string in launch.arguments.iter().chain(&launch.environment) {
        strings.add(string.to_bytes().len());
    }
    is_elf(&in_directory(&start.directory, path)).then(|| strings.longer_path(path, begins))?
}

/// The path of a program, as a process in this directory sees it.
fn in_directory(directory: &[u8], program: &[u8]) -> PathBuf {
    Path::new(OsStr::from_bytes(directory)).join(OsStr::from_bytes(program))
}

/// The kernel puts the interpreter of a script, with its argument, before the script's own path and
/// its arguments. It does so again.
fn leave_out_interpreter<'a>(directory: &[u8], program: &'a [u8], arguments: &mut Vec<&'a [u8]>) {
    /// The interpreter, one argument of it, and the same for an interpreter that is a script.
    const MOST: usize = 8;
    let mut mark = [0; 2];
    let is_script = File::open(in_directory(directory, program))
        .and_then(|mut file| file.read_exact(&mut mark));
    let at = arguments
        .iter()
        .take(MOST)
        .skip(1)
        .position(|one| *one == program);
    if let (Ok(()), b"#!", Some(at)) = (is_script, &mark, at) {
        arguments.drain(..=at);
    }
}

/// Starts the program. Returns its process and the listener of its filter.
pub fn start(
    process: &RecordedProcess,
    options: &Options,
    needs: FilterNeeds,
    become_user: impl FnOnce() -> io::Result<()>,
) -> Result<(sys::Pid, OwnedFd), Error> {
    let fail = Error::supervise("start");
    let launch = launch(process, options);
    let program = match options.tool.first() {
        Some(tool) => tool.as_slice(),
        None => program(process, options),
    };
    let filter = filter::program(needs);
    let (own, its) = sys::socket_pair().map_err(&fail)?;
    // Other tools execute the program in a child, which gets this number (`numbers.rs`).
    if !launch.has_tool || options.follows_bytes || is_wrapper(&launch.path) {
        next_pid(process.pid);
    }
    let child = sys::fork().map_err(&fail)?;
    if child == 0 {
        drop(own);
        let error = become_program(&launch, &filter, its, become_user);
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        sys::exit_now(match errno {
            libc::EACCES => NOT_PERMITTED,
            libc::ENOEXEC if !launch.has_tool => NO_PROGRAM,
            _ => NOT_FOUND,
        });
    }
    drop(its);
    sys::poll(own.as_fd(), libc::POLLIN, -1);
    match sys::receive_fd(own.as_fd()) {
        Some((_, Some(listener))) => Ok((child, listener)),
        _ => Err(Error::NotStarted {
            program: String::from_utf8_lossy(program).into_owned(),
            source: io::Error::other("its process ended before"),
        }),
    }
}

/// The steps of the child. Returns only on an error.
fn become_program(
    launch: &Launch,
    filter: &[libc::sock_filter],
    channel: OwnedFd,
    become_user: impl FnOnce() -> io::Result<()>,
) -> io::Error {
    let steps = || -> io::Result<io::Error> {
        become_user()?;
        sys::keep_addresses()?;
        if launch.has_log {
            let log = rustix::io::fcntl_dupfd_cloexec(io::stderr().as_fd(), TOOL_LOG)?;
            rustix::io::fcntl_setfd(&log, rustix::io::FdFlags::empty())?;
            std::mem::forget(log);
        }
        // Without a terminal of its own, the program cannot reach the user's. A tool keeps a
        // terminal and its keys. Signals to its group go through the supervisor.
        if !launch.has_tool || !io::stdin().is_terminal() {
            sys::leave_session();
        }
        if !launch.has_tool {
            // Those of the user's shell lead out of the replay.
            sys::close_all_but(channel.as_fd())?;
            placeholder::put();
        }
        rustix::process::chdir(launch.directory.as_c_str())?;
        // Rust ignores this signal, and a program inherits that.
        sys::set_disposition(libc::SIGPIPE, libc::SIG_DFL);
        // A shell's command in the background ignores these. Some programs that ignore a signal set
        // no handler of it, and a recorded handler would not run.
        for signal in [libc::SIGINT, libc::SIGQUIT] {
            sys::set_disposition(signal, libc::SIG_DFL);
        }
        sys::set_mask(&sys::no_signals());
        let channel = rustix::io::fcntl_dupfd_cloexec(&channel, CHANNEL)?;
        debug_assert_eq!(channel.as_raw_fd(), CHANNEL);
        let argv = pointers(&launch.arguments);
        let envp = pointers(&launch.environment);
        let listener = filter::install(filter)?;
        sys::send_fd(channel.as_fd(), b'L', listener.as_fd())?;
        Ok(sys::exec_with(&launch.path, &argv, &envp))
    };
    steps().unwrap_or_else(|error| error)
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    let all = strings.iter().map(|string| string.as_ptr());
    all.chain([null()]).collect()
}

const LAST_PID: &str = "/proc/sys/kernel/ns_last_pid";

/// The id of the newest process or thread of this namespace.
pub fn last_pid() -> Option<u32> {
    let text = std::fs::read_to_string(LAST_PID).ok()?;
    text.trim().parse().ok()
}

/// The next process or thread of this namespace gets this id, if it is free. Without the permission
/// it gets another one, and the result is false. The record answers `getpid` all the same.
pub fn next_pid(pid: u32) -> bool {
    pid > 1 && std::fs::write(LAST_PID, (pid - 1).to_string()).is_ok()
}
