//! Calls that name files: look-ups, changes of names and of status, directories and mounts.

use super::Translated;
use crate::calls::system_call::SystemCall;
use crate::calls::text::Arg;
use crate::calls::trace_state::TraceState;
use backstory_abi::{self as abi, op};

/// Translates a call of this table. `None` for any other call.
pub(crate) fn translate(trace: &mut TraceState<'_>, call: &SystemCall<'_>) -> Option<Translated> {
    Some(match call.name {
        "stat" | "stat64" | "statfs" | "statfs64" => looked(trace, call, (None, 0), 0),
        "lstat" | "lstat64" => looked(trace, call, (None, 0), libc::AT_SYMLINK_NOFOLLOW),
        "newfstatat" | "fstatat64" => looked(trace, call, (Some(0), 1), call.flags_i32(3)),
        "statx" => looked(trace, call, (Some(0), 1), call.flags_i32(2)),
        "access" => access(trace, call, (None, 0)),
        "faccessat" | "faccessat2" => access(trace, call, (Some(0), 1)),
        "readlink" => one(trace, call, op::READLINK, (None, 0), 0, 0),
        "readlinkat" => one(trace, call, op::READLINK, (Some(0), 1), 0, 0),
        "truncate" | "truncate64" => one(trace, call, op::TRUNCATE, (None, 0), 0, 0),
        "unlink" => one(trace, call, op::UNLINK, (None, 0), 0, 0),
        "rmdir" => one(trace, call, op::UNLINK, (None, 0), libc::AT_REMOVEDIR, 0),
        "unlinkat" => one(trace, call, op::UNLINK, (Some(0), 1), call.flags_i32(2), 0),
        "mkdir" => one(trace, call, op::MKDIR, (None, 0), 0, call.flags_u32(1)),
        "mkdirat" => one(trace, call, op::MKDIR, (Some(0), 1), 0, call.flags_u32(2)),
        "mknod" => one(trace, call, op::MKNOD, (None, 0), 0, call.flags_u32(1)),
        "mknodat" => one(trace, call, op::MKNOD, (Some(0), 1), 0, call.flags_u32(2)),
        "rename" => two(trace, call, op::RENAME, [(None, 0), (None, 1)], 0),
        "renameat" => two(trace, call, op::RENAME, [(Some(0), 1), (Some(2), 3)], 0),
        "renameat2" => two(
            trace,
            call,
            op::RENAME,
            [(Some(0), 1), (Some(2), 3)],
            call.flags_u32(4),
        ),
        "link" => two(trace, call, op::LINK, [(None, 0), (None, 1)], 0),
        "linkat" => two(
            trace,
            call,
            op::LINK,
            [(Some(0), 1), (Some(2), 3)],
            call.flags_u32(4),
        ),
        "symlink" => symlink(trace, call, (None, 1)),
        "symlinkat" => symlink(trace, call, (Some(1), 2)),
        "chmod" => meta(trace, call, abi::META_MODE, (None, 0), 0),
        "fchmodat" | "fchmodat2" => {
            meta(trace, call, abi::META_MODE, (Some(0), 1), call.flags_u32(3))
        }
        "fchmod" => of_descriptor(trace, call, abi::META_MODE),
        "chown" | "chown32" => meta(trace, call, abi::META_OWNER, (None, 0), 0),
        "lchown" | "lchown32" => meta(
            trace,
            call,
            abi::META_OWNER,
            (None, 0),
            libc::AT_SYMLINK_NOFOLLOW as u32,
        ),
        "fchownat" => meta(
            trace,
            call,
            abi::META_OWNER,
            (Some(0), 1),
            call.flags_u32(4),
        ),
        "fchown" | "fchown32" => of_descriptor(trace, call, abi::META_OWNER),
        "utime" | "utimes" => meta(trace, call, abi::META_TIMES, (None, 0), 0),
        "utimensat" | "futimesat" if call.raw(1) == "NULL" => {
            of_descriptor(trace, call, abi::META_TIMES)
        }
        "utimensat" | "futimesat" => meta(
            trace,
            call,
            abi::META_TIMES,
            (Some(0), 1),
            call.flags_u32(3),
        ),
        "setxattr" | "removexattr" => meta(trace, call, abi::META_ATTR, (None, 0), 0),
        "lsetxattr" | "lremovexattr" => meta(
            trace,
            call,
            abi::META_ATTR,
            (None, 0),
            libc::AT_SYMLINK_NOFOLLOW as u32,
        ),
        "fsetxattr" | "fremovexattr" => of_descriptor(trace, call, abi::META_ATTR),
        "chdir" => chdir(trace, call),
        "fchdir" => fchdir(trace, call),
        "getcwd" => getcwd(trace, call),
        "chroot" => one(trace, call, op::CHROOT, (None, 0), 0, 0),
        "mount" => mount(trace, call),
        "umount" | "umount2" => unmount(trace, call),
        "pivot_root" => two(trace, call, op::PIVOT, [(None, 0), (None, 1)], 0),
        _ => return None,
    })
}

