//! Calls that use descriptors: opens, reads, writes, copies, closes.

use super::Translated;
use crate::calls::processes::{LISTED, READ, WRITTEN};
use crate::calls::system_call::SystemCall;
use crate::calls::text::Arg;
use crate::calls::trace_state::TraceState;
use backstory_abi::op;

/// Translates a call of this table. `None` for any other call.
pub(crate) fn translate(trace: &mut TraceState<'_>, call: &SystemCall<'_>) -> Option<Translated> {
    match call.name {
        "open" => {
            return Some(open(
                trace,
                call,
                None,
                0,
                (call.flags_i32(1), call.flags_u32(2)),
            ));
        }
        "creat" => {
            let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
            return Some(open(trace, call, None, 0, (flags, call.flags_u32(1))));
        }
        "openat" => {
            return Some(open(
                trace,
                call,
                Some(0),
                1,
                (call.flags_i32(2), call.flags_u32(3)),
            ));
        }
        "openat2" => {
            let part = |name| call.field(name).map_or(0, crate::calls::constants::flags);
            let how = (part("flags") as i32, part("mode") as u32);
            return Some(open(trace, call, Some(0), 1, how));
        }
        "close" => close(trace, call),
        "close_range" => close_range(trace, call),
        "read" | "pread64" | "pread" | "readv" | "preadv" | "preadv2" | "recv" | "recvfrom"
        | "recvmsg" | "recvmmsg" | "recvmmsg_time64" => {
            used(trace, call, 0, op::READ, call.ok());
            return None;
        }
        "write" | "pwrite64" | "pwrite" | "writev" | "pwritev" | "pwritev2" | "send" | "sendto"
        | "sendmsg" | "sendmmsg" | "vmsplice" => {
            used(
                trace,
                call,
                0,
                op::WRITE,
                call.result().is_some_and(|written| written > 0),
            );
            return None;
        }
        "fallocate" => used(trace, call, 0, op::WRITE, call.ok()),
        "ftruncate" | "ftruncate64" => {
            if let Some(fd) = trace.descriptor(call, 0) {
                trace.add(call, op::TRUNCATE, |record| {
                    record.fd(fd).string(b"");
                });
            }
        }
        "getdents" | "getdents64" | "readdir" => used(trace, call, 0, op::LIST, call.ok()),
        "mmap" | "mmap2" | "old_mmap" => map(trace, call),
        "dup" => duplicated(trace, call, false, false),
        "dup2" => duplicated(trace, call, false, true),
        "dup3" => duplicated(trace, call, call.flags_i32(2) & libc::O_CLOEXEC != 0, true),
        "fcntl" | "fcntl64" => control(trace, call),
        "ioctl" => device(trace, call),
        "sendfile" | "sendfile64" => copied(trace, call, 1, 0),
        "copy_file_range" | "splice" => copied(trace, call, 0, 2),
        "tee" => copied(trace, call, 0, 1),
        _ => return None,
    }
    Some(Ok(()))
}

fn open(
    trace: &mut TraceState<'_>,
    call: &SystemCall<'_>,
    dir: Option<usize>,
    path: usize,
    (flags, mode): (i32, u32),
) -> Translated {
    let name = call.path(path)?;
    let dir = trace.directory(call, dir, name);
    trace.learn_directory(call, name, call.returned.note.as_deref());
    trace.add(call, op::OPEN, |record| {
        record.fd(dir).arg(flags).aux(mode).string(name);
    });
    trace.opened(call, call.number(), flags & libc::O_CLOEXEC != 0);
    Ok(())
}

fn close(trace: &mut TraceState<'_>, call: &SystemCall<'_>) {
    let Some(fd) = call.descriptor(0) else {
        return;
    };
    // A close that fails with EINTR or EIO has closed the descriptor all the same.
    let failed = call.result() == Some(-libc::EBADF);
    if !failed {
        trace.add(call, op::CLOSE, |record| {
            record.fd(fd);
        });
        trace.forget_descriptors(call, |open| open == fd);
    }
}

fn close_range(trace: &mut TraceState<'_>, call: &SystemCall<'_>) {
    const CLOSE_RANGE_CLOEXEC: i32 = 4;
    let (first, last) = (call.flags(0), call.flags(1) as u32);
    // The constants have no names in records.
    let flags = match call.raw(2) {
        "CLOSE_RANGE_CLOEXEC" => CLOSE_RANGE_CLOEXEC,
        "CLOSE_RANGE_UNSHARE" => 2,
        _ => call.flags_i32(2),
    };
    trace.add(call, op::CLOSE_RANGE, |record| {
        record.fd(first as i32).aux(last).arg(flags);
    });
    if call.ok() && flags & CLOSE_RANGE_CLOEXEC == 0 {
        trace.forget_descriptors(call, |open| {
            (first..=i64::from(last)).contains(&i64::from(open))
        });
    }
}

/// A use of the descriptor at an argument. Only the first of its kind becomes a record.
fn used(trace: &mut TraceState<'_>, call: &SystemCall<'_>, at: usize, op: u16, happened: bool) {
    let kind = match op {
        op::READ => READ,
        op::WRITE => WRITTEN,
        _ => LISTED,
    };
    let Some(fd) = trace.descriptor(call, at) else {
        return;
    };
    // Without a result, the call may have moved data.
    let may_have = happened || call.returned.value.is_none();
    if may_have && trace.is_first_use(call, fd, kind) {
        trace.add(call, op, |record| {
            record.fd(fd);
        });
    }
}

