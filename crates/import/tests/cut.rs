//! A log that is cut at any byte, or changed at any byte, is imported or refused. The program never
//! panics.

// A test stops at a failed expectation. The lint exempts only functions that are marked as tests.
#![allow(clippy::unwrap_used)]

use backstory_eventlog::Log;
use backstory_import::Error;
use std::path::Path;

use crate::importing;

/// A format, with lines of many kinds.
const LOGS: &[(&str, &str)] = &[
    ("strace", STRACE),
    ("auditd", AUDITD),
    ("bpftrace", BPFTRACE),
    ("perf", PERF),
];

const STRACE: &str = r#"7 1700000000.000001 execve("/bin/sh", ["sh", "-c", "a\nb\377"...], ["A=b"] /* 1 var */) = 0 <0.000123>
7 1700000000.000002 openat(AT_FDCWD</w\74>, "in", O_RDONLY|O_CLOEXEC) = 3</w/in>
7 1700000000.000003 clone3({flags=CLONE_VM|CLONE_VFORK, exit_signal=SIGCHLD, stack=0x7f, stack_size=0x9000}, 88 <unfinished ...>
8 1700000000.000004 connect(4<TCP:[127.0.0.1:1->127.0.0.1:2]>, {sa_family=AF_INET6, sin6_port=htons(443), inet_pton(AF_INET6, "::1", &sin6_addr), sin6_scope_id=0}, 28) = -1 EINPROGRESS (Operation now in progress)
8 1700000000.000005 recvmsg(3, {msg_name=NULL, msg_control=[{cmsg_len=20, cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, cmsg_data=[5, 6]}], msg_flags=0}, 0) = 1
8 1700000000.000006 execve("/bin/x", ["x"], 0x7f /* 3 vars */ <unfinished ...>
7 1700000000.000007 <... clone3 resumed> => {parent_tid=[0]}, 88) = 8
8 1700000000.000008 <... execve resumed>) = 0
8 1700000000.000009 --- SIGTERM {si_signo=SIGTERM, si_code=SI_USER} ---
8 1700000000.000010 +++ killed by SIGTERM +++
7 1700000000.000011 wait4(-1, [{WIFSIGNALED(s) && WTERMSIG(s) == SIGTERM}], 0, NULL) = 8
7 1700000000.000012 pipe2([3<pipe:[1]>, 4<pipe:[1]>], 0) = 0
7 1700000000.000013 renameat2(3</w>, "a", AT_FDCWD</w>, "b", RENAME_NOREPLACE) = 0
7 1700000000.000014 write(1, "x", 1x
)                       = 1
7 1700000000.000015 exit_group(3) = ?
7 1700000000.000016 +++ exited with 3 +++
"#;

