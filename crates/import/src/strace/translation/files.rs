//! Calls that name files: look-ups, changes of names and of status, directories and mounts.

use super::Translated;
use crate::strace::system_call::SystemCall;
use crate::strace::text::Arg;
use crate::strace::tracer::Tracer;
use backstory_abi::{self as abi, op};

/// Translates a call of this table. `None` for any other call.
pub(super) fn translate(tracer: &mut Tracer<'_>, call: &SystemCall<'_>) -> Option<Translated> {
    Some(match call.name {
        "stat" | "stat64" | "statfs" | "statfs64" => looked(tracer, call, (None, 0), 0),
        "lstat" | "lstat64" => looked(tracer, call, (None, 0), libc::AT_SYMLINK_NOFOLLOW),
        "newfstatat" | "fstatat64" => looked(tracer, call, (Some(0), 1), call.flags_i32(3)),
        "statx" => looked(tracer, call, (Some(0), 1), call.flags_i32(2)),
        "access" => access(tracer, call, (None, 0)),
        "faccessat" | "faccessat2" => access(tracer, call, (Some(0), 1)),
        "readlink" => one(tracer, call, op::READLINK, (None, 0), 0, 0),
        "readlinkat" => one(tracer, call, op::READLINK, (Some(0), 1), 0, 0),
        "truncate" | "truncate64" => one(tracer, call, op::TRUNCATE, (None, 0), 0, 0),
        "unlink" => one(tracer, call, op::UNLINK, (None, 0), 0, 0),
        "rmdir" => one(tracer, call, op::UNLINK, (None, 0), libc::AT_REMOVEDIR, 0),
        "unlinkat" => one(tracer, call, op::UNLINK, (Some(0), 1), call.flags_i32(2), 0),
        "mkdir" => one(tracer, call, op::MKDIR, (None, 0), 0, call.flags_u32(1)),
        "mkdirat" => one(tracer, call, op::MKDIR, (Some(0), 1), 0, call.flags_u32(2)),
        "mknod" => one(tracer, call, op::MKNOD, (None, 0), 0, call.flags_u32(1)),
        "mknodat" => one(tracer, call, op::MKNOD, (Some(0), 1), 0, call.flags_u32(2)),
        "rename" => two(tracer, call, op::RENAME, [(None, 0), (None, 1)], 0),
        "renameat" => two(tracer, call, op::RENAME, [(Some(0), 1), (Some(2), 3)], 0),
        "renameat2" => two(
            tracer,
            call,
            op::RENAME,
            [(Some(0), 1), (Some(2), 3)],
            call.flags_u32(4),
        ),
        "link" => two(tracer, call, op::LINK, [(None, 0), (None, 1)], 0),
        "linkat" => two(
            tracer,
            call,
            op::LINK,
            [(Some(0), 1), (Some(2), 3)],
            call.flags_u32(4),
        ),
        "symlink" => symlink(tracer, call, (None, 1)),
        "symlinkat" => symlink(tracer, call, (Some(1), 2)),
        "chmod" => meta(tracer, call, abi::META_MODE, (None, 0), 0),
        "fchmodat" | "fchmodat2" => meta(
            tracer,
            call,
            abi::META_MODE,
            (Some(0), 1),
            call.flags_u32(3),
        ),
        "fchmod" => of_descriptor(tracer, call, abi::META_MODE),
        "chown" | "chown32" => meta(tracer, call, abi::META_OWNER, (None, 0), 0),
        "lchown" | "lchown32" => meta(
            tracer,
            call,
            abi::META_OWNER,
            (None, 0),
            libc::AT_SYMLINK_NOFOLLOW as u32,
        ),
        "fchownat" => meta(
            tracer,
            call,
            abi::META_OWNER,
            (Some(0), 1),
            call.flags_u32(4),
        ),
        "fchown" | "fchown32" => of_descriptor(tracer, call, abi::META_OWNER),
        "utime" | "utimes" => meta(tracer, call, abi::META_TIMES, (None, 0), 0),
        "utimensat" | "futimesat" if call.raw(1) == "NULL" => {
            of_descriptor(tracer, call, abi::META_TIMES)
        }
        "utimensat" | "futimesat" => meta(
            tracer,
            call,
            abi::META_TIMES,
            (Some(0), 1),
            call.flags_u32(3),
        ),
        "setxattr" | "removexattr" => meta(tracer, call, abi::META_ATTR, (None, 0), 0),
        "lsetxattr" | "lremovexattr" => meta(
            tracer,
            call,
            abi::META_ATTR,
            (None, 0),
            libc::AT_SYMLINK_NOFOLLOW as u32,
        ),
        "fsetxattr" | "fremovexattr" => of_descriptor(tracer, call, abi::META_ATTR),
        "chdir" => chdir(tracer, call),
        "fchdir" => fchdir(tracer, call),
        "getcwd" => getcwd(tracer, call),
        "chroot" => one(tracer, call, op::CHROOT, (None, 0), 0, 0),
        "mount" => mount(tracer, call),
        "umount" | "umount2" => unmount(tracer, call),
        "pivot_root" => two(tracer, call, op::PIVOT, [(None, 0), (None, 1)], 0),
        _ => return None,
    })
}

