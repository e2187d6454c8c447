//! The conditions under which the broker serves a caller: the broker must be no way out of a
//! sandbox. A caller is served only if a program that it executes itself would have had the same
//! rights without the recording.
//!
//! Two restrictions leave no trace in `/proc`: `no_new_privs`, which every recorded process has
//! anyway, and Landlock. The guard is notified of both, and the supervisor marks the process by its
//! limit `RLIMIT_RTTIME`. Children inherit it, and no ordinary user can raise it.

use backstory_sys as sys;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

/// Lines of `/proc/PID/status` that must be equal: user and group ids, and capabilities.
const EQUAL_LINES: &[&str] = &[
    "Uid:", "Gid:", "Groups:", "CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:",
];

/// Namespaces that must be the same. The last two are those of children.
const NAMESPACES: &[&str] = &[
    "user",
    "mnt",
    "pid",
    "net",
    "ipc",
    "uts",
    "time",
    "cgroup",
    "pid_for_children",
    "time_for_children",
];

/// Files of `/proc/PID` that must be equal. A kernel may lack those of the security modules.
const EQUAL_FILES: &[&str] = &[
    "cgroup",
    "personality",
    "oom_score_adj",
    "attr/current",
    "attr/apparmor/current",
    "attr/smack/current",
];

/// The mark of a process that restricted itself, where the limit was unlimited. It is far beyond
/// any time that a process can use.
const MARK: libc::rlim_t = 1 << 62;

/// True if all conditions hold for a thread.
pub(super) fn hold(broker: u32, caller: u32) -> bool {
    status_allows(broker, caller)
        && NAMESPACES
            .iter()
            .all(|name| same_namespace(broker, caller, name))
        && EQUAL_FILES
            .iter()
            .all(|name| same_file(broker, caller, name))
        && same_root(broker, caller)
        && same_session(broker, caller)
        && same_mark(broker, caller)
}

/// Marks the process of a thread as restricted, if it is not refused anyway.
///
/// # Errors
/// Nothing would tell its children from callers that are served.
pub(super) fn mark(broker: u32, tid: u32) -> io::Result<()> {
    lower_limit(tid).or_else(|error| match is_refused_for_ever(broker, tid) {
        true => Ok(()),
        false => Err(error),
    })
}

fn lower_limit(tid: u32) -> io::Result<()> {
    let was = sys::limit_of(tid, libc::RLIMIT_RTTIME)?;
    let mark = was.rlim_max.saturating_sub(1).min(MARK);
    // A limit of 0 cannot be lowered, and 0 is no process.
    match mark < was.rlim_max && tid != 0 {
        true => sys::lower_limit_of(tid, libc::RLIMIT_RTTIME, mark),
        false => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// True if the process has ended, or has other ids than the broker. It then is in a user namespace
/// of its own, because `no_new_privs` holds for it, and no process leaves one for its parent.
fn is_refused_for_ever(broker: u32, tid: u32) -> bool {
    let read = |pid: u32| fs::read_to_string(format!("/proc/{pid}/status"));
    match (read(broker), read(tid)) {
        (Ok(broker), Ok(caller)) => ["Uid:", "Gid:"]
            .iter()
            .any(|name| line(&broker, name) != line(&caller, name)),
        (_, Err(error)) => error.kind() == io::ErrorKind::NotFound,
        _ => false,
    }
}

fn status_allows(broker: u32, caller: u32) -> bool {
    let read = |pid: u32| fs::read_to_string(format!("/proc/{pid}/status"));
    let (Ok(broker), Ok(caller)) = (read(broker), read(caller)) else {
        return false;
    };
    let filters = |status: &str| number(status, "Seccomp_filters:");
    let equal = |name: &&str| matches!((line(&broker, name), line(&caller, name)), (Some(a), Some(b)) if a == b);
    EQUAL_LINES.iter().all(equal)
        && number(&broker, "NoNewPrivs:") == Some(0)
        && number(&caller, "TracerPid:") == Some(0)
        // The caller has the guard's filter, and no other that the broker lacks.
        && filters(&broker).is_some_and(|own| filters(&caller) == Some(own + 1))
}

/// The value of a line.
fn line<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name))
}

