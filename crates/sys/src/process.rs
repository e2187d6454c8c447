//! Thin, safe wrappers of the system calls that neither std nor rustix offers in the form needed here.
//!
//! Invariant: nothing here keeps state but where a handler writes to; what must be true for a call to be sound is said at the call.
#![allow(unsafe_code)]

use crate::process_tree;
use rustix::event::Timespec;
use std::ffi::{CStr, c_int};
use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicI32, Ordering};

/// Process ids as the kernel has them.
pub type Pid = i32;

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// Forks. 0 in the child.
///
/// The caller has one thread: a child of a threaded process could find any lock taken for ever.
pub fn fork() -> io::Result<Pid> {
    // SAFETY: called while single-threaded, so the child may go on using the heap and everything else.
    check(unsafe { libc::fork() })
}

/// Ends the process at once: no destructors, no buffers written, which in a forked copy belong to the original.
pub fn exit_now(status: i32) -> ! {
    // SAFETY: never returns, touches nothing.
    unsafe { libc::_exit(status) }
}

/// A set of signals.
pub type SignalSet = libc::sigset_t;

/// Every signal.
pub fn all_signals() -> SignalSet {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigfillset initialises the set.
    unsafe {
        libc::sigfillset(set.as_mut_ptr());
        set.assume_init()
    }
}

/// Sets the calling thread's signal mask and returns the former one.
pub fn set_mask(mask: &SignalSet) -> SignalSet {
    let mut old = all_signals();
    // SAFETY: both point to initialised sets.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, &mut old) };
    old
}

/// A descriptor on which blocked signals can be read.
pub fn signal_fd() -> io::Result<OwnedFd> {
    let set = all_signals();
    // SAFETY: the set is initialised; the result is a new descriptor that nobody else owns.
    unsafe {
        let fd = check(libc::signalfd(
            -1,
            &set,
            libc::SFD_CLOEXEC | libc::SFD_NONBLOCK,
        ))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Next pending signal, if any.
pub fn read_signal(fd: BorrowedFd<'_>) -> Option<libc::signalfd_siginfo> {
    const SIZE: usize = size_of::<libc::signalfd_siginfo>();
    // SAFETY: a structure of plain integers.
    let mut info: libc::signalfd_siginfo = unsafe { zeroed() };
    // SAFETY: the buffer is as long as said.
    let n = unsafe { libc::read(fd.as_raw_fd(), (&raw mut info).cast(), SIZE) };
    (n == SIZE as isize).then_some(info)
}

/// This process leaves no core file behind, whatever ends it.
pub fn no_core() {
    // Errors are harmless: the worst is a core file too many.
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// Lets the next signal of that number act on this process with its default action (a stop), as if it had just arrived.
pub fn act_on_self(signal: c_int) {
    // SAFETY: sets are initialised by the calls; the default action of a stop signal stops the process and returns after SIGCONT.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        let mut old_action: libc::sigaction = zeroed();
        action.sa_sigaction = libc::SIG_DFL;
        libc::sigaction(signal, &action, &mut old_action);
        let mut set = zeroed();
        let mut old = zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        libc::raise(signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, &mut old);
        libc::pthread_sigmask(libc::SIG_SETMASK, &old, null_mut());
        libc::sigaction(signal, &old_action, null_mut());
    }
}

/// This process is not ended by the terminal's keys (Ctrl-C, Ctrl-\) from now on; nor are those that it starts later.
pub fn outlive_interrupts() {
    for signal in [libc::SIGINT, libc::SIGQUIT] {
        // SAFETY: ignoring a signal needs no handler, and touches nothing else.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Where [`when_asked_to_end`] hears of signals.
static ASKED: AtomicI32 = AtomicI32::new(-1);

extern "C" fn asked(signal: c_int) {
    let number = signal as u8;
    // SAFETY: `write` may be called in a handler, and reads one byte that lives as long; whoever was interrupted finds its `errno` again.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(ASKED.load(Ordering::Relaxed), (&raw const number).cast(), 1);
        *libc::__errno_location() = errno;
    }
}

/// Has `end` called, on a thread of its own, when this process is to end by a key (Ctrl-C), by SIGTERM or because its terminal is gone, with the
/// signal's number; then the process ends of the signal, as it would have. What was ignored is still ignored. Once a process; those that it starts
/// have these signals as if nothing had been said.
pub fn when_asked_to_end(end: impl Fn(i32) + Send + 'static) -> io::Result<()> {
    let (heard, tell) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let wait = move || {
        let mut number = [0];
        // Only an interruption reads nothing: the other end is never closed.
        while rustix::io::read(&heard, &mut number) != Ok(1) {}
        let signal = c_int::from(number[0]);
        end(signal);
        // SAFETY: the signal's default action ends the process.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::kill(libc::getpid(), signal);
        }
    };
    std::thread::Builder::new().spawn(wait)?;
    ASKED.store(tell.into_raw_fd(), Ordering::Relaxed);
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: actions are initialised by the calls or here; the handler does only what a handler may.
        unsafe {
            let mut action: libc::sigaction = zeroed();
            libc::sigaction(signal, null(), &mut action);
            if action.sa_sigaction != libc::SIG_IGN {
                action.sa_sigaction = asked as *const () as usize;
                action.sa_flags = libc::SA_RESTART;
                libc::sigemptyset(&mut action.sa_mask);
                libc::sigaction(signal, &action, null_mut());
            }
        }
    }
    Ok(())
}

/// What `waitid` said of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Which child.
    pub pid: Pid,
    /// `CLD_EXITED`, `CLD_KILLED`, `CLD_DUMPED`, `CLD_STOPPED`, `CLD_CONTINUED`
    pub code: c_int,
    /// Exit status or signal.
    pub status: c_int,
}

