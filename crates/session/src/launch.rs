//! Starts the command as the shell would have started it.
//!
//! Invariant: the command inherits the launcher's state at its start. Only the two environment
//! variables of backstory and the parent process id differ.
#![allow(unsafe_code)]

use crate::Error;
use crate::clock_tick;
use crate::control::{Control, NOT_STARTED};
use crate::inherited_state::{InheritedState, RAISED};
use backstory_sys as sys;
use rustix::fs::{Access, AtFlags, CWD};
use rustix::thread::futex;
use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_int, c_void};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{io, mem};

/// Search path for a command without a slash if `PATH` is not set.
const DEFAULT_PATH: &[u8] = b"/bin:/usr/bin";

/// The search path of the command.
pub(crate) fn search_path(variables: &[(OsString, OsString)]) -> Vec<u8> {
    let own = variables.iter().find(|(name, _)| name == "PATH");
    let path = own.map(|(_, value)| value.clone());
    let path = path.or_else(|| std::env::var_os("PATH"));
    path.map_or(DEFAULT_PATH.to_vec(), OsStringExt::into_vec)
}

/// Finds the program as a shell does.
///
/// # Errors
///
/// `ENOENT` or `EACCES`.
pub(crate) fn search(name: &OsStr, path: Vec<u8>) -> Result<CString, i32> {
    let bytes = name.as_bytes();
    let exact = |bytes: &[u8]| CString::new(bytes).map_err(|_| libc::ENOENT);
    if bytes.contains(&b'/') {
        return exact(bytes);
    }
    if bytes.is_empty() {
        return Err(libc::ENOENT);
    }
    let mut why = libc::ENOENT;
    for directory in path.split(|&b| b == b':') {
        let mut candidate = directory.to_vec();
        if !directory.is_empty() {
            candidate.push(b'/');
        }
        candidate.extend_from_slice(bytes);
        let candidate = exact(&candidate)?;
        match executable(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(libc::EACCES) => why = libc::EACCES,
            Err(_) => {}
        }
    }
    Err(why)
}

fn executable(path: &CStr) -> Result<(), i32> {
    let stat = rustix::fs::stat(path).map_err(rustix::io::Errno::raw_os_error)?;
    if stat.st_mode & libc::S_IFMT != libc::S_IFREG {
        return Err(libc::EACCES);
    }
    rustix::fs::accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS)
        .map_err(rustix::io::Errno::raw_os_error)
}

/// The environment as it lies in memory, with its order, duplicates and entries without `=`.
pub(crate) fn environment() -> Vec<Vec<u8>> {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    let mut all = Vec::new();
    // SAFETY: a null-terminated list of strings. No other thread exists that could change it.
    unsafe {
        let mut next = environ;
        while !next.is_null() && !(*next).is_null() {
            all.push(CStr::from_ptr(*next).to_bytes().to_vec());
            next = next.add(1);
        }
    }
    all
}

/// Sets variables of an environment. A variable that it has stays where it is.
pub(crate) fn set_variables(environment: &mut Vec<Vec<u8>>, variables: &[(OsString, OsString)]) {
    for (name, value) in variables {
        let name = [name.as_bytes(), b"="].concat();
        let entry = [&name, value.as_bytes()].concat();
        match environment.iter().position(|one| one.starts_with(&name)) {
            Some(first) => {
                let mut at = 0;
                environment.retain(|one| {
                    at += 1;
                    at - 1 <= first || !one.starts_with(&name)
                });
                environment[first] = entry;
            }
            None => environment.push(entry),
        }
    }
}

/// Adds the recorder's variables. The recorder's preload entry stands last, so that the user's own
/// entries keep their order.
pub(crate) fn with_recorder(
    environment: &[Vec<u8>],
    preload: &[u8],
    arena: &OsStr,
) -> Vec<Vec<u8>> {
    const PRELOAD: &[u8] = b"LD_PRELOAD=";
    let arena_name = [backstory_abi::ENV_ARENA.as_bytes(), b"="].concat();
    let mut result: Vec<Vec<u8>> = environment
        .iter()
        .filter(|e| !e.starts_with(&arena_name))
        .cloned()
        .collect();
    match result.iter_mut().find(|e| e.starts_with(PRELOAD)) {
        // This holds for an empty entry, too: the program sees the text before the recorder's
        // entry.
        Some(entry) => entry.extend([b":", preload].concat()),
        None => result.push([PRELOAD, preload].concat()),
    }
    result.push([&arena_name, arena.as_bytes()].concat());
    result
}