fn number(status: &str, name: &str) -> Option<u64> {
    line(status, name)?.trim().parse().ok()
}

fn same_namespace(broker: u32, caller: u32, name: &str) -> bool {
    let read = |pid: u32| fs::read_link(format!("/proc/{pid}/ns/{name}"));
    same_or_absent(read(broker), read(caller))
}

fn same_file(broker: u32, caller: u32, name: &str) -> bool {
    let read = |pid: u32| fs::read(format!("/proc/{pid}/{name}"));
    same_or_absent(read(broker), read(caller))
}

/// True if both are equal, or if the kernel has neither. Another error refuses the caller.
fn same_or_absent<T: PartialEq>(broker: io::Result<T>, caller: io::Result<T>) -> bool {
    match (broker, caller) {
        (Ok(broker), Ok(caller)) => broker == caller,
        (Err(broker), Err(caller)) => {
            let absent = [Some(libc::ENOENT), Some(libc::EINVAL)];
            let (broker, caller) = (broker.raw_os_error(), caller.raw_os_error());
            broker == caller && absent.contains(&broker)
        }
        _ => false,
    }
}

fn same_root(broker: u32, caller: u32) -> bool {
    let read = |pid: u32| {
        let path = format!("/proc/{pid}/root");
        let meta = fs::metadata(&path).ok()?;
        Some((fs::read_link(&path).ok()?, meta.dev(), meta.ino()))
    };
    read(broker).is_some_and(|broker| read(caller) == Some(broker))
}

fn same_session(broker: u32, caller: u32) -> bool {
    // In a container, both may be in the session of a process outside. A caller is a descendant of
    // the launcher, as the broker is: it cannot have come from another session there.
    let session = |pid: u32| sys::session_of(pid as sys::Pid).ok();
    session(broker).is_some_and(|broker| session(caller) == Some(broker))
}

fn same_mark(broker: u32, caller: u32) -> bool {
    let most = |pid: u32| sys::limit_of(pid, libc::RLIMIT_RTTIME).map(|limit| limit.rlim_max);
    matches!((most(broker), most(caller)), (Ok(broker), Ok(caller)) if broker == caller)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    struct Sleeper(Child);

    impl Sleeper {
        fn new(program: &str, args: &[&str]) -> Sleeper {
            Sleeper(Command::new(program).args(args).spawn().unwrap())
        }

        fn id(&self) -> u32 {
            self.0.id()
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn processes_of_the_same_rights_are_equal_until_one_is_marked() {
        let (first, second) = (
            Sleeper::new("sleep", &["60"]),
            Sleeper::new("sleep", &["60"]),
        );
        let (broker, caller) = (first.id(), second.id());
        assert!(NAMESPACES.iter().all(|n| same_namespace(broker, caller, n)));
        assert!(EQUAL_FILES.iter().all(|n| same_file(broker, caller, n)));
        assert!(same_root(broker, caller) && same_session(broker, caller));
        assert!(same_mark(broker, caller));
        mark(broker, caller).unwrap();
        assert!(!same_mark(broker, caller));
        // Neither process has a filter of the guard.
        assert!(!hold(broker, caller));
    }

    #[test]
    fn what_cannot_be_read_is_not_equal() {
        let denied = || io::Error::from_raw_os_error(libc::EACCES);
        let absent = || io::Error::from_raw_os_error(libc::ENOENT);
        assert!(same_or_absent(Ok(1), Ok(1)));
        assert!(same_or_absent::<u8>(Err(absent()), Err(absent())));
        assert!(!same_or_absent::<u8>(Err(denied()), Err(denied())));
        assert!(!same_or_absent(Ok(1), Err(absent())));
        assert!(!same_or_absent(Ok(1), Ok(2)));
    }
}