impl Change {
    /// As `wait` would have reported it.
    pub fn wait_status(self) -> i32 {
        match self.code {
            libc::CLD_EXITED => (self.status & 0xff) << 8,
            libc::CLD_DUMPED => (self.status & 0x7f) | 0x80,
            libc::CLD_STOPPED => ((self.status & 0xff) << 8) | 0x7f,
            libc::CLD_CONTINUED => 0xffff,
            _ => self.status & 0x7f,
        }
    }
}

/// `waitid` without waiting. None: there are children, but none with news. `ECHILD`: no children.
pub fn child_change(which: Option<Pid>, options: c_int) -> io::Result<Option<Change>> {
    let (kind, id) = which.map_or((libc::P_ALL, 0), |pid| (libc::P_PID, pid as u32));
    // SAFETY: a plain structure which the kernel fills; the fields read are those of SIGCHLD.
    unsafe {
        let mut info: libc::siginfo_t = zeroed();
        check(libc::waitid(kind, id, &mut info, options | libc::WNOHANG))?;
        let pid = info.si_pid();
        Ok((pid != 0).then(|| Change {
            pid,
            code: info.si_code,
            status: info.si_status(),
        }))
    }
}

/// How often a child that must go on is looked at: as long may it be stopped without anybody being told. Seconds.
pub const LOOK_AFTER: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// A child that somebody stopped goes on. Whoever waits for its answer could not know whom to continue. Its parent is told once all of its
/// threads have stopped; one that hangs in a file system does not stop, so the child is looked at, too.
pub fn keep_going(child: Pid) {
    if matches!(child_change(Some(child), libc::WSTOPPED), Ok(Some(_)))
        || process_tree::stopped(child)
    {
        let _ = kill(child, libc::SIGCONT); // it may just have ended
    }
}

/// Takes a dead child's body away.
pub fn reap(pid: Pid) {
    let mut status = 0;
    // SAFETY: the status is a plain integer of ours.
    unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG) };
}

/// This process becomes the parent of its descendants' orphans.
pub fn become_subreaper() {
    // SAFETY: no pointers.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
}

/// Names the process, as `ps` shows it.
pub fn set_name(name: &CStr) {
    // SAFETY: the kernel copies at most 16 bytes of a NUL-terminated string.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr(), 0, 0, 0) };
}

/// Sends a signal. Errors are the callers' to ignore: the target may just have gone.
pub fn kill(pid: Pid, signal: c_int) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::kill(pid, signal) }).map(drop)
}

/// Sends a signal with the value that somebody queued it with.
pub fn queue(pid: Pid, signal: c_int, value: u64) -> io::Result<()> {
    let value = libc::sigval {
        sival_ptr: value as *mut libc::c_void,
    };
    // SAFETY: the pointer is never followed, it is a number in transit.
    check(unsafe { libc::sigqueue(pid, signal, value) }).map(drop)
}

