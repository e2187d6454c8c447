//! Takes this process's rights away, before it reads anything of foreign origin.
//!
//! | right | how it is taken |
//! | --- | --- |
//! | memory over 256 MiB, 2 s of processor time, files, core dumps | `setrlimit(2)` |
//! | to run while another process wants to | `nice`, `SCHED_IDLE` |
//! | to open files, to connect | `landlock(7)`, where the kernel has it |
//! | all system calls but those for memory, and for the answer | `seccomp(2)` |
//!
//! A plug-in is a program of the user's own. It needs more system calls: it keeps the right to read
//! and execute files, and gets no filter.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use backstory_inspection::worker::PROCESSOR_SECONDS;
use libc::{
    BPF_ABS, BPF_JEQ, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W, c_long, sock_filter,
};
use rustix::time::{ClockId, clock_gettime};

/// The most bytes of address space.
pub const MEMORY: u64 = 256 << 20;

/// The audit architecture of this program's calls.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

/// Calls for memory, for the answer, and for the end.
const ALLOWED: &[c_long] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_futex,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_sigaltstack,
    libc::SYS_getrandom,
    libc::SYS_clock_gettime,
    libc::SYS_sched_yield,
    libc::SYS_getpid,
    libc::SYS_gettid,
];

/// Calls that libraries try, and do without: they fail with `EACCES`.
const REFUSED: &[c_long] = &[
    libc::SYS_openat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_fstat,
    libc::SYS_lseek,
    libc::SYS_ioctl,
    libc::SYS_prctl,
    libc::SYS_getcwd,
    libc::SYS_readlinkat,
    libc::SYS_sched_getaffinity,
    libc::SYS_sysinfo,
    libc::SYS_uname,
    libc::SYS_clone3,
    libc::SYS_clone,
];

/// Calls that may map memory, but not memory that can be executed. The third argument is the
/// protection.
const MAPPING: &[c_long] = &[libc::SYS_mmap, libc::SYS_mprotect];

/// Limits memory, time and files, and gives this process the lowest priority.
pub fn limit(files: u64) {
    let set = |resource, soft: u64, hard: u64| {
        let limit = libc::rlimit {
            rlim_cur: soft,
            rlim_max: hard,
        };
        backstory_sys::set_limit(resource, &limit);
    };
    set(libc::RLIMIT_AS, MEMORY, MEMORY);
    set(libc::RLIMIT_CPU, PROCESSOR_SECONDS, PROCESSOR_SECONDS + 1);
    set(libc::RLIMIT_CORE, 0, 0);
    set(libc::RLIMIT_FSIZE, 0, 0);
    set(libc::RLIMIT_NOFILE, files, files);
    backstory_sys::come_last();
}

/// Leaves this process its memory and its open descriptors.
///
/// # Errors
/// The kernel refused the filter: nothing may be read then.
pub fn enter() -> io::Result<()> {
    // The first look at a clock opens a file.
    processor_time();
    backstory_sys::set_no_new_privs()?;
    backstory_sys::forbid_files(None)?;
    limit(3);
    backstory_sys::restrict_calls(&filter(backstory_sys::own_pid()))
}

/// The processor time that this thread has used. The worker has one thread.
pub fn processor_time() -> Duration {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(used.tv_sec.unsigned_abs(), used.tv_nsec as u32)
}

/// Leaves a plug-in the right to read and execute files.
///
/// # Errors
/// The kernel refused a restriction.
pub fn enter_for_plugin() -> io::Result<()> {
    backstory_sys::set_no_new_privs()?;
    let root = std::fs::File::open("/")?;
    backstory_sys::forbid_files(Some(root.as_fd()))?;
    drop(root);
    limit(64);
    Ok(())
}

