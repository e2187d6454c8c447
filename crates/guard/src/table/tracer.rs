//! Which requests of ptrace(2) change what a tracee does.
//!
//! The recorder and the guard see the system calls of a tracee as those of any other process. A
//! tracer stops its tracee before and after each call. The kernel evaluates the seccomp filter
//! after the first of these stops, so the guard sees the number and the arguments that the tracer
//! left. Unknown is what a tracer changes afterwards: memory that the call points to, a result, a
//! call that it adds or carries out itself.
//!
//! All other requests only start, stop, continue or read the tracee, and leave the record complete.
//! The kernel refuses `PTRACE_O_SUSPEND_SECCOMP` to a tracer that has a filter itself, as every
//! process under the guard has.

use backstory_eventlog::reason::undecoded::{TRACER_EMULATION, TRACER_MEMORY, TRACER_REGISTERS};

/// The requests that change the tracee, as the header `linux/ptrace.h` numbers them.
pub(crate) const CHANGING: &[u32] = &[
    4, 5, 6, 13, 15, 19, 26, 30, 31, 32, 0x4203, 0x4205, 0x4210, 0x4212,
];

/// The part of a tracee that a request in [`CHANGING`] changes: a name in
/// [`backstory_eventlog::reason::UNDECODED`].
pub(crate) fn changed_by(request: u32) -> &'static str {
    match request {
        // PTRACE_POKETEXT, PTRACE_POKEDATA, PTRACE_SETSIGINFO
        4 | 5 | 0x4203 => TRACER_MEMORY,
        // PTRACE_SYSEMU, PTRACE_SYSEMU_SINGLESTEP
        31 | 32 => TRACER_EMULATION,
        // PTRACE_POKEUSER, PTRACE_SETREGS, PTRACE_SETFPREGS, PTRACE_SETFPXREGS,
        // PTRACE_SET_THREAD_AREA, PTRACE_ARCH_PRCTL, PTRACE_SETREGSET,
        // PTRACE_SET_SYSCALL_USER_DISPATCH_CONFIG, PTRACE_SET_SYSCALL_INFO
        _ => TRACER_REGISTERS,
    }
}