/// The thread exists (or is a zombie).
pub fn thread_exists(pid: Pid, tid: Pid) -> bool {
    // SAFETY: no pointers; signal 0 only asks.
    let result = unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, 0) };
    result == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

/// The interval timers, which an `execve` keeps and a fork does not.
pub fn timers() -> [libc::itimerval; 3] {
    // SAFETY: plain integers, filled by the kernel.
    unsafe {
        let mut timers: [libc::itimerval; 3] = zeroed();
        for (which, timer) in timers.iter_mut().enumerate() {
            libc::syscall(libc::SYS_getitimer, which, timer);
        }
        timers
    }
}

/// Stops this process's interval timers.
pub fn stop_timer(which: usize) {
    // SAFETY: the structure is read only.
    unsafe {
        let off: libc::itimerval = zeroed();
        libc::syscall(
            libc::SYS_setitimer,
            which,
            &off,
            null_mut::<libc::itimerval>(),
        );
    }
}

/// Closes one descriptor that no owner in this process knows of.
pub fn close(fd: RawFd) {
    // SAFETY: inherited, so nothing here owns it.
    unsafe { libc::close(fd) };
}

/// Makes the given standard descriptors `/dev/null`.
pub fn nullify(fds: &[RawFd]) {
    // SAFETY: plain descriptors and a constant string.
    unsafe {
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        if null < 0 {
            return;
        }
        for &fd in fds {
            if fd != null {
                libc::dup2(null, fd);
            }
        }
        if !fds.contains(&null) {
            libc::close(null);
        }
    }
}

/// Two connected sockets that descriptors can be passed over.
pub fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut pair = [0; 2];
    // SAFETY: the array has two elements; the descriptors are new.
    unsafe {
        check(libc::socketpair(
            libc::AF_UNIX,
            libc::SOCK_STREAM | libc::SOCK_CLOEXEC,
            0,
            pair.as_mut_ptr(),
        ))?;
        Ok((OwnedFd::from_raw_fd(pair[0]), OwnedFd::from_raw_fd(pair[1])))
    }
}

const CONTROL: usize = 32; // >= CMSG_SPACE(size of one descriptor)

#[repr(C, align(8))]
struct Control([u8; CONTROL]);

/// Sends a descriptor over a socket of [`socket_pair`].
pub fn send_fd(socket: BorrowedFd<'_>, fd: BorrowedFd<'_>) -> io::Result<()> {
    let mut byte = [b'L'];
    let mut control = Control([0; CONTROL]);
    let mut iov = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    // SAFETY: all pointers are to locals that live through the call; the control buffer holds one descriptor.
    unsafe {
        let mut message: libc::msghdr = zeroed();
        message.msg_iov = &mut iov;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(4) as usize;
        let header = libc::CMSG_FIRSTHDR(&message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(4) as usize;
        libc::CMSG_DATA(header)
            .cast::<RawFd>()
            .write_unaligned(fd.as_raw_fd());
        let sent = libc::sendmsg(socket.as_raw_fd(), &message, libc::MSG_NOSIGNAL);
        check(sent as c_int).map(drop)
    }
}

/// Receives a byte, and the descriptor that came with it, if something is waiting.
pub fn receive(socket: BorrowedFd<'_>) -> Option<(u8, Option<OwnedFd>)> {
    let mut byte = [0];
    let mut control = Control([0; CONTROL]);
    let mut iov = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    // SAFETY: as in `send_fd`; a descriptor that arrives is new and nobody else's.
    unsafe {
        let mut message: libc::msghdr = zeroed();
        message.msg_iov = &mut iov;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = CONTROL;
        let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
        if libc::recvmsg(socket.as_raw_fd(), &mut message, flags) <= 0 {
            return None;
        }
        let header = libc::CMSG_FIRSTHDR(&message);
        if header.is_null() || (*header).cmsg_type != libc::SCM_RIGHTS {
            return Some((byte[0], None));
        }
        let fd = libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned();
        Some((byte[0], Some(OwnedFd::from_raw_fd(fd))))
    }
}

/// The kernel's own structure: libc hides the signals that it uses itself, which a caller of ours may have ignored all the same.
#[repr(C)]
struct KernelAction {
    handler: libc::sighandler_t,
    flags: u64,
    restorer: usize,
    mask: u64,
}

/// What a signal does at present.
pub fn disposition(signal: c_int) -> libc::sighandler_t {
    let mut action = KernelAction {
        handler: libc::SIG_DFL,
        flags: 0,
        restorer: 0,
        mask: 0,
    };
    // SAFETY: only reads into a structure of the kernel's layout.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigaction,
            signal,
            null::<KernelAction>(),
            &mut action,
            8,
        )
    };
    action.handler
}