/// The program of the filter. `own` may signal itself: `abort(3)` does.
fn filter(own: i32) -> Vec<sock_filter> {
    let statement = |code: u32, k: u32| sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    };
    let load = |offset: u32| statement(BPF_LD | BPF_W | BPF_ABS, offset);
    let jump = |code: u32, k: u32, yes: u8, no: u8| sock_filter {
        code: (BPF_JMP | code | BPF_K) as u16,
        jt: yes,
        jf: no,
        k,
    };
    let end = |action: u32| statement(BPF_RET | BPF_K, action);
    let kill = end(libc::SECCOMP_RET_KILL_PROCESS);
    let allow = end(libc::SECCOMP_RET_ALLOW);
    // struct seccomp_data: the number, the architecture, then arguments of 8 bytes from 16.
    let mut program = vec![load(4), jump(BPF_JEQ, ARCHITECTURE, 1, 0), kill, load(0)];
    for &call in ALLOWED {
        program.extend([jump(BPF_JEQ, call as u32, 0, 1), allow]);
    }
    for &call in REFUSED {
        let refuse = end(libc::SECCOMP_RET_ERRNO | libc::EACCES as u32);
        program.extend([jump(BPF_JEQ, call as u32, 0, 1), refuse]);
    }
    for &call in MAPPING {
        program.extend([
            jump(BPF_JEQ, call as u32, 0, 4),
            load(16 + 2 * 8),
            jump(BPF_JSET, libc::PROT_EXEC as u32, 0, 1),
            kill,
            allow,
        ]);
    }
    program.extend([
        jump(BPF_JEQ, libc::SYS_tgkill as u32, 0, 3),
        load(16),
        jump(BPF_JEQ, own as u32, 0, 1),
        allow,
        kill,
    ]);
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: u32 = BPF_LD | BPF_W | BPF_ABS;
    const IS_EQUAL: u32 = BPF_JMP | BPF_JEQ | BPF_K;
    const HAS_BIT: u32 = BPF_JMP | BPF_JSET | BPF_K;
    const END: u32 = BPF_RET | BPF_K;

    const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
    const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;
    const REFUSE: u32 = libc::SECCOMP_RET_ERRNO | libc::EACCES as u32;

    /// The process that the filter is made for.
    const OWN: u64 = 4711;

    /// The action of the filter for a call of this architecture.
    fn verdict_of(architecture: u32, call: c_long, arguments: [u64; 3]) -> u32 {
        let word = |offset: u32| match offset {
            0 => call as u32,
            4 => architecture,
            _ => arguments[(offset as usize - 16) / 8] as u32,
        };
        let (program, mut at, mut loaded) = (filter(OWN as i32), 0, 0);
        loop {
            let step = program[at];
            let next = |yes: bool| usize::from(if yes { step.jt } else { step.jf });
            at += 1;
            match u32::from(step.code) {
                LOAD => loaded = word(step.k),
                IS_EQUAL => at += next(loaded == step.k),
                HAS_BIT => at += next(loaded & step.k != 0),
                END => return step.k,
                code => panic!("an instruction {code:x}"),
            }
        }
    }

    fn verdict(call: c_long, arguments: [u64; 3]) -> u32 {
        verdict_of(ARCHITECTURE, call, arguments)
    }

    #[test]
    fn a_worker_may_take_memory_and_answer_and_a_try_to_open_a_file_fails() {
        for call in [libc::SYS_read, libc::SYS_write, libc::SYS_brk] {
            assert_eq!(verdict(call, [0; 3]), ALLOW, "{call}");
        }
        for call in [libc::SYS_openat, libc::SYS_clone, libc::SYS_clone3] {
            assert_eq!(verdict(call, [0; 3]), REFUSE, "{call}");
        }
    }

    #[test]
    fn every_call_that_is_not_listed_ends_a_worker() {
        for call in 0..1000 {
            let lists = [ALLOWED, REFUSED, MAPPING];
            let is_listed = lists.iter().any(|list| list.contains(&call));
            assert_eq!(verdict(call, [0; 3]) == KILL, !is_listed, "{call}");
        }
        for call in [
            libc::SYS_socket,
            libc::SYS_connect,
            libc::SYS_execve,
            libc::SYS_execveat,
            libc::SYS_ptrace,
            libc::SYS_process_vm_writev,
            libc::SYS_kill,
            libc::SYS_unlinkat,
            libc::SYS_io_uring_setup,
            libc::SYS_bpf,
        ] {
            assert_eq!(verdict(call, [0; 3]), KILL, "{call}");
        }
    }

    #[test]
    fn a_worker_makes_no_memory_executable_and_signals_only_itself() {
        let (data, code) = (libc::PROT_READ | libc::PROT_WRITE, libc::PROT_EXEC);
        for call in [libc::SYS_mmap, libc::SYS_mprotect] {
            assert_eq!(verdict(call, [0, 0, data as u64]), ALLOW, "{call}");
            assert_eq!(verdict(call, [0, 0, (data | code) as u64]), KILL, "{call}");
        }
        assert_eq!(verdict(libc::SYS_tgkill, [OWN, 0, 0]), ALLOW);
        assert_eq!(verdict(libc::SYS_tgkill, [OWN + 1, 0, 0]), KILL);
    }

    #[test]
    fn a_call_of_another_architecture_ends_a_worker() {
        const I386: u32 = 0x4000_0003;
        const X32_BIT: c_long = 0x4000_0000;
        assert_eq!(verdict_of(I386, libc::SYS_read, [0; 3]), KILL);
        assert_eq!(verdict(libc::SYS_read | X32_BIT, [0; 3]), KILL);
    }
}