/// The arguments of a directory descriptor, if there is one, and of a path.
type PathAt = (Option<usize>, usize);

fn one(
    trace: &mut TraceState<'_>,
    call: &SystemCall<'_>,
    op: u16,
    (dir, path): PathAt,
    arg: i32,
    aux: u32,
) -> Translated {
    let name = call.path(path)?;
    let dir = trace.directory(call, dir, name);
    trace.add(call, op, |record| {
        record.fd(dir).arg(arg).aux(aux).string(name);
    });
    Ok(())
}

fn two(
    trace: &mut TraceState<'_>,
    call: &SystemCall<'_>,
    op: u16,
    [(old_dir, old), (new_dir, new)]: [PathAt; 2],
    flags: u32,
) -> Translated {
    let (old, new) = (call.path(old)?, call.path(new)?);
    let old_dir = trace.directory(call, old_dir, old);
    let new_dir = trace.directory(call, new_dir, new);
    trace.add(call, op, |record| {
        record
            .fd(old_dir)
            .arg(new_dir)
            .aux(flags)
            .string(old)
            .string(new);
    });
    Ok(())
}

fn symlink(trace: &mut TraceState<'_>, call: &SystemCall<'_>, (dir, path): PathAt) -> Translated {
    let (target, name) = (call.path(0)?, call.path(path)?);
    let dir = trace.directory(call, dir, name);
    trace.add(call, op::SYMLINK, |record| {
        record.fd(dir).string(target).string(name);
    });
    Ok(())
}

/// A look-up. One of a descriptor itself says nothing about a name.
fn looked(trace: &mut TraceState<'_>, call: &SystemCall<'_>, at: PathAt, flags: i32) -> Translated {
    // strace 6.11 prints NULL for the empty path.
    let is_of_descriptor = call.path(at.1).is_ok_and(<[u8]>::is_empty) || call.raw(at.1) == "NULL";
    match is_of_descriptor {
        true => Ok(()),
        false => one(trace, call, op::STAT, at, flags, 0),
    }
}

fn access(trace: &mut TraceState<'_>, call: &SystemCall<'_>, at: PathAt) -> Translated {
    let mode = call.flags_i32(at.1 + 1);
    one(trace, call, op::ACCESS, at, mode, call.flags_u32(at.1 + 2))
}

fn meta(
    trace: &mut TraceState<'_>,
    call: &SystemCall<'_>,
    what: i32,
    at: PathAt,
    flags: u32,
) -> Translated {
    one(trace, call, op::META, at, what, flags)
}

fn of_descriptor(trace: &mut TraceState<'_>, call: &SystemCall<'_>, what: i32) -> Translated {
    if let Some(fd) = trace.descriptor(call, 0) {
        trace.add(call, op::META, |record| {
            record.fd(fd).arg(what).string(b"");
        });
    }
    Ok(())
}