/// The state of the new process, prepared before it exists, because it may not allocate.
pub(crate) struct Launch {
    path: CString,
    argv: Pointers,
    /// For a script without an interpreter line: the shell, the script and its arguments.
    shell_argv: Pointers,
    envp: Pointers,
    inherited_state: InheritedState,
    control: &'static Control,
    /// See [`clock_tick::just_changed`].
    just_changed: Option<i64>,
    /// The supervisor has left the command's process group.
    left: AtomicU32,
}

/// Strings, and the null-terminated list of their addresses.
struct Pointers {
    _strings: Vec<CString>,
    list: Vec<*const c_char>,
}

// SAFETY: the addresses point to strings that it owns and that never change.
unsafe impl Send for Pointers {}
// SAFETY: as above.
unsafe impl Sync for Pointers {}

impl Pointers {
    fn new(strings: Vec<CString>) -> Pointers {
        let list = strings.iter().map(|s| s.as_ptr()).chain([null()]).collect();
        Pointers {
            _strings: strings,
            list,
        }
    }
}

fn strings(of: &[impl AsRef<[u8]>], what: &'static str) -> Result<Vec<CString>, Error> {
    of.iter()
        .map(|s| CString::new(s.as_ref()).map_err(|_| Error::Nul { what }))
        .collect()
}

impl Launch {
    /// Prepares the start of `path`.
    pub(crate) fn new(
        path: CString,
        command: &[impl AsRef<OsStr>],
        environment: &[Vec<u8>],
        inherited_state: InheritedState,
        control: &'static Control,
        just_changed: Option<i64>,
    ) -> Result<Launch, Error> {
        let words: Vec<&[u8]> = command.iter().map(|w| w.as_ref().as_bytes()).collect();
        let argv = strings(&words, "an argument")?;
        let mut shell = vec![CString::from(c"/bin/sh"), path.clone()];
        shell.extend(argv.iter().skip(1).cloned());
        Ok(Launch {
            path,
            argv: Pointers::new(argv),
            shell_argv: Pointers::new(shell),
            envp: Pointers::new(strings(environment, "the environment")?),
            inherited_state,
            control,
            just_changed,
            left: AtomicU32::new(0),
        })
    }

    /// Starts the command as a child of this process. Returns true once its program runs, or false
    /// if it could not be executed. The shared state then has the reason.
    ///
    /// Until then the child borrows the memory of this process, as after `vfork`. No page table is
    /// copied, and the errno needs neither a message nor a descriptor, of which few may be left.
    ///
    /// This thread does not wait as in `vfork`, however. A thread that waits in `vfork` cannot be
    /// stopped. A process whose other threads are all stopped then counts as running, and a shell
    /// would not continue it. Its receivers, which must respond to the child's calls, would stay
    /// stopped.
    ///
    /// This process leaves the session before the program runs, because the first act of a program
    /// may be to kill its whole process group.
    pub(crate) fn start(&self) -> io::Result<bool> {
        const STACK: usize = 64 * 1024;
        let mut stack: Vec<mem::MaybeUninit<u128>> = Vec::with_capacity(STACK / 16);
        let shares = AtomicU32::new(1);
        let flags = libc::CLONE_VM | libc::CLONE_CHILD_CLEARTID | libc::SIGCHLD;
        // SAFETY: the stack and `shares` belong to this call. They outlive the child's use of them,
        // because this thread waits until the child has executed or exited. The kernel then clears
        // `shares` in the memory that it releases. The child only reads `self`, which outlives the
        // call. It stores into atomics and into this thread's errno, which is not used meanwhile.
        unsafe {
            let top = stack.as_mut_ptr().add(STACK / 16).cast();
            clone_onto(top, flags, std::ptr::from_ref(self), &shares)?;
        }
        sys::leave_session();
        self.control
            .set_quiet(clock_tick::wait_past(self.just_changed));
        self.left.store(1, Ordering::Release);
        let _ = futex::wake(&self.left, futex::Flags::empty(), 1);
        while shares.load(Ordering::Acquire) != 0 {
            // The word decides, not the return value. The kernel wakes as if processes shared the
            // word.
            let _ = futex::wait(&shares, futex::Flags::empty(), 1, None);
        }
        Ok(!self.control.reached(NOT_STARTED))
    }
}

impl Launch {
    /// Makes the child wait until its parent has left its process group or is dead. Only system
    /// calls.
    fn wait_until_alone(&self) {
        let a_while = libc::timespec {
            tv_sec: 0,
            tv_nsec: 10_000_000,
        };
        while self.left.load(Ordering::Acquire) == 0 {
            // SAFETY: the word lies in memory shared until `execve`, and the time on this stack.
            unsafe {
                let parent = libc::syscall(libc::SYS_getppid) as sys::Pid;
                if self.control.supervisor() != Some(parent) {
                    break;
                }
                libc::syscall(
                    libc::SYS_futex,
                    self.left.as_ptr(),
                    libc::FUTEX_WAIT,
                    0,
                    &raw const a_while,
                );
            }
        }
    }
}