fn map(trace: &mut TraceState<'_>, call: &SystemCall<'_>) {
    let flags = call.flags_u32(3);
    if flags & libc::MAP_ANONYMOUS as u32 != 0 || !call.ok() {
        return;
    }
    let Some(fd) = trace.descriptor(call, 4) else {
        return;
    };
    let prot = call.flags_i32(2);
    trace.add(call, op::MAP, |record| {
        // The result is an address.
        record.fd(fd).arg(prot).aux(flags).result(0);
    });
}

fn duplicated(trace: &mut TraceState<'_>, call: &SystemCall<'_>, cloexec: bool, replaced: bool) {
    let Some(old) = trace.descriptor(call, 0) else {
        return;
    };
    let new = call.number().filter(|new| *new != old);
    trace.add(call, op::DUP, |record| {
        record
            .fd(old)
            .arg(if cloexec { libc::O_CLOEXEC } else { 0 })
            .aux(u32::from(replaced));
    });
    trace.opened(call, new, cloexec);
}

fn control(trace: &mut TraceState<'_>, call: &SystemCall<'_>) {
    let command = call.flags_i32(1);
    match command {
        // strace prints `F_GETFD` and others by names that are not known here.
        libc::F_DUPFD if call.raw(1).contains("F_DUPFD") || call.raw(1).starts_with('0') => {
            duplicated(trace, call, false, false);
        }
        libc::F_DUPFD_CLOEXEC => duplicated(trace, call, true, false),
        libc::F_SETFD => cloexec(trace, call, call.flags_i32(2) & libc::FD_CLOEXEC != 0),
        _ => {}
    }
}

fn cloexec(trace: &mut TraceState<'_>, call: &SystemCall<'_>, on: bool) {
    let Some(fd) = trace.descriptor(call, 0) else {
        return;
    };
    if call.ok() {
        trace.add(call, op::CLOEXEC, |record| {
            record.fd(fd).arg(i32::from(on));
        });
        trace.set_cloexec(call, fd, on);
    }
}

fn device(trace: &mut TraceState<'_>, call: &SystemCall<'_>) {
    let command = call.raw(1);
    let is = |name: &str| command.split(['|', ' ']).any(|part| part == name);
    match () {
        () if is("FIOCLEX") => cloexec(trace, call, true),
        () if is("FIONCLEX") => cloexec(trace, call, false),
        () if is("FICLONE") || is("BTRFS_IOC_CLONE") => {
            let cloned = call.ok();
            copy(trace, call, (2, 0), cloned);
        }
        () => {}
    }
}

fn copied(trace: &mut TraceState<'_>, call: &SystemCall<'_>, from: usize, to: usize) {
    let moved = call.result().is_none_or(|moved| moved > 0);
    copy(trace, call, (from, to), moved);
}

fn copy(trace: &mut TraceState<'_>, call: &SystemCall<'_>, at: (usize, usize), happened: bool) {
    let ends = (trace.descriptor(call, at.0), trace.descriptor(call, at.1));
    if let (Some(from), Some(to)) = ends
        && happened
    {
        trace.add(call, op::COPY, |record| {
            record.fd(from).arg(to);
        });
    }
}

impl TraceState<'_> {
    /// Appends a record of a call, with the call's result.
    pub(crate) fn add(
        &mut self,
        call: &SystemCall<'_>,
        op: u16,
        fill: impl FnOnce(&mut backstory_eventlog::record::RecordBuilder),
    ) {
        self.records.add(op, call.thread, call.time, |record| {
            call.finish(record);
            fill(record);
        });
    }

    /// The descriptor at an argument. A descriptor that no call of the log opened is noted.
    pub(crate) fn descriptor(&mut self, call: &SystemCall<'_>, at: usize) -> Option<i32> {
        let arg = call.args.get(at)?;
        let fd = arg.descriptor().filter(|fd| *fd >= 0)?;
        self.note_descriptor(call, fd, arg);
        Some(fd)
    }

    fn note_descriptor(&mut self, call: &SystemCall<'_>, fd: i32, arg: &Arg) {
        let Some(process) = self.processes.get_mut(&call.thread.pid) else {
            return;
        };
        // A failed call may have named a descriptor that does not exist.
        if process.descriptors.contains_key(&fd) || !call.ok() {
            return;
        }
        process.opened(fd, false);
        match arg.note() {
            Some(note) if !process.is_orphan => {
                let all = &mut self.findings.descriptors;
                if !all.iter().any(|(known, _)| *known == fd) {
                    all.push((fd, note.to_vec()));
                }
            }
            _ => drop(self.gaps.unknown_descriptors.insert(fd)),
        }
    }

    /// True if this is the first use of its kind since the descriptor was opened.
    fn is_first_use(&mut self, call: &SystemCall<'_>, fd: i32, kind: u8) -> bool {
        let process = self.processes.get_mut(&call.thread.pid);
        process.is_none_or(|process| process.is_first(fd, kind))
    }

    /// A call returned a descriptor.
    pub(crate) fn opened(&mut self, call: &SystemCall<'_>, fd: Option<i32>, cloexec: bool) {
        if let (Some(fd), Some(process)) = (fd, self.processes.get_mut(&call.thread.pid)) {
            process.opened(fd, cloexec);
        }
    }

    fn set_cloexec(&mut self, call: &SystemCall<'_>, fd: i32, on: bool) {
        use crate::calls::processes::CLOEXEC;
        if let Some(process) = self.processes.get_mut(&call.thread.pid) {
            let marks = process.descriptors.entry(fd).or_default();
            *marks = if on {
                *marks | CLOEXEC
            } else {
                *marks & !CLOEXEC
            };
        }
    }

    fn forget_descriptors(&mut self, call: &SystemCall<'_>, closed: impl Fn(i32) -> bool) {
        if let Some(process) = self.processes.get_mut(&call.thread.pid) {
            process.descriptors.retain(|fd, _| !closed(*fd));
        }
    }
}