/// The arguments of a directory descriptor, if there is one, and of a path.
type PathAt = (Option<usize>, usize);

fn one(
    tracer: &mut Tracer<'_>,
    call: &SystemCall<'_>,
    op: u16,
    (dir, path): PathAt,
    arg: i32,
    aux: u32,
) -> Translated {
    let name = call.path(path)?;
    let dir = tracer.directory(call, dir, name);
    tracer.add(call, op, |record| {
        record.fd(dir).arg(arg).aux(aux).string(name);
    });
    Ok(())
}

fn two(
    tracer: &mut Tracer<'_>,
    call: &SystemCall<'_>,
    op: u16,
    [(old_dir, old), (new_dir, new)]: [PathAt; 2],
    flags: u32,
) -> Translated {
    let (old, new) = (call.path(old)?, call.path(new)?);
    let old_dir = tracer.directory(call, old_dir, old);
    let new_dir = tracer.directory(call, new_dir, new);
    tracer.add(call, op, |record| {
        record
            .fd(old_dir)
            .arg(new_dir)
            .aux(flags)
            .string(old)
            .string(new);
    });
    Ok(())
}

fn symlink(tracer: &mut Tracer<'_>, call: &SystemCall<'_>, (dir, path): PathAt) -> Translated {
    let (target, name) = (call.path(0)?, call.path(path)?);
    let dir = tracer.directory(call, dir, name);
    tracer.add(call, op::SYMLINK, |record| {
        record.fd(dir).string(target).string(name);
    });
    Ok(())
}

/// A look-up. One of a descriptor itself says nothing about a name.
fn looked(tracer: &mut Tracer<'_>, call: &SystemCall<'_>, at: PathAt, flags: i32) -> Translated {
    // strace 6.11 prints NULL for the empty path.
    let is_of_descriptor = call.path(at.1).is_ok_and(<[u8]>::is_empty) || call.raw(at.1) == "NULL";
    match is_of_descriptor {
        true => Ok(()),
        false => one(tracer, call, op::STAT, at, flags, 0),
    }
}

fn access(tracer: &mut Tracer<'_>, call: &SystemCall<'_>, at: PathAt) -> Translated {
    let mode = call.flags_i32(at.1 + 1);
    one(tracer, call, op::ACCESS, at, mode, call.flags_u32(at.1 + 2))
}

fn meta(
    tracer: &mut Tracer<'_>,
    call: &SystemCall<'_>,
    what: i32,
    at: PathAt,
    flags: u32,
) -> Translated {
    one(tracer, call, op::META, at, what, flags)
}

fn of_descriptor(tracer: &mut Tracer<'_>, call: &SystemCall<'_>, what: i32) -> Translated {
    if let Some(fd) = tracer.descriptor(call, 0) {
        tracer.add(call, op::META, |record| {
            record.fd(fd).arg(what).string(b"");
        });
    }
    Ok(())
}

fn chdir(tracer: &mut Tracer<'_>, call: &SystemCall<'_>) -> Translated {
    let name = call.path(0)?;
    tracer.directory(call, None, name);
    tracer.add(call, op::CHDIR, |record| {
        record.fd(libc::AT_FDCWD).string(name).string(b"");
    });
    tracer.moved(call);
    Ok(())
}

fn fchdir(tracer: &mut Tracer<'_>, call: &SystemCall<'_>) -> Translated {
    if let Some(fd) = tracer.descriptor(call, 0) {
        tracer.add(call, op::CHDIR, |record| {
            record.fd(fd).string(b"").string(b"");
        });
        tracer.moved(call);
    }
    Ok(())
}

fn getcwd(tracer: &mut Tracer<'_>, call: &SystemCall<'_>) -> Translated {
    if call.ok()
        && let Some(path) = call.args.first().and_then(Arg::path)
    {
        tracer.learn_start(call, path);
    }
    Ok(())
}

fn mount(tracer: &mut Tracer<'_>, call: &SystemCall<'_>) -> Translated {
    let source = call.path(0).unwrap_or_default();
    let target = call.path(1)?;
    tracer.add(call, op::MOUNT, |record| {
        record.aux(call.flags_u32(3)).string(source).string(target);
    });
    Ok(())
}

fn unmount(tracer: &mut Tracer<'_>, call: &SystemCall<'_>) -> Translated {
    let target = call.path(0)?;
    tracer.add(call, op::MOUNT, |record| {
        record.arg(1).string(b"").string(target);
    });
    Ok(())
}

impl Tracer<'_> {
    /// The directory from which a path starts: a descriptor, or `AT_FDCWD`.
    pub(super) fn directory(
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
    pub(super) fn learn_start(&mut self, call: &SystemCall<'_>, directory: &[u8]) {
        if self.findings.cwd.is_empty() && self.is_at_start(call) && directory.starts_with(b"/") {
            self.findings.cwd = directory.to_vec();
        }
    }

    /// An open of a relative path returned a descriptor of this file.
    pub(super) fn learn_directory(
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
