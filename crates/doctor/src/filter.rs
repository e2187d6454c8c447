//! seccomp's user notification, tried with the guard's own filter and flags.

use std::io;
use std::os::fd::AsFd;

use backstory_guard::{Filter, FilterSpec};
use backstory_sys as sys;

use crate::attempt::in_child;
use crate::finding::Finding;

/// The consequence if no filter can be installed.
const WITHOUT: &str = "The recorder works alone. Static programs, Go programs and direct system \
                       calls are not recorded, and runs are not complete.";

/// Installs the guard's filter in a child.
pub fn listener() -> Finding {
    const NAME: &str = "seccomp notification";
    let filter = Filter::build(&FilterSpec::default());
    let installed = in_child(|| {
        let installed = filter.install();
        installed
            .map(drop)
            .map_err(|error| io::Error::from_raw_os_error(error.errno()))
    });
    let Err(error) = installed else {
        let found = format!(
            "a filter of {} instructions was installed (NEW_LISTENER, SPEC_ALLOW, WAIT_KILLABLE_RECV)",
            filter.len()
        );
        return Finding::works(NAME, found);
    };
    let found = |why: &str| format!("the filter was refused: {why} ({error})");
    match error.raw_os_error() {
        Some(libc::EBUSY) => Finding::limited(
            NAME,
            found("an outer filter already has a listener"),
            WITHOUT,
            "Start backstory outside the other recording. In a container, remove `listenerPath` \
             from the runtime's seccomp profile.",
        ),
        Some(libc::EPERM | libc::EACCES) => Finding::limited(
            NAME,
            found("an outer filter or the security policy forbids seccomp(2)"),
            WITHOUT,
            "Allow seccomp(2): in a container, use a profile that permits it, or \
             `--security-opt seccomp=unconfined`.",
        ),
        Some(libc::EINVAL | libc::ENOSYS) => Finding::limited(
            NAME,
            found("the kernel, or an outer filter, does not offer it"),
            WITHOUT,
            "Use Linux 5.19 or newer with CONFIG_SECCOMP_FILTER. In a container, use a profile \
             that permits seccomp(2).",
        ),
        _ => Finding::limited(
            NAME,
            found("unexpectedly"),
            WITHOUT,
            "Record with --guard=off, and report the message.",
        ),
    }
}

/// Tries the flag that makes notifications cheap (Linux 6.6).
pub fn wake_up() -> Finding {
    const NAME: &str = "seccomp wake-up";
    let allow = [libc::sock_filter {
        code: (libc::BPF_RET | libc::BPF_K) as u16,
        jt: 0,
        jf: 0,
        k: libc::SECCOMP_RET_ALLOW,
    }];
    let tried = in_child(|| {
        let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
        let listener = sys::install_filter(&allow, flags).or_else(|error| {
            if error.raw_os_error() != Some(libc::EACCES) {
                return Err(error);
            }
            sys::set_no_new_privs()?;
            sys::install_filter(&allow, flags)
        })?;
        match sys::wake_synchronously(listener.as_fd()) {
            true => Ok(()),
            false => Err(io::Error::from_raw_os_error(libc::EINVAL)),
        }
    });
    match tried {
        Ok(()) => Finding::works(NAME, "callers wake on the waker's processor"),
        Err(_) => Finding::limited(
            NAME,
            "the kernel cannot wake callers on the waker's processor",
            "Each notified call takes a few microseconds longer.",
            "Use Linux 6.6 or newer.",
        ),
    }
}