/// Makes a signal ignored or act by default. Safe between a vfork and an exec.
pub fn set_disposition(signal: c_int, handler: libc::sighandler_t) {
    debug_assert!(handler == libc::SIG_IGN || handler == libc::SIG_DFL);
    let action = KernelAction {
        handler,
        flags: 0,
        restorer: 0,
        mask: 0,
    };
    // SAFETY: no handler of ours is named, so no code can be run by it; the structure has the kernel's layout.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigaction,
            signal,
            &action,
            null_mut::<KernelAction>(),
            8,
        )
    };
}

/// Replaces the program. Returns only the error.
pub fn exec(path: &CStr, argv: &[*const libc::c_char]) -> io::Error {
    debug_assert_eq!(argv.last(), Some(&null()));
    // SAFETY: argv ends with a null pointer and its strings live; the environment is the process's own.
    unsafe { libc::execv(path.as_ptr(), argv.as_ptr()) };
    io::Error::last_os_error()
}

/// No signal.
pub fn no_signals() -> SignalSet {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        set.assume_init()
    }
}

/// Waits until a child has ended, and reaps it.
pub fn wait_for(pid: Pid) {
    let mut status = 0;
    // SAFETY: the status is a plain integer of ours.
    while unsafe { libc::waitpid(pid, &mut status, 0) } < 0 {
        if io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            break;
        }
    }
}

/// Leaves the session, its terminal and its process group.
pub fn leave_session() {
    // SAFETY: no pointers. A group's leader can't, and need not.
    unsafe { libc::setsid() };
}

/// This process gets `signal` when its parent ends.
pub fn signal_at_parents_end(signal: c_int) {
    // SAFETY: no pointers.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal, 0, 0, 0) };
}

/// A process sent this signal, not the kernel.
pub fn sent_by_process(info: &libc::signalfd_siginfo) -> bool {
    matches!(
        info.ssi_code,
        libc::SI_USER | libc::SI_QUEUE | libc::SI_TKILL | libc::SI_MESGQ
    )
}

/// This process.
pub fn own_pid() -> Pid {
    std::process::id() as Pid
}

/// The parent, unless that is in another pid namespace.
pub fn parent() -> Option<Pid> {
    rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get())
}

/// What an errno means, in the words a shell uses.
pub fn describe(errno: c_int) -> String {
    let mut buffer = [0; 256];
    // SAFETY: the buffer is as long as said and stays NUL-terminated.
    unsafe {
        if libc::strerror_r(errno, buffer.as_mut_ptr(), buffer.len() - 1) != 0 {
            return format!("error {errno}");
        }
        CStr::from_ptr(buffer.as_ptr())
            .to_string_lossy()
            .into_owned()
    }
}

/// Dead children need nobody to reap them from now on.
pub fn forget_children() {
    set_disposition(libc::SIGCHLD, libc::SIG_IGN);
}

/// Processors that this process may use.
pub fn processors() -> usize {
    let affinity = rustix::thread::sched_getaffinity(None);
    affinity.map_or(1, |set| set.count() as usize)
}

/// One heap for all threads to come: mapping one for each takes longer than most recorded commands run.
pub fn share_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: no pointers; an unknown parameter is refused.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Raises a soft limit to its hard one. Returns what it was.
pub fn raise_limit(resource: libc::__rlimit_resource_t) -> libc::rlimit {
    let mut was = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the structure is plain and ours.
    unsafe { libc::getrlimit(resource, &mut was) };
    if was.rlim_cur != was.rlim_max {
        let raised = libc::rlimit {
            rlim_cur: was.rlim_max,
            ..was
        };
        set_limit(resource, &raised);
    }
    was
}

/// Sets a limit. Safe between a vfork and an exec.
pub fn set_limit(resource: libc::__rlimit_resource_t, limit: &libc::rlimit) {
    // SAFETY: the structure is only read. A refusal leaves the limit, which was possible before, as it is.
    unsafe { libc::setrlimit(resource, limit) };
}