/// Clones this process into [`child`], on the stack that ends at `top`. With `CLONE_CHILD_CLEARTID`
/// in `flags` the kernel clears `shares` once the child has left this memory.
///
/// # Safety
///
/// The stack, the launch and `shares` outlive the child's use of them.
#[cfg(not(target_env = "musl"))]
unsafe fn clone_onto(
    top: *mut c_void,
    flags: c_int,
    launch: *const Launch,
    shares: &AtomicU32,
) -> io::Result<()> {
    // SAFETY: as the caller promises.
    let pid = unsafe {
        libc::clone(
            child,
            top,
            flags,
            launch.cast_mut().cast::<c_void>(),
            null_mut::<libc::pid_t>(),
            null_mut::<c_void>(),
            shares.as_ptr(),
        )
    };
    match pid {
        ..0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// The same by the kernel's own call: the function of musl refuses `CLONE_CHILD_CLEARTID`.
///
/// # Safety
///
/// As above.
#[cfg(target_env = "musl")]
unsafe fn clone_onto(
    top: *mut c_void,
    flags: c_int,
    launch: *const Launch,
    shares: &AtomicU32,
) -> io::Result<()> {
    let pid: i64;
    // SAFETY: as the caller promises. The child starts at the aligned end of its stack with a copy
    // of the registers, and `child` does not return.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, {launch}",
            "call {child}",
            "ud2",
            "2:",
            launch = in(reg) launch,
            child = in(reg) child as extern "C" fn(*mut c_void) -> c_int,
            inlateout("rax") libc::SYS_clone => pid,
            in("rdi") i64::from(flags),
            in("rsi") top,
            in("rdx") 0_u64,
            in("r10") shares.as_ptr(),
            in("r8") 0_u64,
            out("rcx") _,
            out("r11") _,
        );
    }
    match pid {
        ..0 => Err(io::Error::from_raw_os_error(-pid as i32)),
        _ => Ok(()),
    }
}

/// The child's side, on its parent's memory. It makes only system calls, through `syscall`, which
/// bypass a recorder in this process.
extern "C" fn child(launch: *mut c_void) -> c_int {
    // SAFETY: `start` passes a `Launch` that lives until the child has executed or exited.
    // Everything that it points to is prepared.
    unsafe {
        let launch = &*launch.cast::<Launch>();
        if !launch
            .control
            .is_command(libc::syscall(libc::SYS_getpid) as i32)
        {
            libc::_exit(127);
        }
        launch.wait_until_alone();
        restore(&launch.inherited_state);
        if let Some(personality) = launch.inherited_state.personality {
            libc::syscall(libc::SYS_personality, personality);
        }
        let envp = launch.envp.list.as_ptr();
        let argv = launch.argv.list.as_ptr();
        libc::syscall(libc::SYS_execve, launch.path.as_ptr(), argv, envp);
        let mut errno = *libc::__errno_location();
        if errno == libc::ENOEXEC {
            let argv = launch.shell_argv.list.as_ptr();
            libc::syscall(libc::SYS_execve, c"/bin/sh".as_ptr(), argv, envp);
            errno = *libc::__errno_location();
        }
        // Stored in shared memory before the end of this process is visible.
        launch.control.set_not_started(errno);
        libc::_exit(127)
    }
}

/// Restores the launcher's original state in the child.
///
/// # Safety
///
/// Only for the child of [`Launch::start`], because it changes the whole process.
unsafe fn restore(inherited_state: &InheritedState) {
    // SAFETY: plain calls with pointers to locals and to `inherited_state`.
    unsafe {
        for (which, timer) in inherited_state.timers.iter().enumerate() {
            if timer.it_value.tv_sec != 0 || timer.it_value.tv_usec != 0 {
                libc::syscall(libc::SYS_setitimer, which, timer, null_mut::<c_void>());
            }
        }
        for (resource, limit) in RAISED.into_iter().zip(&inherited_state.limits) {
            sys::set_limit(resource, limit);
        }
        for fd in 0..3 {
            if inherited_state.closed & (1 << fd) != 0 {
                libc::close(fd);
            }
        }
        sys::set_disposition(libc::SIGPIPE, inherited_state.sigpipe);
        sys::set_disposition(libc::SIGXFSZ, libc::SIG_DFL);
        // The guard's threads may have set a handler for an ignored signal.
        for signal in (1..=64).filter(|s| inherited_state.ignored & (1 << (s - 1)) != 0) {
            sys::set_disposition(signal, libc::SIG_IGN);
        }
        libc::sigprocmask(libc::SIG_SETMASK, &inherited_state.mask, null_mut());
    }
}