fn chdir(trace: &mut TraceState<'_>, call: &SystemCall<'_>) -> Translated {
    let name = call.path(0)?;
    trace.directory(call, None, name);
    trace.add(call, op::CHDIR, |record| {
        record.fd(libc::AT_FDCWD).string(name).string(b"");
    });
    trace.moved(call);
    Ok(())
}

fn fchdir(trace: &mut TraceState<'_>, call: &SystemCall<'_>) -> Translated {
    if let Some(fd) = trace.descriptor(call, 0) {
        trace.add(call, op::CHDIR, |record| {
            record.fd(fd).string(b"").string(b"");
        });
        trace.moved(call);
    }
    Ok(())
}

fn getcwd(trace: &mut TraceState<'_>, call: &SystemCall<'_>) -> Translated {
    if call.ok()
        && let Some(path) = call.args.first().and_then(Arg::path)
    {
        trace.learn_start(call, path);
    }
    Ok(())
}

fn mount(trace: &mut TraceState<'_>, call: &SystemCall<'_>) -> Translated {
    let source = call.path(0).unwrap_or_default();
    let target = call.path(1)?;
    trace.add(call, op::MOUNT, |record| {
        record.aux(call.flags_u32(3)).string(source).string(target);
    });
    Ok(())
}

fn unmount(trace: &mut TraceState<'_>, call: &SystemCall<'_>) -> Translated {
    let target = call.path(0)?;
    trace.add(call, op::MOUNT, |record| {
        record.arg(1).string(b"").string(target);
    });
    Ok(())
}

impl TraceState<'_> {
    /// The directory from which a path starts: a descriptor, or `AT_FDCWD`.
    pub(crate) fn directory(
        &mut self,
        call: &SystemCall<'_>,
        at: Option<usize>,
        path: &[u8],
    ) -> i32 {
        if let Some(note) = at.and_then(|at| call.args.get(at)).and_then(Arg::note)
            && call.descriptor(at.unwrap_or_default()) == Some(libc::AT_FDCWD)
        {
            self.learn_start(call, note);
        }
        if path.starts_with(b"/") {
            return libc::AT_FDCWD;
        }
        if let Some(fd) = at.and_then(|at| self.descriptor(call, at)) {
            return fd;
        }
        if self.findings.cwd.is_empty() && self.is_at_start(call) && !path.is_empty() {
            self.gaps.guessed_directory = true;
        }
        libc::AT_FDCWD
    }

    fn is_at_start(&self, call: &SystemCall<'_>) -> bool {
        let process = self.processes.get(&call.thread.pid);
        process.is_some_and(|process| process.is_at_start)
    }

    /// A process is in this directory. If none has moved, the command began there.
    pub(crate) fn learn_start(&mut self, call: &SystemCall<'_>, directory: &[u8]) {
        if self.findings.cwd.is_empty() && self.is_at_start(call) && directory.starts_with(b"/") {
            self.findings.cwd = directory.to_vec();
        }
    }

    /// An open of a relative path returned a descriptor of this file.
    pub(crate) fn learn_directory(
        &mut self,
        call: &SystemCall<'_>,
        path: &[u8],
        file: Option<&[u8]>,
    ) {
        let plain = path.strip_prefix(b"./").unwrap_or(path);
        let directory = file.and_then(|file| file.strip_suffix(plain)?.strip_suffix(b"/"));
        let is_relative = !path.starts_with(b"/") && !plain.starts_with(b".");
        let from_start = call.name == "open" || call.descriptor(0) == Some(libc::AT_FDCWD);
        if let Some(directory) = directory.filter(|of| is_relative && from_start && !of.is_empty())
        {
            self.learn_start(call, directory);
        }
    }

    fn moved(&mut self, call: &SystemCall<'_>) {
        if call.ok()
            && let Some(process) = self.processes.get_mut(&call.thread.pid)
        {
            process.is_at_start = false;
        }
    }
}