const AUDITD: &str = r#"node=a type=SYSCALL msg=audit(1700000000.001:1): arch=c000003e syscall=59 success=yes exit=0 a0=1 items=2 ppid=1 pid=7 comm="sh" exe="/bin/sh"
node=a type=EXECVE msg=audit(1700000000.001:1): argc=2 a0="sh" a1_len=6 a1[0]=61 a1[1]=6262
node=a type=CWD msg=audit(1700000000.001:1): cwd="/w"
node=a type=PATH msg=audit(1700000000.001:1): item=0 name="/bin/sh" nametype=NORMAL
node=a type=PATH msg=audit(1700000000.001:1): item=1 name=(null) nametype=NORMAL
node=a type=PROCTITLE msg=audit(1700000000.001:1): proctitle=7368006162
node=a type=SYSCALL msg=audit(1700000000.002:2): arch=c000003e syscall=293 success=yes exit=0 a0=1 a1=80000 items=0 ppid=1 pid=7 comm="sh" exe="/bin/sh"
node=a type=FD_PAIR msg=audit(1700000000.002:2): fd0=3 fd1=4
node=a type=SYSCALL msg=audit(1700000000.003:3): arch=c000003e syscall=56 success=yes exit=8 a0=1200011 items=0 ppid=1 pid=7 comm="sh" exe="/bin/sh"
node=a type=SYSCALL msg=audit(1700000000.004:4): arch=40000003 syscall=5 success=yes exit=3 a0=1 a1=241 a2=1b6 items=1 ppid=7 pid=8 comm="sh" exe="/bin/sh"
node=a type=PATH msg=audit(1700000000.004:4): item=0 name=6F2075 nametype=CREATE
node=a type=PROCTITLE msg=audit(1700000000.003:3): proctitle=7368006162
node=a type=SYSCALL msg=audit(1700000000.005:5): arch=c000003e syscall=42 success=no exit=-115 a0=4 a1=1 a2=10 items=0 ppid=7 pid=8 comm="sh" exe="/bin/sh"
node=a type=SOCKADDR msg=audit(1700000000.005:5): saddr=020000507F0000010000000000000000
node=a type=SYSCALL msg=audit(1700000000.006:6): arch=c000003e syscall=9 success=yes exit=140276521746432 a0=0 a1=9f5f a2=1 a3=2 items=0 ppid=7 pid=8 comm="x" exe="/bin/x"
node=a type=MMAP msg=audit(1700000000.006:6): fd=3 flags=0x2
node=a type=ANOM_ABEND msg=audit(1700000000.007:7): pid=8 sig=11
node=a type=SYSCALL msg=audit(1700000000.008:8): arch=c000003e syscall=231 a0=3 items=0 ppid=1 pid=7 comm="sh" exe="/bin/sh"
"#;

const BPFTRACE: &str = "\n\x1ebackstory 1\n\x1e7 1700000000.000001 execve(\x1f/bin/sh\x1f, [ <unfinished ...>\n\x1e7 1700000000.000002 <... execve resumed>\x1fsh\x1f, <unfinished ...>\n\x1e7 1700000000.000003 <... execve resumed>\x1f\"a\nb\u{ff}\x1f, <unfinished ...>\n\x1e7 1700000000.000004 <... execve resumed>], 0) = 0\n\x1e7 1700000000.000005 clone(flags=16640) = 8\n\x1e8 1700000000.000007 tracepoint:syscalls:sys_exit_openat(-100, \x1fin\x1f, 577, 438) = 3\n\x1e8 1700000000.000006 tracepoint:syscalls:sys_exit_chdir(\x1fd\x1f, 0) = 0\n\x1e8 1700000000.000008 tracepoint:syscalls:sys_exit_connect(4, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr(\x1f127.0.0.1\x1f)}, 0) = -115\n\x1e8 1700000000.000009 tracepoint:syscalls:sys_exit_renameat2(-100, \x1fa\x1f, <unfinished ...>\n\x1e8 1700000000.000010 <... tracepoint:syscalls:sys_exit_renameat2 resumed>-100, \x1fb\x1f, 0) = 0\n\x1e8 1700000000.000011 +++ killed by 15 +++\n\x1e7 1700000000.000012 tracepoint:syscalls:sys_exit_pipe2([3, 4], 0) = 0\n\x1e7 1700000000.000013 exit_group(3) = ?\n\x1e7 1700000000.000014 +++ exited with 3 +++\nLost 3 events\n";

