//! Access to other processes: Yama and ptrace rights, and what `no_new_privs` takes away.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

use backstory_sys as sys;

use crate::finding::Finding;

/// Bytes that a child has at the same address as this process.
static MARK: [u8; 16] = *b"backstory doctor";

/// Reads the memory of a child, as the guard reads the arguments of its descendants' calls.
pub fn memory() -> Finding {
    const NAME: &str = "memory of descendants";
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    let scope = match scope {
        Ok(scope) => format!("kernel.yama.ptrace_scope = {}", scope.trim()),
        Err(_) => "no Yama".to_owned(),
    };
    match read_from_child() {
        Ok(()) => Finding::works(NAME, format!("can be read ({scope})")),
        Err(error) => Finding::limited(
            NAME,
            format!("cannot be read: {error} ({scope})"),
            "The guard cannot read the paths of the calls that it is notified of. These calls \
             stay unknown, and runs are not complete.",
            "Set kernel.yama.ptrace_scope to 1 or 0 (sysctl), or give the container \
             CAP_SYS_PTRACE.",
        ),
    }
}

fn read_from_child() -> io::Result<()> {
    let (wait, done) = rustix::pipe::pipe()?;
    let child = sys::fork()?;
    if child == 0 {
        drop(done);
        // Ends when the parent closes its end.
        let _ = rustix::io::read(&wait, &mut [0; 1]);
        sys::exit_now(0);
    }
    let mut bytes = [0; MARK.len()];
    let read = File::open(format!("/proc/{child}/mem"))
        .and_then(|memory| memory.read_exact_at(&mut bytes, MARK.as_ptr().addr() as u64));
    drop(done);
    sys::wait_for(child);
    read?;
    match bytes == MARK {
        true => Ok(()),
        false => Err(io::Error::other("other bytes were read")),
    }
}

/// Says whether set-user-id programs keep their privileges in a recorded command.
pub fn privileges() -> Finding {
    const NAME: &str = "set-user-id programs";
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.map(|value| value.trim().to_owned())
    };
    const SYS_ADMIN: u32 = 21;
    let effective = field("CapEff:").and_then(|mask| u64::from_str_radix(&mask, 16).ok());
    if effective.is_some_and(|mask| mask & (1 << SYS_ADMIN) != 0) {
        return Finding::works(NAME, "keep their privileges: this user has CAP_SYS_ADMIN");
    }
    if field("NoNewPrivs:").is_some_and(|value| value == "1") {
        return Finding::works(
            NAME,
            "have none here, recorded or not: no_new_privs is set already",
        );
    }
    Finding::limited(
        NAME,
        "lose their privileges: an ordinary user's filter needs no_new_privs",
        "`sudo`, `su` and rootless containers fail inside a recorded command. In a recorded shell \
         they work, unrecorded.",
        "For such a command, use `backstory record --guard=off`.",
    )
}