const PERF: &str = r#"         ? (         ): :7/7  ... [continued]: read())                       = 1
     0.045 (         ): sh/7 execve(filename: "/bin/sh", argv: 0x7fff, envp: 0x5555) ...
     0.050 (         ): sh/7 sched:sched_process_exec(filename: "/bin/sh", pid: 7 (sh), old_pid: 7 (sh))
     0.045 ( 7.993 ms): sh/7  ... [continued]: execve())                     = 0
     8.100 ( 0.010 ms): sh/7 openat(dfd: CWD, filename: "a"b, c", flags: CREAT|WRONLY, mode: IRUGO|IWUGO) = 3</w/x>
     8.200 ( 0.010 ms): sh/7 pipe2(fildes: 0x7ffd, flags: CLOEXEC)           = 0
     8.250 ( 0.010 ms): sh/7 fcntl(fd: 3, cmd: GETFL)                        = WRONLY|LARGEFILE
     8.300 (         ): sh/7 vfork()                                         ...
     8.400 (         ): sh/7 task:task_newtask(pid: 8 (sh), comm: "sh", clone_flags: 16640)
         ? (         ): sh/8  ... [continued]: vfork())                      = 0
     8.300 ( 0.300 ms): sh/7  ... [continued]: vfork())                      = 8 (sh)
     8.700 ( 0.020 ms): sh/8 connect(fd: 4, uservaddr: { .family: INET, port: 9, addr: 127.0.0.1 }, addrlen: 16) = -1 ECONNREFUSED (Connection refused)
     8.750 ( 0.020 ms): sh/8 renameat2(olddfd: CWD, oldname: "a
b", newdfd: CWD, newname: "c", flags: NOREPLACE) = 0
     8.800 (         ): sh/8 signal:signal_deliver(sig: 9)
     8.810 (         ): sh/8 sched:sched_process_exit(comm: "sh", pid: 8 (sh), prio: 120, group_dead: 1)
LOST 3 events!
     8.900 ( 0.010 ms): sh/7 wait4(upid: -1, stat_addr: 0x7ffd)              = 8 (sh)
     9.000 (         ): sh/7 exit_group(error_code: 3)                       = ?
     9.010 (         ): sh/7 sched:sched_process_exit(comm: "sh", pid: 7 (sh), prio: 120, group_dead: 1)
"#;

/// Imports a file. Returns the number of events of the run.
fn imported(dir: &Path, name: &str, bytes: &[u8]) -> Result<usize, Error> {
    let (_, log) = importing::imported(dir, name, "trace.log", bytes)?;
    let read = Log::open(&log).unwrap();
    assert_eq!(read.damage().reason(), None);
    assert!(read.resolved() && read.end().is_some());
    let events = read.events().count();
    std::fs::remove_file(&log).unwrap();
    Ok(events)
}

fn others(dir: &Path) -> Vec<String> {
    let all = std::fs::read_dir(dir).unwrap();
    let names = all.map(|one| one.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name != "trace.log").collect()
}

#[test]
fn a_log_cut_at_any_byte_is_imported_as_far_as_it_goes_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in LOGS {
        let whole = imported(dir.path(), name, text.as_bytes()).unwrap();
        assert!(whole > 9, "{name}: {whole}");
        // A script's first records are no call.
        let lines = match *name {
            "bpftrace" => 4,
            // The return of a call from before the log.
            "perf" => 1,
            _ => 0,
        };
        let (first_call, _) = text.match_indices('\n').nth(lines).unwrap();
        let mut last = 0;
        for end in 0..text.len() {
            match imported(dir.path(), name, &text.as_bytes()[..end]) {
                Ok(events) => {
                    // A guess that the rest corrects may take further records.
                    assert!(events <= whole + 2, "{name}, {end}: {events}");
                    last = events;
                }
                Err(Error::OtherFormat { .. } | Error::WithoutNames { .. }) => {
                    assert!(end <= first_call, "{name}, {end}");
                }
                Err(error) => panic!("{name}, {end}: {error}"),
            }
            assert_eq!(others(dir.path()), Vec::<String>::new(), "{name}, {end}");
        }
        assert!(last + 3 >= whole, "{name}: {last} of {whole}");
    }
}

#[test]
fn a_log_with_any_byte_changed_is_imported_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in LOGS {
        for at in 0..text.len() {
            let with = [b'"', b'(', b'\n', 0, 0xff, b'9'][at % 6];
            let mut bytes = text.as_bytes().to_vec();
            bytes[at] = with;
            match imported(dir.path(), name, &bytes) {
                // The name of the machine, or the first record, was changed.
                Ok(_) | Err(Error::NotOfOneRun { .. }) => {}
                Err(Error::OtherFormat { .. }) if at < 16 => {}
                Err(error) => panic!("{name}, {at}: {error}"),
            }
        }
    }
}
